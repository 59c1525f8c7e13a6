// Package scalinggroup is control.Groups on EC2 Auto Scaling: it tells groups which
// host is unhealthy, and has terminations wait or go on. It decides nothing, and
// asks nothing about a group. Only the mains under lambdas import it.
package scalinggroup

import (
	"context"
	"errors"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/fault"
)

const (
	attempts  = 2 // of one call, by the client itself: the reaper's next run makes it again
	unhealthy = "Unhealthy"
	goOn      = "CONTINUE"
)

// Groups calls Auto Scaling. It is safe for concurrent use.
type Groups struct{ client *autoscaling.Client }

var _ control.Groups = (*Groups)(nil)

// New makes a client of the region's Auto Scaling.
func New(config aws.Config) *Groups {
	return &Groups{client: autoscaling.NewFromConfig(config, func(o *autoscaling.Options) {
		o.Retryer = retry.NewStandard(func(r *retry.StandardOptions) { r.MaxAttempts = attempts })
	})}
}

// SetUnhealthy implements control.Groups. A grace period is for hosts that begin:
// this one was registered and has been silent since, and within a grace period
// that is respected the word would be lost.
func (g *Groups) SetUnhealthy(ctx context.Context, ec2 string) (found bool, err error) {
	_, err = g.client.SetInstanceHealth(ctx, &autoscaling.SetInstanceHealthInput{
		InstanceId: &ec2, HealthStatus: aws.String(unhealthy), ShouldRespectGracePeriod: aws.Bool(false),
	})
	return outcome(err, "set the health of "+ec2)
}

// Continue implements control.Groups.
func (g *Groups) Continue(ctx context.Context, h control.Hook) (found bool, err error) {
	_, err = g.client.CompleteLifecycleAction(ctx, &autoscaling.CompleteLifecycleActionInput{
		AutoScalingGroupName: &h.Group, LifecycleHookName: &h.Name, LifecycleActionToken: &h.Token, InstanceId: &h.EC2,
		LifecycleActionResult: aws.String(goOn),
	})
	return outcome(err, "complete the lifecycle action of "+h.EC2)
}

// Extend implements control.Groups.
func (g *Groups) Extend(ctx context.Context, h control.Hook) (found bool, err error) {
	_, err = g.client.RecordLifecycleActionHeartbeat(ctx, &autoscaling.RecordLifecycleActionHeartbeatInput{
		AutoScalingGroupName: &h.Group, LifecycleHookName: &h.Name, LifecycleActionToken: &h.Token, InstanceId: &h.EC2,
	})
	return outcome(err, "extend the lifecycle action of "+h.EC2)
}

// outcome reads an answer. Auto Scaling has one code, ValidationError, for an
// instance that is in no group, for an action that is over and for a hook or group
// that is gone: what the call is about is not there.
func outcome(err error, what string) (found bool, _ error) {
	if err == nil {
		return true, nil
	}
	coded, ok := errors.AsType[smithy.APIError](err)
	answer, answered := errors.AsType[*smithyhttp.ResponseError](err)
	switch {
	case !ok:
		return false, fault.Wrap(fault.Unavailable, err, "%s", what) // no answer
	case coded.ErrorCode() == "ValidationError":
		return false, nil
	case coded.ErrorCode() == "AccessDenied":
		return false, fault.Wrap(fault.Denied, err, "%s", what)
	case answered && answer.HTTPStatusCode() >= http.StatusInternalServerError, coded.ErrorCode() == "Throttling", coded.ErrorCode() == "ResourceContention":
		return false, fault.Wrap(fault.Unavailable, err, "%s", what)
	}
	return false, fault.Wrap(fault.Internal, err, "%s", what)
}
