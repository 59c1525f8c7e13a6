package supervise

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// world is an engine that may do anything an engine does: fail, keep silent,
// lose answers, show things late and twice.
type world struct {
	*rapid.T
	task   Task
	now    time.Time
	boxes  map[string]*truth
	flying []Action
	late   []Seen        // pictures that were taken and not shown yet
	skew   time.Duration // of the engine's clock
	calm   bool          // from now on everything works
}

type truth struct {
	made, running bool
	starts        int // by Start
	runs          int
	began, ended  time.Time
	code          *int
	health        task.Health
	felt          time.Time
	was           bool // healthy, at some time
}

// clock is the engine's, which may be set.
func (w *world) clock() time.Time {
	w.skew++ // no two readings are the same
	return w.now.Add(w.skew)
}

// run is a run more of a container.
func (b *truth) run(now time.Time) {
	b.running, b.runs, b.began, b.code, b.felt = true, b.runs+1, now, nil, time.Time{}
	if b.health != "" {
		b.health = task.HealthUnknown
	}
}

func (w *world) seen(name string) Seen {
	b := w.boxes[name]
	s := Seen{Container: name, RuntimeID: "r-" + name}
	switch {
	case !b.made:
		return Seen{Container: name, Gone: true}
	case b.running:
		s.Running, s.StartedAt, s.Health, s.HealthAt = true, b.began, b.health, b.felt
	case b.starts == 0:
		s.Created = true
	default:
		s.ExitCode, s.StartedAt, s.FinishedAt = b.code, b.began, b.ended
	}
	return s
}

func (w *world) photograph(name string) { w.late = append(w.late, w.seen(name)) }

func (w *world) exit(name string) {
	if b := w.boxes[name]; b.running {
		b.running, b.ended, b.code = false, w.clock(), new(rapid.SampledFrom([]int{0, 0, 1, 137}).Draw(w.T, "exit code"))
		w.photograph(name)
	}
}

// feel has the health check of a container come to a result.
func (w *world) feel(name string, h task.Health) {
	if b := w.boxes[name]; b.running && b.health != "" {
		b.health, b.felt, b.was = h, w.clock(), b.was || h == task.Healthy
		w.photograph(name)
	}
}

// satisfied says whether what d asks for is so, or has been.
func (w *world) satisfied(d Dependency) bool {
	b := w.boxes[d.Name]
	switch d.On {
	case OnStart:
		return b.starts > 0
	case OnComplete:
		return b.starts > 0 && !b.running
	case OnSuccess:
		return b.starts > 0 && !b.running && b.code != nil && *b.code == 0
	case OnHealthy:
		return b.was
	case OnMade:
		return b.made || b.starts > 0 // somebody may have removed it since
	case OnLink, OnNamespace:
		return b.starts > 0
	}
	return false
}

// act carries an action out, for good or ill.
func (w *world) act(a Action) Result {
	res := Result{Action: a}
	how := "well"
	if !w.calm {
		how = rapid.SampledFrom([]string{"well", "well", "well", "well", "well", "well", "silent", "answer lost", "fails", "conflict", "unavailable"}).Draw(w.T, "how "+string(a.Verb)+" goes")
	}
	b := w.boxes[a.Container]
	if how == "well" || how == "answer lost" {
		switch a.Verb {
		case Create:
			b.made, res.Text = true, "r-"+a.Container
			w.photograph(a.Container)
		case Start:
			if b.made && !b.running && b.starts == 0 {
				b.starts++
				b.run(w.clock())
				w.photograph(a.Container)
			}
		case Restart:
			if b.made && !b.running && b.began.Equal(a.Began) {
				b.run(w.clock())
				w.photograph(a.Container)
			}
		case Stop:
			w.exit(a.Container)
		}
	}
	switch how {
	case "silent", "answer lost":
		res.Err, res.Silent = fault.New(fault.Unavailable, "no answer"), true
		return res
	case "fails":
		res.Err = fault.New(fault.Invalid, "no")
	case "conflict":
		res.Err = fault.New(fault.Conflict, "port is taken")
	case "unavailable":
		res.Err = fault.New(fault.Unavailable, "not now")
	}
	if a.Verb == Start || a.Verb == Restart || a.Verb == Stop || a.Verb == Look {
		s := w.seen(a.Container)
		res.Seen = &s
	}
	return res
}

