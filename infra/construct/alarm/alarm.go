// Package alarm makes CloudWatch alarms that tell one SNS topic, each with a
// page of docs/runbooks that says what it means and what to do. Which alarms
// there are is decided by infra/stack, which alone imports this.
package alarm

import (
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatchactions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/longshore-run/longshore/shared/measure"
)

// NewTopic adds the topic. It has no key of its own: CloudWatch cannot use the
// free one, a customer's costs a dollar a month, and an alarm's text holds
// nothing secret. Only this account's alarms may publish.
func NewTopic(scope constructs.Construct, id string, enforceSSL bool) awssns.Topic {
	topic := awssns.NewTopic(scope, &id, &awssns.TopicProps{
		DisplayName: jsii.String("Longshore alarms"),
		EnforceSSL:  &enforceSSL,
	})
	// A policy of one's own replaces the default one, so alarms must be let in.
	topic.AddToResourcePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Actions:    jsii.Strings("sns:Publish"),
		Principals: &[]awsiam.IPrincipal{awsiam.NewServicePrincipal(jsii.String("cloudwatch.amazonaws.com"), nil)},
		Resources:  &[]*string{topic.TopicArn()},
		Conditions: &map[string]any{"StringEquals": map[string]any{
			"aws:SourceAccount": awscdk.Stack_Of(scope).Account(),
		}},
	}))
	return topic
}

// Alarm is one condition worth waking somebody for.
type Alarm struct {
	// Name is its name without the stack's, and its runbook page's.
	Name string
	// Says is one sentence: what has happened.
	Says   string
	Metric awscloudwatch.IMetric
	// It is raised when the metric is at least (Below: less than) Threshold in
	// Of the last Periods periods.
	Threshold   float64
	Below       bool
	Of, Periods int
	// Silence is an alarm too: no data means broken, not quiet.
	Silence bool
	// Runbooks is where the pages are, with a slash at its end.
	Runbooks string
}

// Runbook is the page about the alarm.
func (a Alarm) Runbook() string { return a.Runbooks + a.Name + ".md" }

// New adds the alarm to scope, named after its stack.
func New(scope constructs.Construct, a Alarm, topic awssns.ITopic) awscloudwatch.Alarm {
	comparison := awscloudwatch.ComparisonOperator_GREATER_THAN_OR_EQUAL_TO_THRESHOLD
	if a.Below {
		comparison = awscloudwatch.ComparisonOperator_LESS_THAN_THRESHOLD
	}
	missing := awscloudwatch.TreatMissingData_NOT_BREACHING
	if a.Silence {
		missing = awscloudwatch.TreatMissingData_BREACHING
	}
	stack := awscdk.Stack_Of(scope)
	made := awscloudwatch.NewAlarm(scope, &a.Name, &awscloudwatch.AlarmProps{
		AlarmName:          jsii.String(*stack.StackName() + "-" + a.Name),
		AlarmDescription:   jsii.String(a.Says + " What to do: " + a.Runbook()),
		Metric:             a.Metric,
		Threshold:          &a.Threshold,
		ComparisonOperator: comparison,
		EvaluationPeriods:  jsii.Number(a.Periods),
		DatapointsToAlarm:  jsii.Number(a.Of),
		TreatMissingData:   missing,
	})
	made.AddAlarmAction(awscloudwatchactions.NewSnsAction(topic))
	made.AddOkAction(awscloudwatchactions.NewSnsAction(topic))
	return made
}

// Own is a metric our functions write, in the namespace Longshore under the
// one dimension Stack.
func Own(stackName, name, statistic string, period time.Duration) awscloudwatch.IMetric {
	return awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
		Namespace:     jsii.String(measure.Namespace),
		MetricName:    &name,
		DimensionsMap: &map[string]*string{measure.Stack: &stackName},
		Statistic:     &statistic,
		Period:        Period(period),
	})
}

// Period is a duration as the CDK wants it.
func Period(d time.Duration) awscdk.Duration {
	return awscdk.Duration_Seconds(jsii.Number(d.Seconds()))
}
