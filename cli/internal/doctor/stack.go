package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	cfntypes "github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	ebtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

func credentials(ctx context.Context, in *Installation) ([]Finding, error) {
	who, err := sts.NewFromConfig(in.AWS).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return []Finding{{State: Fail, Text: "no valid AWS credentials: " + err.Error(), Next: "sign in (aws sso login), or set AWS_PROFILE"}}, nil
	}
	return good("%s in %s", aws.ToString(who.Arn), in.AWS.Region), nil
}

// halted goes before what would switch one thing on: in the midst of a restore that
// lets messages in before the epochs are raised.
const halted = "after longshore restore halt: go on with docs/runbooks/restore.md, which ends with longshore restore resume; else: "

func api(ctx context.Context, in *Installation) ([]Finding, error) {
	if in.ECS == nil {
		return []Finding{{State: Fail, Text: "no endpoint is known", Next: "set LONGSHORE_ENDPOINT, or --stack"}}, nil
	}
	if _, err := in.ECS.ListClusters(ctx, &ecs.ListClustersInput{MaxResults: aws.Int32(1)}); err != nil {
		return []Finding{{State: Fail, Text: in.Endpoint + " does not do ListClusters: " + err.Error(),
			Next: "403: your identity needs CallerPolicyArn; no answer: is the endpoint the stack's output ApiUrl? 429: the function api is stopped (see functions), or the account's concurrency is used up; 5xx: look at its log"}}, nil
	}
	out, err := in.ECS.DescribeClusters(ctx, &ecs.DescribeClustersInput{Clusters: []string{in.Cluster}})
	if err != nil {
		return nil, err
	}
	if len(out.Clusters) == 0 || aws.ToString(out.Clusters[0].Status) != "ACTIVE" {
		return []Finding{
			{State: OK, Text: in.Endpoint + " answers"},
			{State: Warn, Text: fmt.Sprintf("cluster %s is not there", in.Cluster), Next: "name another with --cluster, or: aws ecs create-cluster --cluster-name " + in.Cluster},
		}, nil
	}
	return good("%s answers; cluster %s is ACTIVE", in.Endpoint, in.Cluster), nil
}

func stack(ctx context.Context, in *Installation) ([]Finding, error) {
	out, err := cloudformation.NewFromConfig(in.AWS).DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &in.Stack})
	if err != nil && strings.Contains(err.Error(), "does not exist") || err == nil && len(out.Stacks) == 0 {
		return []Finding{{State: Fail, Text: fmt.Sprintf("there is no stack %s in %s", in.Stack, in.AWS.Region), Next: "name it with --stack and --region, or deploy it: make deploy"}}, nil
	}
	if err != nil {
		return nil, err
	}
	s := out.Stacks[0]
	in.outputs = map[string]string{}
	for _, o := range s.Outputs {
		in.outputs[aws.ToString(o.OutputKey)] = aws.ToString(o.OutputValue)
	}
	return judgeStack(in.Stack, s.StackStatus, in.outputs), nil
}

func judgeStack(name string, status cfntypes.StackStatus, outputs map[string]string) []Finding {
	var faults []Finding
	switch {
	case strings.HasSuffix(string(status), "FAILED") || strings.Contains(string(status), "ROLLBACK"):
		faults = append(faults, Finding{State: Fail, Text: fmt.Sprintf("stack %s is %s", name, status), Next: "read its events: aws cloudformation describe-stack-events --stack-name " + name})
	case strings.HasSuffix(string(status), "IN_PROGRESS"):
		faults = append(faults, Finding{State: Warn, Text: fmt.Sprintf("stack %s is %s", name, status), Next: "look again when it is done"})
	}
	var lacks []string
	for _, o := range []string{"ApiUrl", "ReadApiUrl", "AgentRoleArn", "ReportsQueueUrl", "HeartbeatsQueueUrl", "ReaperFunctionName", "TasksTableName"} {
		if outputs[o] == "" {
			lacks = append(lacks, o)
		}
	}
	if len(lacks) > 0 {
		faults = append(faults, Finding{State: Fail, Text: fmt.Sprintf("stack %s has no output %s", name, strings.Join(lacks, ", ")), Next: "is it a Longshore stack? deploy this version: make deploy"})
	}
	return orGood(faults, "stack %s is %s", name, status)
}

