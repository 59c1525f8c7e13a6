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
	late   []Seen // pictures that were taken and not shown yet
	calm   bool   // from now on everything works
}

type truth struct {
	made, running bool
	starts        int
	began         time.Time
	code          *int
}

func (w *world) seen(name string) Seen {
	b := w.boxes[name]
	s := Seen{Container: name, RuntimeID: "r-" + name}
	switch {
	case !b.made:
		return Seen{Container: name, Gone: true}
	case b.running:
		s.Running, s.StartedAt = true, b.began
	case b.starts == 0:
		s.Created = true
	default:
		s.ExitCode, s.StartedAt, s.FinishedAt = b.code, b.began, w.now
	}
	return s
}

func (w *world) photograph(name string) { w.late = append(w.late, w.seen(name)) }

func (w *world) exit(name string) {
	if b := w.boxes[name]; b.running {
		b.running, b.code = false, new(rapid.IntRange(0, 255).Draw(w.T, "exit code"))
		w.photograph(name)
	}
}

// act carries an action out, for good or ill.
func (w *world) act(a Action) Result {
	res := Result{Action: a}
	how := "well"
	if !w.calm {
		how = rapid.SampledFrom([]string{"well", "well", "well", "silent", "answer lost", "fails", "conflict", "unavailable"}).Draw(w.T, "how "+string(a.Verb)+" goes")
	}
	b := w.boxes[a.Container]
	if how == "well" || how == "answer lost" {
		switch a.Verb {
		case Create:
			b.made, res.Text = true, "r-"+a.Container
			w.photograph(a.Container)
		case Start:
			if b.made && !b.running && b.starts == 0 {
				b.running, b.starts, b.began = true, b.starts+1, w.now
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
	if a.Verb == Start || a.Verb == Stop || a.Verb == Look {
		s := w.seen(a.Container)
		res.Seen = &s
	}
	return res
}

// plan takes the next steps and checks that they are allowed.
func (w *world) plan() {
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
		case Stop:
			for _, d := range next.Containers {
				if slices.Contains(d.After, c.Name) && d.Phase != Stopped && c.Phase != Stopped {
					w.Fatalf("stop of %s before %s, which depends on it", c.Name, d.Name)
				}
			}
		}
		if a.Verb == Start {
			for _, name := range c.After {
				if w.boxes[name].starts == 0 {
					w.Fatalf("start of %s before %s", c.Name, name)
				}
			}
		}
	}
	w.flying = append(w.flying, do...)
	if len(w.flying) == 0 && !wake.IsZero() && (w.calm || rapid.Bool().Draw(w.T, "time passes")) {
		w.now = wake
	}
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

// Whatever an engine does, in whatever order answers and events come and
// however often the agent is killed: a container is started at most once, never
// against the task's wish or before what it depends on; statuses only rise; and
// a task that is to stop ends once the engine works.
func TestPlan_WhateverTheEngineDoes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		names := []string{"a", "b", "c"}[:rapid.IntRange(1, 3).Draw(rt, "containers")]
		w := &world{T: rt, now: start, boxes: map[string]*truth{}}
		var defs []taskdef.ContainerDefinition
		for i, name := range names {
			w.boxes[name] = &truth{}
			d := taskdef.ContainerDefinition{Name: name, Essential: new(i == 0 || rapid.Bool().Draw(rt, name+" is essential"))}
			for _, other := range names[:i] {
				if rapid.Bool().Draw(rt, name+" after "+other) {
					d.DependsOn = append(d.DependsOn, taskdef.Dependency{ContainerName: other, Condition: taskdef.ConditionStart})
				}
			}
			defs = append(defs, d)
		}
		w.task = newTask(defs...)
		for range rapid.IntRange(0, 60).Draw(rt, "steps") {
			w.now = w.now.Add(time.Millisecond)
			w.plan()
			switch rapid.IntRange(0, 9).Draw(rt, "what happens") {
			case 0:
				w.exit(rapid.SampledFrom(names).Draw(rt, "who ends"))
			case 1:
				if name := rapid.SampledFrom(names).Draw(rt, "who vanishes"); !w.boxes[name].running && w.boxes[name].starts > 0 {
					w.boxes[name].made = false
					w.photograph(name)
				}
			case 2:
				w.task.want(Order{Reason: "asked"}, w.now)
			case 3:
				w.restart()
			case 4, 5:
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
		for n := 0; !w.task.Ended() || len(w.flying) > 0; n++ {
			if n > 200 {
				rt.Fatalf("it never ends: %s", show(w.task, w.flying))
			}
			w.plan()
			if len(w.flying) > 0 {
				w.land()
			}
		}
		for name, b := range w.boxes {
			c := w.task.container(name)
			switch {
			case b.running && !c.Alive:
				rt.Fatalf("%s runs after the end: %s", name, show(w.task, nil))
			case b.starts > 1:
				rt.Fatalf("%s was started %d times", name, b.starts)
			case w.task.Refusal != nil && b.starts > 0:
				rt.Fatalf("refused, and %s was started", name)
			case b.made && b.starts > 0 && c.Ran && c.Shown.ExitCode == nil && c.Shown.Reason == "":
				rt.Fatalf("%s ended with code %v, and nothing is said: %+v", name, *b.code, errors.New(fmt.Sprint(c.Shown)))
			}
		}
	})
}
