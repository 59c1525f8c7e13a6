package stack

import (
	"strings"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awseventstargets"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/jsii-runtime-go"

	"github.com/longshore-run/longshore/infra/construct/alarm"
	"github.com/longshore-run/longshore/infra/construct/function"
	"github.com/longshore-run/longshore/infra/construct/identity"
	"github.com/longshore-run/longshore/shared/schema"
	"github.com/longshore-run/longshore/shared/setting"
)

// The functions.
const (
	api         = "api"
	readapi     = "readapi"
	admission   = "admission"
	statechange = "statechange"
	reaper      = "reaper"
	services    = "services"
	events      = "events"
	scheduled   = "schedule"
	audit       = "audit"
)

// Functions lists them in the order they are shown.
func Functions() []string {
	return []string{api, readapi, admission, statechange, reaper, services, events, scheduled, audit}
}

// Code is the folder of a function's binary: readapi is api's with another role.
func Code(name string) string {
	if name == readapi {
		return api
	}
	return name
}

const spare = 5 * time.Second

// timeouts are how long one call of a function may take. An admission pass ends
// well before its own; a report batch that takes half a minute is better tried
// again; the reaper must be done before its next minute.
var timeouts = map[string]time.Duration{
	api: 25 * time.Second, readapi: 25 * time.Second,
	admission: 60 * time.Second, statechange: 30 * time.Second,
	reaper: 55 * time.Second, services: 30 * time.Second, events: 60 * time.Second, scheduled: 30 * time.Second,
	audit: 10 * time.Minute, // it reads every task up to three times
}

// memories set the share of a processor too: at 1769 MiB it is one whole.
// Admission plans over thousands of tasks in memory, so it gets most.
var memories = map[string]int{
	api: 512, readapi: 512, admission: 1769, statechange: 512, reaper: 512, services: 512, events: 512, scheduled: 512,
	audit: 1769,
}

func (s *Stack) addFunctions() {
	site := function.Site{
		Dist:    s.option.Dist,
		GOARCH:  s.option.GOARCH(),
		Retain:  s.option.Retain,
		LogDays: s.option.LogDays,
	}
	about := map[string]string{
		api:         "Longshore: the ECS operations",
		readapi:     "Longshore: the ECS operations that only read",
		admission:   "Longshore: gives waiting tasks their instance",
		statechange: "Longshore: takes in reports, registrations and heartbeats",
		reaper:      "Longshore: reaps silent instances and sweeps up what was lost, each minute",
		services:    "Longshore: keeps services at their desired count",
		events:      "Longshore: publishes committed state changes to the event bus",
		scheduled:   "Longshore: makes the tasks of schedules that are due",
		audit:       "Longshore: recomputes every ledger from its tasks, each night",
	}
	s.functions = map[string]function.Function{}
	for _, name := range Functions() {
		props := function.Props{
			Description: about[name],
			Code:        Code(name),
			MemoryMiB:   memories[name],
			Timeout:     timeouts[name],
			Environment: setting.Env(s.control(name)),
			Allow:       s.allow(name),
		}
		if name == reaper {
			props.RetryEvents = 10 * time.Minute
		}
		if name == scheduled {
			props.RetryEvents, props.Dead = time.Hour, s.scheduleDead
		}
		s.functions[name] = function.New(s.Stack, title(name), site, props)
	}
}

// control is what a function is told: the tunable settings, and where
// everything is. readapi refuses to write by itself, before its role does.
func (s *Stack) control(name string) setting.Control {
	c := s.option.Control
	c.ReadOnly = name == readapi
	c.Region, c.Account, c.Partition = *s.Region(), *s.Account(), *s.Partition()
	c.StackName = s.option.Name
	c.TasksTable = *s.tables[schema.Tasks].TableName()
	c.InstancesTable = *s.tables[schema.Instances].TableName()
	c.LeasesTable = *s.tables[schema.Leases].TableName()
	c.CatalogTable = *s.tables[schema.Catalog].TableName()
	c.AdmissionQueueURL = *s.admission.QueueUrl()
	c.AdmissionDeadQueueURL = *s.admission.Dead.QueueUrl()
	c.ReportsQueueURL = *s.reports.QueueUrl()
	c.ReportsDeadQueueURL = *s.reports.Dead.QueueUrl()
	c.HeartbeatsQueueURL = *s.heartbeats.QueueUrl()
	c.HeartbeatsDeadQueue = *s.heartbeats.Dead.QueueUrl()
	c.ServicesQueueURL = *s.services.QueueUrl()
	c.ServicesDeadQueueURL = *s.services.Dead.QueueUrl()
	c.CommandQueueNameStart = s.option.CommandQueueStart()
	c.EventsDeadQueueURL = *s.eventsDead.QueueUrl()
	c.EventBusName = *s.bus.EventBusName()
	c.RegisterRoles = s.registerRoles()
	return c
}

