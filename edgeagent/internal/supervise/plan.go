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
	Began     time.Time     // of Restart: the run that has ended
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

// settle draws the conclusions: what waits for what can never be is given up,
// an essential container's end ends the task, what is to stop and never ran is
// stopped, and the status follows.
func (t *Task) settle(now time.Time) {
	for i := range t.Containers {
		if c := &t.Containers[i]; c.Up.After(now) { // the clock was set back while no agent ran
			c.Up = now
		}
	}
	if t.Refusal == nil && t.Desired == task.DesiredRunning && !t.Adopted {
		t.giveUp(now)
	}
	if t.Refusal == nil {
		for i := range t.Containers {
			if c := &t.Containers[i]; c.Essential && c.Phase == Stopped {
				t.want(c.exited(), now)
			}
		}
		t.released(now)
	}
	if t.Desired == task.DesiredStopped || t.Refusal != nil {
		for i := range t.Containers {
			c := &t.Containers[i]
			switch {
			case c.Phase.before(Starting) && (c.busy == "" || c.busy == Pull):
				c.end("", now) // T7: straight to stopped. A pull is not waited for (T8), a create is.
			case c.Phase == Restarting && c.busy == "" && !c.look:
				c.stayDown("", now)
			}
		}
	}
	if t.Ended() {
		return
	}
	every := func(ok func(Container) bool) bool {
		return !slices.ContainsFunc(t.Containers, func(c Container) bool { return !ok(c) })
	}
	up := func(c Container) bool { // or as much so as it will ever be
		return c.Ran || (t.Adopted || !c.Essential) && c.Phase == Stopped && t.Desired == task.DesiredRunning
	}
	if t.StartedAt.IsZero() && every(up) && (t.Adopted || t.Started()) {
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
	if ports := t.ports(); !t.checked && t.Refusal == nil && t.Desired == task.DesiredRunning && len(ports) > 0 && !t.Started() && !t.Adopted {
		if t.checking || later(t.retry, now, &wake) {
			return nil, wake
		}
		t.checking = true
		return []Action{{Verb: Check, Ports: ports}}, wake
	}
	for i := range t.Containers {
		c := &t.Containers[i]
		if t.Refusal != nil && !c.Pause() { // nothing else of it was started
			continue
		}
		verb := t.next(c, now, &wake)
		if verb == "" || c.busy != "" || later(c.retry, now, &wake) {
			continue
		}
		c.busy, c.knew = verb, c.felt
		switch verb {
		case Start:
			c.Phase = Starting
		case Pull:
			if t.PullStartedAt.IsZero() && !c.Pause() {
				t.PullStartedAt = now
			}
		case Stop:
			c.again = false
		case Look:
			c.look = false
		default: // the others leave no trace before they are done
		}
		do = append(do, Action{Verb: verb, Container: c.Name, Timeout: c.StopTimeout, Began: c.Began})
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
func (t *Task) next(c *Container, now time.Time, wake *time.Time) Verb {
	switch {
	case c.again:
		return Stop
	case c.look:
		return Look
	case c.Phase == Stopped:
		return ""
	case c.Phase == Starting: // and nothing is under way: the answer was lost
		return Look
	case t.Desired == task.DesiredStopped, t.Refusal != nil:
		if c.Phase == Running && !t.held(c) {
			return Stop
		}
		return ""
	case c.Phase == Restarting:
		return Restart
	case t.Adopted:
		return ""
	case c.Phase == Waiting:
		return Pull
	case c.Phase == Pulled && t.resolved(c, now, wake):
		return Create
	case c.Phase == Created && t.resolved(c, now, wake):
		return Start
	}
	return ""
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
	if !slices.ContainsFunc(t.Containers, func(c Container) bool { return c.Phase.before(Running) }) || t.awaits(now) {
		return false // a steady state, or one that somebody's end or health will change
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
