package supervise

import (
	"slices"
	"testing"
	"time"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
)

// sharing is a task whose containers share their process namespace.
func sharing(containers ...taskdef.ContainerDefinition) Task {
	def := taskdef.TaskDefinition{Spec: taskdef.Spec{PidMode: taskdef.NamespaceTask, ContainerDefinitions: containers}}
	return New("t", 1, &def, 30*time.Second)
}

func TestPause_IsTheFirstToStartAndTheLastToStop(t *testing.T) {
	tk := sharing(taskdef.ContainerDefinition{Name: "app"}, taskdef.ContainerDefinition{Name: "web", DependsOn: after("app", "START")})
	want := []string{
		"pull app, pull web, pull " + PauseName, "create " + PauseName, "create app, start " + PauseName, "start app", "create web", "start web",
	}
	if got := verbs(&tk, start); !slices.Equal(got, want) {
		t.Errorf("up: %q\nwant %q", got, want)
	}
	if tk.Status != task.Running {
		t.Errorf("%s", show(tk, nil))
	}
	tk.want(Order{}, start)
	if got, want := verbs(&tk, start), []string{"stop web", "stop app", "stop " + PauseName}; !slices.Equal(got, want) {
		t.Errorf("down: %q\nwant %q", got, want)
	}
	if tk.Status != task.Stopped {
		t.Errorf("%s", show(tk, nil))
	}
}

func TestPause_OnlyATaskThatSharesNamespacesHasOne(t *testing.T) {
	for _, def := range []taskdef.Spec{{}, {PidMode: "host"}, {IpcMode: "host"}, {IpcMode: "none"}, {PidMode: "task"}, {IpcMode: "task"}} {
		def.ContainerDefinitions = []taskdef.ContainerDefinition{{Name: "app"}}
		tk := New("t", 1, &taskdef.TaskDefinition{Spec: def}, time.Second)
		if got, want := tk.container(PauseName) != nil, def.PidMode == "task" || def.IpcMode == "task"; got != want {
			t.Errorf("pid mode %q, IPC mode %q: %t", def.PidMode, def.IpcMode, got)
		}
	}
}

func TestPause_ItsEndEndsTheTaskAndSaysSo(t *testing.T) {
	tk := sharing(taskdef.ContainerDefinition{Name: "app", RestartPolicy: &taskdef.RestartPolicy{Enabled: new(true), RestartAttemptPeriod: new(0)}})
	verbs(&tk, start)
	tk = Observe(tk, Seen{Container: PauseName, ExitCode: new(137), StartedAt: start, FinishedAt: start.Add(time.Hour)}, start)
	if got := verbs(&tk, start); !slices.Equal(got, []string{"stop app"}) || tk.Status != task.Stopped || tk.Cause != task.ExitedCause || tk.Reason != reasonPause {
		t.Errorf("%q: %s: %q", got, show(tk, nil), tk.Reason)
	}
}

func TestPause_EndsWhenNothingElseIsLeft(t *testing.T) {
	seen := []Seen{
		{Container: PauseName, RuntimeID: "c1", Running: true, StartedAt: start},
		{Container: "app", RuntimeID: "c2", ExitCode: new(0), StartedAt: start, FinishedAt: start},
	}
	tk := Adopt("t", 1, seen, func(Seen) bool { return true }, time.Second, start)
	if got := verbs(&tk, start); !slices.Equal(got, []string{"stop " + PauseName}) || tk.Status != task.Stopped || tk.Reason != task.EndOf(task.ExitedCause).Reason {
		t.Errorf("%q: %s: %q", got, show(tk, nil), tk.Reason)
	}
}

// Nothing of a task has run as long as its pause container alone has: a port that
// is taken is refused, as without one, and the pause container does not stay.
func TestPause_ARefusedTaskLeavesNone(t *testing.T) {
	tk := sharing(taskdef.ContainerDefinition{Name: "app"})
	now, stopped := start, false
	for range 100 {
		next, do, wake := Plan(tk, now)
		tk = next
		if len(do) == 0 && wake.IsZero() {
			break
		}
		if len(do) == 0 {
			now = wake
		}
		for _, a := range do {
			res := Result{Action: a, Text: "r-" + a.Container}
			switch {
			case a.Verb == Start && a.Container == "app":
				res.Seen, res.Err, res.Taken = &Seen{Container: "app", Created: true}, fault.New(fault.Conflict, "taken"), []Port{{80, "tcp"}}
			case a.Verb == Start:
				res.Seen = &Seen{Container: a.Container, Running: true, StartedAt: now}
			case a.Verb == Stop:
				stopped = a.Container == PauseName && tk.Refusal != nil
				res.Seen = &Seen{Container: a.Container, ExitCode: new(0), StartedAt: start, FinishedAt: now}
			}
			tk = Did(tk, res, now)
		}
	}
	if tk.Refusal == nil || tk.Refusal.Code != wire.RefusedPort || tk.Status != task.Pending || !stopped || tk.container(PauseName).Phase != Stopped {
		t.Errorf("%s: %+v, the pause container stopped: %t", show(tk, nil), tk.Refusal, stopped)
	}
}

func TestPause_ThatCannotBeMadeFailsTheTaskAndSaysWhy(t *testing.T) {
	tk := sharing(taskdef.ContainerDefinition{Name: "app"})
	tk, _, _ = Plan(tk, start)
	tk = Did(tk, Result{Action: Action{Verb: Pull, Container: PauseName}, Err: fault.New(fault.Invalid, "CannotCreateContainerError: pause image: no room")}, start)
	tk = Did(tk, Result{Action: Action{Verb: Pull, Container: "app"}}, start)
	if tk, _, _ = Plan(tk, start); tk.Status != task.Stopped || tk.Reason != "CannotCreateContainerError: pause image: no room" {
		t.Errorf("%s: %q", show(tk, nil), tk.Reason)
	}
}
