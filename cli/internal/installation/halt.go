package installation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
)

// called are the functions that others call, and that are stopped by a reserved
// concurrency of zero; the rest are woken by event sources and by the stack's rules.
var called = []string{"Api", "Schedule"}

// woken are the functions that the stack's own rules wake.
var woken = []string{"Reaper", "Audit"}

// Switched is what halting or resuming came to.
type Switched struct {
	Functions []string `json:"functions"`
	Sources   []string `json:"sources"`
	Rules     []string `json:"rules"`
}

// Halt stops every function that writes, so that the tables stand still: nothing
// wakes them, and what others send waits in the queues. What runs on the machines
// goes on. Calls under way end by themselves, within ten minutes.
func (in *Installation) Halt(ctx context.Context) (*Switched, error) {
	return in.turn(ctx, false, nil)
}

// Resume undoes Halt. With hold, what is named (Admission, say) stays stopped.
func (in *Installation) Resume(ctx context.Context, hold ...string) (*Switched, error) {
	return in.turn(ctx, true, hold)
}

func (in *Installation) turn(ctx context.Context, on bool, hold []string) (*Switched, error) {
	out := &Switched{}
	steps := []func(context.Context, bool, []string, *Switched) error{in.turnCalled, in.turnRules, in.turnSources}
	if on { // who is called last is who was stopped first
		slices.Reverse(steps)
	}
	for _, step := range steps {
		if err := step(ctx, on, hold, out); err != nil {
			return out, err
		}
	}
	return out, nil
}

func (in *Installation) turnCalled(ctx context.Context, on bool, _ []string, out *Switched) error {
	c := lambda.NewFromConfig(in.AWS)
	for _, f := range called {
		name, err := in.output(f + "FunctionName")
		if err != nil {
			return err
		}
		if on {
			_, err = c.DeleteFunctionConcurrency(ctx, &lambda.DeleteFunctionConcurrencyInput{FunctionName: &name})
		} else {
			_, err = c.PutFunctionConcurrency(ctx, &lambda.PutFunctionConcurrencyInput{FunctionName: &name, ReservedConcurrentExecutions: aws.Int32(0)})
		}
		if err != nil {
			return fmt.Errorf("set the concurrency of %s: %w", f, err)
		}
		out.Functions = append(out.Functions, f)
	}
	return nil
}

func (in *Installation) turnRules(ctx context.Context, on bool, _ []string, out *Switched) error {
	c := eventbridge.NewFromConfig(in.AWS)
	for _, f := range woken {
		arn, err := in.functionARN(ctx, f)
		if err != nil {
			return err
		}
		rules, err := c.ListRuleNamesByTarget(ctx, &eventbridge.ListRuleNamesByTargetInput{TargetArn: &arn})
		if err != nil {
			return fmt.Errorf("list the rules that wake %s: %w", f, err)
		}
		for _, name := range rules.RuleNames {
			if on {
				_, err = c.EnableRule(ctx, &eventbridge.EnableRuleInput{Name: &name})
			} else {
				_, err = c.DisableRule(ctx, &eventbridge.DisableRuleInput{Name: &name})
			}
			if err != nil {
				return fmt.Errorf("switch rule %s: %w", name, err)
			}
			out.Rules = append(out.Rules, name)
		}
	}
	return nil
}

func (in *Installation) functionARN(ctx context.Context, function string) (string, error) {
	name, err := in.output(function + "FunctionName")
	if err != nil {
		return "", err
	}
	out, err := lambda.NewFromConfig(in.AWS).GetFunctionConfiguration(ctx, &lambda.GetFunctionConfigurationInput{FunctionName: &name})
	if err != nil {
		return "", fmt.Errorf("look at the function %s: %w", function, err)
	}
	return aws.ToString(out.FunctionArn), nil
}

// source is an event source mapping of the stack.
type source struct{ name, id string }

// sources are the stack's event sources: those of queues and of streams.
func (in *Installation) sources(ctx context.Context) (all []source, err error) {
	out, err := cloudformation.NewFromConfig(in.AWS).DescribeStackResources(ctx, &cloudformation.DescribeStackResourcesInput{StackName: &in.Stack})
	if err != nil {
		return nil, fmt.Errorf("list the resources of stack %s: %w", in.Stack, err)
	}
	for _, r := range out.StackResources {
		if aws.ToString(r.ResourceType) == "AWS::Lambda::EventSourceMapping" {
			all = append(all, source{aws.ToString(r.LogicalResourceId), aws.ToString(r.PhysicalResourceId)})
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("stack %s has no event sources", in.Stack)
	}
	return all, nil
}

func (in *Installation) turnSources(ctx context.Context, on bool, hold []string, out *Switched) error {
	all, err := in.sources(ctx)
	if err != nil {
		return err
	}
	c := lambda.NewFromConfig(in.AWS)
	for _, s := range all {
		if slices.ContainsFunc(hold, func(h string) bool { return strings.HasPrefix(s.name, h) }) {
			continue
		}
		if _, err := c.UpdateEventSourceMapping(ctx, &lambda.UpdateEventSourceMappingInput{UUID: &s.id, Enabled: &on}); err != nil {
			return fmt.Errorf("switch event source %s: %w", s.name, err)
		}
		out.Sources = append(out.Sources, s.name)
	}
	return nil
}

// errRuns says that tables may not be written from outside now.
var errRuns = errors.New("the functions run")

// halted says whether nothing of the stack writes its tables.
func (in *Installation) halted(ctx context.Context) error {
	all, err := in.sources(ctx)
	if err != nil {
		return err
	}
	c := lambda.NewFromConfig(in.AWS)
	for _, s := range all {
		got, err := c.GetEventSourceMapping(ctx, &lambda.GetEventSourceMappingInput{UUID: &s.id})
		if err != nil {
			return fmt.Errorf("look at event source %s: %w", s.name, err)
		}
		if state := aws.ToString(got.State); state != "Disabled" {
			return fmt.Errorf("%w: event source %s is %s", errRuns, s.name, state)
		}
	}
	for _, f := range called {
		name, err := in.output(f + "FunctionName")
		if err != nil {
			return err
		}
		got, err := c.GetFunctionConcurrency(ctx, &lambda.GetFunctionConcurrencyInput{FunctionName: &name})
		if err != nil {
			return fmt.Errorf("look at the function %s: %w", f, err)
		}
		if got.ReservedConcurrentExecutions == nil || *got.ReservedConcurrentExecutions != lambdaNone {
			return fmt.Errorf("%w: %s may be called", errRuns, f)
		}
	}
	return nil
}

// lambdaNone is the reserved concurrency of a function that nobody can call.
const lambdaNone int32 = 0