// outputsEnding are the stack's outputs of one kind, by what stands before it.
func (in *Installation) outputsEnding(suffix string) (names []string, by map[string]string) {
	by = map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(in.outputs)) {
		if name, ok := strings.CutSuffix(key, suffix); ok {
			names, by[name] = append(names, name), in.outputs[key]
		}
	}
	return names, by
}

var errNoStack = errors.New("the stack's outputs are not known")

func functions(ctx context.Context, in *Installation) ([]Finding, error) {
	names, by := in.outputsEnding("FunctionName")
	if len(names) == 0 {
		return nil, errNoStack
	}
	c := lambda.NewFromConfig(in.AWS)
	var faults []Finding
	for _, n := range names {
		out, err := c.GetFunctionConfiguration(ctx, &lambda.GetFunctionConfigurationInput{FunctionName: aws.String(by[n])})
		if _, gone := errors.AsType[*lambdatypes.ResourceNotFoundException](err); gone {
			faults = append(faults, Finding{State: Fail, Text: "function " + n + " is gone", Next: "deploy again: make deploy"})
			continue
		}
		if err != nil {
			return faults, err
		}
		if out.State != "" && out.State != lambdatypes.StateActive {
			faults = append(faults, Finding{State: Fail, Text: fmt.Sprintf("function %s is %s: %s", n, out.State, aws.ToString(out.StateReason)), Next: "deploy again: make deploy"})
		}
		if out.LastUpdateStatus == lambdatypes.LastUpdateStatusFailed {
			faults = append(faults, Finding{State: Fail, Text: fmt.Sprintf("function %s was not updated: %s", n, aws.ToString(out.LastUpdateStatusReason)), Next: "deploy again: make deploy"})
		}
		kept, err := c.GetFunctionConcurrency(ctx, &lambda.GetFunctionConcurrencyInput{FunctionName: aws.String(by[n])})
		if err != nil {
			return faults, err
		}
		faults = append(faults, judgeConcurrency(n, by[n], kept.ReservedConcurrentExecutions)...)
	}
	return orGood(faults, "%d are there: %s", len(names), strings.Join(names, " ")), nil
}

// judgeConcurrency finds a function that nobody can call: so longshore restore halt
// leaves those of the API and of schedules.
func judgeConcurrency(name, function string, reserved *int32) []Finding {
	if reserved == nil || *reserved > 0 {
		return nil
	}
	return []Finding{{State: Fail, Text: "function " + name + " is stopped: its reserved concurrency is 0",
		Next: halted + "aws lambda delete-function-concurrency --function-name " + function}}
}

func sources(ctx context.Context, in *Installation) ([]Finding, error) {
	names, by := in.outputsEnding("SourceId")
	if len(names) == 0 {
		return nil, errNoStack
	}
	c := lambda.NewFromConfig(in.AWS)
	var faults []Finding
	for _, n := range names {
		out, err := c.GetEventSourceMapping(ctx, &lambda.GetEventSourceMappingInput{UUID: aws.String(by[n])})
		if _, gone := errors.AsType[*lambdatypes.ResourceNotFoundException](err); gone {
			faults = append(faults, Finding{State: Fail, Text: "event source " + n + " is gone: nothing reads its queue", Next: "deploy again: make deploy"})
			continue
		}
		if err != nil {
			return faults, err
		}
		faults = append(faults, judgeSource(n, by[n], aws.ToString(out.State))...)
	}
	others, found, err := otherSources(ctx, c, in, by)
	if err != nil {
		return faults, err
	}
	return orGood(append(faults, others...), "%d are Enabled: %s, and %d of streams", len(names), strings.Join(names, " "), found), nil
}

