package exit_test

import (
	"context"
	"errors"
	"fmt"
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
	if got != "Cluster not found (ClusterNotFoundException); name another cluster with --cluster, or make it: aws ecs create-cluster" {
		t.Errorf("says %s", got)
	}
}
