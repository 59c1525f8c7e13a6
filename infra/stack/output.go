package stack

import (
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"

	"github.com/longshore-run/longshore/shared/schema"
)

// addOutputs names what people, the local stack and the agents' set-up need.
// docs/design/infrastructure.md lists the names.
func (s *Stack) addOutputs() {
	out := func(name, description string, value *string) {
		awscdk.NewCfnOutput(s.Stack, &name, &awscdk.CfnOutputProps{Value: value, Description: &description})
	}
	out("ApiUrl", "Endpoint of the API, for signed requests", s.urls[api].Url())
	out("ReadApiUrl", "Endpoint of the operations that only read", s.urls[readapi].Url())
	out("CallerPolicyArn", "Managed policy of those who call the API", s.callerARN)
	out("ReadOnlyCallerPolicyArn", "Managed policy of those who only read", s.readOnlyARN)
	for _, t := range schema.Tables() {
		out(title(t.Role)+"TableName", "Table "+t.Role, s.tables[t.Role].TableName())
	}
	for _, q := range s.queues() {
		out(title(q.name)+"QueueUrl", "Queue "+q.name, q.queue.QueueUrl())
		out(title(q.name)+"DeadQueueUrl", "Where undeliverable messages of "+q.name+" are", q.queue.Dead.QueueUrl())
		out(title(q.name)+"SourceId", "Event source that reads "+q.name, s.sources[title(q.name)].EventSourceMappingId())
	}
	out("CommandQueueNameStart", "What the names of instances' command queues start with",
		jsii.String(s.option.CommandQueueStart()))
	for _, name := range Functions() {
		out(title(name)+"FunctionName", "Function "+name, s.functions[name].FunctionName())
		out(title(name)+"LogGroupName", "Log of "+name, s.functions[name].Log.LogGroupName())
	}
	out("EventBusName", "Bus of the state changes", s.bus.EventBusName())
	out("EventBusArn", "The same, for rules in other stacks", s.bus.EventBusArn())
	out("EventsDeadQueueUrl", "Where changes that could not be told are", s.eventsDead.QueueUrl())
	out("ScheduleFunctionArn", "What the rules of schedules wake", s.functions[scheduled].FunctionArn())
	out("ScheduleDeadQueueUrl", "Where runs that could not be decided on are", s.scheduleDead.QueueUrl())
	if s.failed != nil {
		out("FailedTasksQueueUrl", "Ends of tasks with an exit code that is not zero", s.failed.QueueUrl())
	}
	out("AgentRoleName", "Role of the machines' agents", s.agent.Role.RoleName())
	out("AgentRoleArn", "The same, for hybrid activations", s.agent.Role.RoleArn())
	out("AgentInstanceProfileName", "Instance profile for EC2", s.agent.Profile.InstanceProfileName())
	if s.image.ARN != nil {
		out("ImagePipelineArn", "Makes machine images with the agent", s.image.ARN)
	}
	if roles := s.taskRoles(); len(roles) > 0 {
		out("TaskRoleArns", "The roles that tasks may have", jsii.String(strings.Join(roles, ",")))
		out("TaskRoleTrust", "What the trust policy of each of these must hold: the agents may take it", s.agent.Trust())
	}
	if s.option.Dashboard {
		out("DashboardName", "Dashboard in CloudWatch", &s.option.Name)
	}
	out("AlarmTopicArn", "Topic of all alarms: subscribe to it", s.topic.TopicArn())
}

func title(name string) string { return strings.ToUpper(name[:1]) + name[1:] }
