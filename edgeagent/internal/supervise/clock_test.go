package supervise

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// Whatever the engine has done, and however its clock was set meanwhile: once it
// works and its list was read, what is known is what it has.
func TestPlan_AfterAListWhatIsKnownIsWhatThereIs(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w, names := newWorld(rt)
		w.calm = rapid.Bool().Draw(rt, "the engine works")
		for range rapid.IntRange(0, 80).Draw(rt, "steps") {
			w.now = w.now.Add(time.Millisecond)
			w.plan()
			switch who := rapid.SampledFrom(names).Draw(rt, "who"); rapid.IntRange(0, 12).Draw(rt, "what happens") {
			case 0:
				w.exit(who)
			case 1, 2:
				w.feel(who, rapid.SampledFrom([]task.Health{task.Healthy, task.Unhealthy}).Draw(rt, "health"))
			case 3:
				w.skew += time.Duration(rapid.IntRange(-100, 100).Draw(rt, "the engine's clock is set by")) * time.Second
			case 4:
				if rapid.IntRange(0, 9).Draw(rt, "the agent is killed") == 0 {
					w.restart()
				}
			case 5:
				if len(w.late) > 0 {
					w.task = Observe(w.task, rapid.SampledFrom(w.late).Draw(rt, "picture"), w.now)
				}
			default:
				if len(w.flying) > 0 {
					w.land()
				}
			}
		}
		w.calm, w.late = true, nil
		for range 300 {
			if len(w.flying) == 0 {
				for _, name := range names {
					w.task = Observe(w.task, w.seen(name), w.now)
				}
			}
			w.now = w.now.Add(time.Minute)
			w.plan()
			for len(w.flying) > 0 {
				w.land()
			}
		}
		for name, b := range w.boxes {
			c := w.task.container(name)
			switch {
			case b.running != (c.Phase == Running || c.Alive):
				rt.Fatalf("%s runs: %v; known is %s", name, b.running, show(w.task, nil))
			case b.running && c.Phase == Running && c.Shown.Health != b.health:
				rt.Fatalf("%s is %q; known is %q", name, b.health, c.Shown.Health)
			}
		}
	})
}

// The engine's clock is set back an hour between two runs of a container: the
// second begins before the first, and is the newer one all the same.
func TestRestart_UnderAClockThatIsSetBackIsDoneOnce(t *testing.T) {
	for name, after := range map[string]Seen{
		"runs":       {Running: true, StartedAt: minute(-60)},
		"ended soon": {ExitCode: new(4), StartedAt: minute(-60), FinishedAt: minute(-60).Add(time.Second)},
	} {
		tk := newTask(restarted())
		verbs(&tk, start)
		exits(&tk, "app", 9, minute(2))
		next, do, _ := Plan(tk, minute(2))
		after.Container = "app"
		tk = Did(next, Result{Action: do[0], Seen: &after}, minute(3))
		next, do, _ = Plan(tk, minute(3))
		if len(do) > 0 || (next.Status == task.Running) != after.Running || next.Containers[0].Restarts != 1 {
			t.Errorf("%s: %s", name, show(next, do))
		}
	}
}

