package supervise

import (
	"slices"
	"testing"
	"time"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// restarted is a container whose policy asks for a run of a minute at least.
func restarted(ignored ...int) taskdef.ContainerDefinition {
	return taskdef.ContainerDefinition{Name: "app", HealthCheck: check, RestartPolicy: &taskdef.RestartPolicy{
		Enabled: new(true), IgnoredExitCodes: ignored, RestartAttemptPeriod: new(60)}}
}

func TestRestart_FollowsAnEndByThePolicy(t *testing.T) {
	off := restarted()
	off.RestartPolicy.Enabled = new(false)
	usual := restarted()
	usual.RestartPolicy.RestartAttemptPeriod = nil
	for name, c := range map[string]struct {
		def   taskdef.ContainerDefinition
		code  int
		after time.Duration
		again bool
	}{
		"a failure":                    {restarted(0), 1, time.Minute, true},
		"success too":                  {restarted(), 0, time.Minute, true},
		"an ignored code":              {restarted(1, 7), 7, time.Hour, false},
		"too short a run":              {restarted(), 1, time.Minute - time.Nanosecond, false},
		"a policy that is off":         {off, 1, time.Hour, false},
		"too short for ECS's period":   {usual, 1, 299 * time.Second, false},
		"long enough for ECS's period": {usual, 1, 300 * time.Second, true},
	} {
		tk := newTask(c.def)
		verbs(&tk, start)
		exits(&tk, "app", c.code, start.Add(c.after))
		next, do, _ := Plan(tk, start.Add(c.after))
		again := len(do) == 1 && do[0].Verb == Restart && do[0].Began.Equal(start)
		if again != c.again || again != (next.Status == task.Running) || again != (next.Containers[0].Shown.ExitCode == nil) {
			t.Errorf("%s: %s", name, show(next, do))
		}
	}
}

// runsAgain takes a restart through to the next run.
func runsAgain(t *testing.T, tk *Task, at time.Time) {
	t.Helper()
	next, do, _ := Plan(*tk, at)
	if len(do) != 1 || do[0].Verb != Restart {
		t.Fatalf("want a restart: %s", show(next, do))
	}
	*tk = Did(next, Result{Action: do[0], Seen: &Seen{Container: "app", RuntimeID: next.Containers[0].Shown.RuntimeID, Running: true, StartedAt: at}}, at)
}

func TestRestart_EachRunIsJudgedByItself(t *testing.T) {
	tk := newTask(restarted())
	verbs(&tk, start)
	feels(&tk, "app", task.Healthy, minute(1))
	exits(&tk, "app", 1, minute(2))
	runsAgain(t, &tk, minute(3))
	c := tk.container("app")
	if c.Phase != Running || c.Restarts != 1 || c.Shown.Health != task.HealthUnknown || !c.Shown.StartedAt.Equal(start) || c.Shown.ExitCode != nil {
		t.Fatalf("%+v", c)
	}
	// Old pictures of the first run change nothing.
	before := essence(tk)
	tk = Observe(tk, Seen{Container: "app", ExitCode: new(1), StartedAt: start, FinishedAt: minute(2)}, minute(4))
	tk = Observe(tk, Seen{Container: "app", Running: true, StartedAt: start, Health: task.Healthy, HealthAt: minute(1)}, minute(4))
	if essence(tk) != before {
		t.Fatalf("%s", show(tk, nil))
	}
	exits(&tk, "app", 5, minute(3).Add(time.Second)) // it had not run for a minute
	verbs(&tk, minute(4))
	if got := show(tk, nil); got != "STOPPED/STOPPED for exited app=stopped(5)" {
		t.Error(got)
	}
}

func TestRestart_IsNotDoneOnceTheTaskIsToStop(t *testing.T) {
	tk := newTask(restarted())
	verbs(&tk, start)
	exits(&tk, "app", 9, minute(2))
	exits(&tk, "app", 9, minute(2)) // told twice
	if n := tk.Containers[0].Restarts; n != 1 {
		t.Errorf("one end is %d restarts", n)
	}
	tk.want(Order{Reason: "asked"}, minute(2))
	next, do, _ := Plan(tk, minute(2))
	if len(do) > 0 || show(next, do) != "STOPPED/STOPPED app=stopped(9)" || !next.Containers[0].Shown.StoppedAt.Equal(minute(2)) {
		t.Errorf("%s, stopped at %s", show(next, do), next.Containers[0].Shown.StoppedAt)
	}
}

func TestRestart_DoesNotFollowTheEndThatWasAskedFor(t *testing.T) {
	tk := newTask(restarted())
	verbs(&tk, start)
	tk.want(Order{Reason: "asked"}, minute(2))
	exits(&tk, "app", 143, minute(2))
	if c := tk.Containers[0]; c.Phase != Stopped || c.Restarts != 0 {
		t.Errorf("%+v", c)
	}
}

// The order to stop meets a restart that is under way: its answer is awaited,
// lost or not, and what came up is stopped.
func TestRestart_UnderWayIsAwaitedByAStop(t *testing.T) {
	for _, silent := range []bool{false, true} {
		tk := newTask(restarted())
		verbs(&tk, start)
		exits(&tk, "app", 9, minute(2))
		tk, do, _ := Plan(tk, minute(2))
		restart := do[0]
		tk.want(Order{Reason: "asked"}, minute(2))
		if tk, do, _ = Plan(tk, minute(2)); len(do) > 0 || tk.Status == task.Stopped {
			t.Fatalf("it does not wait: %s", show(tk, do))
		}
		up := &Seen{Container: "app", Running: true, StartedAt: minute(2)}
		if silent {
			tk = Did(tk, Result{Action: restart, Err: fault.New(fault.Unavailable, "?"), Silent: true}, minute(2))
			if tk, do, _ = Plan(tk, minute(3)); len(do) != 1 || do[0].Verb != Look {
				t.Fatalf("after a lost answer: %s", show(tk, do))
			}
			tk = Did(tk, Result{Action: do[0], Seen: up}, minute(3))
		} else {
			tk = Did(tk, Result{Action: restart, Seen: up}, minute(2))
		}
		if got := verbs(&tk, minute(4)); !slices.Equal(got, []string{"stop app"}) || tk.Status != task.Stopped {
			t.Errorf("silent %v: %q, %s", silent, got, show(tk, nil))
		}
	}
}

// The agent is killed at any point of a restart: what is shown afterwards tells
// whether it happened.
func TestRestart_GoesOnAfterTheAgentsOwn(t *testing.T) {
	for name, c := range map[string]struct {
		seen Seen
		want []string
	}{
		"not done":       {Seen{ExitCode: new(9), StartedAt: start, FinishedAt: minute(2)}, []string{"restart app"}},
		"done":           {Seen{Running: true, StartedAt: minute(3)}, nil},
		"done and ended": {Seen{ExitCode: new(4), StartedAt: minute(3), FinishedAt: minute(5)}, []string{"restart app"}},
		"and removed":    {Seen{Gone: true}, []string{"look app"}},
	} {
		tk := newTask(restarted())
		verbs(&tk, start)
		exits(&tk, "app", 9, minute(2))
		tk, _, _ = Plan(tk, minute(2)) // and its restart's answer is never heard
		tk = Resume(tk)
		c.seen.Container = "app"
		tk = Observe(tk, c.seen, minute(6))
		next, do, _ := Plan(tk, minute(6))
		var got []string
		for _, a := range do {
			got = append(got, string(a.Verb)+" "+a.Container)
		}
		if !slices.Equal(got, c.want) || next.Desired != task.DesiredRunning {
			t.Errorf("%s: %s", name, show(next, do))
		}
	}
}

func TestRestart_ThatFailsLeavesTheEndThatWas(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		tries int
	}{
		"for good":        {fault.New(fault.Invalid, "no such device"), 1},
		"for the moment":  {fault.New(fault.Unavailable, "busy"), mostTries},
		"its port is had": {fault.New(fault.Conflict, "port is taken"), mostTries},
		"without a word":  {nil, mostTries},
	} {
		tk := newTask(restarted())
		verbs(&tk, start)
		exits(&tk, "app", 9, minute(2))
		now, tries := minute(2), 0
		for tk.Status != task.Stopped && tries < 20 {
			next, do, wake := Plan(tk, now)
			tk = next
			if !wake.IsZero() {
				now = wake
			}
			for _, a := range do {
				tries++
				tk = Did(tk, Result{Action: a, Err: c.err, Seen: &Seen{Container: "app", ExitCode: new(9), StartedAt: start, FinishedAt: minute(2)}}, now)
			}
		}
		k := tk.Containers[0].Shown
		if tries != c.tries || k.ExitCode == nil || *k.ExitCode != 9 || !k.StoppedAt.Equal(minute(2)) || k.Reason == "" || tk.Cause != task.ExitedCause {
			t.Errorf("%s: %d tries, %s: %+v", name, tries, show(tk, nil), k)
		}
	}
}

func TestRestart_PutsAContainerOnItsNewPorts(t *testing.T) {
	tk := newTask(restarted())
	verbs(&tk, start)
	port := func(n int) []task.Binding { return []task.Binding{{ContainerPort: 80, HostPort: n, Protocol: "tcp"}} }
	tk = Observe(tk, Seen{Container: "app", Running: true, StartedAt: start, Bindings: port(32768)}, start)
	exits(&tk, "app", 1, minute(2))
	tk = Observe(tk, Seen{Container: "app", Running: true, StartedAt: minute(3), Bindings: port(32769)}, minute(3))
	if got := tk.Containers[0].Shown.Bindings; !slices.Equal(got, port(32769)) {
		t.Errorf("%+v", got)
	}
}