// registerRoles turns "*" into the one role whose sessions the stack itself
// vouches for, by its unique id, which is what SQS shows of a sender. Only an
// emulator, where every sender looks the same, keeps the "*".
func (s *Stack) registerRoles() []string {
	if s.option.Local {
		return s.option.Control.RegisterRoles
	}
	var out []string
	for _, role := range s.option.Control.RegisterRoles {
		if start, every := strings.CutSuffix(role, "*"); every { // also of one cluster, edge=*
			role = start + *s.agent.Role.RoleId()
		}
		out = append(out, role)
	}
	return out
}

func (s *Stack) addSources() {
	window := s.heartbeatWindow()
	heartbeats := function.Source{Batch: 10, Concurrency: 5, Partial: true}
	if window > 0 {
		heartbeats.Batch, heartbeats.Window = 100, window
	}
	s.sources = map[string]awslambda.EventSourceMapping{
		// No partial failures: admission never fails a kick, because a failing
		// batch blocks its cluster for the whole visibility timeout.
		"Admission": s.functions[admission].Reads(s.Stack, "AdmissionSource", s.admission,
			function.Source{Batch: 10, Concurrency: 50}),
		"Reports": s.functions[statechange].Reads(s.Stack, "ReportsSource", s.reports,
			function.Source{Batch: 10, Concurrency: 20, Partial: true}),
		"Heartbeats": s.functions[statechange].Reads(s.Stack, "HeartbeatsSource", s.heartbeats, heartbeats),
		"Services": s.functions[services].Reads(s.Stack, "ServicesSource", s.services,
			function.Source{Batch: 10, Concurrency: 5, Partial: true}),
	}
	s.addStreams()
	s.addSchedules()
	target := func(name string) *[]awsevents.IRuleTarget {
		return &[]awsevents.IRuleTarget{awseventstargets.NewLambdaFunction(s.functions[name].Function, nil)}
	}
	awsevents.NewRule(s.Stack, jsii.String("EveryMinute"), &awsevents.RuleProps{
		Description: jsii.String("Longshore: wakes the reaper"),
		Schedule:    awsevents.Schedule_Rate(alarm.Period(time.Minute)),
		Targets:     target(reaper),
	})
	awsevents.NewRule(s.Stack, jsii.String("EveryNight"), &awsevents.RuleProps{
		Description: jsii.String("Longshore: wakes the audit"),
		Schedule:    awsevents.Schedule_Cron(&awsevents.CronOptions{Hour: jsii.String("3"), Minute: jsii.String("17")}),
		Targets:     target(audit),
	})
	s.addHosts(target(reaper))
}

// addEndpoints gives the API its URLs, which only IAM opens, and makes the
// policies of those who call them.
func (s *Stack) addEndpoints() {
	s.urls = map[string]awslambda.FunctionUrl{}
	for _, name := range []string{api, readapi} {
		s.urls[name] = s.functions[name].AddFunctionUrl(&awslambda.FunctionUrlOptions{
			AuthType: awslambda.FunctionUrlAuthType_AWS_IAM,
		})
	}
	s.callerARN = identity.NewCaller(s.Stack, "Caller", "May call the Longshore API",
		s.functions[api].FunctionArn(), s.functions[readapi].FunctionArn()).ManagedPolicyArn()
	s.readOnlyARN = identity.NewCaller(s.Stack, "ReadOnlyCaller", "May read through the Longshore API",
		s.functions[readapi].FunctionArn()).ManagedPolicyArn()
}
