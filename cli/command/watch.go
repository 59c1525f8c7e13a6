package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/longshore-run/longshore/cli/internal/client"
	"github.com/longshore-run/longshore/cli/internal/exit"
	"github.com/longshore-run/longshore/cli/internal/output"
	"github.com/longshore-run/longshore/cli/internal/tasklog"
	"github.com/longshore-run/longshore/cli/internal/view"
	"github.com/longshore-run/longshore/cli/internal/wait"
)

// watch waits for the end of tasks that were run, and shows how they go.
type watch struct {
	s          *session
	c          *client.Client
	flags      *runFlags
	definition *types.TaskDefinition
	tasks      []types.Task
	container  string
	line       *statusLine
	ended      atomic.Bool
	logs       sync.WaitGroup
	streams    map[string]bool // tasks whose log is streamed, or can not be
	// alive ends with the command, not with one look at the tasks.
	alive context.Context
}

// logsFor is how long the rest of a log is waited for when its task has ended.
const logsFor = 30 * time.Second

func (w *watch) toTheEnd(ctx context.Context) error {
	stop := make(chan struct{})
	w.s.onInterrupt(func(nth int) bool {
		if nth == 1 {
			close(stop)
		}
		return nth == 1
	})
	defer w.s.onInterrupt(nil)
	stopped := make(chan struct{})
	over := make(chan struct{})
	arns := w.arns() // each look puts other tasks there
	go func() {
		defer close(stopped)
		select {
		case <-stop:
			w.stopAll(ctx, arns)
		case <-over:
		}
	}()
	w.streams = map[string]bool{}
	var hangUp context.CancelFunc
	w.alive, hangUp = context.WithCancel(ctx)
	defer hangUp()
	err := wait.Until(ctx, w.s.Every, w.flags.timeout, "the task's end", w.look)
	close(over)
	<-stopped
	w.ended.Store(true)
	if err == nil {
		late := time.AfterFunc(logsFor, hangUp)
		w.logs.Wait()
		late.Stop()
	}
	w.line.keep()
	if errors.Is(err, context.Canceled) {
		return &exit.Error{Code: exit.Interrupted, Text: "left; the task goes on", Next: "see: longshore describe task " + view.Short(aws.ToString(w.tasks[0].TaskArn))}
	}
	return err
}

// look asks how the tasks are, and shows it.
func (w *watch) look(ctx context.Context) (bool, error) {
	arns := w.arns()
	found, err := w.s.describeTasks(ctx, w.c, arns)
	if err != nil {
		return false, err
	}
	if len(found) < len(arns) {
		return false, exit.New(exit.NotFound, "stopped tasks are kept for a day", "%d of the %d tasks are not there any more", len(arns)-len(found), len(arns))
	}
	w.tasks = found
	for i := range w.tasks {
		w.stream(ctx, &w.tasks[i])
	}
	w.show()
	return !slices.ContainsFunc(w.tasks, func(t types.Task) bool { return aws.ToString(t.LastStatus) != "STOPPED" }), nil
}

func (w *watch) show() {
	if len(w.tasks) == 1 {
		t := &w.tasks[0]
		key := view.Status(t) + view.Waiting(t) + aws.ToString(t.ContainerInstanceArn)
		w.line.set(key, view.Line(w.s.Now(), t), view.Colour(view.Status(t)))
		return
	}
	text := view.Counts(w.s.Now(), w.tasks)
	w.line.set(view.CountsKey(w.tasks), text, output.Plain)
}

// stream begins to copy a task's log as soon as it can be there.
func (w *watch) stream(ctx context.Context, t *types.Task) {
	arn, last := aws.ToString(t.TaskArn), aws.ToString(t.LastStatus)
	if !w.flags.follow || w.streams[arn] || last == "PROVISIONING" || last == "PENDING" || t.ContainerInstanceArn == nil {
		return
	}
	w.streams[arn] = true
	at := slices.IndexFunc(w.definition.ContainerDefinitions, func(d types.ContainerDefinition) bool { return aws.ToString(d.Name) == w.container })
	if at < 0 {
		w.s.note("longshore: the definition has no container %q, so there is no log to show", w.container)
		return
	}
	host := view.Short(aws.ToString(t.ContainerInstanceArn))
	source, err := tasklog.Of(ctx, w.c.AWS, t, &w.definition.ContainerDefinitions[at], host)
	if err != nil {
		fmt.Fprintf(w.line.over(w.s.Err), "longshore: no log here: %v\n", err)
		return
	}
	out := w.line.over(w.s.Out)
	if len(w.tasks) > 1 {
		out = &prefixed{w: out, prefix: view.Short(arn) + " | "}
	}
	w.logs.Go(func() {
		err := source.Copy(w.alive, out, tasklog.Want{Follow: true, Ended: func(context.Context) bool { return w.ended.Load() }})
		if err != nil && w.alive.Err() == nil {
			fmt.Fprintf(w.line.over(w.s.Err), "longshore: the log ends here: %v\n", err)
		}
	})
}

func (w *watch) arns() (all []string) {
	for i := range w.tasks {
		all = append(all, aws.ToString(w.tasks[i].TaskArn))
	}
	return all
}

func (w *watch) stopAll(ctx context.Context, arns []string) {
	fmt.Fprintln(w.line.over(w.s.Err), "longshore: asking the task to stop; Ctrl-C again leaves at once")
	for _, arn := range arns {
		_, err := w.c.ECS.StopTask(ctx, &ecs.StopTaskInput{Cluster: &w.s.cluster, Task: &arn, Reason: aws.String("Interrupted in longshore run")})
		if err != nil && ctx.Err() == nil {
			fmt.Fprintf(w.line.over(w.s.Err), "longshore: stop task: %v\n", exit.Explain(err))
		}
	}
}

// verdict is the exit code of the tasks; not run counts as ended without one.
func (w *watch) verdict(failures int) error {
	if f := output.Format(w.s.format); f != output.AsTable {
		if err := output.Value(w.s.Out, f, &ecs.DescribeTasksOutput{Tasks: w.tasks}); err != nil {
			return err
		}
	}
	status := exit.OK
	for i := range w.tasks {
		t := &w.tasks[i]
		code, ok := w.code(t)
		if !ok {
			w.s.note("longshore: task %s ended without an exit code: %s", view.Short(aws.ToString(t.TaskArn)), aws.ToString(t.StoppedReason))
			code = exit.NoCode
		}
		if status == exit.OK {
			status = int(code)
		}
	}
	if failures > 0 && status == exit.OK {
		status = exit.NoCode
	}
	if status == exit.OK {
		return nil
	}
	return exit.Status(status)
}

// code is the exit code of a task's essential container; where several are
// essential, of the one that ended badly.
func (w *watch) code(t *types.Task) (int32, bool) {
	essential := map[string]bool{}
	for _, d := range w.definition.ContainerDefinitions {
		essential[aws.ToString(d.Name)] = d.Essential == nil || *d.Essential
	}
	only := *t
	only.Containers = slices.DeleteFunc(slices.Clone(t.Containers), func(c types.Container) bool { return !essential[aws.ToString(c.Name)] })
	return view.ExitCode(&only)
}

// prefixed puts a name before each line of what is written to it.
type prefixed struct {
	w      io.Writer
	prefix string
	inside bool
}

func (p *prefixed) Write(b []byte) (int, error) {
	var out []byte
	for _, c := range b {
		if !p.inside {
			out = append(out, p.prefix...)
		}
		out = append(out, c)
		p.inside = c != '\n'
	}
	if _, err := p.w.Write(out); err != nil {
		return 0, err
	}
	return len(b), nil
}
