package exit_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/smithy-go"

	"github.com/longshore-run/longshore/cli/internal/exit"
)

func TestCode_OfWhatTheAPIAndAWSAnswer(t *testing.T) {
	api := func(code, message string) error {
		return fmt.Errorf("operation error ECS: %w", &smithy.GenericAPIError{Code: code, Message: message})
	}
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, exit.OK},
		{exit.Status(7), 7},
		{api("ClusterNotFoundException", "Cluster not found."), exit.NotFound},
		{api("InvalidParameterException", "The referenced task was not found."), exit.NotFound},
		{api("ClientException", "Unable to describe task definition."), exit.NotFound},
		{api("InvalidParameterException", "count: is 11"), exit.Failed},
		{api("AccessDeniedException", "no"), exit.Denied},
		{api("ExpiredToken", "late"), exit.Denied},
		{api("ServerException", "internal error"), exit.Failed},
		{fmt.Errorf("wait: %w", context.DeadlineExceeded), exit.Timeout},
		{fmt.Errorf("wait: %w", context.Canceled), exit.Interrupted},
		{errors.New("get identity: get credentials: failed to refresh cached credentials"), exit.Denied},
		{errors.New("dial tcp 127.0.0.1:1: connect: connection refused"), exit.Failed},
		{fmt.Errorf("look: %w", exit.New(exit.NotFound, "look elsewhere", "no such task")), exit.NotFound},
	} {
		if got := exit.Code(c.err); got != c.want {
			t.Errorf("%v is %d, want %d", c.err, got, c.want)
		}
	}
}

func TestExplain_SaysWhatWhyAndWhatNextOnce(t *testing.T) {
	err := fmt.Errorf("describe: %w", exit.New(exit.NotFound, "see: longshore ps", "there is no task %s", "x"))
	if got := exit.Explain(err).Error(); got != "describe: there is no task x; see: longshore ps" {
		t.Errorf("says %s", got)
	}
	got := exit.Explain(&smithy.GenericAPIError{Code: "ClusterNotFoundException", Message: "Cluster not found."}).Error()
	if got != "Cluster not found (ClusterNotFoundException); name another cluster with --cluster, or make it: aws ecs create-cluster --cluster-name NAME" {
		t.Errorf("says %s", got)
	}
}

func TestExplain_NamesWhereDefinitionsAreListed(t *testing.T) {
	for message, want := range map[string]string{
		"TaskDefinition not found.":            "TaskDefinition not found (ClientException); see which there are: longshore definitions list",
		"Unable to describe task definition.":  "Unable to describe task definition (ClientException); see which there are: longshore definitions list",
		"The referenced task was not found.":   "The referenced task was not found (ClientException)",
		"Task definition does not support it.": "Task definition does not support it (ClientException)",
	} {
		if got := exit.Explain(&smithy.GenericAPIError{Code: "ClientException", Message: message}).Error(); got != want {
			t.Errorf("says %s", got)
		}
	}
}

func TestEnd_IsWholeLinksOfTheChain(t *testing.T) {
	if got := exit.End("ask: no"); got != "ask: no" {
		t.Errorf("says %s", got)
	}
	chain := "operation error ECS: ListTasks, exceeded maximum number of attempts, 3, https response error StatusCode: 0, RequestID: , request send failed, Post \"http://127.0.0.1:1/\": dial tcp 127.0.0.1:1: connect: connection refused"
	if got := exit.End(chain); strings.HasPrefix(got, "…") || len(got) > 160 || !strings.HasSuffix(got, "dial tcp 127.0.0.1:1: connect: connection refused") || !strings.HasSuffix(chain, ": "+got) {
		t.Errorf("says %s", got)
	}
	if got := exit.Explain(errors.New(chain)).Error(); got != "the API does not answer: dial tcp 127.0.0.1:1: connect: connection refused; check --endpoint-url, or run: longshore doctor" {
		t.Errorf("says %s", got)
	}
	if got := exit.End(strings.Repeat("é", 200)); got != "… "+strings.Repeat("é", 80) {
		t.Errorf("says %s", got)
	}
}
