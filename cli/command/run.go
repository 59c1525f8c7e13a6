package command

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/cli/internal/client"
	"github.com/longshore-run/longshore/cli/internal/exit"
	"github.com/longshore-run/longshore/cli/internal/output"
	"github.com/longshore-run/longshore/cli/internal/view"
)

// runFlags are what run was asked.
type runFlags struct {
	count                             int
	overrides, container, cpu, memory string
	env, tags                         []string
	priority                          int
	maxWait, timeout                  time.Duration
	group, startedBy, token           string
	noWait, detach, follow            bool
	definition                        string
	command                           []string
}

func (s *session) runCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run DEFINITION|FILE [flags] [-- COMMAND ARG...]",
		Short: "Run a task, wait for its end and exit with its exit code",
		Long: `Runs tasks of a task definition (family, family:revision or ARN) or of a file
that holds one (JSON or YAML, as RegisterTaskDefinition has it; a file that is the
same as the family's latest revision makes no new one).

A task for which there is no room waits: the status line says for what, and since
when. The log of the task's essential container is streamed where it can be had:
from CloudWatch Logs (driver awslogs), or from this machine's Docker engine.

Ctrl-C asks the tasks to stop and waits for their end. A second Ctrl-C leaves at
once; they go on stopping.

Exit code: that of the task's essential container (of several tasks, the first
that is not 0); 125 if there is none, because the task ended without one, was
never run, or was not waited for to its end.`,
		Example: `  longshore run hello
  longshore run hello:3 --env GREETING=hi -- sh -c 'echo $GREETING; exit 7'
  longshore run nightly --count 4 --priority 80 --max-wait 2h --detach
  longshore run examples/taskdefs/12-minimal-and-defaults.json`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: s.completeDefinitions,
		RunE: func(c *cobra.Command, args []string) error {
			f.definition, f.command = args[0], args[1:]
			return ownFault(s.run(c.Context(), &f))
		},
	}
	p := c.Flags()
	p.IntVar(&f.count, "count", 1, "how many tasks, 1 to 10")
	p.StringVar(&f.overrides, "overrides", "", "ECS's overrides as JSON, or @FILE")
	p.StringVar(&f.container, "container", "", "the container that --env, COMMAND and the log are about (the first essential one)")
	p.StringArrayVarP(&f.env, "env", "e", nil, "NAME=value for the container; may be repeated")
	p.StringVar(&f.cpu, "cpu", "", "CPU units of the whole task")
	p.StringVar(&f.memory, "memory", "", "MiB of memory of the whole task")
	p.StringArrayVar(&f.tags, "tag", nil, "KEY=value; may be repeated")
	p.IntVar(&f.priority, "priority", 50, "0 to 100; a higher one is placed first")
	p.DurationVar(&f.maxWait, "max-wait", 0, "end a task that has waited for room so long (0: never)")
	p.BoolVar(&f.noWait, "no-wait", false, "fail where there is no room now, as ECS does")
	p.StringVar(&f.group, "group", "", "task group")
	p.StringVar(&f.startedBy, "started-by", "", "who starts it, to filter by")
	p.StringVar(&f.token, "client-token", "", "makes a repeated call run nothing new")
	p.BoolVarP(&f.detach, "detach", "d", false, "print the tasks and do not wait")
	p.BoolVarP(&f.follow, "follow", "f", true, "stream the log while waiting")
	p.DurationVar(&f.timeout, "timeout", 24*time.Hour, "wait for the end at most so long (0: for ever)")
	return c
}

// ownFault keeps the exit codes of tasks apart from the command's own.
func ownFault(err error) error {
	if _, task := errors.AsType[exit.Status](err); err == nil || task {
		return err
	}
	e := *exit.Explain(err)
	if e.Code != exit.Interrupted {
		e.Code = exit.NoCode
	}
	return &e
}

func (s *session) run(ctx context.Context, f *runFlags) error {
	c, err := s.client(ctx)
	if err != nil {
		return err
	}
	d, err := s.definitionToRun(ctx, c, f.definition)
	if err != nil {
		return err
	}
	in, err := f.request(d, &s.cluster)
	if err != nil {
		return err
	}
	out, err := c.ECS.RunTask(ctx, in)
	if err != nil {
		return err
	}
	for _, x := range out.Failures {
		s.note("longshore: not run: %s", strings.TrimSpace(aws.ToString(x.Reason)+" "+aws.ToString(x.Detail)))
	}
	if len(out.Tasks) == 0 {
		return exit.New(exit.NoCode, "without --no-wait it would wait for room; see: longshore instances list", "no task was run")
	}
	if f.detach {
		return s.show(out, func() *output.Table { return view.Tasks(s.Now(), out.Tasks, nil) })
	}
	w := &watch{s: s, c: c, flags: f, definition: d, tasks: out.Tasks, container: f.containerOf(d), line: s.statusLine()}
	if err := w.toTheEnd(ctx); err != nil {
		return err
	}
	return w.verdict(len(out.Failures))
}

