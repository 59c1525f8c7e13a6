package supervise

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func newTask(containers ...taskdef.ContainerDefinition) Task {
	if len(containers) == 0 {
		containers = []taskdef.ContainerDefinition{{Name: "app", Image: "busybox"}}
	}
	def := taskdef.TaskDefinition{Spec: taskdef.Spec{ContainerDefinitions: containers}}
	return New("t", 1, &def, 30*time.Second)
}

func show(t Task, do []Action) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s/%s", t.Status, t.Desired)
	if t.Cause != "" {
		fmt.Fprintf(&b, " for %s", t.Cause)
	}
	if t.Refusal != nil {
		fmt.Fprintf(&b, " REFUSED %s", t.Refusal.Code)
	}
	for _, c := range t.Containers {
		fmt.Fprintf(&b, " %s=%s", c.Name, c.Phase)
		if c.Shown.ExitCode != nil {
			fmt.Fprintf(&b, "(%d)", *c.Shown.ExitCode)
		}
		if c.Alive {
			b.WriteString("!")
		}
	}
	for _, a := range do {
		fmt.Fprintf(&b, " → %s %s", a.Verb, a.Container)
	}
	return b.String()
}

// at is a task of one container that has come so far.
func at(p Phase, desired task.Desired) Task {
	t := newTask()
	c := &t.Containers[0]
	c.Phase, c.Shown.RuntimeID = p, "c1"
	c.Ran = p == Running || p == Stopped || p == Restarting
	if c.Ran {
		t.Status, t.StartedAt, c.Shown.StartedAt, c.Began, c.Shown.Status = task.Running, start, start, start, task.ContainerRunning
	}
	if p == Restarting {
		c.Policy, c.Restarts, c.Last = &Policy{Period: time.Minute}, 1, &Ending{Code: new(9), At: start.Add(time.Minute)}
	}
	if p == Stopped {
		code := 0
		c.end("", start)
		c.Shown.ExitCode = &code
	}
	if desired == task.DesiredStopped {
		t.want(Order{Reason: "asked"}, start)
	}
	t.settle(start)
	return t
}

// Every phase of a container, wanted or not, meets everything that can be seen
// or come back: testdata/matrix.txt says what follows.
func TestPlan_EveryPhaseMeetsEveryEvent(t *testing.T) {
	code := 3
	later := start.Add(time.Minute)
	final := fault.New(fault.Invalid, "no")
	events := []struct {
		name  string
		apply func(Task) Task
	}{
		{"nothing", func(t Task) Task { return t }},
		{"stop", func(t Task) Task { t.want(Order{Reason: "asked"}, later); return t }},
		{"restart", Resume},
		{"seen created", func(t Task) Task { return Observe(t, Seen{Container: "app", RuntimeID: "c1", Created: true}, later) }},
		{"seen running", func(t Task) Task {
			return Observe(t, Seen{Container: "app", RuntimeID: "c1", Running: true, StartedAt: later}, later)
		}},
		{"seen running as before", func(t Task) Task {
			return Observe(t, Seen{Container: "app", RuntimeID: "c1", Running: true, StartedAt: start}, later)
		}},
		{"seen ended", func(t Task) Task {
			return Observe(t, Seen{Container: "app", RuntimeID: "c1", ExitCode: &code, StartedAt: start, FinishedAt: later}, later)
		}},
		{"seen gone", func(t Task) Task { return Observe(t, Seen{Container: "app", Gone: true}, later) }},
		{"seen gone, with its end", func(t Task) Task {
			return Observe(t, Seen{Container: "app", RuntimeID: "c1", Gone: true, ExitCode: &code, FinishedAt: later}, later)
		}},
		{"seen another", func(t Task) Task { return Observe(t, Seen{Container: "app", RuntimeID: "c2", Running: true}, later) }},
		{"looked: gone", func(t Task) Task { return did(t, Look, nil, &Seen{Gone: true}, false) }},
		{"looked: silent", func(t Task) Task { return did(t, Look, errors.New("?"), nil, true) }},
		{"pull failed", func(t Task) Task { return did(t, Pull, final, nil, false) }},
		{"create failed", func(t Task) Task { return did(t, Create, final, nil, false) }},
		{"start failed", func(t Task) Task { return did(t, Start, final, &Seen{Created: true}, false) }},
		{"start's answer lost", func(t Task) Task { return did(t, Start, errors.New("?"), nil, true) }},
		{"restart failed", func(t Task) Task { return did(t, Restart, final, &Seen{ExitCode: &code, StartedAt: start}, false) }},
		{"restart's answer lost", func(t Task) Task { return did(t, Restart, errors.New("?"), nil, true) }},
		{"stop failed, runs", func(t Task) Task { return did(t, Stop, final, &Seen{Running: true, StartedAt: start}, false) }},
		{"stop failed, ended", func(t Task) Task { return did(t, Stop, final, &Seen{ExitCode: &code}, false) }},
		{"stop: silent", func(t Task) Task { return did(t, Stop, errors.New("?"), nil, true) }},
	}
	var b strings.Builder
	for _, desired := range []task.Desired{task.DesiredRunning, task.DesiredStopped} {
		for _, p := range []Phase{Waiting, Pulled, Created, Starting, Running, Restarting, Stopped} {
			fmt.Fprintf(&b, "%s, wanted %s\n", p, desired)
			for _, e := range events {
				next, do, wake := Plan(e.apply(at(p, desired)), later)
				fmt.Fprintf(&b, "    %-24s %s", e.name, show(next, do))
				if !wake.IsZero() {
					fmt.Fprintf(&b, " (again in %s)", wake.Sub(later))
				}
				b.WriteString("\n")
			}
		}
	}
	golden(t, "matrix.txt", b.String())
}

