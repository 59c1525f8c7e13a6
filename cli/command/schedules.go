package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/cli/internal/client"
	"github.com/longshore-run/longshore/cli/internal/exit"
	"github.com/longshore-run/longshore/cli/internal/output"
	"github.com/longshore-run/longshore/cli/internal/view"
	"github.com/longshore-run/longshore/internal/eventrule"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/schedule"
)

func (s *session) schedulesCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "schedules", Short: "Run tasks at a rate or by cron", Aliases: []string{"schedule"},
		Long: `Schedules are EventBridge rules of the stack, which wake a function of it. A run
that finds the cluster full waits its turn, until its starting deadline; one that
is missed is told on the bus (longshore events --follow) and by an alarm. You need
rights to EventBridge's rules.`,
		Example: `  longshore schedules put nightly --expression 'cron(0 3 * * ? *)' --definition report
  longshore schedules put examples/schedules/nightly.json
  longshore schedules list
  longshore schedules runs nightly`,
	}
	c.AddCommand(s.schedulesList(), s.schedulePut(), s.scheduleSwitch("enable", true), s.scheduleSwitch("disable", false), s.scheduleDelete(), s.scheduleRuns())
	return c
}

// rules are the schedules of the stack.
func (s *session) rules(ctx context.Context) (*eventrule.Client, error) {
	cfg, err := client.Load(ctx, s.connect)
	if err != nil {
		return nil, err
	}
	outputs, err := client.Outputs(ctx, cfg, s.connect.Stack)
	if err != nil {
		return nil, err
	}
	if outputs["ScheduleFunctionArn"] == "" {
		return nil, exit.New(exit.NotFound, "deploy this version of Longshore: make deploy", "stack %s has no output ScheduleFunctionArn", s.connect.Stack)
	}
	return &eventrule.Client{Bridge: eventbridge.NewFromConfig(cfg), Stack: s.connect.Stack, Function: outputs["ScheduleFunctionArn"]}, nil
}

// onRules makes a command's work of what is done with the rules, and gives its
// errors their exit codes.
func (s *session) onRules(do func(ctx context.Context, rules *eventrule.Client, args []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		rules, err := s.rules(c.Context())
		if err == nil {
			err = do(c.Context(), rules, args)
		}
		if f, ours := errors.AsType[*fault.Error](err); ours {
			code, next := exit.Usage, "see: longshore schedules put --help"
			if f.Kind == fault.NotFound {
				code, next = exit.NotFound, "see which there are: longshore schedules list"
			}
			return &exit.Error{Code: code, Cause: err, Next: next}
		}
		return err
	}
}

func (s *session) schedulesList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List schedules", Aliases: []string{"ls"}, Example: "  longshore schedules list -o yaml", Args: cobra.NoArgs,
		RunE: s.onRules(func(ctx context.Context, rules *eventrule.Client, _ []string) error {
			all, err := rules.List(ctx)
			if len(all) > 0 || err == nil { // one that can not be read does not hide the others
				err = errors.Join(s.showSchedules(all), err)
			}
			return err
		}),
	}
}

func (s *session) showSchedules(all []schedule.Rule) error {
	if f := output.Format(s.format); f != output.AsTable {
		text, err := json.Marshal(all) // their own names, as a file has them
		if err != nil {
			return fmt.Errorf("write schedules: %w", err)
		}
		return output.Value(s.Out, f, json.RawMessage(text))
	}
	t := &output.Table{Head: []string{"SCHEDULE", "STATE", "EXPRESSION", "CLUSTER", "DEFINITION", "COUNT", "DEADLINE", "OVERLAP"}, Empty: "no schedule is there"}
	for _, r := range all {
		state, deadline := output.Cell{Text: "ENABLED", Colour: output.Good}, "-"
		if r.Disabled {
			state = output.Cell{Text: "DISABLED", Colour: output.Faint}
		}
		if r.StartingDeadline > 0 {
			deadline = r.Deadline().String()
		}
		t.Add(r.Schedule, state, r.Expression, r.Cluster, view.Definition(&r.TaskDefinition), r.Count, deadline, r.Overlap)
	}
	return t.Write(s.Out, s.colours())
}

