// Package stack puts Longshore's constructs together: tables, queues,
// functions and what wakes them, roles, alarms, outputs. It decides names,
// sizes and rights; how one thing is made is construct's affair. infra's main
// imports it, and nobody else.
package stack

import (
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/longshore-run/longshore/infra/construct/alarm"
	"github.com/longshore-run/longshore/infra/construct/function"
	"github.com/longshore-run/longshore/infra/construct/identity"
	"github.com/longshore-run/longshore/infra/construct/image"
	"github.com/longshore-run/longshore/infra/construct/queue"
	"github.com/longshore-run/longshore/infra/construct/table"
	"github.com/longshore-run/longshore/infra/option"
	"github.com/longshore-run/longshore/shared/schema"
	"github.com/longshore-run/longshore/shared/setting"
)

// Stack is the whole of Longshore in one account and region.
type Stack struct {
	awscdk.Stack
	option option.Options

	tables map[string]table.Table // by schema role

	admission, reports, heartbeats, services queue.Queue
	eventsDead, scheduleDead                 awssqs.Queue
	bus                                      awsevents.EventBus
	failed                                   awssqs.Queue // of the example rule, nil without it

	functions map[string]function.Function
	urls      map[string]awslambda.FunctionUrl
	sources   map[string]awslambda.EventSourceMapping

	agent                  identity.Agent
	topic                  awssns.Topic
	image                  image.Pipeline // nothing in it where no images are made
	callerARN, readOnlyARN *string
}

// New adds the stack to the app.
func New(scope constructs.Construct, o option.Options) *Stack {
	s := &Stack{
		Stack: awscdk.NewStack(scope, &o.Name, &awscdk.StackProps{
			StackName:          &o.Name,
			AnalyticsReporting: jsii.Bool(false),
			Description:        jsii.String("Longshore: containers on machines you own, without a control-plane server"),
			Tags:               &map[string]*string{"longshore": &o.Name},
		}),
		option: o,
		tables: map[string]table.Table{},
	}
	for _, t := range schema.Tables() {
		s.tables[t.Role] = table.New(s.Stack, title(t.Role)+"Table", t, o.Retain)
	}
	s.addQueues()
	s.addBus()
	s.agent = identity.NewAgent(s.Stack, "Agent", identity.AgentProps{
		Reports:         s.reports.QueueArn(),
		Heartbeats:      s.heartbeats.QueueArn(),
		CommandQueues:   s.commandQueues(),
		TaskRoles:       s.taskRoles(),
		ManagedPolicies: o.AgentPolicies,
	})
	s.addFunctions()
	s.addSources()
	s.addEndpoints()
	s.topic = alarm.NewTopic(s.Stack, "AlarmTopic", o.EnforceSSL)
	var made []awscloudwatch.IAlarm
	for _, a := range s.alarms() {
		a.Runbooks = o.Runbooks
		made = append(made, alarm.New(s.Stack, a, s.topic))
	}
	if o.Dashboard {
		s.addDashboard(made)
	}
	if o.Image.Base != "" {
		s.addImage()
	}
	s.addOutputs()
	return s
}

// taskRoles are the patterns of all roles that tasks may have, in whichever cluster:
// the agents of all clusters have one role.
func (s *Stack) taskRoles() []string {
	return setting.RoleARNs(s.option.Control.TaskRoles, *s.Partition(), *s.Account())
}

// named is a queue that functions read, with its name in outputs and alarms.
type named struct {
	name  string
	queue queue.Queue
}

func (s *Stack) queues() []named {
	return []named{{admission, s.admission}, {"reports", s.reports}, {"heartbeats", s.heartbeats}, {services, s.services}}
}

const (
	hour = time.Hour
	day  = 24 * hour
)

// addQueues makes the queues. A message is hidden for the reading function's
// timeout and five seconds more (and the time it may wait for its batch): not
// longer, because a partly failed batch comes back only when that has passed.
func (s *Stack) addQueues() {
	ssl := s.option.EnforceSSL
	s.admission = queue.New(s.Stack, "AdmissionQueue", queue.Props{
		FIFO:       true,
		Visibility: timeouts[admission] + spare,
		Retention:  hour, // a sweep kicks each minute: older kicks say nothing new
		MaxReceive: 5,
		EnforceSSL: ssl,
	})
	s.reports = queue.New(s.Stack, "ReportsQueue", queue.Props{
		Visibility: timeouts[statechange] + spare,
		Retention:  4 * day,
		MaxReceive: 10,
		EnforceSSL: ssl,
	})
	s.heartbeats = queue.New(s.Stack, "HeartbeatsQueue", queue.Props{
		Visibility: timeouts[statechange] + s.heartbeatWindow() + spare,
		Retention:  4 * hour, // an old inventory is out of date; the lease comes with the next
		MaxReceive: 3,
		EnforceSSL: ssl,
	})
	s.services = queue.New(s.Stack, "ServicesQueue", queue.Props{
		Visibility: timeouts[services] + spare,
		Retention:  hour,
		MaxReceive: 5,
		EnforceSSL: ssl,
	})
}

// heartbeatWindow is how long heartbeats are collected for one call: a twelfth
// of the interval, so that it never matters for a lease, in whole seconds.
func (s *Stack) heartbeatWindow() time.Duration {
	return min((s.option.Control.HeartbeatEvery / 12).Truncate(time.Second), 20*time.Second)
}

// commandQueues is the ARN of all instances' command queues.
func (s *Stack) commandQueues() *string {
	return jsii.String("arn:" + *s.Partition() + ":sqs:" + *s.Region() + ":" + *s.Account() + ":" +
		s.option.CommandQueueStart() + "*")
}