func did(t Task, v Verb, err error, seen *Seen, silent bool) Task {
	if seen != nil {
		seen.Container, seen.RuntimeID = "app", "c1"
	}
	t.container("app").busy = v
	return Did(t, Result{Action: Action{Verb: v, Container: "app"}, Err: err, Seen: seen, Silent: silent}, start.Add(time.Minute))
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got == string(want) {
		return
	}
	was, is := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	for i := range min(len(was), len(is)) {
		if was[i] != is[i] {
			t.Errorf("%s:%d is\n%s\nwant\n%s", path, i+1, is[i], was[i])
		}
	}
	t.Errorf("%s has changed; if that is right: go test ./edgeagent/internal/supervise -update", path)
}

// verbs plans and lists what is done, with every action answered well.
func verbs(t *Task, now time.Time) []string {
	var all []string
	for range 50 {
		next, do, _ := Plan(*t, now)
		*t = next
		if len(do) == 0 {
			return all
		}
		round := make([]string, 0, len(do))
		for _, a := range do {
			round = append(round, string(a.Verb)+" "+a.Container)
			res := Result{Action: a}
			switch a.Verb {
			case Start:
				res.Seen = &Seen{Container: a.Container, Running: true, StartedAt: now}
			case Stop:
				res.Seen = &Seen{Container: a.Container, ExitCode: new(143), StartedAt: now, FinishedAt: now}
			}
			*t = Did(*t, res, now)
		}
		slices.Sort(round)
		all = append(all, strings.Join(round, ", "))
	}
	return all
}

func TestPlan_ContainersStartInOrderOfTheirDependenciesAndStopInReverse(t *testing.T) {
	on := func(names ...string) (all []taskdef.Dependency) {
		for _, n := range names {
			all = append(all, taskdef.Dependency{ContainerName: n, Condition: taskdef.ConditionStart})
		}
		return all
	}
	tk := newTask(
		taskdef.ContainerDefinition{Name: "web", DependsOn: on("db", "log")},
		taskdef.ContainerDefinition{Name: "db", DependsOn: on("log")},
		taskdef.ContainerDefinition{Name: "log"},
		taskdef.ContainerDefinition{Name: "alone"},
	)
	want := []string{"pull alone, pull db, pull log, pull web", "create alone, create log", "start alone, start log", "create db", "start db", "create web", "start web"}
	if got := verbs(&tk, start); !slices.Equal(got, want) {
		t.Errorf("up: %q\nwant %q", got, want)
	}
	if tk.Status != task.Running || !tk.StartedAt.Equal(start) {
		t.Errorf("it is %s since %s", tk.Status, tk.StartedAt)
	}
	tk.want(Order{}, start)
	want = []string{"stop alone, stop web", "stop db", "stop log"}
	if got := verbs(&tk, start.Add(time.Minute)); !slices.Equal(got, want) {
		t.Errorf("down: %q\nwant %q", got, want)
	}
	if tk.Status != task.Stopped || tk.StoppedAt.IsZero() || !tk.StoppingAt.Equal(start) {
		t.Errorf("it is %+v", tk)
	}
}

