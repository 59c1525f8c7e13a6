package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	cfntypes "github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/smithy-go"
)

// worst is the worst state of findings, and all their texts.
func worst(all []Finding) (State, string) {
	state, text := OK, ""
	for _, f := range all {
		if f.State == Fail || f.State == Warn && state == OK {
			state = f.State
		}
		text += f.Text + " next: " + f.Next + "\n"
	}
	return state, text
}

func expect(t *testing.T, all []Finding, state State, says ...string) {
	t.Helper()
	got, text := worst(all)
	if got != state {
		t.Errorf("%s, want %s: %s", got, state, text)
	}
	for _, s := range says {
		if !strings.Contains(text, s) {
			t.Errorf("%q is not in %s", s, text)
		}
	}
}

func TestJudgeStack(t *testing.T) {
	whole := map[string]string{"ApiUrl": "a", "ReadApiUrl": "b", "AgentRoleArn": "c", "ReportsQueueUrl": "d", "HeartbeatsQueueUrl": "e", "ReaperFunctionName": "f", "TasksTableName": "g"}
	expect(t, judgeStack("L", cfntypes.StackStatusUpdateComplete, whole), OK)
	expect(t, judgeStack("L", cfntypes.StackStatusUpdateInProgress, whole), Warn, "UPDATE_IN_PROGRESS")
	expect(t, judgeStack("L", cfntypes.StackStatusUpdateRollbackFailed, whole), Fail, "describe-stack-events")
	expect(t, judgeStack("L", cfntypes.StackStatusRollbackComplete, whole), Fail)
	expect(t, judgeStack("L", cfntypes.StackStatusCreateComplete, map[string]string{"ApiUrl": "a"}), Fail, "TasksTableName")
}

func TestJudgeSource(t *testing.T) {
	expect(t, judgeSource("Reports", "id-1", "Enabled"), OK)
	expect(t, judgeSource("Reports", "id-1", "Enabling"), Warn)
	expect(t, judgeSource("Reports", "id-1", "Disabled"), Fail, "docs/runbooks/restore.md", "update-event-source-mapping --enabled --uuid id-1")
}

func TestJudgeConcurrency(t *testing.T) {
	expect(t, judgeConcurrency("Api", "f", nil), OK)
	expect(t, judgeConcurrency("Api", "f", aws.Int32(5)), OK)
	expect(t, judgeConcurrency("Api", "f", aws.Int32(0)), Fail, "function Api is stopped", "longshore restore resume", "delete-function-concurrency --function-name f")
}

// Whatever doctor sends its reader to is there, for each queue of the stack.
func TestDoctor_NamesPagesThatThereAre(t *testing.T) {
	outputs, err := os.ReadFile("../../../infra/testdata/outputs.txt")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(outputs)) {
		name, _, _ := strings.Cut(line, " ")
		for suffix, page := range map[string]func(string) string{"DeadQueueUrl": DeadLettersPage, "SourceId": func(q string) string { return "docs/runbooks/" + strings.ToLower(q) + "-queue-age.md" }} {
			queue, ours := strings.CutSuffix(name, suffix)
			if !ours {
				continue
			}
			n++
			if _, err := os.Stat("../../../" + page(queue)); err != nil {
				t.Error(err)
			}
		}
	}
	if n < 10 {
		t.Errorf("%d pages", n)
	}
	for _, text := range advice {
		for word := range strings.FieldsSeq(text) {
			if strings.HasPrefix(word, "docs/") {
				if _, err := os.Stat("../../../" + word); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

func TestRuleName(t *testing.T) {
	if bus, name := ruleName("Longshore|rule"); aws.ToString(bus) != "Longshore" || name != "rule" {
		t.Errorf("%s %s", aws.ToString(bus), name)
	}
	if bus, name := ruleName("rule"); bus != nil || name != "rule" {
		t.Errorf("%v %s", bus, name)
	}
}

func TestJudgeInstances(t *testing.T) {
	one := func(id string, connected bool, why string) types.ContainerInstance {
		return types.ContainerInstance{ContainerInstanceArn: aws.String("x/" + id), Status: aws.String("ACTIVE"), AgentConnected: connected, StatusReason: aws.String(why)}
	}
	good, lost, fenced := one("a", true, ""), one("b", false, "LOST since 2026: no heartbeat"), one("c", false, "FENCED since 2026: returned")
	expect(t, judgeInstances("default", []types.ContainerInstance{good}), OK)
	expect(t, judgeInstances("default", []types.ContainerInstance{good, lost, fenced}), Warn, "longshore instances fence b --confirmed-off", "returned")
	expect(t, judgeInstances("default", []types.ContainerInstance{lost}), Fail, "no instance of cluster default is connected")
	expect(t, judgeInstances("default", nil), Warn, "check-config")
}

func TestJudgeWaiting(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	one := func(id string, ago time.Duration) types.Task {
		return types.Task{TaskArn: aws.String("x/" + id), LastStatus: aws.String("PROVISIONING"), CreatedAt: aws.Time(now.Add(-ago)),
			Attributes: []types.Attribute{{Name: aws.String("longshore.waitingReason"), Value: aws.String("RESOURCE:GPU")}}}
	}
	expect(t, judgeWaiting([]types.Task{one("a", 14*time.Minute)}, now), OK)
	expect(t, judgeWaiting([]types.Task{one("a", 16*time.Minute), one("b", 3*time.Hour), one("c", time.Minute)}, now), Warn, "2 of 3", "b, for 3h0m, for RESOURCE:GPU")
}

func TestExamine_ACheckThatMayNotLookIsAWarning(t *testing.T) {
	old := checks
	defer func() { checks = old }()
	checks = []check{
		{"denied", func(context.Context, *Installation) ([]Finding, error) {
			return nil, &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "no"}
		}},
		{"broken", func(context.Context, *Installation) ([]Finding, error) { return nil, errors.New("connection reset") }},
		{"strange", func(context.Context, *Installation) ([]Finding, error) {
			return nil, fmt.Errorf("operation error: %w", &smithy.DeserializationError{Err: errors.New("slice len 2476803273935316258 greater than remaining buf len")})
		}},
		{"fine", func(context.Context, *Installation) ([]Finding, error) { return good("well"), nil }},
	}
	var all []Finding
	if err := Examine(t.Context(), &Installation{}, func(f Finding) { all = append(all, f) }); err != nil {
		t.Fatal(err)
	}
	if len(all) != 4 || all[0].State != Warn || !strings.Contains(all[0].Next, "ViewOnlyAccess") || all[1].State != Warn || all[3].State != OK || all[3].Check != "fine" {
		t.Errorf("%+v", all)
	}
	if s := all[2]; s.State != Warn || strings.Contains(s.Text, "slice") || !strings.Contains(s.Next, "emulator") {
		t.Errorf("of an answer that can not be read: %+v", s)
	}
}
