package command

import (
	"context"
	"errors"
	"slices"
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
	"github.com/longshore-run/longshore/cli/internal/wait"
)

// taskStatuses are those that a task of Longshore can have.
var taskStatuses = []string{"PROVISIONING", "PENDING", "RUNNING", "STOPPING", "STOPPED"}

func (s *session) psCommand() *cobra.Command {
	var in ecs.ListTasksInput
	var family, service, by, instance, status string
	var all, quiet bool
	c := &cobra.Command{
		Use: "ps", Short: "List tasks",
		Long: "Lists the tasks that are to run: those that wait, start or run. With --all also those\nthat are stopping or have stopped within the last day.",
		Example: `  longshore ps
  longshore ps --service web
  longshore ps --all --family nightly
  longshore ps --status PROVISIONING -q | xargs -n1 longshore stop`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if status = strings.ToUpper(status); status != "" && !slices.Contains(taskStatuses, status) {
				return exit.New(exit.Usage, "use one of: "+strings.Join(taskStatuses, ", "), "--status %q is no status of a task", status)
			}
			in.Family, in.ServiceName, in.StartedBy = optional(family), optional(service), optional(by)
			return s.ps(c.Context(), in, instance, status, all, quiet)
		},
	}
	p := c.Flags()
	p.BoolVarP(&all, "all", "a", false, "also those that are stopping or have stopped")
	p.BoolVarP(&quiet, "quiet", "q", false, "only ids")
	p.StringVar(&family, "family", "", "of a task definition family")
	p.StringVar(&service, "service", "", "of a service")
	p.StringVar(&by, "started-by", "", "started by")
	p.StringVar(&instance, "instance", "", "on an instance: id, ARN or EC2 id")
	p.StringVar(&status, "status", "", "with this status: "+strings.Join(taskStatuses, ", "))
	_ = c.RegisterFlagCompletionFunc("service", s.completeServices)
	_ = c.RegisterFlagCompletionFunc("status", cobra.FixedCompletions(taskStatuses, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (s *session) ps(ctx context.Context, in ecs.ListTasksInput, instance, status string, all, quiet bool) error {
	c, err := s.client(ctx)
	if err != nil {
		return err
	}
	if instance != "" {
		i, err := s.instance(ctx, c, instance)
		if err != nil {
			return err
		}
		in.ContainerInstance = i.ContainerInstanceArn
	}
	desired := []types.DesiredStatus{types.DesiredStatusRunning}
	if all || status == "STOPPED" || status == "STOPPING" { // a day of stopped tasks can be many
		desired = append(desired, types.DesiredStatusStopped)
	}
	var tasks []types.Task
	for _, d := range desired {
		in.DesiredStatus = d
		arns, err := s.listTasks(ctx, c, in)
		if err != nil {
			return err
		}
		found, err := s.describeTasks(ctx, c, arns)
		if err != nil {
			return err
		}
		tasks = append(tasks, found...)
	}
	tasks = slices.DeleteFunc(tasks, func(t types.Task) bool {
		return status != "" && aws.ToString(t.LastStatus) != status && view.Status(&t) != status
	})
	slices.SortStableFunc(tasks, func(a, b types.Task) int { return aws.ToTime(b.CreatedAt).Compare(aws.ToTime(a.CreatedAt)) })
	if quiet {
		t := &output.Table{}
		for i := range tasks {
			t.Add(view.ID(aws.ToString(tasks[i].TaskArn)))
		}
		return t.Write(s.Out, false)
	}
	return s.show(&ecs.DescribeTasksOutput{Tasks: tasks}, func() *output.Table { return view.Tasks(s.Now(), tasks, s.hostNames(ctx, c, tasks)) })
}

func (s *session) stopCommand() *cobra.Command {
	var reason string
	var waits bool
	var timeout time.Duration
	c := &cobra.Command{
		Use: "stop TASK...", Short: "Stop tasks",
		Long: `Asks tasks to stop. A task that waits in the queue is STOPPED at once; one that
runs gets SIGTERM, and SIGKILL after its stopTimeout.`,
		Example: `  longshore stop 4f2a91c03d7e
  longshore stop 4f2a91c03d7e --reason "wrong input" --wait`,
		Args: cobra.MinimumNArgs(1), ValidArgsFunction: s.completeTasks,
		RunE: func(c *cobra.Command, args []string) error { return s.stop(c.Context(), args, reason, waits, timeout) },
	}
	c.Flags().StringVar(&reason, "reason", "", "shown as the task's stoppedReason")
	c.Flags().BoolVarP(&waits, "wait", "w", false, "wait until they are STOPPED")
	c.Flags().DurationVar(&timeout, "timeout", 10*time.Minute, "wait at most so long")
	return c
}

func (s *session) stop(ctx context.Context, names []string, reason string, waits bool, timeout time.Duration) error {
	c, err := s.client(ctx)
	if err != nil {
		return err
	}
	var arns []string
	var tasks []types.Task
	var errs []error
	for _, name := range names {
		id, err := s.taskName(ctx, c, name)
		if err == nil {
			var out *ecs.StopTaskOutput
			if out, err = c.ECS.StopTask(ctx, &ecs.StopTaskInput{Cluster: &s.cluster, Task: &id, Reason: optional(reason)}); err == nil {
				arns, tasks = append(arns, aws.ToString(out.Task.TaskArn)), append(tasks, *out.Task)
			}
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 1 { // the last one is said by the caller
		for _, err := range errs[:len(errs)-1] {
			s.note("longshore: %v", exit.Explain(err))
		}
	}
	if waits && len(arns) > 0 {
		if tasks, err = s.untilStopped(ctx, c, arns, timeout); err != nil {
			return err
		}
	}
	if len(tasks) > 0 {
		if err := s.show(&ecs.DescribeTasksOutput{Tasks: tasks}, func() *output.Table { return view.Tasks(s.Now(), tasks, nil) }); err != nil {
			return err
		}
	}
	if len(errs) > 0 {
		return errs[len(errs)-1]
	}
	return nil
}

func (s *session) untilStopped(ctx context.Context, c *client.Client, arns []string, timeout time.Duration) (tasks []types.Task, err error) {
	line := s.statusLine()
	defer line.keep()
	err = wait.Until(ctx, s.Every, timeout, "the end of the tasks", func(ctx context.Context) (bool, error) {
		found, err := s.describeTasks(ctx, c, arns)
		if err != nil {
			return false, err
		}
		if len(found) < len(arns) {
			return false, errors.New("a task is not there any more")
		}
		tasks = found
		line.set(view.CountsKey(tasks), view.Counts(s.Now(), tasks), output.Plain)
		return !slices.ContainsFunc(tasks, func(t types.Task) bool { return aws.ToString(t.LastStatus) != "STOPPED" }), nil
	})
	return tasks, err
}

func (s *session) queueCommand() *cobra.Command {
	var shapes, watches bool
	c := &cobra.Command{
		Use: "queue", Short: "Show who waits for room, for what, how long and why",
		Long: `Lists the tasks that wait, in the order in which they came, with the reason that
the last pass of admission found: RESOURCE:CPU, RESOURCE:MEMORY, RESOURCE:PORTS,
RESOURCE:GPU, RESOURCE:DISK, ATTRIBUTE, AGENT (no instance takes work) and so on,
as ECS names them. The priority shown is the task's own and what waiting has added to it, one
a minute.`,
		Example: `  longshore queue
  longshore queue --by-shape
  longshore queue --follow`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if watches {
				return s.followQueue(c.Context(), shapes)
			}
			return s.queue(c.Context(), shapes)
		},
	}
	c.Flags().BoolVar(&shapes, "by-shape", false, "one line for all that ask for the same")
	c.Flags().BoolVarP(&watches, "follow", "f", false, "show it again whenever it changes")
	return c
}

func (s *session) waiting(ctx context.Context) ([]types.Task, error) {
	c, err := s.client(ctx)
	if err != nil {
		return nil, err
	}
	arns, err := s.listTasks(ctx, c, ecs.ListTasksInput{DesiredStatus: types.DesiredStatusRunning})
	if err != nil {
		return nil, err
	}
	tasks, err := s.describeTasks(ctx, c, arns)
	if err != nil {
		return nil, err
	}
	return view.Waits(tasks), nil
}

func (s *session) queue(ctx context.Context, shapes bool) error {
	tasks, err := s.waiting(ctx)
	if err != nil {
		return err
	}
	return s.show(&ecs.DescribeTasksOutput{Tasks: tasks}, func() *output.Table { return queueTable(s.Now(), tasks, shapes) })
}

func queueTable(now time.Time, tasks []types.Task, shapes bool) *output.Table {
	if shapes {
		return view.Shapes(now, tasks)
	}
	return view.Queue(now, tasks)
}

// followQueue shows the queue anew whenever a task comes, goes or waits for
// something else.
func (s *session) followQueue(ctx context.Context, shapes bool) error {
	last := "-"
	return wait.Until(ctx, s.Every, 0, "nothing", func(ctx context.Context) (bool, error) {
		tasks, err := s.waiting(ctx)
		if err != nil {
			return false, err
		}
		var now []string
		for i := range tasks {
			now = append(now, aws.ToString(tasks[i].TaskArn)+" "+view.Waiting(&tasks[i]))
		}
		key := strings.Join(now, "\n")
		if key == last {
			return false, nil
		}
		if last != "-" {
			s.note("")
		}
		last = key
		return false, queueTable(s.Now(), tasks, shapes).Write(s.Out, s.colours())
	})
}
