package stack

import (
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/jsii-runtime-go"

	"github.com/longshore-run/longshore/infra/construct/identity"
)

// addHosts tells the reaper what EC2 and Auto Scaling say of the end of hosts. EC2
// says it of every instance in the account; of others' the reaper knows nothing.
// Of terminations that wait only those are told that are ours to answer.
func (s *Stack) addHosts(reaper *[]awsevents.IRuleTarget) {
	awsevents.NewRule(s.Stack, jsii.String("HostStopped"), &awsevents.RuleProps{
		Description: jsii.String("Longshore: tells the reaper which EC2 instances stop or end"),
		EventPattern: &awsevents.EventPattern{
			Source:     jsii.Strings("aws.ec2"),
			DetailType: jsii.Strings("EC2 Instance State-change Notification"),
			Detail:     &map[string]any{"state": []string{"stopping", "shutting-down", "stopped", "terminated"}},
		},
		Targets: reaper,
	})
	awsevents.NewRule(s.Stack, jsii.String("SpotWarning"), &awsevents.RuleProps{
		Description: jsii.String("Longshore: tells the reaper which Spot instances EC2 takes"),
		EventPattern: &awsevents.EventPattern{
			Source:     jsii.Strings("aws.ec2"),
			DetailType: jsii.Strings("EC2 Spot Instance Interruption Warning"),
		},
		Targets: reaper,
	})
	if len(s.option.Control.AutoScalingGroups) == 0 {
		return
	}
	var groups []any
	for _, name := range s.option.Control.AutoScalingGroups {
		if start, some := strings.CutSuffix(name, "*"); some {
			groups = append(groups, map[string]any{"prefix": start})
		} else {
			groups = append(groups, name)
		}
	}
	awsevents.NewRule(s.Stack, jsii.String("HostTerminates"), &awsevents.RuleProps{
		Description: jsii.String("Longshore: tells the reaper which terminations wait for an instance to be drained"),
		EventPattern: &awsevents.EventPattern{
			Source:     jsii.Strings("aws.autoscaling"),
			DetailType: jsii.Strings("EC2 Instance-terminate Lifecycle Action"),
			Detail: &map[string]any{
				"AutoScalingGroupName": groups,
				"LifecycleHookName":    []string{s.option.Control.LifecycleHook},
			},
		},
		Targets: reaper,
	})
}

// groups allows what is told to the Auto Scaling groups of the context, and to no
// others; an ARN has an id before the name, which nobody knows beforehand.
func (s *Stack) groups() []identity.Statement {
	var arns []*string
	for _, name := range s.option.Control.AutoScalingGroups {
		arns = append(arns, jsii.String("arn:"+*s.Partition()+":autoscaling:"+*s.Region()+":"+*s.Account()+":autoScalingGroup:*:autoScalingGroupName/"+name))
	}
	if len(arns) == 0 {
		return nil
	}
	actions := []string{"autoscaling:CompleteLifecycleAction", "autoscaling:RecordLifecycleActionHeartbeat"}
	if s.option.Control.SetInstanceHealth {
		actions = append(actions, "autoscaling:SetInstanceHealth")
	}
	return []identity.Statement{{Actions: actions, Resources: arns}}
}