// plan takes the next steps and checks that they are allowed; idle says that there
// are none and will be none.
func (w *world) plan() (idle bool) {
	before := w.task
	next, do, wake := Plan(w.task, w.now)
	w.task = next
	if next.Status.Rank() < before.Status.Rank() {
		w.Fatalf("status went from %s back to %s", before.Status, next.Status)
	}
	if before.Desired == task.DesiredStopped && next.Desired != task.DesiredStopped {
		w.Fatal("desired status went back")
	}
	for _, a := range do {
		c := next.container(a.Container)
		switch a.Verb {
		case Start, Create, Pull:
			if next.Desired == task.DesiredStopped || next.Refusal != nil {
				w.Fatalf("%s of %s although it is to stop: %s", a.Verb, a.Container, show(next, do))
			}
			if w.boxes[a.Container].starts > 0 {
				w.Fatalf("%s of %s, which was started: %s", a.Verb, a.Container, show(next, do))
			}
		case Restart:
			b := w.boxes[a.Container]
			if next.Desired == task.DesiredStopped || c.Policy == nil || b.starts == 0 {
				w.Fatalf("restart of %s, which is not to run again: %s", a.Container, show(next, do))
			}
			if b.code != nil && slices.Contains(c.Policy.Ignored, *b.code) && b.began.Equal(a.Began) {
				w.Fatalf("restart of %s after code %d: %s", a.Container, *b.code, show(next, do))
			}
		case Stop:
			for _, d := range next.Containers {
				if d.needs(c.Name) && d.Phase != Stopped && c.Phase != Stopped {
					w.Fatalf("stop of %s before %s, which depends on it", c.Name, d.Name)
				}
			}
		}
		if a.Verb == Start {
			for _, dep := range c.After {
				if !w.satisfied(dep) {
					w.Fatalf("start of %s before %s of %s: %s", c.Name, dep.On, dep.Name, show(next, do))
				}
			}
		}
	}
	w.flying = append(w.flying, do...)
	if len(w.flying) == 0 && !wake.IsZero() && (w.calm || rapid.Bool().Draw(w.T, "time passes")) {
		w.now = wake
	}
	return len(w.flying) == 0 && wake.IsZero()
}

func (w *world) land() {
	i := 0
	if !w.calm {
		i = rapid.IntRange(0, len(w.flying)-1).Draw(w.T, "which answer")
	}
	a := w.flying[i]
	w.flying = slices.Delete(w.flying, i, i+1)
	w.task = Did(w.task, w.act(a), w.now)
}

// restart is the agent killed and started again: what was under way has
// happened or has not, and what was not in the journal is forgotten.
func (w *world) restart() {
	for _, a := range w.flying {
		w.act(a)
	}
	w.flying, w.late = nil, nil
	kept := w.task.Clone()
	kept.checking, kept.checked, kept.tries, kept.retry = false, false, 0, time.Time{}
	for i := range kept.Containers {
		c := &kept.Containers[i]
		c.busy, c.again, c.look, c.tries, c.silent, c.retry = "", false, false, 0, 0, time.Time{}
	}
	w.task = Resume(kept)
	for name := range w.boxes {
		w.task = Observe(w.task, w.seen(name), w.now)
	}
}

// newWorld draws a task whose containers wait for each other in all ways.
func newWorld(rt *rapid.T) (*world, []string) {
	names := []string{"a", "b", "c", "d"}[:rapid.IntRange(1, 4).Draw(rt, "containers")]
	w := &world{T: rt, now: start, boxes: map[string]*truth{}}
	var defs []taskdef.ContainerDefinition
	for i, name := range names {
		b := &truth{}
		w.boxes[name] = b
		d := taskdef.ContainerDefinition{Name: name, Essential: new(i == 0 || rapid.Bool().Draw(rt, name+" is essential"))}
		if rapid.Bool().Draw(rt, name+" is checked") {
			d.HealthCheck, b.health = check, task.HealthUnknown
		}
		if rapid.IntRange(0, 3).Draw(rt, name+"'s time-out") == 0 {
			d.StartTimeout = new(1)
		}
		if rapid.Bool().Draw(rt, name+" is restarted") {
			d.RestartPolicy = &taskdef.RestartPolicy{Enabled: new(true), IgnoredExitCodes: []int{0}, RestartAttemptPeriod: new(0)}
		}
		for k, other := range names[:i] {
			switch condition := rapid.SampledFrom([]string{"", "START", "COMPLETE", "SUCCESS", "HEALTHY", "link", "volume"}).Draw(rt, name+" after "+other); condition {
			case "":
			case "link":
				d.Links = append(d.Links, other)
			case "volume":
				d.VolumesFrom = append(d.VolumesFrom, taskdef.VolumeFrom{SourceContainer: other})
			case "COMPLETE", "SUCCESS":
				if !defs[k].IsEssential() {
					d.DependsOn = append(d.DependsOn, after(other, condition)...)
				}
			case "HEALTHY":
				if defs[k].HealthCheck.Checks() {
					d.DependsOn = append(d.DependsOn, after(other, condition)...)
				}
			default:
				d.DependsOn = append(d.DependsOn, after(other, condition)...)
			}
		}
		defs = append(defs, d)
	}
	w.task = newTask(defs...)
	if rapid.Bool().Draw(rt, "namespaces are shared") {
		w.task = sharing(defs...)
		w.boxes[PauseName] = &truth{}
		names = append(names, PauseName)
	}
	return w, names
}

