package event_test

import (
	"context"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/internal/event"
	"github.com/longshore-run/longshore/shared/fault"
)

func (r *reaping) IngestInterruption(_ context.Context, i control.Interruption) error {
	r.warnings = append(r.warnings, i)
	return nil
}

func (r *reaping) IngestTermination(_ context.Context, h control.Hook) error {
	r.hooks = append(r.hooks, h)
	return fault.New(fault.Unavailable, "not now")
}

// The events are those of the EC2 and Auto Scaling user guides.
func TestReaper_HearsOfHostsThatAreAboutToGo(t *testing.T) {
	c, n := &reaping{}, counts{}
	r := &event.Reaper{Control: c, Metrics: n, Log: silent()}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	of := func(source, detailType, detail string) error {
		_, err := r.Handle(ctx, events.CloudWatchEvent{Source: source, DetailType: detailType, Time: at, Detail: json.RawMessage(detail)})
		return err
	}
	const spot, hook = "EC2 Spot Instance Interruption Warning", "EC2 Instance-terminate Lifecycle Action"
	if err := of("aws.ec2", spot, `{"instance-id":"i-1","instance-action":"terminate"}`); err != nil {
		t.Error(err)
	}
	// What could not be done is delivered again.
	if err := of("aws.autoscaling", hook, `{"LifecycleActionToken":"87654321","AutoScalingGroupName":"my-asg","LifecycleHookName":"longshore","EC2InstanceId":"i-1",`+
		`"LifecycleTransition":"autoscaling:EC2_INSTANCE_TERMINATING","NotificationMetadata":"m","Origin":"AutoScalingGroup","Destination":"EC2"}`); !fault.Is(err, fault.Unavailable) {
		t.Errorf("%v", err)
	}
	bad := [][3]string{
		{"aws.ec2", spot, `{"instance-action":"terminate"}`}, {"aws.ec2", spot, `7`},
		{"aws.autoscaling", hook, `{"LifecycleActionToken":"87654321"}`}, {"aws.autoscaling", hook, `[]`},
		{"aws.autoscaling", "EC2 Instance-launch Lifecycle Action", `{}`},
	}
	for _, b := range bad {
		if err := of(b[0], b[1], b[2]); err != nil {
			t.Errorf("%v: %v", b, err)
		}
	}
	if !reflect.DeepEqual(c.warnings, []control.Interruption{{EC2InstanceID: "i-1", Action: "terminate", At: at}}) ||
		!reflect.DeepEqual(c.hooks, []control.Hook{{Group: "my-asg", Name: "longshore", Token: "87654321", EC2: "i-1", At: at}}) ||
		c.ticks != 0 || len(c.states) != 0 || n["UndecodableMessages"] != float64(len(bad)) {
		t.Errorf("%+v, %v", c, n)
	}
}
