package event

import (
	"encoding/json"

	"github.com/aws/aws-lambda-go/events"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/fault"
)

const (
	warningDetail = "EC2 Spot Instance Interruption Warning"
	groupSource   = "aws.autoscaling"
	groupDetail   = "EC2 Instance-terminate Lifecycle Action"
)

// interruption reads EC2's warning that it takes a Spot instance.
func interruption(e events.CloudWatchEvent) (i control.Interruption, err error) {
	var detail struct {
		InstanceID string `json:"instance-id"`
		Action     string `json:"instance-action"`
	}
	if err := json.Unmarshal(e.Detail, &detail); err != nil {
		return i, fault.Malformed(err, "decode the detail of a Spot warning")
	}
	if detail.InstanceID == "" || e.Time.IsZero() {
		return i, fault.Field("detail", "must have instance-id and time")
	}
	return control.Interruption{EC2InstanceID: detail.InstanceID, Action: detail.Action, At: e.Time}, nil
}

// termination reads what an Auto Scaling group says when it holds a termination.
func termination(e events.CloudWatchEvent) (h control.Hook, err error) {
	var detail struct {
		Token    string `json:"LifecycleActionToken"`
		Group    string `json:"AutoScalingGroupName"`
		Hook     string `json:"LifecycleHookName"`
		Instance string `json:"EC2InstanceId"`
	}
	if e.DetailType != groupDetail {
		return h, fault.Field("detail-type", "must be %q, not %.64q", groupDetail, e.DetailType)
	}
	if err := json.Unmarshal(e.Detail, &detail); err != nil {
		return h, fault.Malformed(err, "decode the detail of a lifecycle action")
	}
	if detail.Token == "" || detail.Group == "" || detail.Hook == "" || detail.Instance == "" || e.Time.IsZero() {
		return h, fault.Field("detail", "must have LifecycleActionToken, AutoScalingGroupName, LifecycleHookName, EC2InstanceId and time")
	}
	return control.Hook{Group: detail.Group, Name: detail.Hook, Token: detail.Token, EC2: detail.Instance, At: e.Time}, nil
}