func TestPlan_OnlyAnEssentialContainersEndEndsTheTask(t *testing.T) {
	tk := newTask(taskdef.ContainerDefinition{Name: "app"}, taskdef.ContainerDefinition{Name: "helper", Essential: new(false)})
	verbs(&tk, start)
	tk = Observe(tk, Seen{Container: "helper", ExitCode: new(1), FinishedAt: start}, start)
	if got := verbs(&tk, start); len(got) != 0 || tk.Status != task.Running || tk.Desired != task.DesiredRunning {
		t.Errorf("after the helper's end: %q, %s", got, show(tk, nil))
	}
	tk = Observe(tk, Seen{Container: "app", ExitCode: new(7), FinishedAt: start}, start)
	verbs(&tk, start)
	if got := show(tk, nil); got != "STOPPED/STOPPED for exited app=stopped(7) helper=stopped(1)" {
		t.Error(got)
	}
}

func TestPlan_AnEssentialContainersEndStopsTheOthers(t *testing.T) {
	tk := newTask(taskdef.ContainerDefinition{Name: "app"}, taskdef.ContainerDefinition{Name: "helper", Essential: new(false), StopTimeout: new(5)})
	verbs(&tk, start)
	tk = Observe(tk, Seen{Container: "app", ExitCode: new(0), FinishedAt: start}, start)
	next, do, _ := Plan(tk, start)
	if len(do) != 1 || do[0].Verb != Stop || do[0].Timeout != 5*time.Second || next.Status != task.Stopping {
		t.Errorf("%s, time-out %v", show(next, do), do)
	}
}

func TestPlan_WhatCanNeverBeResolvedIsADeadlock(t *testing.T) {
	tk := newTask(taskdef.ContainerDefinition{Name: "app", DependsOn: []taskdef.Dependency{{ContainerName: "nobody", Condition: taskdef.ConditionStart}}})
	verbs(&tk, start)
	if tk.Status != task.Stopped || tk.Cause != task.DeadlockCause || tk.Reason != task.EndOf(task.DeadlockCause).Reason {
		t.Errorf("%s: %s", show(tk, nil), tk.Reason)
	}
}

func TestDid_FailuresAreNamedInECSsWords(t *testing.T) {
	for _, c := range []struct {
		verb   Verb
		err    error
		reason string
	}{
		{Pull, fault.New(fault.NotFound, "manifest unknown"), "CannotPullContainerError: manifest unknown"},
		{Pull, fault.New(fault.NotFound, "CannotPullContainerError: manifest unknown"), "CannotPullContainerError: manifest unknown"},
		{Create, fault.New(fault.Invalid, "no such volume driver"), "CannotCreateContainerError: no such volume driver"},
		{Start, fault.New(fault.Invalid, "exec: not found"), "CannotStartContainerError: exec: not found"},
	} {
		tk := newTask()
		for range 5 {
			next, do, _ := Plan(tk, start)
			tk = next
			if len(do) == 0 {
				break
			}
			res := Result{Action: do[0]}
			if do[0].Verb == Start {
				res.Seen = &Seen{Container: "app", Created: true}
			}
			if do[0].Verb == c.verb {
				res.Err = c.err
			}
			tk = Did(tk, res, start)
		}
		tk, _, _ = Plan(tk, start)
		if tk.Status != task.Stopped || tk.Cause != task.FailedCause || tk.Reason != c.reason || tk.Containers[0].Shown.Reason != c.reason || !tk.StartedAt.IsZero() {
			t.Errorf("%s: %s: %q, its container %q", c.verb, show(tk, nil), tk.Reason, tk.Containers[0].Shown.Reason)
		}
	}
}

// An engine that answers again by the time it is asked, after an answer that broke
// off or a restart, has ended no task; one that does so each time has.
func TestDid_APullWhoseAnswerIsLostIsMadeAgain(t *testing.T) {
	for _, broken := range []int{1, mostTries - 1, mostTries} {
		tk, now, pulls := newTask(), start, 0
		for range 20 {
			next, do, wake := Plan(tk, now)
			tk = next
			if len(do) == 0 || do[0].Verb != Pull {
				if wake.IsZero() {
					break
				}
				now = wake
				continue
			}
			res := Result{Action: do[0], Text: "sha256:1"}
			if pulls++; pulls <= broken {
				res.Text, res.Err = "", fault.New(fault.Unavailable, "unexpected EOF")
			}
			tk = Did(tk, res, now)
		}
		if failed := tk.Desired == task.DesiredStopped; failed != (broken == mostTries) || !failed && tk.Containers[0].Phase != Pulled {
			t.Errorf("after %d answers that were lost, and %d pulls: %s %q", broken, pulls, show(tk, nil), tk.Reason)
		}
	}
}

