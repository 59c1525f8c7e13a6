package ecsapi_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/fault"
)

var update = flag.Bool("update", false, "write the golden files")

func TestRequest_WhatIsWrongIsNamed(t *testing.T) {
	r := newRig(t)
	r.world()
	for _, x := range []struct{ operation, body, exception, says string }{
		{"RunTask", `{"taskDefinition":"web","cuont":2}`, "InvalidParameterException", "cuont: is not a member of this request"},
		{"RunTask", `{"taskdefinition":"web"}`, "InvalidParameterException", "did you mean taskDefinition?"},
		{"RunTask", `{"taskDefinition":"web","count":"2"}`, "SerializationException", "count: is a string; allowed is a whole number"},
		{"RunTask", `{"taskDefinition":"web","count":1.5}`, "SerializationException", "count: is the number 1.5; allowed is a whole number"},
		{"RunTask", `{"taskDefinition":"web","count":99999999999}`, "SerializationException", "count: is the number 99999999999"},
		{"RunTask", `{"taskDefinition":7}`, "SerializationException", "taskDefinition: is the number 7; allowed is a string"},
		{"RunTask", `{"taskDefinition":"web","tags":{}}`, "SerializationException", "tags: is an object; allowed is a list"},
		{"RunTask", `{"taskDefinition":"web","tags":["x"]}`, "SerializationException", "tags[0]: is a string; allowed is an object"},
		{"RunTask", `{"taskDefinition":"web","tags":[{"key":true}]}`, "SerializationException", "tags[0].key: is true; allowed is a string"},
		{"RunTask", `{"taskDefinition":"web","tags":[{"key":"a"},{"key":"a"}]}`, "InvalidParameterException", "repeats"},
		{"RunTask", `{"taskDefinition":"web","enableECSManagedTags":"true"}`, "SerializationException", "enableECSManagedTags: is a string; allowed is true or false"},
		{"RunTask", `{"taskDefinition":"web","taskDefinition":"web"}`, "SerializationException", "taskDefinition: is given twice"},
		{"RunTask", `{}`, "InvalidParameterException", "taskDefinition: is required"},
		{"RunTask", ``, "InvalidParameterException", "taskDefinition: is required"},
		{"RunTask", `{"taskDefinition":null}`, "InvalidParameterException", "taskDefinition: is required"},
		{"RunTask", `[]`, "SerializationException", "the request: is a list; allowed is an object"},
		{"RunTask", `{"taskDefinition":`, "SerializationException", "not JSON"},
		{"RunTask", `{"taskDefinition":"web"} {}`, "SerializationException", "not JSON"},
		{"RunTask", `{"taskDefinition":"web","launchType":"FARGATE"}`, "InvalidParameterException", "launchType: FARGATE is not supported"},
		{"RunTask", `{"taskDefinition":"web","launchType":"LAMBDA"}`, "InvalidParameterException", "launchType: LAMBDA is not supported: tasks run on your own instances; allowed: EC2, EXTERNAL"},
		{"RunTask", `{"taskDefinition":"web","networkConfiguration":{"awsvpcConfiguration":{"subnets":["a"]}}}`, "InvalidParameterException", "networkConfiguration.awsvpcConfiguration: is not supported"},
		{"RunTask", `{"taskDefinition":"web","capacityProviderStrategy":[{"capacityProvider":"x"}]}`, "InvalidParameterException", "capacityProviderStrategy: is not supported"},
		{"RunTask", `{"taskDefinition":"web","enableExecuteCommand":true}`, "InvalidParameterException", "enableExecuteCommand: is not supported"},
		{"RunTask", `{"taskDefinition":"web","volumeConfigurations":[{"name":"x"}]}`, "InvalidParameterException", "volumeConfigurations: is not supported"},
		{"RunTask", `{"taskDefinition":"web","platformVersion":"LATEST"}`, "InvalidParameterException", "platformVersion: is not supported"},
		{"RunTask", `{"taskDefinition":"web","propagateTags":"SERVICE"}`, "InvalidParameterException", "propagateTags"},
		{"RunTask", `{"taskDefinition":"web","overrides":{"containerOverrides":[{"name":"main","comand":[]}]}}`, "InvalidParameterException", "overrides.containerOverrides[0].comand"},
		{"RunTask", `{"taskDefinition":"web","cluster":"no such name!"}`, "InvalidParameterException", "cluster"},
		{"RunTask", `{"taskDefinition":"web","cluster":"arn:aws:ecs:us-east-1:123456789012:cluster/default"}`, "ClusterNotFoundException", "Cluster not found."},
		{"DescribeTasks", `{"tasks":[]}`, "InvalidParameterException", "tasks: is required"},
		{"DescribeTasks", `{"tasks":["x"],"include":["TAG"]}`, "InvalidParameterException", `include[0]: is "TAG"`},
		{"DescribeTasks", `{"tasks":[""]}`, "InvalidParameterException", "tasks: is empty"},
		{"ListTasks", `{"nextToken":"garbage"}`, "InvalidParameterException", "nextToken"},
		{"ListTasks", `{"maxResults":101}`, "InvalidParameterException", "maxResults: is 101"},
		{"ListTasks", `{"maxResults":0}`, "InvalidParameterException", "maxResults: is 0"},
		{"ListTasks", `{"desiredStatus":"DONE"}`, "InvalidParameterException", "desiredStatus"},
		{"ListClusters", `{"nextToken":"eyJjIjp7fX0"}`, "InvalidParameterException", "nextToken"},
		{"CreateCluster", `{"capacityProviders":["x"]}`, "InvalidParameterException", "capacityProviders: is not supported"},
		{"CreateCluster", `{"settings":[{"name":"containerInsights","value":"maybe"}]}`, "InvalidParameterException", "settings[0].value"},
		{"ListContainerInstances", `{"filter":"agentConnected == true"}`, "InvalidParameterException", "agentConnected"},
		{"RegisterTaskDefinition", `{"family":"x","containerDefinitions":[{"name":"a","image":"b","memory":"64"}]}`, "SerializationException", "containerDefinitions[0].memory"},
		{"RegisterTaskDefinition", `{"family":"x","containerDefinitions":[{"name":"a","image":"b","memory":64,"colour":1}]}`, "InvalidParameterException", "containerDefinitions[0].colour"},
		{"RegisterTaskDefinition", `{"family":"x","networkMode":"awsvpc","containerDefinitions":[{"name":"a","image":"b","memory":64}]}`, "InvalidParameterException", "awsvpc"},
		{"RegisterTaskDefinition", `{"family":"x","containerDefinitions":[{"name":"a","memory":64}]}`, "ClientException", "containerDefinitions[0].image"},
		{"RegisterTaskDefinition", ``, "ClientException", "family"},
		{"RunTask", `{"taskDefinition":"` + strings.Repeat("x", 256*1024) + `"}`, "ClientException", "at most 262144 are allowed"},
	} {
		exception, message := r.refused(x.operation, x.body)
		if exception != x.exception || !strings.Contains(message, x.says) {
			t.Errorf("%s %.80s: %s %q, want %s with %q", x.operation, x.body, exception, message, x.exception, x.says)
		}
	}
	if n := len(r.store.Tasks()); n != 0 {
		t.Errorf("%d tasks were made", n)
	}
}

