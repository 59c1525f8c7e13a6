package supervise

import (
	"slices"
	"time"

	"github.com/longshore-run/longshore/shared/task"
)

// Action is one thing to do for a task.
type Action struct {
	Verb      Verb
	Container string        // "" for Check
	Timeout   time.Duration // of Stop
	Ports     []Port        // of Check
}

// Plan settles what follows from what is known of a task, and says what to do
// now; the actions are marked as under way. wake is when to plan again if
// nothing happens before, zero for never.
func Plan(t Task, now time.Time) (next Task, do []Action, wake time.Time) {
	t = t.Clone()
	for range 2 {
		t.settle(now)
		do, wake = t.act(now)
		if len(do) > 0 || !wake.IsZero() || t.busy() || t.Ended() || !t.stuck(now) {
			break
		}
	}
	return t, do, wake
}

// settle draws the conclusions: an essential container's end ends the task,
// what is to stop and never ran is stopped, and the status follows.
func (t *Task) settle(now time.Time) {
	if t.Refusal == nil {
		for i := range t.Containers {
			if c := &t.Containers[i]; c.Essential && c.Phase == Stopped {
				t.want(Order{Cause: task.ExitedCause, Reason: task.EndOf(task.ExitedCause).Reason}, now)
			}
		}
	}
	if t.Desired == task.DesiredStopped || t.Refusal != nil {
		for i := range t.Containers {
			// T7: straight to stopped. A pull is not waited for (T8), a create is.
			if c := &t.Containers[i]; c.Phase.before(Starting) && (c.busy == "" || c.busy == Pull) {
				c.end("", now)
			}
		}
	}
	if t.Ended() {
		return
	}
	every := func(ok func(Container) bool) bool {
		return !slices.ContainsFunc(t.Containers, func(c Container) bool { return !ok(c) })
	}
	up := func(c Container) bool {
		return c.Ran || t.Adopted && c.Phase == Stopped && t.Desired == task.DesiredRunning
	}
	if t.StartedAt.IsZero() && every(up) {
		t.StartedAt = now
		for _, c := range t.Containers { // an end that was seen first tells when it began
			if c.Phase == Stopped && !c.Shown.StartedAt.IsZero() && c.Shown.StartedAt.Before(t.StartedAt) {
				t.StartedAt = c.Shown.StartedAt
			}
		}
		t.rise(task.Running)
	}
	if t.Desired == task.DesiredStopped && t.Started() {
		t.rise(task.Stopping)
	}
	if every(func(c Container) bool { return c.Phase == Stopped }) {
		t.want(Order{Cause: task.ExitedCause, Reason: task.EndOf(task.ExitedCause).Reason}, now)
		t.rise(task.Stopped)
		t.StoppedAt = now
	}
}

func (t *Task) rise(to task.Status) { t.Status = task.Merge(t.Status, to) }

// act is one round: the next step of every container that has one.
func (t *Task) act(now time.Time) (do []Action, wake time.Time) {
	if t.Refusal != nil {
		return nil, time.Time{}
	}
	if ports := t.ports(); !t.checked && t.Desired == task.DesiredRunning && len(ports) > 0 && !t.Started() && !t.Adopted {
		if t.checking || later(t.retry, now, &wake) {
			return nil, wake
		}
		t.checking = true
		return []Action{{Verb: Check, Ports: ports}}, wake
	}
	for i := range t.Containers {
		c := &t.Containers[i]
		verb := t.next(c)
		if verb == "" || c.busy != "" || later(c.retry, now, &wake) {
			continue
		}
		c.busy = verb
		switch verb {
		case Start:
			c.Phase = Starting
		case Pull:
			if t.PullStartedAt.IsZero() {
				t.PullStartedAt = now
			}
		case Stop:
			c.again = false
		case Look:
			c.look = false
		default: // the others leave no trace before they are done
		}
		do = append(do, Action{Verb: verb, Container: c.Name, Timeout: c.StopTimeout})
	}
	return do, wake
}

// later says whether at is still to come, and lowers wake to it.
func later(at, now time.Time, wake *time.Time) bool {
	if !at.After(now) {
		return false
	}
	if wake.IsZero() || at.Before(*wake) {
		*wake = at
	}
	return true
}

// next is a container's next step (T7).
func (t *Task) next(c *Container) Verb {
	switch {
	case c.again:
		return Stop
	case c.Phase == Stopped:
		return ""
	case c.look:
		return Look
	case c.Phase == Starting: // and nothing is under way: the answer was lost
		return Look
	case t.Desired == task.DesiredStopped:
		if c.Phase == Running && !t.held(c) {
			return Stop
		}
		return ""
	case t.Adopted:
		return ""
	case c.Phase == Waiting:
		return Pull
	case !t.resolved(c):
		return ""
	case c.Phase == Pulled:
		return Create
	case c.Phase == Created:
		return Start
	}
	return ""
}

// resolved says whether what c depends on has been started.
func (t *Task) resolved(c *Container) bool {
	return !slices.ContainsFunc(c.After, func(name string) bool {
		d := t.container(name)
		return d == nil || !d.Ran
	})
}

// held says whether a container that depends on c is still up: order at stop is
// the reverse of that at start.
func (t *Task) held(c *Container) bool {
	return slices.ContainsFunc(t.Containers, func(d Container) bool {
		return d.Name != c.Name && d.Phase != Stopped && slices.Contains(d.After, c.Name)
	})
}

// stuck breaks a dead-lock (T9); it says whether there was one.
func (t *Task) stuck(now time.Time) bool {
	reason := task.EndOf(task.DeadlockCause).Reason
	if t.Desired == task.DesiredStopped {
		for i := range t.Containers {
			if c := &t.Containers[i]; c.Phase != Stopped {
				c.end(reason, now)
			}
		}
		return true
	}
	if !slices.ContainsFunc(t.Containers, func(c Container) bool { return c.Phase.before(Running) }) {
		return false // a steady state
	}
	t.want(Order{Cause: task.DeadlockCause, Reason: reason}, now)
	return true
}

// ports are all static ports of the task.
func (t *Task) ports() []Port {
	var all []Port
	for _, c := range t.Containers {
		all = append(all, c.Ports...)
	}
	return all
}
