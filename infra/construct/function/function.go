// Package function makes one Lambda function of a bootstrap binary: its own
// role, its own log group that it may write to, and its settings. What wakes it
// is added by infra/stack, which alone imports this.
package function

import (
	"path/filepath"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambdadestinations"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambdaeventsources"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/longshore-run/longshore/infra/construct/identity"
)

// Site is what all functions of a stack have in common.
type Site struct {
	// Dist is the folder that holds lambda/<GOARCH>/<code>/bootstrap.
	Dist   string
	GOARCH string
	// Retain keeps the logs when the stack is deleted.
	Retain bool
	// LogDays is a key of Retentions.
	LogDays int
}

// Props describes one function.
type Props struct {
	Description string
	// Code is the folder of its bootstrap.
	Code      string
	MemoryMiB int
	Timeout   time.Duration
	// Environment is what shared/setting's Env made of the settings.
	Environment map[string]string
	// Allow is what its role may do, besides writing its log.
	Allow []identity.Statement
	// RetryEvents says how long EventBridge's events wait for the function
	// while it is throttled or failing; zero for functions without events.
	RetryEvents time.Duration
	// Dead is where events go that it could not do; nil for nowhere.
	Dead awssqs.IQueue
}

// Function is a function, its role and its log.
type Function struct {
	awslambda.Function
	Role awsiam.Role
	Log  awslogs.LogGroup
}

// New adds a function to scope.
func New(scope constructs.Construct, id string, site Site, p Props) Function {
	log := awslogs.NewLogGroup(scope, jsii.String(id+"Log"), &awslogs.LogGroupProps{
		Retention:     Retentions[site.LogDays],
		RemovalPolicy: removal(site.Retain),
	})
	// The whole policy is written here. CDK's default would be AWS's managed
	// policy, which may write to every log group of the account.
	allow := append([]identity.Statement{{
		Actions:   []string{"logs:CreateLogStream", "logs:PutLogEvents"},
		Resources: []*string{log.LogGroupArn()},
	}}, p.Allow...)
	role := identity.NewFunctionRole(scope, id+"Role", p.Description, allow)
	environment := map[string]*string{}
	for name, value := range p.Environment {
		environment[name] = &value
	}
	props := &awslambda.FunctionProps{
		Description:  &p.Description,
		Runtime:      awslambda.Runtime_PROVIDED_AL2023(),
		Architecture: architecture(site.GOARCH),
		Handler:      jsii.String("bootstrap"),
		Code:         awslambda.Code_FromAsset(jsii.String(filepath.Join(site.Dist, "lambda", site.GOARCH, p.Code)), nil),
		MemorySize:   jsii.Number(p.MemoryMiB),
		Timeout:      seconds(p.Timeout),
		Environment:  &environment,
		LogGroup:     log,
		// The role is complete: nothing the CDK adds may widen it.
		Role: role.WithoutPolicyUpdates(nil),
	}
	if p.RetryEvents > 0 {
		props.MaxEventAge = seconds(p.RetryEvents)
		props.RetryAttempts = jsii.Number(2)
	}
	if p.Dead != nil {
		props.OnFailure = awslambdadestinations.NewSqsDestination(p.Dead)
	}
	return Function{Function: awslambda.NewFunction(scope, &id, props), Role: role, Log: log}
}

// Source is how a function reads a queue.
type Source struct {
	Batch int
	// Window collects a batch for so long; zero delivers at once. FIFO queues
	// allow none.
	Window time.Duration
	// Concurrency is the most copies of the function this queue may wake, so
	// that it cannot take the account's whole concurrency; at least 2.
	Concurrency int
	// Partial lets the function say which messages of a batch failed.
	Partial bool
}

// Reads wakes the function with messages of the queue.
func (f Function) Reads(scope constructs.Construct, id string, queue awssqs.IQueue, s Source) awslambda.EventSourceMapping {
	props := &awslambda.EventSourceMappingProps{
		Target:                  f.Function,
		EventSourceArn:          queue.QueueArn(),
		BatchSize:               jsii.Number(s.Batch),
		MaxConcurrency:          jsii.Number(s.Concurrency),
		ReportBatchItemFailures: &s.Partial,
	}
	if s.Window > 0 {
		props.MaxBatchingWindow = seconds(s.Window)
	}
	return awslambda.NewEventSourceMapping(scope, &id, props)
}

// Stream is how a function reads a table's stream.
type Stream struct {
	ARN   *string
	Batch int
	// MaxAge is how long a record is tried again, with those that follow it in its
	// shard, before Lambda tells Dead of it and goes on.
	MaxAge time.Duration
	Dead   awssqs.IQueue
	// Patterns say which records are delivered; any one that matches is enough.
	Patterns []map[string]any
}

// ReadsStream wakes the function with records of a stream, in the order of each
// shard, from the oldest that is there. The function says which one it could not
// do; a call that fails as a whole is tried again in halves.
func (f Function) ReadsStream(scope constructs.Construct, id string, s Stream) awslambda.EventSourceMapping {
	var filters []*map[string]any
	for _, p := range s.Patterns {
		filters = append(filters, awslambda.FilterCriteria_Filter(&p))
	}
	return awslambda.NewEventSourceMapping(scope, &id, &awslambda.EventSourceMappingProps{
		Target:                  f.Function,
		EventSourceArn:          s.ARN,
		StartingPosition:        awslambda.StartingPosition_TRIM_HORIZON,
		BatchSize:               jsii.Number(s.Batch),
		MaxRecordAge:            seconds(s.MaxAge),
		BisectBatchOnError:      jsii.Bool(true),
		ReportBatchItemFailures: jsii.Bool(true),
		OnFailure:               awslambdaeventsources.NewSqsDlq(s.Dead),
		Filters:                 &filters,
	})
}

func architecture(goarch string) awslambda.Architecture {
	if goarch == "amd64" {
		return awslambda.Architecture_X86_64()
	}
	return awslambda.Architecture_ARM_64()
}

func removal(retain bool) awscdk.RemovalPolicy {
	if retain {
		return awscdk.RemovalPolicy_RETAIN
	}
	return awscdk.RemovalPolicy_DESTROY
}

// Retentions are the log retentions we offer, by their days.
var Retentions = map[int]awslogs.RetentionDays{
	1: awslogs.RetentionDays_ONE_DAY, 3: awslogs.RetentionDays_THREE_DAYS, 5: awslogs.RetentionDays_FIVE_DAYS,
	7: awslogs.RetentionDays_ONE_WEEK, 14: awslogs.RetentionDays_TWO_WEEKS, 30: awslogs.RetentionDays_ONE_MONTH,
	60: awslogs.RetentionDays_TWO_MONTHS, 90: awslogs.RetentionDays_THREE_MONTHS,
	180: awslogs.RetentionDays_SIX_MONTHS, 365: awslogs.RetentionDays_ONE_YEAR, 731: awslogs.RetentionDays_TWO_YEARS,
}

func seconds(d time.Duration) awscdk.Duration {
	return awscdk.Duration_Seconds(jsii.Number(d.Seconds()))
}