func TestRequest_WhatStandsForAbsenceIsLetThrough(t *testing.T) {
	r := newRig(t)
	r.world()
	body := `{"taskDefinition":"web","networkConfiguration":{},"capacityProviderStrategy":[],"enableExecuteCommand":false,"volumeConfigurations":null,"platformVersion":"","clientToken":null,"tags":[],"overrides":{}}`
	if status, answer, _ := r.post("RunTask", body); status != http.StatusOK {
		t.Error(answer)
	}
}

func TestRequest_ATokenIsGoodForItsOwnRequestOnly(t *testing.T) {
	r := newRig(t)
	r.world()
	if status, answer, _ := r.post("RunTask", `{"taskDefinition":"web","count":5,"startedBy":"a"}`); status != http.StatusOK {
		t.Fatal(answer)
	}
	_, answer, _ := r.post("ListTasks", `{"maxResults":2,"startedBy":"a"}`)
	var page struct{ NextToken string }
	if err := json.Unmarshal([]byte(answer), &page); err != nil || page.NextToken == "" {
		t.Fatal(answer, err)
	}
	if status, answer, _ := r.post("ListTasks", `{"maxResults":3,"startedBy":"a","nextToken":"`+page.NextToken+`"}`); status != http.StatusOK || strings.Contains(answer, "nextToken") {
		t.Error(answer)
	}
	for _, body := range []string{
		`{"startedBy":"b","nextToken":"` + page.NextToken + `"}`,
		`{"startedBy":"a","nextToken":"` + page.NextToken[:len(page.NextToken)-2] + `"}`,
	} {
		if exception, message := r.refused("ListTasks", body); exception != "InvalidParameterException" || !strings.HasPrefix(message, "nextToken") {
			t.Errorf("%s: %s %s", body, exception, message)
		}
	}
}

