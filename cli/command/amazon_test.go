package command_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sort"
	"strings"
	"sync"
	"testing"

	"github.com/longshore-run/longshore/cli/internal/exit"
)

// amazon plays CloudFormation and EventBridge, as far as schedules and the search
// for the API need them.
type amazon struct {
	mu      sync.Mutex
	outputs map[string]string
	rules   map[string]map[string]any
	targets map[string]json.RawMessage
}

func (b *bench) amazon(outputs map[string]string) *amazon {
	b.t.Helper()
	a := &amazon{outputs: outputs, rules: map[string]map[string]any{}, targets: map[string]json.RawMessage{}}
	server := httptest.NewServer(a)
	b.t.Cleanup(server.Close)
	b.t.Setenv("AWS_ENDPOINT_URL", server.URL)
	return a
}

func (a *amazon) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	if strings.Contains(string(body), "Action=DescribeStacks") {
		a.stacks(w, string(body))
		return
	}
	var in struct {
		Name, Rule, NamePrefix, ScheduleExpression, State string
		Targets                                           json.RawMessage
	}
	_ = json.Unmarshal(body, &in)
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	name := in.Name + in.Rule
	if operation != "PutRule" && operation != "ListRules" && a.rules[name] == nil {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"__type":"ResourceNotFoundException","message":"no such rule"}`)
		return
	}
	var answer any = map[string]any{"FailedEntryCount": 0}
	switch operation {
	case "PutRule":
		a.rules[name] = map[string]any{"Name": name, "ScheduleExpression": in.ScheduleExpression, "State": in.State}
	case "EnableRule", "DisableRule":
		a.rules[name]["State"] = strings.ToUpper(strings.TrimSuffix(operation, "Rule")) + "D"
	case "DescribeRule":
		answer = a.rules[name]
	case "PutTargets":
		a.targets[name] = in.Targets
	case "ListTargetsByRule":
		answer = map[string]any{"Targets": a.targets[name]}
	case "DeleteRule":
		delete(a.rules, name)
	case "ListRules":
		var all []any
		var names []string
		for n := range a.rules {
			names = append(names, n)
		}
		sort.Strings(names)
		for _, n := range names {
			if strings.HasPrefix(n, in.NamePrefix) {
				all = append(all, a.rules[n])
			}
		}
		answer = map[string]any{"Rules": all}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func (a *amazon) stacks(w http.ResponseWriter, body string) {
	if !strings.Contains(body, "StackName=Longshore") {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `<ErrorResponse><Error><Code>ValidationError</Code><Message>Stack with id x does not exist</Message></Error></ErrorResponse>`)
		return
	}
	var b strings.Builder
	for k, v := range a.outputs {
		fmt.Fprintf(&b, "<member><OutputKey>%s</OutputKey><OutputValue>%s</OutputValue></member>", k, v)
	}
	fmt.Fprintf(w, `<DescribeStacksResponse><DescribeStacksResult><Stacks><member><StackName>Longshore</StackName><StackStatus>CREATE_COMPLETE</StackStatus><CreationTime>2026-01-02T03:04:05Z</CreationTime><Outputs>%s</Outputs></member></Stacks></DescribeStacksResult></DescribeStacksResponse>`, b.String())
}

func TestEndpoint_IsFoundByTheStacksOutputs(t *testing.T) {
	b := newBench(t)
	delete(b.env, "LONGSHORE_ENDPOINT")
	b.amazon(map[string]string{"ApiUrl": b.api.URL})
	if out := b.must("ps"); out != "no task matches\n" {
		t.Errorf("says %s", out)
	}
	b.fails(exit.NotFound, "there is no stack Other in us-east-1; name the stack with --stack", "ps", "--stack", "Other")
	b.amazon(map[string]string{})
	b.fails(exit.NotFound, "has no output ApiUrl", "ps")
}

func TestSchedules_ArePutListedSwitchedAndDeleted(t *testing.T) {
	b := newBench(t)
	a := b.amazon(map[string]string{"ScheduleFunctionArn": "arn:aws:lambda:us-east-1:000000000000:function:schedule"})
	b.must("schedules", "put", "nightly", "--expression", "cron(0 3 * * ? *)", "--definition", "app", "--deadline", "10m", "--overlap", "forbid", "--count", "2")
	b.must("schedules", "put", b.file("more.yaml", "- {schedule: often, expression: rate(5 minutes), taskDefinition: 'app:1', disabled: true}\n"))
	golden(t, "schedules.txt", b.must("schedules", "list"))
	if got := string(a.targets["longshore-schedule-nightly"]); !strings.Contains(got, "function:schedule") || !strings.Contains(got, `startingDeadline\":600`) {
		t.Errorf("target %s", got)
	}
	// What is listed can be put again as it is.
	again := b.file("again.yaml", b.must("schedules", "list", "-o", "yaml"))
	b.must("schedules", "put", again)
	golden(t, "schedules.txt", b.must("schedules", "list"))
	if out := b.must("schedules", "disable", "nightly"); !strings.Contains(out, "DISABLED") {
		t.Errorf("says %s", out)
	}
	if out := b.must("schedules", "enable", "nightly"); !strings.Contains(out, "ENABLED") {
		t.Errorf("says %s", out)
	}
	b.must("schedules", "delete", "nightly")
	b.fails(exit.NotFound, "there is no schedule nightly", "schedules", "delete", "nightly")
	b.fails(exit.NotFound, "there is no schedule nightly", "schedules", "enable", "nightly")
}