func (s *session) schedulePut() *cobra.Command {
	var r schedule.Rule
	var overlap, overrides string
	var deadline time.Duration
	c := &cobra.Command{
		Use: "put NAME|FILE", Short: "Make a schedule, or change it to what is given",
		Long: `Makes a schedule of flags, or those of a file (JSON or YAML: one, or a list, as in
examples/schedules). What is not given has its default, also where the schedule
was there before. Times are UTC.`,
		Example: `  longshore schedules put nightly --expression 'cron(0 3 * * ? *)' --definition report --deadline 10m
  longshore schedules put examples/schedules/nightly.json`,
		Args: cobra.ExactArgs(1),
		RunE: s.onRules(func(ctx context.Context, rules *eventrule.Client, args []string) error {
			if isFile(args[0]) {
				return s.putFile(ctx, rules, args[0])
			}
			r.Schedule, r.Cluster, r.Overlap = args[0], s.cluster, schedule.Overlap(overlap)
			r.StartingDeadline = int(deadline / time.Second)
			if r.Count < 1 { // a file that names no count has 1; a flag that says 0 does not
				return exit.New(exit.Usage, "to run it no more: longshore schedules disable "+args[0], "--count is %d; 1 to 10 are allowed", r.Count)
			}
			if overrides != "" {
				r.Overrides = json.RawMessage(overrides)
			}
			return s.put(ctx, rules, []schedule.Rule{r})
		}),
	}
	p := c.Flags()
	p.StringVar(&r.Expression, "expression", "", "rate(5 minutes) or cron(0 3 * * ? *)")
	p.StringVar(&r.TaskDefinition, "definition", "", "family (its latest at that time), family:revision or ARN")
	p.IntVar(&r.Count, "count", 1, "how many tasks a run is")
	p.StringVar(&overrides, "overrides", "", "ECS's overrides as JSON")
	p.StringVar(&r.Group, "group", "", "task group")
	p.DurationVar(&deadline, "deadline", 0, "how long a run may wait for room before it is missed (0: for ever)")
	p.StringVar(&overlap, "overlap", "allow", "if an earlier run has not ended: allow, forbid or replace")
	p.BoolVar(&r.Disabled, "disabled", false, "make it, and do not run it")
	_ = c.RegisterFlagCompletionFunc("definition", s.completeDefinitions)
	return c
}

func (s *session) putFile(ctx context.Context, rules *eventrule.Client, file string) error {
	body, err := s.readFile(file)
	if err != nil {
		return err
	}
	var all []schedule.Rule
	if len(body) > 0 && body[0] == '{' {
		body = append(append([]byte("["), body...), ']')
	}
	if err := strictly(body, &all); err != nil {
		return &exit.Error{Code: exit.Usage, Text: file, Cause: err, Next: "examples/schedules shows the members"}
	}
	return s.put(ctx, rules, all)
}

// put checks all before it makes any.
func (s *session) put(ctx context.Context, rules *eventrule.Client, all []schedule.Rule) error {
	var faults []error
	for i := range all {
		all[i].Complete()
		if err := all[i].Check(rules.Stack); err != nil {
			faults = append(faults, fmt.Errorf("schedule %s: %w", all[i].Schedule, err))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	for _, r := range all {
		if err := rules.Put(ctx, r); err != nil {
			return err
		}
	}
	s.unregistered(ctx, all)
	return s.showSchedules(all)
}

// unregistered tells of schedules whose runs would be refused. The definition may
// still come, and who may make rules may not describe it: it is no error.
func (s *session) unregistered(ctx context.Context, all []schedule.Rule) {
	c, err := s.client(ctx)
	if err != nil {
		return
	}
	for _, r := range all {
		_, err := c.ECS.DescribeTaskDefinition(ctx, &ecs.DescribeTaskDefinitionInput{TaskDefinition: &r.TaskDefinition})
		if exit.Code(err) == exit.NotFound {
			s.note("longshore: there is no task definition %s; until it is registered the runs of %s are missed", r.TaskDefinition, r.Schedule)
		}
	}
}

func (s *session) scheduleSwitch(verb string, on bool) *cobra.Command {
	return &cobra.Command{
		Use: verb + " NAME", Short: map[bool]string{true: "Run a schedule again", false: "Run a schedule no more until it is enabled"}[on],
		Example: "  longshore schedules " + verb + " nightly", Args: cobra.ExactArgs(1),
		RunE: s.onRules(func(ctx context.Context, rules *eventrule.Client, args []string) error {
			if err := rules.Switch(ctx, args[0], on); err != nil {
				return err
			}
			r, err := rules.Describe(ctx, args[0])
			if err != nil {
				return err
			}
			return s.showSchedules([]schedule.Rule{r})
		}),
	}
}

func (s *session) scheduleDelete() *cobra.Command {
	return &cobra.Command{
		Use: "delete NAME", Short: "Remove a schedule; what it has run goes on", Example: "  longshore schedules delete nightly", Args: cobra.ExactArgs(1),
		RunE: s.onRules(func(ctx context.Context, rules *eventrule.Client, args []string) error {
			if _, err := rules.Describe(ctx, args[0]); fault.Is(err, fault.NotFound) {
				return err
			}
			return rules.Delete(ctx, args[0])
		}),
	}
}

func (s *session) scheduleRuns() *cobra.Command {
	return &cobra.Command{
		Use: "runs NAME", Short: "List the tasks of a schedule's runs",
		Long: `Lists the tasks that a schedule has run: those that wait or run, and those of the
last day that have stopped. A run that was missed has no task, or one that waited
too long; why it was missed is an event (longshore events --follow).`,
		Example: "  longshore schedules runs nightly", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if rules, err := s.rules(c.Context()); err == nil { // tasks can be listed without rights to rules
				if _, err := rules.Describe(c.Context(), args[0]); fault.Is(err, fault.NotFound) {
					s.note("longshore: there is no schedule %s; see which there are: longshore schedules list", args[0])
				}
			}
			return s.ps(c.Context(), ecs.ListTasksInput{StartedBy: aws.String("events-rule/" + args[0])}, "", "", true, false)
		},
	}
}