func TestRequest_OperationsThatAreNone(t *testing.T) {
	r := newRig(t)
	for _, name := range []string{"RunTasks", "", "runTask"} {
		if exception, _ := r.refused(name, "{}"); exception != "UnknownOperationException" {
			t.Errorf("%q: %s", name, exception)
		}
	}
	res, err := http.Get(r.url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("GET: %s", res.Status)
	}
}

func TestReadOnly_RefusesWhateverChangesSomething(t *testing.T) {
	r := newRig(t, "LONGSHORE_READ_ONLY", "true")
	r.put(&control.Cluster{Name: "default", Status: control.ClusterActive})
	for _, name := range []string{"RunTask", "StartTask", "StopTask", "CreateCluster", "DeleteCluster", "RegisterTaskDefinition", "DeregisterTaskDefinition", "UpdateContainerInstancesState", "DeregisterContainerInstance"} {
		if exception, message := r.refused(name, "{}"); exception != "AccessDeniedException" || !strings.Contains(message, name) {
			t.Errorf("%s: %s %s", name, exception, message)
		}
	}
	for _, name := range []string{"ListTasks", "ListClusters", "DescribeClusters", "ListTaskDefinitions", "ListTaskDefinitionFamilies", "ListContainerInstances"} {
		if status, answer, _ := r.post(name, "{}"); status != http.StatusOK {
			t.Errorf("%s: %s", name, answer)
		}
	}
}

func TestFaults_OfTheStoreAreServersAndContentionIsThrottling(t *testing.T) {
	r := newRig(t)
	r.world()
	r.store.Calls.FailAt(1, fault.Unavailable)
	status, answer, _ := r.post("ListTasks", "{}")
	if status != http.StatusInternalServerError || !strings.Contains(answer, `"__type":"ServerException"`) || strings.Contains(answer, "injected") {
		t.Errorf("%d %s", status, answer)
	}
	if !strings.Contains(r.log.String(), "injected fault") {
		t.Error("what went wrong is not in the log")
	}
	r.store.Calls.FailAt(1, fault.Conflict)
	if exception, _ := r.refused("ListTasks", "{}"); exception != "ThrottlingException" {
		t.Errorf("contention is %s", exception)
	}
	r.store.Calls.Reset()
	r.control.NewID = func() string { panic("no ids left") }
	res, _ := r.handler.Function(r.ctx, request("RunTask", `{"taskDefinition":"web"}`, false))
	if res.StatusCode != http.StatusInternalServerError || !strings.Contains(res.Body, "ServerException") || !strings.Contains(r.log.String(), "no ids left") {
		t.Errorf("a panic is %+v", res)
	}
}

func request(operation, body string, encoded bool) events.LambdaFunctionURLRequest {
	e := events.LambdaFunctionURLRequest{Body: body, IsBase64Encoded: encoded, Headers: map[string]string{"x-amz-target": "AmazonEC2ContainerServiceV20141113." + operation}}
	if encoded {
		e.Body = base64.StdEncoding.EncodeToString([]byte(body))
	}
	e.RequestContext.RequestID = "11111111-2222-3333-4444-555555555555"
	e.RequestContext.HTTP.Method = http.MethodPost
	e.RequestContext.Authorizer = &events.LambdaFunctionURLRequestContextAuthorizerDescription{IAM: &events.LambdaFunctionURLRequestContextAuthorizerIAMDescription{
		UserARN: "arn:aws:iam::123456789012:user/alice", UserID: "AIDA",
	}}
	return e
}

func TestFunctionURL_BodiesMayBeBase64AndEveryCallLeavesAnAuditLine(t *testing.T) {
	r := newRig(t)
	r.world()
	for _, encoded := range []bool{false, true} {
		r.log.Reset()
		res, err := r.handler.Function(r.ctx, request("RunTask", `{"taskDefinition":"web"}`, encoded))
		if err != nil || res.StatusCode != http.StatusOK || res.Headers["Content-Type"] != "application/x-amz-json-1.1" || res.Headers["x-amzn-RequestId"] != "11111111-2222-3333-4444-555555555555" {
			t.Fatalf("%+v, %v", res, err)
		}
		var line map[string]any
		if err := json.Unmarshal(bytes.TrimSpace(r.log.Bytes()), &line); err != nil {
			t.Fatalf("%v: %s", err, r.log)
		}
		if line["operation"] != "RunTask" || line["caller"] != "arn:aws:iam::123456789012:user/alice" || line["result"] != "OK" || line["requestId"] != "11111111-2222-3333-4444-555555555555" || line["duration"] == nil {
			t.Errorf("audit line is %v", line)
		}
	}
	r.log.Reset()
	bad := request("RunTask", "", false)
	bad.Body, bad.IsBase64Encoded = "%%%", true
	res, err := r.handler.Function(r.ctx, bad)
	if err != nil || res.StatusCode != http.StatusBadRequest || !strings.Contains(res.Body, "SerializationException") || !strings.Contains(r.log.String(), `"result":"SerializationException"`) {
		t.Errorf("%+v, %v, %s", res, err, r.log)
	}
}