// Whatever an engine does, in whatever order answers and events come and
// however often the agent is killed: a container is started at most once, never
// against the task's wish or before what it depends on; statuses only rise; and
// a task that is to stop ends once the engine works.
func TestPlan_WhateverTheEngineDoes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w, names := newWorld(rt)
		for range rapid.IntRange(0, 150).Draw(rt, "steps") {
			w.now = w.now.Add(time.Millisecond)
			w.plan()
			switch rapid.IntRange(0, 24).Draw(rt, "what happens") {
			case 0:
				w.exit(rapid.SampledFrom(names).Draw(rt, "who ends"))
			case 1:
				if name := rapid.SampledFrom(names).Draw(rt, "who vanishes"); !w.boxes[name].running && w.boxes[name].starts > 0 {
					w.boxes[name].made = false
					w.photograph(name)
				}
			case 6, 9:
				w.feel(rapid.SampledFrom(names).Draw(rt, "whose health"), rapid.SampledFrom([]task.Health{task.Healthy, task.Unhealthy}).Draw(rt, "health"))
			case 2:
				w.task.want(Order{Reason: "asked"}, w.now)
			case 3:
				w.restart()
			case 10:
				w.skew += time.Duration(rapid.IntRange(-100, 100).Draw(rt, "the engine's clock is set by")) * time.Second
			case 4, 5, 7, 8:
				if len(w.late) > 0 {
					i := rapid.IntRange(0, len(w.late)-1).Draw(rt, "which picture")
					w.task = Observe(w.task, w.late[i], w.now)
				}
			default:
				if len(w.flying) > 0 {
					w.land()
				}
			}
		}
		w.calm = true
		w.task.want(Order{Reason: "asked"}, w.now)
		for n := 0; !w.plan() || !w.task.Ended(); n++ {
			if n > 200 {
				rt.Fatalf("it never ends: %s", show(w.task, w.flying))
			}
			if len(w.flying) > 0 {
				w.land()
			}
		}
		for name, b := range w.boxes {
			c := w.task.container(name)
			switch {
			case b.running && !c.Alive:
				rt.Fatalf("%s runs after the end: %s", name, show(w.task, nil))
			case c.Restarts > b.runs:
				rt.Fatalf("%s ran %d times and is said to have been restarted %d times", name, b.runs, c.Restarts)
			case b.starts > 1, b.runs > 1 && c.Policy == nil:
				rt.Fatalf("%s was started %d times and ran %d times", name, b.starts, b.runs)
			case w.task.Refusal != nil && b.starts > 0 && !c.Pause():
				rt.Fatalf("refused, and %s was started", name)
			case b.made && b.starts > 0 && c.Ran && c.Shown.ExitCode == nil && c.Shown.Reason == "":
				rt.Fatalf("%s ended with code %v, and nothing is said: %+v", name, *b.code, errors.New(fmt.Sprint(c.Shown)))
			}
		}
	})
}

// Left alone on an engine that works, where jobs end and checks come to a
// result, every container comes to run or is given up with a reason, or the task
// ends: nothing waits for good, and nothing is called a dead-lock.
func TestPlan_LeftAloneEverythingComesToRunOrIsGivenUp(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w, names := newWorld(rt)
		w.calm = true
		for range 300 {
			w.now = w.now.Add(time.Millisecond)
			w.plan()
			switch {
			case len(w.flying) > 0:
				w.land()
			case len(w.late) > 0:
				w.task = Observe(w.task, w.late[0], w.now)
				w.late = w.late[1:]
			default:
				name := rapid.SampledFrom(names).Draw(rt, "who")
				if c := w.task.container(name); !c.Essential && rapid.Bool().Draw(rt, "ends") {
					w.exit(name)
				} else {
					w.feel(name, rapid.SampledFrom([]task.Health{task.Healthy, task.Healthy, task.Unhealthy}).Draw(rt, "health"))
				}
			}
		}
		if w.task.Cause == task.DeadlockCause {
			rt.Fatalf("called a dead-lock: %s", show(w.task, nil))
		}
		for _, c := range w.task.Containers {
			if !c.Ran && !w.task.Ended() && c.Shown.Reason == "" {
				rt.Fatalf("%s waits for good: %s", c.Name, show(w.task, nil))
			}
		}
	})
}
