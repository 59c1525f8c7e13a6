package ecsapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/internal/ecsapi"
)

// maxRefusal bounds what is said of a request that can not be read.
const maxRefusal = 4096

// FuzzRequest sends anything to any operation: no body may make a server's
// fault, or an answer that is no JSON object; a refusal is short and has a name.
func FuzzRequest(f *testing.F) {
	names := ecsapi.Operations()
	for i, name := range names {
		f.Add(i, []byte(`{}`))
		if slices.Contains([]string{"RunTask", "StartTask"}, name) {
			f.Add(i, []byte(`{"taskDefinition":"web","containerInstances":["a"],"tags":[{"key":"k"}],"overrides":{"containerOverrides":[{}]}}`))
		}
		f.Add(i, []byte(`{"cluster":"default","tasks":["a"],"nextToken":"e30","maxResults":1,"family":"web"}`))
		f.Add(i, []byte(`[[[`))
	}
	f.Fuzz(func(t *testing.T, n int, body []byte) {
		r := newFuzzRig(t)
		name := names[((n%len(names))+len(names))%len(names)]
		r.answers(name, request(name, string(body), false))
	})
}

// newFuzzRig is a rig with a world, and without HTTP: a fuzz target makes thousands.
func newFuzzRig(t *testing.T) *rig {
	r := newBareRig(t)
	if _, err := r.control.EnsureCluster(r.ctx, "default"); err != nil {
		t.Fatal(err)
	}
	r.answers("the world", request("RegisterTaskDefinition", webDefinition, false))
	r.instance(1)
	return r
}

// answers is an answer that is no server's fault, and JSON.
func (r *rig) answers(what string, e events.LambdaFunctionURLRequest) map[string]json.RawMessage {
	r.t.Helper()
	res, err := r.handler.Function(context.Background(), e)
	var out map[string]json.RawMessage
	if err != nil || res.StatusCode >= 500 && res.StatusCode != 501 || json.Unmarshal([]byte(res.Body), &out) != nil {
		r.t.Fatalf("%s %q: %d %s, %v", what, e.Body, res.StatusCode, res.Body, err)
	}
	if res.StatusCode >= 400 && (len(res.Body) > maxRefusal || out["__type"] == nil) {
		r.t.Fatalf("%s: a refusal of %d bytes: %.300s", what, len(res.Body), res.Body)
	}
	return out
}

// FuzzFunctionURL hands over any event of a Function URL: headers, encodings and
// callers of any form are an answer with a type, and one line of the log.
func FuzzFunctionURL(f *testing.F) {
	for _, s := range []string{
		`{"requestContext":{"http":{"method":"POST"},"authorizer":{"iam":{"userArn":"arn:aws:iam::0:user/a"}}},"headers":{"x-amz-target":"AmazonEC2ContainerServiceV20141113.ListClusters"},"body":"e30=","isBase64Encoded":true}`,
		`{"requestContext":{"http":{"method":"GET"}},"headers":{"X-AMZ-TARGET":"Longshore.ShowQueue"},"body":"{"}`,
		`{"headers":{"X-Amz-Target":"AmazonEC2ContainerServiceV20141113.RunTask"},"requestContext":{"http":{"method":"POST"}},"body":"{\"taskDefinition\":\"web\"}"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var e events.LambdaFunctionURLRequest
		if json.Unmarshal(body, &e) != nil {
			return
		}
		r := newFuzzRig(t)
		r.answers("an event", e)
		for line := range bytes.Lines(r.log.Bytes()) {
			if !json.Valid(line) {
				t.Fatalf("a line of the log is broken: %q", line)
			}
		}
	})
}

// FuzzPageToken: a token that no list gave makes no list start anywhere.
func FuzzPageToken(f *testing.F) {
	f.Add("e30")
	f.Add("eyJjIjp7fSwiayI6IkFBQUFBQUFBQUFBQSJ9")
	f.Add(control.PageToken(control.ClusterList, "a"))
	f.Fuzz(func(t *testing.T, token string) {
		if token == "" {
			return
		}
		r := newFuzzRig(t)
		text, _ := json.Marshal(token)
		for _, name := range []string{"ListClusters", "ListTasks", "ListTaskDefinitions", "ListContainerInstances", "ListServices"} {
			out := r.answers(name, request(name, `{"nextToken":`+string(text)+`}`, false))
			if !strings.Contains(string(out["message"]), "nextToken") {
				t.Fatalf("%s takes %q: %s", name, token, out["message"])
			}
		}
	})
}

// FuzzARN: names of things in any form are found or named as missing.
func FuzzARN(f *testing.F) {
	for _, s := range []string{
		"a", "arn:aws:ecs:eu-central-1:123456789012:task/default/00000000000000000000000000000001", "arn:aws:ecs:eu-central-1:123456789012:cluster/", "arn:::::", "arn:aws:ecs:eu-central-1:123456789012:task/other/x",
		"arn:aws:ecs:eu-central-1:123456789012:task-definition/web:1", "service/default/web",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		r := newFuzzRig(t)
		text, _ := json.Marshal(name)
		for operation, body := range map[string]string{
			"DescribeClusters": `{"clusters":[%]}`, "DescribeTasks": `{"tasks":[%]}`, "DescribeContainerInstances": `{"containerInstances":[%]}`,
			"DescribeTaskDefinition": `{"taskDefinition":%}`, "DescribeServices": `{"services":[%]}`, "ListTagsForResource": `{"resourceArn":%}`,
			"StopTask": `{"task":%}`, "ListTasks": `{"cluster":%}`,
		} {
			r.answers(operation, request(operation, strings.ReplaceAll(body, "%", string(text)), false))
		}
	})
}