func TestFunctionURL_RegisteredByIsTheCaller(t *testing.T) {
	r := newRig(t)
	res, _ := r.handler.Function(r.ctx, request("RegisterTaskDefinition", webDefinition, false))
	if !strings.Contains(res.Body, `"registeredBy":"arn:aws:iam::123456789012:user/alice"`) {
		t.Error(res.Body)
	}
}

// TestGolden compares whole bodies: names, types, what is left out and what is
// there though empty. Clients in other languages rely on each.
func TestGolden_BodiesAreExact(t *testing.T) {
	r := newRig(t)
	in := r.world()
	run := func(body string) string {
		_, answer, _ := r.post("RunTask", body)
		var out struct{ Tasks []struct{ TaskArn string } }
		if err := json.Unmarshal([]byte(answer), &out); err != nil || len(out.Tasks) != 1 {
			t.Fatal(answer, err)
		}
		return out.Tasks[0].TaskArn
	}
	arn := run(`{"taskDefinition":"web","startedBy":"alice"}`)
	id := idOf(&arn)
	queued := run(`{"taskDefinition":"web"}`)
	r.admit()
	for _, step := range []struct {
		file, operation, body string
		before                func()
	}{
		{"describe-clusters", "DescribeClusters", `{"include":["TAGS","SETTINGS","STATISTICS"]}`, nil},
		{"describe-clusters-missing", "DescribeClusters", `{"clusters":["nowhere"]}`, nil},
		{"list-clusters", "ListClusters", `{}`, nil},
		{"describe-task-definition", "DescribeTaskDefinition", `{"taskDefinition":"web:1","include":["TAGS"]}`, nil},
		{"list-task-definitions", "ListTaskDefinitions", `{"familyPrefix":"web"}`, nil},
		{"list-families", "ListTaskDefinitionFamilies", `{}`, nil},
		{"describe-tasks-pending", "DescribeTasks", `{"tasks":["` + arn + `"]}`, nil},
		{"describe-tasks-waiting", "DescribeTasks", `{"tasks":["` + queued + `","` + strings.Repeat("e", 32) + `"]}`, nil},
		{"describe-tasks-running", "DescribeTasks", `{"tasks":["` + arn + `"],"include":["TAGS"]}`, func() { r.running(id) }},
		{"list-tasks", "ListTasks", `{"maxResults":1}`, nil},
		{"list-tasks-none", "ListTasks", `{"family":"none"}`, nil},
		{"describe-instances", "DescribeContainerInstances", `{"containerInstances":["` + in + `"],"include":["TAGS","CONTAINER_INSTANCE_HEALTH"]}`, nil},
		{"stop-task", "StopTask", `{"task":"` + queued + `","reason":"enough"}`, nil},
		{"describe-tasks-stopped", "DescribeTasks", `{"tasks":["` + arn + `"]}`, func() { r.stopped(id, 7) }},
		{"run-task-conflict", "RunTask", `{"taskDefinition":"web","clientToken":"t","count":2}`, func() { run(`{"taskDefinition":"web","clientToken":"t"}`) }},
		{"run-task-failures", "RunTask", `{"taskDefinition":"web","tags":[{"key":"longshore:onNoCapacity","value":"fail"}],"overrides":{"containerOverrides":[{"name":"main","cpu":4096}]}}`, nil},
		{"unknown-task", "StopTask", `{"task":"` + strings.Repeat("a", 32) + `"}`, nil},
		{"not-done", "CreateTaskSet", `{}`, nil},
		{"deregister", "DeregisterContainerInstance", `{"containerInstance":"` + in + `","force":true}`, nil},
	} {
		if step.before != nil {
			step.before()
		}
		_, answer, _ := r.post(step.operation, step.body)
		var pretty bytes.Buffer
		if err := json.Indent(&pretty, []byte(answer), "", "  "); err != nil {
			t.Fatal(step.file, err, answer)
		}
		pretty.WriteByte('\n')
		if strings.Contains(answer, "null") {
			t.Errorf("%s: holds a null: %s", step.file, answer)
		}
		golden(t, step.file+".json", pretty.Bytes())
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; run with -update and look at the difference:\n%s", path, got)
	}
}
