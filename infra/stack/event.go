package stack

import (
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awseventstargets"
	"github.com/aws/jsii-runtime-go"

	"github.com/longshore-run/longshore/infra/construct/function"
	"github.com/longshore-run/longshore/infra/construct/queue"
	rule "github.com/longshore-run/longshore/infra/construct/schedule"
	"github.com/longshore-run/longshore/shared/schema"
)

// eventSource is the source of every event on the bus.
const eventSource = "longshore"

// streamAge is how long a change is tried again: half of what a stream keeps, so
// that an outage of the bus for a night loses nothing, and what can not be told is
// known of while the stream still has it.
const streamAge = 12 * time.Hour

// addBus makes the bus of the state changes. Its name is the stack's, for rules
// that others make.
func (s *Stack) addBus() {
	s.bus = awsevents.NewEventBus(s.Stack, jsii.String("EventBus"), &awsevents.EventBusProps{
		EventBusName: &s.option.Name,
		Description:  jsii.String("Longshore: state changes of tasks, container instances and services"),
	})
	s.scheduleDead = queue.NewDead(s.Stack, "ScheduleQueueDead", queue.Props{EnforceSSL: s.option.EnforceSSL})
	s.eventsDead = queue.NewDead(s.Stack, "EventsQueueDead", queue.Props{EnforceSSL: s.option.EnforceSSL})
}

// addStreams wakes the events function with changes of what is announced. What
// is removed is not told of, and of the catalog only what services tell.
func (s *Stack) addStreams() {
	written := map[string]any{"eventName": []string{"INSERT", "MODIFY"}}
	told := map[string]any{
		"eventName": []string{"INSERT", "MODIFY"},
		"dynamodb":  map[string]any{"Keys": map[string]any{schema.PK: map[string]any{"S": []any{schema.SchedulesPartition, map[string]any{"prefix": schema.ServiceEvents}}}}},
	}
	for _, t := range schema.Tables() {
		if !t.Streamed {
			continue
		}
		pattern := written
		if t.Role == schema.Catalog {
			pattern = told
		}
		s.functions[events].ReadsStream(s.Stack, title(t.Role)+"Stream", function.Stream{
			ARN: s.tables[t.Role].TableStreamArn(), Batch: 100, MaxAge: streamAge, Dead: s.eventsDead,
			Patterns: []map[string]any{pattern},
		})
	}
	if s.option.FailedTasks {
		s.addFailedTasks()
	}
}

// addSchedules lets the stack's rules, and no others, wake the function, and adds
// the rules of the context.
func (s *Stack) addSchedules() {
	rule.Admit(s.Stack, "SchedulesMayRun", s.option.Name, s.functions[scheduled].FunctionArn())
	for _, r := range s.option.Schedules {
		rule.New(s.Stack, "Schedule-"+r.Schedule, rule.Props{Stack: s.option.Name, Function: s.functions[scheduled].FunctionArn(), Rule: r})
	}
}

// addFailedTasks is an example of a rule on the bus, the one of
// examples/events/failed-tasks.json.
func (s *Stack) addFailedTasks() {
	s.failed = queue.NewDead(s.Stack, "FailedTasksQueue", queue.Props{EnforceSSL: s.option.EnforceSSL})
	awsevents.NewRule(s.Stack, jsii.String("FailedTasks"), &awsevents.RuleProps{
		Description: jsii.String("Longshore: an example, tasks that ended with an exit code that is not zero"),
		EventBus:    s.bus,
		EventPattern: &awsevents.EventPattern{
			Source:     jsii.Strings(eventSource),
			DetailType: jsii.Strings("ECS Task State Change"),
			Detail: &map[string]any{
				"lastStatus": []string{"STOPPED"},
				"containers": map[string]any{"exitCode": []any{map[string]any{"anything-but": []int{0}}}},
			},
		},
		Targets: &[]awsevents.IRuleTarget{awseventstargets.NewSqsQueue(s.failed, nil)},
	})
}