func TestSchedules_NothingIsMadeOfAFileWithAFault(t *testing.T) {
	b := newBench(t)
	a := b.amazon(map[string]string{"ScheduleFunctionArn": "arn:f"})
	file := b.file("two.json", `[{"schedule":"good","expression":"rate(1 hour)","taskDefinition":"app"},{"schedule":"bad","expression":"rate(1 hours)","taskDefinition":"app"}]`)
	if code := b.run("schedules", "put", file); code != exit.Usage || !strings.Contains(b.err.String(), "schedule bad: expression") || len(a.rules) != 0 {
		t.Errorf("exit code %d, rules %v: %s", code, a.rules, b.err.String())
	}
	b.fails(exit.Usage, "unknown field", "schedules", "put", b.file("x.json", `{"schedul":"x"}`))
	b.amazon(map[string]string{"ApiUrl": b.api.URL})
	b.fails(exit.NotFound, "ScheduleFunctionArn", "schedules", "list")
}

func TestSchedules_RunsAreTheTasksOfASchedule(t *testing.T) {
	b := newBench(t)
	b.must("run", "app", "--detach", "--started-by", "events-rule/nightly")
	b.must("run", "app", "--detach")
	if out := b.must("schedules", "runs", "nightly"); strings.Count(out, "app:1") != 1 || b.err.String() != "" {
		t.Errorf("lists %s%s", out, b.err.String())
	}
	b.amazon(map[string]string{"ScheduleFunctionArn": "arn:f"})
	if out := b.must("schedules", "runs", "nightly"); strings.Count(out, "app:1") != 1 || !strings.Contains(b.err.String(), "there is no schedule nightly") {
		t.Errorf("lists what a schedule ran that is deleted: %s%s", out, b.err.String())
	}
}

func TestSchedules_OfADefinitionThatIsNotThereAreTold(t *testing.T) {
	b := newBench(t)
	a := b.amazon(map[string]string{"ScheduleFunctionArn": "arn:f"})
	b.must("schedules", "put", "often", "--expression", "rate(5 minutes)", "--definition", "app")
	if b.err.String() != "" {
		t.Errorf("says %s", b.err.String())
	}
	b.must("schedules", "put", "often", "--expression", "rate(5 minutes)", "--definition", "ap")
	if !strings.Contains(b.err.String(), "there is no task definition ap; until it is registered the runs of often are missed") || len(a.rules) != 1 {
		t.Errorf("says %s", b.err.String())
	}
	b.fails(exit.Usage, "--count is 0; 1 to 10 are allowed", "schedules", "put", "never", "--expression", "rate(5 minutes)", "--definition", "app", "--count", "0")
}
