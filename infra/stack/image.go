package stack

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"

	"github.com/longshore-run/longshore/infra/construct/function"
	"github.com/longshore-run/longshore/infra/construct/image"
)

// addImage makes what bakes the agent into machine images. What an instance of one must
// know of this stack is in the image.
func (s *Stack) addImage() {
	o := s.option
	p := image.Props{
		Stack: o.Name, Image: o.Image,
		Retention: function.Retentions[o.LogDays], Removal: awscdk.RemovalPolicy_DESTROY,
		Settings: map[string]*string{
			"LONGSHORE_CLUSTER":                  &o.Image.Cluster,
			"LONGSHORE_REPORTS_QUEUE_URL":        s.reports.QueueUrl(),
			"LONGSHORE_HEARTBEATS_QUEUE_URL":     s.heartbeats.QueueUrl(),
			"LONGSHORE_COMMAND_QUEUE_NAME_START": jsii.String(o.CommandQueueStart()),
			"AWS_REGION":                         s.Region(),
		},
	}
	if o.Retain {
		p.Removal = awscdk.RemovalPolicy_RETAIN
	}
	s.image = image.New(s.Stack, "Image", p)
}