// otherSources judges the event sources of the stack's functions that no output
// names: those that read the tables' streams.
func otherSources(ctx context.Context, c *lambda.Client, in *Installation, named map[string]string) (faults []Finding, found int, err error) {
	names, functions := in.outputsEnding("FunctionName")
	for _, n := range names {
		pages := lambda.NewListEventSourceMappingsPaginator(c, &lambda.ListEventSourceMappingsInput{FunctionName: aws.String(functions[n])})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return faults, found, err
			}
			for _, m := range page.EventSourceMappings {
				id := aws.ToString(m.UUID)
				if slices.Contains(slices.Collect(maps.Values(named)), id) || !strings.Contains(aws.ToString(m.EventSourceArn), "/stream/") {
					continue
				}
				found++
				faults = append(faults, judgeSource(n+" of a stream", id, aws.ToString(m.State))...)
			}
		}
	}
	return faults, found, nil
}

func judgeSource(name, id, state string) []Finding {
	switch state {
	case "Enabled":
		return nil
	case "Creating", "Enabling", "Updating":
		return []Finding{{State: Warn, Text: fmt.Sprintf("event source %s is %s", name, state), Next: "look again in a minute"}}
	}
	return []Finding{{State: Fail, Text: fmt.Sprintf("event source %s is %s: nothing reads its queue", name, state), Next: halted + "aws lambda update-event-source-mapping --enabled --uuid " + id}}
}

func rules(ctx context.Context, in *Installation) ([]Finding, error) {
	if in.outputs == nil {
		return nil, errNoStack
	}
	out, err := cloudformation.NewFromConfig(in.AWS).DescribeStackResources(ctx, &cloudformation.DescribeStackResourcesInput{StackName: &in.Stack})
	if err != nil {
		return nil, err
	}
	c := eventbridge.NewFromConfig(in.AWS)
	var faults []Finding
	n := 0
	for _, r := range out.StackResources {
		if aws.ToString(r.ResourceType) != "AWS::Events::Rule" {
			continue
		}
		n++
		bus, name := ruleName(aws.ToString(r.PhysicalResourceId))
		rule, err := c.DescribeRule(ctx, &eventbridge.DescribeRuleInput{Name: &name, EventBusName: bus})
		if _, gone := errors.AsType[*ebtypes.ResourceNotFoundException](err); gone {
			faults = append(faults, Finding{State: Fail, Text: "rule " + aws.ToString(r.LogicalResourceId) + " is gone", Next: "deploy again: make deploy"})
			continue
		}
		if err != nil {
			return faults, err
		}
		if rule.State == ebtypes.RuleStateDisabled {
			faults = append(faults, Finding{State: Fail, Text: "rule " + aws.ToString(r.LogicalResourceId) + " is DISABLED", Next: halted + "aws events enable-rule --name " + name})
		}
	}
	if n == 0 {
		return []Finding{{State: Fail, Text: "the stack has no rule: nothing wakes the reaper", Next: "deploy again: make deploy"}}, nil
	}
	return orGood(faults, "%d are ENABLED", n), nil
}

// ruleName is the bus and the name of a rule's physical id: bus|name, or name.
func ruleName(id string) (bus *string, name string) {
	if before, after, on := strings.Cut(id, "|"); on {
		return &before, after
	}
	return nil, id
}

func expiry(ctx context.Context, in *Installation) ([]Finding, error) {
	names, by := in.outputsEnding("TableName")
	if len(names) == 0 {
		return nil, errNoStack
	}
	c := dynamodb.NewFromConfig(in.AWS)
	var faults []Finding
	for _, n := range names {
		out, err := c.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: aws.String(by[n])})
		if _, gone := errors.AsType[*dynamotypes.ResourceNotFoundException](err); gone {
			faults = append(faults, Finding{State: Fail, Text: "table " + n + " is gone", Next: "restore it from its point-in-time backup before anything else"})
			continue
		}
		if err != nil {
			return faults, err
		}
		if d := out.TimeToLiveDescription; d == nil || d.TimeToLiveStatus != dynamotypes.TimeToLiveStatusEnabled && d.TimeToLiveStatus != dynamotypes.TimeToLiveStatusEnabling {
			faults = append(faults, Finding{State: Warn, Text: "table " + n + " removes nothing by itself: its time to live is off", Next: "aws dynamodb update-time-to-live --table-name " + by[n] + " --time-to-live-specification Enabled=true,AttributeName=expiresAt"})
		}
	}
	return orGood(faults, "is on for %d tables", len(names)), nil
}
