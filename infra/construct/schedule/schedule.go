// Package schedule makes the EventBridge rule of a scheduled task, which wakes a
// Longshore stack's schedule function: in the stack itself, or in a stack of yours
// that knows the function's ARN (output ScheduleFunctionArn). What a run is, and how
// its message looks, is shared/schedule's.
package schedule

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/longshore-run/longshore/shared/schedule"
)

// Props describe a scheduled task.
type Props struct {
	// Stack is the name of the Longshore stack: its rules begin with it.
	Stack string
	// Function is the ARN of that stack's schedule function.
	Function *string
	// Rule is when, and what. It must have passed its Check.
	Rule schedule.Rule
}

// targetID is the one target of a rule.
const targetID = "run"

// New adds the rule to scope.
func New(scope constructs.Construct, id string, p Props) awsevents.CfnRule {
	state := "ENABLED"
	if p.Rule.Disabled {
		state = "DISABLED"
	}
	paths := map[string]*string{}
	for name, path := range schedule.TimePath() {
		paths[name] = &path
	}
	return awsevents.NewCfnRule(scope, &id, &awsevents.CfnRuleProps{
		Name:               jsii.String(schedule.RuleName(p.Stack, p.Rule.Schedule)),
		Description:        jsii.String("Longshore: runs " + p.Rule.TaskDefinition + " in cluster " + p.Rule.Cluster),
		ScheduleExpression: &p.Rule.Expression,
		State:              &state,
		Targets: &[]*awsevents.CfnRule_TargetProperty{{
			Id: jsii.String(targetID), Arn: p.Function,
			InputTransformer: &awsevents.CfnRule_InputTransformerProperty{
				InputPathsMap: &paths, InputTemplate: jsii.String(p.Rule.Template()),
			},
		}},
	})
}

// Admit lets the rules whose names begin as the stack's do wake its function.
func Admit(scope constructs.Construct, id, stackName string, function *string) {
	stack := awscdk.Stack_Of(scope)
	awslambda.NewCfnPermission(scope, &id, &awslambda.CfnPermissionProps{
		Action: jsii.String("lambda:InvokeFunction"), FunctionName: function, Principal: jsii.String("events.amazonaws.com"),
		SourceArn: jsii.String("arn:" + *stack.Partition() + ":events:" + *stack.Region() + ":" + *stack.Account() +
			":rule/" + schedule.RuleStart(stackName) + "*"),
	})
}
