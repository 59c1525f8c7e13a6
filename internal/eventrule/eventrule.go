// Package eventrule keeps the schedules of a Longshore stack as EventBridge rules:
// it makes, lists, switches and removes them. What a schedule is, and what can be
// wrong with one, is shared/schedule's. It is for programs that people run, with
// their own rights (events:PutRule and the like on the stack's rules); the control
// plane does not import it.
package eventrule

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/schedule"
)

// Client works on the rules of one stack.
type Client struct {
	Bridge *eventbridge.Client
	// Stack is the stack's name; Function the ARN of its output ScheduleFunctionArn.
	Stack, Function string
}

const (
	targetID = "run"
	// by says of a rule who made it.
	by = "Longshore: "
)

// Put makes a schedule, or makes one of its name as given. The rule is checked
// first: the error lists every fault.
func (c *Client) Put(ctx context.Context, r schedule.Rule) error {
	r.Complete()
	if err := r.Check(c.Stack); err != nil {
		return err
	}
	name := aws.String(schedule.RuleName(c.Stack, r.Schedule))
	state := types.RuleStateEnabled
	if r.Disabled {
		state = types.RuleStateDisabled
	}
	// A rule without a target does nothing: the target comes first where there is
	// a rule, so that no run is made of the new time and the old task.
	_, err := c.Bridge.DescribeRule(ctx, &eventbridge.DescribeRuleInput{Name: name})
	fresh := missing(err)
	if err != nil && !fresh {
		return fmt.Errorf("look for schedule %s: %w", r.Schedule, err)
	}
	rule := func() error {
		_, err := c.Bridge.PutRule(ctx, &eventbridge.PutRuleInput{
			Name: name, ScheduleExpression: &r.Expression, State: state,
			Description: aws.String(by + "runs " + r.TaskDefinition + " in cluster " + r.Cluster),
		})
		return err
	}
	steps := []func() error{func() error { return c.target(ctx, name, &r.Run) }, rule}
	if fresh {
		steps[0], steps[1] = steps[1], steps[0]
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return fmt.Errorf("put schedule %s: %w", r.Schedule, err)
		}
	}
	return nil
}

func (c *Client) target(ctx context.Context, rule *string, r *schedule.Run) error {
	out, err := c.Bridge.PutTargets(ctx, &eventbridge.PutTargetsInput{Rule: rule, Targets: []types.Target{{
		Id: aws.String(targetID), Arn: &c.Function,
		InputTransformer: &types.InputTransformer{InputPathsMap: schedule.TimePath(), InputTemplate: aws.String(r.Template())},
	}}})
	if err == nil && out.FailedEntryCount > 0 {
		f := out.FailedEntries[0]
		err = fmt.Errorf("%s: %s", aws.ToString(f.ErrorCode), aws.ToString(f.ErrorMessage))
	}
	return err
}

// Describe reads one schedule; one that is not there is a fault of kind NotFound.
func (c *Client) Describe(ctx context.Context, name string) (schedule.Rule, error) {
	out, err := c.Bridge.DescribeRule(ctx, &eventbridge.DescribeRuleInput{Name: aws.String(schedule.RuleName(c.Stack, name))})
	if missing(err) {
		return schedule.Rule{}, notFound(name)
	}
	if err != nil {
		return schedule.Rule{}, fmt.Errorf("describe schedule %s: %w", name, err)
	}
	return c.read(ctx, name, aws.ToString(out.ScheduleExpression), out.State)
}

func (c *Client) read(ctx context.Context, name, expression string, state types.RuleState) (schedule.Rule, error) {
	r := schedule.Rule{Expression: expression, Disabled: state == types.RuleStateDisabled, Run: schedule.Run{Schedule: name}}
	out, err := c.Bridge.ListTargetsByRule(ctx, &eventbridge.ListTargetsByRuleInput{Rule: aws.String(schedule.RuleName(c.Stack, name))})
	if err != nil {
		return r, fmt.Errorf("read schedule %s: %w", name, err)
	}
	for _, t := range out.Targets {
		if t.InputTransformer != nil {
			r.Run, err = schedule.DecodeTemplate(aws.ToString(t.InputTransformer.InputTemplate))
			return r, err
		}
	}
	return r, fault.New(fault.Invalid, "the rule of schedule %s has no target of ours: put it again", name)
}

// List reads all schedules of the stack, by name. One that can not be read is there
// with what its rule says; the errors of all of these are joined.
func (c *Client) List(ctx context.Context) ([]schedule.Rule, error) {
	var all []schedule.Rule
	var faults []error
	in := &eventbridge.ListRulesInput{NamePrefix: aws.String(schedule.RuleStart(c.Stack))}
	for {
		out, err := c.Bridge.ListRules(ctx, in)
		if err != nil {
			return all, fmt.Errorf("list schedules: %w", err)
		}
		for _, rule := range out.Rules {
			r, err := c.read(ctx, strings.TrimPrefix(aws.ToString(rule.Name), *in.NamePrefix), aws.ToString(rule.ScheduleExpression), rule.State)
			all, faults = append(all, r), append(faults, err)
		}
		if in.NextToken = out.NextToken; in.NextToken == nil {
			return all, errors.Join(faults...)
		}
	}
}

// Switch has a schedule run, or not run until it is switched on again.
func (c *Client) Switch(ctx context.Context, name string, on bool) error {
	rule := aws.String(schedule.RuleName(c.Stack, name))
	_, err := c.Bridge.DescribeRule(ctx, &eventbridge.DescribeRuleInput{Name: rule})
	switch {
	case err != nil:
	case on:
		_, err = c.Bridge.EnableRule(ctx, &eventbridge.EnableRuleInput{Name: rule})
	default:
		_, err = c.Bridge.DisableRule(ctx, &eventbridge.DisableRuleInput{Name: rule})
	}
	if missing(err) {
		return notFound(name)
	}
	if err != nil {
		return fmt.Errorf("switch schedule %s: %w", name, err)
	}
	return nil
}

// Delete removes a schedule; one that is not there is removed. What it has run goes on.
func (c *Client) Delete(ctx context.Context, name string) error {
	rule := aws.String(schedule.RuleName(c.Stack, name))
	out, err := c.Bridge.RemoveTargets(ctx, &eventbridge.RemoveTargetsInput{Rule: rule, Ids: []string{targetID}})
	if missing(err) {
		return nil
	}
	if err == nil && out.FailedEntryCount > 0 {
		err = errors.New(aws.ToString(out.FailedEntries[0].ErrorMessage))
	}
	if err == nil {
		_, err = c.Bridge.DeleteRule(ctx, &eventbridge.DeleteRuleInput{Name: rule})
	}
	if err != nil && !missing(err) {
		return fmt.Errorf("delete schedule %s: %w", name, err)
	}
	return nil
}

func notFound(name string) error { return fault.New(fault.NotFound, "there is no schedule %s", name) }

func missing(err error) bool {
	_, ok := errors.AsType[*types.ResourceNotFoundException](err)
	return ok
}