// conflicted runs a task whose start always meets err.
func conflicted(tk Task, name string, err error, ports ...Port) (Task, time.Duration) {
	now := start
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
			res := Result{Action: a}
			if a.Verb == Start {
				res.Seen = &Seen{Container: a.Container, Running: true, StartedAt: now}
				if a.Container == name {
					res.Seen, res.Err, res.Taken = &Seen{Container: a.Container, Created: true}, err, ports
				}
			}
			tk = Did(tk, res, now)
		}
	}
	return tk, now.Sub(start)
}

func TestDid_ATakenPortIsRefusedOnlyIfItStaysTakenAndNothingWasStarted(t *testing.T) {
	err := fault.New(fault.Conflict, "port is taken")
	tk, took := conflicted(newTask(), "app", err, Port{8080, "tcp"})
	if tk.Refusal == nil || tk.Refusal.Code != wire.RefusedPort || !slices.Equal(tk.Refusal.Ports, []Port{{8080, "tcp"}}) || tk.Status != task.Pending || !tk.Ended() {
		t.Errorf("%s: %+v", show(tk, nil), tk.Refusal)
	}
	if took < time.Second || took > 10*time.Second {
		t.Errorf("it was tried for %s", took)
	}
	both := newTask(taskdef.ContainerDefinition{Name: "app"}, taskdef.ContainerDefinition{Name: "other"})
	if tk, _ := conflicted(both, "app", err, Port{8080, "tcp"}); tk.Refusal != nil || tk.Cause != task.FailedCause {
		t.Errorf("with another container started: %s", show(tk, nil))
	}
	if tk, _ := conflicted(newTask(), "app", fault.New(fault.Unavailable, "out of memory").WithCode("RESOURCE:MEMORY")); tk.Refusal == nil || tk.Refusal.Code != wire.RefusedMemory {
		t.Errorf("without memory: %s", show(tk, nil))
	}
	if tk, _ := conflicted(newTask(), "app", err); tk.Refusal == nil || tk.Refusal.Code != wire.RefusedAgent {
		t.Errorf("a conflict without a port: %s", show(tk, nil))
	}
}

func TestAdopt_WatchesAndStopsAndNeverMakes(t *testing.T) {
	seen := []Seen{
		{Container: "app", RuntimeID: "c1", Running: true, StartedAt: start},
		{Container: "init", RuntimeID: "c2", ExitCode: new(0), StartedAt: start, FinishedAt: start},
		{Container: "late", RuntimeID: "c3", Created: true},
		{Container: "helper", RuntimeID: "c4", Running: true, StartedAt: start, Labels: map[string]string{"essential": "false"}},
	}
	tk := Adopt("t", 2, seen, func(s Seen) bool { return s.Labels["essential"] != "false" }, time.Second, start)
	if got := verbs(&tk, start); len(got) != 0 || tk.Status != task.Running || tk.Desired != task.DesiredRunning {
		t.Errorf("adopted: %q, %s", got, show(tk, nil))
	}
	tk = Observe(tk, Seen{Container: "helper", RuntimeID: "c4", ExitCode: new(1)}, start)
	if verbs(&tk, start); tk.Desired != task.DesiredRunning {
		t.Error("the helper's end ended it")
	}
	tk = Observe(tk, Seen{Container: "app", RuntimeID: "c1", ExitCode: new(9)}, start)
	if verbs(&tk, start); tk.Status != task.Stopped || tk.Cause != task.ExitedCause {
		t.Errorf("after the app's end: %s", show(tk, nil))
	}
}

// In ECS a stopTimeout of 0 is none: its agent then takes its own.
func TestNew_AStopTimeoutOfNothingIsTheAgents(t *testing.T) {
	tk := newTask(taskdef.ContainerDefinition{Name: "a", StopTimeout: new(0)}, taskdef.ContainerDefinition{Name: "b", StopTimeout: new(5)}, taskdef.ContainerDefinition{Name: "c"})
	for i, want := range []time.Duration{30 * time.Second, 5 * time.Second, 30 * time.Second} {
		if got := tk.Containers[i].StopTimeout; got != want {
			t.Errorf("%s: %s, want %s", tk.Containers[i].Name, got, want)
		}
	}
}
