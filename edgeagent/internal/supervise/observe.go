package supervise

import (
	"slices"
	"time"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

// Seen is a container of the task as the engine has it.
type Seen struct {
	Container  string
	RuntimeID  string
	Running    bool
	Created    bool // made and never started
	Gone       bool // not there
	ExitCode   *int
	OOMKilled  bool
	Error      string
	Image      string
	Digest     string
	Bindings   []task.Binding
	Health     task.Health // of one that runs and is checked
	HealthAt   time.Time   // when that was found; zero before the first outcome
	StartedAt  time.Time
	FinishedAt time.Time
	Labels     map[string]string
}

// Reasons in ECS's words.
const (
	reasonOOM      = "OutOfMemoryError: Container killed due to memory usage"
	reasonVanished = "CannotInspectContainerError: the container was removed by someone else"
)

// Resume is a task as it goes on after a restart, before what the engine has of
// it is shown: what should be there gets looked at unless it is shown. What the
// goroutine before knew for itself is void: nothing it had under way is, and a
// result that it got after it last saved would be waited for, for good.
func Resume(t Task) Task {
	t = t.Clone()
	t.checking, t.checked, t.tries, t.retry = false, false, 0, time.Time{}
	for i := range t.Containers {
		c := &t.Containers[i]
		c.busy, c.again, c.look, c.tries, c.silent, c.retry = "", false, false, 0, 0, time.Time{}
		if c.Phase.before(Starting) {
			c.Phase, c.Shown.RuntimeID = Waiting, "" // what is made will be shown, or made once more
		} else {
			c.look = c.Phase != Stopped
		}
	}
	return t
}

// Observe takes in what the engine's list or stream shows of one container. What
// is older or known already changes nothing (T3); a container the task does not
// have is dropped (T5).
func Observe(t Task, s Seen, now time.Time) Task {
	t = t.Clone()
	c := t.container(s.Container)
	if c == nil || c.isOther(s.RuntimeID) {
		return t
	}
	if s.Gone && s.ExitCode != nil && s.RuntimeID != "" && s.RuntimeID == c.Shown.RuntimeID {
		c.seenEnded(s, now) // it was removed after its end, and the stream knows both
		return t
	}
	if s.Gone {
		c.Alive = false
		// Said by a list or a stream, which may be older than what is known:
		// only a look at the container itself decides.
		c.look = c.Phase != Stopped && !c.Phase.before(Created)
		return t
	}
	if c.isOfOldRun(s) {
		// Old, or the engine's clock was set back meanwhile: a look at it tells.
		c.look = c.look || s.StartedAt.Before(c.Began)
		return t
	}
	c.learn(s)
	c.look = false
	switch {
	case s.Running:
		c.seenRunning(s, now)
	case s.Created:
		// Of one that was told to start this may be an old picture: it is looked at.
		if c.busy == "" && c.Phase.before(Starting) {
			c.Phase = Created
		}
	case c.Phase == Restarting && !s.StartedAt.After(c.Began): // the end that is known
	case t.restarts(c, s, now):
		c.Last = &Ending{Code: s.ExitCode, Reason: reasonOf(s), At: s.FinishedAt}
		c.Phase, c.Ran, c.Restarts = Restarting, true, c.Restarts+1
		c.tries, c.silent, c.retry = 0, 0, time.Time{}
		c.begin(s)
	default:
		c.seenEnded(s, now)
	}
	return t
}

// restarts says whether a run that has ended is to be followed by another: by
// the container's policy, and only if it had gone on for the policy's period.
func (t *Task) restarts(c *Container, s Seen, now time.Time) bool {
	p := c.Policy
	ran := s.FinishedAt.Sub(s.StartedAt)
	if ran <= 0 && !c.since.IsZero() { // the engine's clock was set back while it ran
		ran = now.Sub(c.since)
	}
	return p != nil && t.Desired == task.DesiredRunning && t.Refusal == nil && c.Phase != Stopped &&
		s.ExitCode != nil && !slices.Contains(p.Ignored, *s.ExitCode) &&
		!s.StartedAt.IsZero() && ran >= p.Period
}

// stayDown ends a container that was to be restarted, as its last run ended.
func (c *Container) stayDown(reason string, now time.Time) {
	if e := c.Last; e != nil && c.Phase == Restarting {
		c.Shown.ExitCode, c.Shown.StoppedAt = e.Code, e.At
		if reason == "" {
			reason = e.Reason
		}
	}
	c.end(reason, now)
}

// isOther says whether a runtime id is that of another container than is known.
func (c *Container) isOther(runtimeID string) bool {
	return runtimeID != "" && c.Shown.RuntimeID != "" && runtimeID != c.Shown.RuntimeID
}

// isOfOldRun says whether a picture shows a run before the one that is known, or
// still shows as running the one that a restart is to follow.
func (c *Container) isOfOldRun(s Seen) bool {
	return !s.StartedAt.IsZero() && s.StartedAt.Before(c.Began) ||
		c.Phase == Restarting && s.Running && !s.StartedAt.After(c.Began)
}

// begin notes a run of which something was seen, and what is known of it alone.
func (c *Container) begin(s Seen) {
	if s.StartedAt.After(c.Began) {
		c.Began, c.felt, c.since = s.StartedAt, time.Time{}, time.Time{}
		if c.Shown.Health != "" {
			c.Shown.Health = task.HealthUnknown
		}
	}
}

// feel takes in the health of a container that runs. As with runs, a result from
// before the one that is known is old, or the engine's clock was set back.
func (c *Container) feel(s Seen) {
	switch {
	case s.Health == "":
	case s.HealthAt.Before(c.felt):
		c.look = s.Health != c.Shown.Health
	default:
		c.Shown.Health, c.felt = s.Health, s.HealthAt
	}
}

// trust takes what a look has just shown for newer than all that is known,
// whatever its times say: they are the engine's clock's, which can be set. It
// says no where a list or a stream has told of something else since the look was
// asked for.
func (c *Container) trust(s Seen, a Action) bool {
	run, health := !s.StartedAt.IsZero() && s.StartedAt.Before(c.Began), s.HealthAt.Before(c.felt)
	if run && !c.Began.Equal(a.Began) || health && !c.felt.Equal(c.knew) {
		return false
	}
	if run {
		c.Began, c.felt, c.since = time.Time{}, time.Time{}, time.Time{}
	}
	if health {
		c.felt = time.Time{}
	}
	return true
}

func (c *Container) learn(s Seen) {
	if s.RuntimeID != "" {
		c.Shown.RuntimeID = s.RuntimeID
	}
	if c.Shown.ImageDigest == "" {
		c.Shown.ImageDigest = s.Digest
	}
	if c.Shown.Image == "" {
		c.Shown.Image = s.Image
	}
	// A run more may be on other ports.
	if len(s.Bindings) > 0 && (len(c.Shown.Bindings) == 0 || s.StartedAt.After(c.Began)) {
		c.Shown.Bindings = s.Bindings
	}
}

func (c *Container) seenRunning(s Seen, now time.Time) {
	if c.Phase == Stopped {
		// T4. A picture taken before its end shows the start that is known.
		if c.Ran && !s.StartedAt.After(c.Began) {
			return
		}
		c.begin(s)
		c.again = !c.Resurrected
		c.Resurrected, c.Alive = true, true
		return
	}
	c.begin(s)
	c.feel(s)
	if c.Up.IsZero() {
		c.Up = now
	}
	if c.since.IsZero() {
		c.since = now
	}
	c.Phase, c.Ran, c.Shown.Status = Running, true, task.ContainerRunning
	c.tries, c.silent, c.retry = 0, 0, time.Time{}
	if c.Shown.StartedAt.IsZero() {
		c.Shown.StartedAt = s.StartedAt
	}
}

func (c *Container) seenEnded(s Seen, now time.Time) {
	c.Alive = false
	c.Ran = c.Ran || c.Phase != Stopped
	if c.Shown.ExitCode == nil && c.Ran {
		c.Shown.ExitCode = s.ExitCode
	}
	if c.Shown.StartedAt.IsZero() {
		c.Shown.StartedAt = s.StartedAt
	}
	if c.Phase == Stopped {
		return
	}
	if s.StartedAt.After(c.Began) {
		c.Began = s.StartedAt
	}
	if !s.FinishedAt.IsZero() {
		c.Shown.StoppedAt = s.FinishedAt
	}
	c.end(reasonOf(s), now)
}

func reasonOf(s Seen) string {
	if s.OOMKilled {
		return reasonOOM
	}
	return s.Error
}

// Result is how an action went.
type Result struct {
	Action
	Err    error  // of the verb
	Text   string // Pull: digest; Create: runtime id
	Seen   *Seen  // Start, Stop, Look: the container afterwards, nil if it could not be seen
	Taken  []Port // Check: ports others have
	Silent bool   // with Err: the engine does not answer at all
}

const (
	mostTries   = 5 // of what an engine that answers says may work later
	portTries   = 4 // a port may be held for a moment after its owner's end
	firstRetry  = 500 * time.Millisecond
	silentRetry = 30 * time.Second
)

// Did takes in the result of an action.
func Did(t Task, r Result, now time.Time) Task {
	t = t.Clone()
	if r.Verb == Check {
		t.didCheck(r, now)
		return t
	}
	c := t.container(r.Container)
	if c == nil {
		return t
	}
	c.busy = ""
	if c.Phase == Stopped && (r.Verb == Pull || r.Verb == Create) {
		if r.Verb == Create && r.Err == nil {
			c.Shown.RuntimeID = r.Text
		}
		return t
	}
	if r.Err != nil && r.Silent {
		c.look = c.look || (r.Verb == Look || r.Verb == Restart) && c.Phase != Stopped
		c.again = c.again || r.Verb == Stop && c.Phase == Stopped
		c.wait(now)
		return t
	}
	c.silent = 0
	switch r.Verb {
	case Pull:
		t.didPull(c, r, now)
	case Create:
		t.didCreate(c, r, now)
	case Start, Restart, Look, Stop:
		return t.didTouch(c, r, now)
	default: // a check is the task's, and judged before
	}
	return t
}

// wait puts a container off until the engine may answer again.
func (c *Container) wait(now time.Time) {
	c.retry = now.Add(min(firstRetry<<min(c.silent, 8), silentRetry))
	c.silent++
}

// later puts off what an engine that answers could not do; false if it was
// tried often enough.
func (c *Container) later(now time.Time, most int) bool {
	if c.tries++; c.tries >= most {
		return false
	}
	c.retry = now.Add(firstRetry << (c.tries - 1))
	return true
}

// anew puts off making once more what somebody removed before it was of use; false
// if that was done often enough. What goes well in between does not count.
func (c *Container) anew(now time.Time) bool {
	if c.made++; c.made >= mostTries {
		return false
	}
	c.retry = now.Add(firstRetry << (c.made - 1))
	return true
}

var errRemoved = fault.New(fault.Conflict, "somebody removes the container each time before it runs")

func (t *Task) didCheck(r Result, now time.Time) {
	t.checking = false
	switch {
	case t.Desired == task.DesiredStopped:
	case r.Err == nil && len(r.Taken) == 0:
		t.checked = true
	default:
		if t.tries++; t.tries < portTries {
			t.retry = now.Add(firstRetry << (t.tries - 1))
			return
		}
		t.Refusal = &Refusal{Code: wire.RefusedPort, Reason: portReason(r.Taken), Ports: r.Taken}
	}
}

func (t *Task) didPull(c *Container, r Result, now time.Time) {
	if fault.Is(r.Err, fault.Unavailable) && c.later(now, mostTries) {
		return
	}
	if !c.Pause() {
		t.PullStoppedAt = now
	}
	if r.Err != nil {
		t.fail(c, "CannotPullContainerError", r.Err, now)
		return
	}
	c.Phase, c.Shown.ImageDigest, c.tries = Pulled, r.Text, 0
}

func (t *Task) didCreate(c *Container, r Result, now time.Time) {
	switch {
	case r.Err == nil:
		if c.Phase.before(Created) {
			c.Phase = Created
		}
		c.Shown.RuntimeID, c.tries = r.Text, 0
	case t.refuse(c, r, now):
	case fault.Is(r.Err, fault.NotFound) && c.anew(now): // the image was removed meanwhile
		c.Phase = Waiting
	case fault.Is(r.Err, fault.Unavailable) && c.later(now, mostTries):
	default:
		t.fail(c, "CannotCreateContainerError", r.Err, now)
	}
}

// didTouch is after a Start, Stop or Look: what the container shows counts, not
// what the verb said.
func (t *Task) didTouch(c *Container, r Result, now time.Time) Task {
	if r.Seen != nil && c.isOther(r.Seen.RuntimeID) {
		r.Seen = &Seen{Container: c.Name, Gone: true}
	}
	if r.Seen != nil && !r.Seen.Gone && !c.trust(*r.Seen, r.Action) {
		c.look = true
		return *t
	}
	switch {
	case r.Seen == nil: // it could not be seen: look again, start nothing blindly
		if c.Phase != Stopped {
			c.look = true
		}
		if !c.later(now, 8) {
			c.tries = 7
			c.retry = now.Add(silentRetry)
		}
	case r.Seen.Gone && c.Phase == Stopped:
		c.Alive = false
	case r.Seen.Gone && (c.Phase == Created && r.Verb == Look || r.Verb == Start && fault.Is(r.Err, fault.NotFound)):
		// It never ran: made again.
		if c.Phase, c.Shown.RuntimeID, c.look = Pulled, "", false; !c.anew(now) {
			t.fail(c, "CannotStartContainerError", errRemoved, now)
		}
	case r.Seen.Gone:
		c.Ran = true // or may have
		c.stayDown(reasonVanished, now)
		t.want(Order{Cause: task.VanishedCause, Reason: reasonVanished}, now)
	case r.Verb == Restart && c.Phase == Restarting && !r.Seen.Running && !r.Seen.StartedAt.After(c.Began):
		t.didNotRestart(c, r, now)
	case r.Seen.Created && r.Verb == Start:
		c.Phase = Created
		t.didNotStart(c, r, now)
	case r.Seen.Created && c.Phase == Starting:
		c.Phase = Created
	case r.Seen.Running && r.Verb == Stop && c.Phase != Stopped:
		// The engine lives and could not stop it: it is not over until it is seen.
		if !c.later(now, 8) {
			c.tries = 7
			c.retry = now.Add(silentRetry)
		}
	default:
		return Observe(*t, *r.Seen, now)
	}
	return *t
}

// didNotRestart is after a restart that left the container as its last run did.
func (t *Task) didNotRestart(c *Container, r Result, now time.Time) {
	err := r.Err
	if err == nil {
		err = fault.New(fault.Internal, "the engine says it was started again, and it was not")
	}
	passing := r.Err == nil || fault.Is(err, fault.Unavailable) || fault.Is(err, fault.Conflict)
	if passing && c.later(now, mostTries) {
		return
	}
	c.stayDown(named("CannotStartContainerError", err), now)
}

func (t *Task) didNotStart(c *Container, r Result, now time.Time) {
	switch {
	case r.Err == nil && c.later(now, mostTries):
	case r.Err == nil:
		t.fail(c, "CannotStartContainerError", fault.New(fault.Internal, "the engine says it was started, and it was not"), now)
	case t.refuse(c, r, now):
	case fault.Is(r.Err, fault.Unavailable) && c.later(now, mostTries):
	default:
		t.fail(c, "CannotStartContainerError", r.Err, now)
	}
}
