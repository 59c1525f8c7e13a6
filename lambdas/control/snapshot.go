package control

import (
	"slices"
	"time"
	"unicode/utf8"

	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

// Bounds of what a task keeps of its agent's reports, so that its item does not
// grow with what agents send.
const (
	maxReason   = 1024
	maxKept     = 10  // containers: what a task definition may have
	maxDetail   = 255 // of one container's reason, as ECS has it
	maxImage    = 512
	maxDigest   = 128 // and its runtime id
	maxBindings = 200 // of all its containers
	maxGPUs     = 64  // the same
)

// agentCauses are the ends an agent may tell of; any other is told by what it
// shows. Who asked for a stop is known here and not asked of the agent.
var agentCauses = []task.Cause{
	task.ExitedCause, task.FailedCause, task.VanishedCause, task.FencedCause,
	task.DeadlockCause, task.UnreadableCause, task.UserCause,
}

// causeOf is why an attempt ended that nobody had asked to end.
func causeOf(t *Task, r *wire.Report) task.Cause {
	if slices.Contains(agentCauses, r.Cause) {
		return r.Cause
	}
	ran := func(k task.Container) bool { return k.ExitCode != nil || !k.StartedAt.IsZero() }
	if !t.StartedAt.IsZero() || slices.ContainsFunc(t.Containers, ran) {
		return task.ExitedCause
	}
	return task.FailedCause
}

// take merges a snapshot's facts into the task: what was unknown is filled in.
func take(t *Task, told Told) {
	r := told.Report
	t.Containers = task.MergeContainers(t.Containers, told.containers(t))
	told.fillTime(t, &t.PullStartedAt, r.PullStartedAt)
	told.fillTime(t, &t.PullStoppedAt, r.PullStoppedAt)
	told.fillTime(t, &t.StartedAt, r.StartedAt)
	told.fillTime(t, &t.StoppingAt, r.StoppingAt)
	told.fillTime(t, &t.ExecStoppedAt, r.StoppedAt)
}

// renew takes in what comes and goes, above all how well a task is: that is not
// merged, so a report that is older than the last one has no say. It says whether
// the task's health has changed.
func renew(t *Task, told Told) bool {
	r := told.Report
	if r.Incarnation == t.Incarnation && r.N < t.N {
		return false
	}
	before := t.Health
	t.Containers = task.Renew(t.Containers, told.containers(t))
	if r.Health != "" {
		t.Health = r.Health
	}
	return t.Health != before
}

// fillIn completes a task that was STOPPED before its agent told of its end
// (late). What it was stopped for stays. It says whether anything was missing.
func fillIn(t *Task, told Told) (changed bool) {
	before := *t
	take(t, told)
	t.Containers = task.StopContainers(t.Containers, "", t.StoppedAt)
	if t.StoppedReason == "" {
		t.StoppedReason = cut(told.Report.Reason, maxReason)
	}
	return t.StoppedReason != before.StoppedReason ||
		!t.PullStartedAt.Equal(before.PullStartedAt) || !t.PullStoppedAt.Equal(before.PullStoppedAt) ||
		!t.StartedAt.Equal(before.StartedAt) || !t.ExecStoppedAt.Equal(before.ExecStoppedAt) ||
		!slices.EqualFunc(t.Containers, before.Containers, sameContainer)
}

func sameContainer(a, b task.Container) bool {
	return a.Name == b.Name && a.Status == b.Status && a.RuntimeID == b.RuntimeID && a.Image == b.Image &&
		a.ImageDigest == b.ImageDigest && a.Reason == b.Reason && (a.ExitCode == nil) == (b.ExitCode == nil) &&
		len(a.Bindings) == len(b.Bindings) && len(a.GPUs) == len(b.GPUs) &&
		a.StartedAt.Equal(b.StartedAt) && a.StoppedAt.Equal(b.StoppedAt)
}

// containers are the reported ones, bounded, each name once, times within reason.
func (t Told) containers(of *Task) []task.Container {
	var out []task.Container
	bindings, gpus := 0, 0
	for _, k := range t.Report.Containers {
		if len(out) == maxKept {
			break
		}
		if slices.ContainsFunc(out, func(o task.Container) bool { return o.Name == k.Name }) {
			continue
		}
		k.Reason, k.Image, k.ImageDigest = cut(k.Reason, maxDetail), cut(k.Image, maxImage), cut(k.ImageDigest, maxDigest)
		k.RuntimeID = cut(k.RuntimeID, maxDigest)
		k.GPUs = first(k.GPUs, maxGPUs-gpus)
		gpus += len(k.GPUs)
		k.Bindings = first(k.Bindings, maxBindings-bindings)
		bindings += len(k.Bindings)
		if !k.StartedAt.IsZero() {
			k.StartedAt = t.within(of, k.StartedAt)
		}
		if !k.StoppedAt.IsZero() {
			k.StoppedAt = t.within(of, k.StoppedAt)
		}
		out = append(out, k)
	}
	return out
}

func (t Told) fillTime(of *Task, into *time.Time, said time.Time) {
	if into.IsZero() && !said.IsZero() {
		*into = t.within(of, said)
	}
}

// within brings a time off a host's clock between the task's admission and the
// sending of the message, where it must lie; no time said means the latter. The
// host's clock may be days off: nothing is ever decided by it.
func (t Told) within(of *Task, said time.Time) time.Time {
	sent := t.Sender.SentAt.UTC()
	switch {
	case said.IsZero() || said.After(sent):
		return sent
	case said.Before(of.AdmittedAt):
		return of.AdmittedAt
	}
	return said.UTC()
}

// cut shortens s to at most n bytes of whole characters.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