// request is the call that the flags ask for.
func (f *runFlags) request(d *types.TaskDefinition, cluster *string) (*ecs.RunTaskInput, error) {
	in := &ecs.RunTaskInput{
		Cluster: cluster, TaskDefinition: d.TaskDefinitionArn, Count: aws.Int32(int32(f.count)),
		Group: optional(f.group), StartedBy: optional(f.startedBy), ClientToken: optional(f.token),
	}
	if f.count < 1 || f.count > 10 {
		return nil, exit.New(exit.Usage, "run more by calling again", "--count is %d; 1 to 10 are allowed", f.count)
	}
	over, err := f.override(d)
	if err != nil {
		return nil, err
	}
	in.Overrides = over
	for _, t := range f.tags {
		key, value, ok := strings.Cut(t, "=")
		if !ok || key == "" {
			return nil, exit.New(exit.Usage, "write --tag KEY=value", "--tag %q is no pair", t)
		}
		in.Tags = append(in.Tags, types.Tag{Key: aws.String(key), Value: aws.String(value)})
	}
	return in, f.queueTags(in)
}

// queueTags are what Longshore reads from a task's tags.
func (f *runFlags) queueTags(in *ecs.RunTaskInput) error {
	add := func(key, value string) {
		in.Tags = append(in.Tags, types.Tag{Key: aws.String("longshore:" + key), Value: aws.String(value)})
	}
	switch {
	case f.priority < 0 || f.priority > 100:
		return exit.New(exit.Usage, "", "--priority is %d; 0 to 100 are allowed", f.priority)
	case f.priority != 50:
		add("priority", strconv.Itoa(f.priority))
	}
	switch {
	case f.maxWait < 0:
		return exit.New(exit.Usage, "", "--max-wait is %s; it can not be negative", f.maxWait)
	case f.maxWait > 0:
		add("maxWait", f.maxWait.String())
	}
	if f.noWait {
		add("onNoCapacity", "fail")
	}
	return nil
}

// override puts --overrides and the single flags together; the flags win.
func (f *runFlags) override(d *types.TaskDefinition) (*types.TaskOverride, error) {
	over := &types.TaskOverride{}
	if text := f.overrides; text != "" {
		if file, ok := strings.CutPrefix(text, "@"); ok {
			b, err := os.ReadFile(file)
			if err != nil {
				return nil, &exit.Error{Code: exit.Usage, Text: "read --overrides", Cause: err}
			}
			text = string(b)
		}
		if err := strictly([]byte(text), over); err != nil {
			return nil, &exit.Error{Code: exit.Usage, Text: "--overrides", Cause: err, Next: `it looks like {"containerOverrides":[{"name":"main","command":["…"]}]}`}
		}
	}
	over.Cpu, over.Memory = cmp.Or(optional(f.cpu), over.Cpu), cmp.Or(optional(f.memory), over.Memory)
	if len(f.command) == 0 && len(f.env) == 0 {
		return over, nil
	}
	name := f.containerOf(d)
	at := slices.IndexFunc(over.ContainerOverrides, func(o types.ContainerOverride) bool { return aws.ToString(o.Name) == name })
	if at < 0 {
		over.ContainerOverrides = append(over.ContainerOverrides, types.ContainerOverride{Name: &name})
		at = len(over.ContainerOverrides) - 1
	}
	o := &over.ContainerOverrides[at]
	if len(f.command) > 0 {
		o.Command = f.command
	}
	for _, e := range f.env {
		key, value, ok := strings.Cut(e, "=")
		if !ok || key == "" {
			return nil, exit.New(exit.Usage, "write --env NAME=value", "--env %q is no pair", key)
		}
		o.Environment = append(o.Environment, types.KeyValuePair{Name: aws.String(key), Value: aws.String(value)})
	}
	return over, nil
}

// containerOf is the container that the single flags are about.
func (f *runFlags) containerOf(d *types.TaskDefinition) string {
	if f.container != "" {
		return f.container
	}
	return firstEssential(d)
}

// firstEssential is the container whose end ends the task.
func firstEssential(d *types.TaskDefinition) string {
	for _, c := range d.ContainerDefinitions {
		if c.Essential == nil || *c.Essential {
			return aws.ToString(c.Name)
		}
	}
	return ""
}

func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// strictly reads JSON in the API's names into a type of the SDK.
func strictly(text []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if dec.More() {
		return fmt.Errorf("something follows the JSON")
	}
	return nil
}

// definitionToRun is the definition of a name, or of a file, which is registered
// where it is new.
func (s *session) definitionToRun(ctx context.Context, c *client.Client, name string) (*types.TaskDefinition, error) {
	if isFile(name) {
		return s.register(ctx, c, name, registering{quiet: true})
	}
	out, err := c.ECS.DescribeTaskDefinition(ctx, &ecs.DescribeTaskDefinitionInput{TaskDefinition: &name})
	if err != nil {
		e := exit.Explain(err)
		if e.Code == exit.NotFound {
			return nil, exit.New(exit.NotFound, "see which there are: longshore definitions list; a file's name ends in .json or .yaml", "there is no task definition %s", name)
		}
		return nil, err
	}
	return out.TaskDefinition, nil
}

// isFile says whether a definition is named by a file.
func isFile(name string) bool {
	return name == "-" || strings.HasSuffix(name, ".json") || strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml") || strings.ContainsAny(name, "/") && !strings.HasPrefix(name, "arn:")
}