// A picture of a list or a stream with earlier times may be old, or of a clock
// that was set back. A look decides; one that was asked for before something else
// was told does not.
func TestObserve_EarlierTimesAreLookedAt(t *testing.T) {
	tk := newTask(restarted())
	verbs(&tk, start)
	feels(&tk, "app", task.Healthy, minute(1))
	for name, c := range map[string]struct {
		picture Seen
		want    string
	}{
		"a run that ended": {Seen{ExitCode: new(3), StartedAt: minute(-5), FinishedAt: minute(-5)}, "STOPPED/STOPPED for exited app=stopped(3)"},
		"health":           {Seen{Running: true, StartedAt: start, Health: task.Unhealthy, HealthAt: minute(-5)}, "RUNNING/RUNNING app=running"},
	} {
		c.picture.Container = "app"
		seen := Observe(tk, c.picture, minute(2))
		if essence(seen) != essence(tk) {
			t.Errorf("%s: believed at once: %s", name, show(seen, nil))
		}
		next, do, _ := Plan(seen, minute(2))
		if len(do) != 1 || do[0].Verb != Look {
			t.Fatalf("%s: %s", name, show(next, do))
		}
		now := Did(next, Result{Action: do[0], Seen: &c.picture}, minute(2))
		shown, _, _ := Plan(now, minute(2))
		if got := show(shown, nil); got != c.want || now.Containers[0].Shown.Health == task.Healthy && c.picture.Running {
			t.Errorf("%s: looked at, it is %s, %s", name, got, now.Containers[0].Shown.Health)
		}
		// While the look is under way something newer is told: it counts for nothing.
		newer := Observe(next, Seen{Container: "app", Running: true, StartedAt: minute(3), Health: task.Healthy, HealthAt: minute(4)}, minute(4))
		before := essence(newer)
		newer = Did(newer, Result{Action: do[0], Seen: &c.picture}, minute(4))
		if _, do, _ := Plan(newer, minute(4)); essence(newer) != before || !slices.ContainsFunc(do, func(a Action) bool { return a.Verb == Look }) {
			t.Errorf("%s: an old look was believed: %s", name, show(newer, do))
		}
	}
}

func TestContainer_ResurrectedUnderAClockThatIsSetBackIsStoppedOnce(t *testing.T) {
	tk := newTask()
	verbs(&tk, start)
	exits(&tk, "app", 0, minute(2))
	verbs(&tk, minute(2))
	up := Seen{Container: "app", Running: true, StartedAt: minute(-60)}
	tk = Observe(tk, up, minute(3))
	next, do, _ := Plan(tk, minute(3))
	if len(do) != 1 || do[0].Verb != Look {
		t.Fatalf("%s", show(next, do))
	}
	silent := Did(next, Result{Action: do[0], Err: fault.New(fault.Unavailable, "?"), Silent: true}, minute(3))
	if _, do, wake := Plan(silent, minute(3)); len(do) > 0 || !wake.IsZero() {
		t.Errorf("an ended task waits for an engine that is silent")
	}
	tk = Did(next, Result{Action: do[0], Seen: &up}, minute(3))
	if next, do, _ = Plan(tk, minute(3)); len(do) != 1 || do[0].Verb != Stop || !next.Alive() {
		t.Errorf("%s", show(next, do))
	}
}

// Docker's own clock tells how long a run was, unless it was set back in it.
func TestRestart_ARunInWhichTheClockWasSetBackIsMeasuredByOurs(t *testing.T) {
	for name, c := range map[string]struct {
		ran   time.Duration
		again bool
	}{"long enough": {2 * time.Minute, true}, "too short": {30 * time.Second, false}} {
		tk := newTask(restarted())
		verbs(&tk, start)
		at := start.Add(c.ran)
		tk = Observe(tk, Seen{Container: "app", ExitCode: new(9), StartedAt: start, FinishedAt: start}, at)
		if next, do, _ := Plan(tk, at); (len(do) == 1 && do[0].Verb == Restart) != c.again {
			t.Errorf("%s: %s", name, show(next, do))
		}
	}
}

// The host's clock is set back a year while no agent runs: a time-out that was
// counted from then is counted from now.
func TestStartTimeout_EndsThoughTheClockWasSetBack(t *testing.T) {
	store := taskdef.ContainerDefinition{Name: "store", HealthCheck: check, StartTimeout: new(60)}
	web := taskdef.ContainerDefinition{Name: "web", DependsOn: after("store", "HEALTHY")}
	tk := newTask(store, web)
	verbs(&tk, start)
	past := start.Add(-365 * 24 * time.Hour)
	tk, _, _ = Plan(Resume(tk), past)
	tk = Observe(tk, Seen{Container: "store", Running: true, StartedAt: start}, past)
	if next, _, wake := Plan(tk, past.Add(59*time.Second)); next.Desired != task.DesiredRunning || wake.After(past.Add(time.Minute)) {
		t.Errorf("%s, next at %s", show(next, nil), wake)
	}
	if next, _, _ := Plan(tk, past.Add(time.Minute)); next.Desired != task.DesiredStopped {
		t.Errorf("%s", show(next, nil))
	}
}
