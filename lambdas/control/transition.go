package control

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/longshore-run/longshore/lambdas/internal/placement"
	"github.com/longshore-run/longshore/shared/task"
)

// This file is the protocol's writes, as changes to records: who calls them has
// loaded the records strongly and commits all of them together.

// DefinitionName is family:revision.
func DefinitionName(family string, number int) string { return family + ":" + strconv.Itoa(number) }

func waitingFor(t *Task) Waiting {
	switch {
	case t.LastStatus == task.Provisioning:
		return ForRoom
	case !t.LastStatus.Open():
		return NotWaiting
	case t.DesiredStatus == task.DesiredStopped:
		return ForEnd
	case t.LastStatus == task.Pending && !t.Shown:
		return ForSign
	}
	return NotWaiting
}

// admissible says why the ledger takes no work, or "" (I2, I7): in ECS's words.
func admissible(l *Ledger) string {
	switch {
	case !l.serves():
		return placement.ReasonAgent
	case l.NoRoom:
		return placement.ReasonDisk
	}
	return ""
}

// serves says whether the instance would take work if it had room.
func (l *Ledger) serves() bool {
	return l.Version > 0 && l.Status == Active && l.Connected && l.Stale == 0
}

// Free is what a ledger has left to give; ports are those taken.
func (l *Ledger) Free() (cpu, memory int) {
	return l.Registered.CPU - l.Held.CPU, l.Registered.MemoryMiB - l.Held.MemoryMiB
}

// FreeGPUs are the ids nobody holds, in registered order.
func (l *Ledger) FreeGPUs() []string {
	var free []string
	for _, id := range l.Registered.GPUs {
		if !slices.Contains(l.Held.GPUs, id) {
			free = append(free, id)
		}
	}
	return free
}

// Distinct says whether the task is to share its instance with no other of its
// group that is distinct too.
func (r *Task) Distinct() bool {
	return slices.ContainsFunc(r.Constraints, func(p Placement) bool { return p.Type == "distinctInstance" })
}

// Lacks names the first resource that t needs and l has not free, in ECS's
// words, or "".
func (l *Ledger) Lacks(t *Task) string {
	cpu, memory := l.Free()
	taken := func(port int, sets ...[]int) bool {
		return slices.ContainsFunc(sets, func(s []int) bool { return slices.Contains(s, port) })
	}
	switch {
	case t.Needs.CPU > cpu:
		return "RESOURCE:CPU"
	case t.Needs.MemoryMiB > memory:
		return "RESOURCE:MEMORY"
	case t.Needs.GPUs > len(l.FreeGPUs()):
		return "RESOURCE:GPU"
	case t.Distinct() && slices.Contains(l.Held.Distinct, t.Group):
		return "distinctInstance"
	case slices.ContainsFunc(t.Needs.TCP, func(p int) bool { return taken(p, l.Held.TCP, l.Registered.TCP) }),
		slices.ContainsFunc(t.Needs.UDP, func(p int) bool { return taken(p, l.Held.UDP, l.Registered.UDP) }):
		return "RESOURCE:PORTS"
	}
	return ""
}

// admit charges the ledger and gives the task its instance (I2). The error
// names the condition that does not hold; nothing is changed then.
func admit(t *Task, l *Ledger, in *Instance, now time.Time) error {
	switch {
	case t.LastStatus != task.Provisioning || t.DesiredStatus != task.DesiredRunning:
		return fmt.Errorf("task %s is not waiting", t.ID)
	case t.Pinned != "" && t.Pinned != l.ID:
		return fmt.Errorf("task %s belongs to instance %s", t.ID, t.Pinned)
	case admissible(l) != "":
		return fmt.Errorf("instance %s takes no work: %s", l.ID, admissible(l))
	case l.Lacks(t) != "":
		return fmt.Errorf("instance %s has no room: %s", l.ID, l.Lacks(t))
	}
	held := t.wants(l)
	l.Held.add(held)
	l.Open++
	t.LastStatus = move(t.LastStatus, task.Admitted)
	t.Instance, t.Epoch, t.Incarnation = l.ID, l.Epoch, in.Incarnation
	t.Held, t.N, t.Shown, t.Kept = &held, 0, false, time.Time{}
	t.WaitingReason, t.AdmittedAt = "", now
	t.Dispatched, t.DispatchAt = 1, now.Add(dispatchWait(1))
	return nil
}

// wants is what the task takes of a ledger that has room for it.
func (r *Task) wants(l *Ledger) Held {
	held := Held{CPU: r.Needs.CPU, MemoryMiB: r.Needs.MemoryMiB, TCP: slices.Clone(r.Needs.TCP), UDP: slices.Clone(r.Needs.UDP)}
	if r.Needs.GPUs > 0 {
		held.GPUs = slices.Clone(l.FreeGPUs()[:r.Needs.GPUs])
	}
	if r.Distinct() {
		held.Distinct = []string{r.Group}
	}
	return held
}

// move is the table's answer; a move it does not know is a bug.
func move(from task.Status, on task.Event) task.Status {
	to, ok := task.Next(from, on)
	if !ok {
		panic(fmt.Sprintf("control: no transition from %s on %s", from, on))
	}
	return to
}

// dispatchWait is how long the sweep waits after the nth assign or stop.
func dispatchWait(n int) time.Duration {
	return min(15*time.Second<<min(n-1, 6), 10*time.Minute)
}

func (h *Held) add(o Held) {
	h.CPU += o.CPU
	h.MemoryMiB += o.MemoryMiB
	h.TCP = sorted(append(slices.Clone(h.TCP), o.TCP...))
	h.UDP = sorted(append(slices.Clone(h.UDP), o.UDP...))
	h.GPUs = sorted(append(slices.Clone(h.GPUs), o.GPUs...))
	h.Distinct = sorted(append(slices.Clone(h.Distinct), o.Distinct...))
}

func (h *Held) subtract(o Held) {
	h.CPU -= o.CPU
	h.MemoryMiB -= o.MemoryMiB
	h.TCP = without(h.TCP, o.TCP)
	h.UDP = without(h.UDP, o.UDP)
	h.GPUs = without(h.GPUs, o.GPUs)
	h.Distinct = without(h.Distinct, o.Distinct)
}

func sorted[T int | string](s []T) []T {
	if len(s) == 0 {
		return nil
	}
	slices.Sort(s)
	return s
}

func without[T comparable](s, gone []T) []T {
	out := slices.DeleteFunc(slices.Clone(s), func(x T) bool { return slices.Contains(gone, x) })
	if len(out) == 0 {
		return nil
	}
	return out
}

// release gives back what an open attempt holds, and counts it off (I4, I8).
func release(t *Task, l *Ledger) {
	if t.Held == nil || t.Instance != l.ID {
		panic(fmt.Sprintf("control: release of task %s, which holds nothing on instance %s", t.ID, l.ID))
	}
	l.Held.subtract(*t.Held)
	l.Open--
	if t.Epoch < l.Epoch {
		l.Stale--
	}
	t.Held = nil
}

// ending is why a task ends.
type ending struct {
	cause   task.Cause
	reason  string // "" for the cause's own
	detail  string // fills the %s of a cause's reason
	now     time.Time
	keepFor time.Duration // how long the stopped task stays describable
}

// finish makes a task STOPPED. An open one must have been released before.
func finish(t *Task, on task.Event, e ending) {
	t.LastStatus = move(t.LastStatus, on)
	t.DesiredStatus = task.DesiredStopped
	asked := t.StopCause != "" && (e.cause == task.ExitedCause || e.cause == "")
	if !asked { // an end that was asked for keeps the asker's reason
		t.StopCause, t.StoppedReason = e.cause, e.text()
	} else if t.StoppedReason == "" {
		t.StoppedReason = task.EndOf(t.StopCause).Reason
	}
	t.Containers = task.StopContainers(t.Containers, "", e.now)
	if t.StoppedAt.IsZero() {
		t.StoppedAt = e.now
	}
	if t.StoppingAt.IsZero() {
		t.StoppingAt = t.StoppedAt
	}
	t.Kept, t.WaitingReason, t.DispatchAt = time.Time{}, "", time.Time{}
	t.ExpiresAt = e.now.Add(e.keepFor)
}

func (e ending) text() string {
	if e.reason != "" {
		return e.reason
	}
	return task.EndOf(e.cause).Text(e.detail)
}

// withdraw ends a task that waits in the queue: nothing was held (I3).
func withdraw(t *Task, e ending) { finish(t, task.Withdrawn, e) }

// endOpen ends an open attempt and releases it, in one transaction (I4).
func endOpen(t *Task, l *Ledger, on task.Event, e ending) {
	release(t, l)
	finish(t, on, e)
}

// requeue ends a refused attempt: released, and back in the queue for another.
func requeue(t *Task, l *Ledger) {
	release(t, l)
	t.LastStatus = move(t.LastStatus, task.Refused)
	t.Attempt++
	t.Instance, t.Epoch, t.Incarnation, t.N = "", 0, "", 0
	t.Shown, t.Kept, t.AdmittedAt = false, time.Time{}, time.Time{}
	t.Dispatched, t.DispatchAt = 0, time.Time{}
	t.Containers, t.Health = nil, ""
	t.PullStartedAt, t.PullStoppedAt, t.StartedAt, t.StoppingAt = time.Time{}, time.Time{}, time.Time{}, time.Time{}
}

// raise gives an instance its next epoch: everything given under the old one is
// void until closed, kept or adopted (I8). It never repeats an epoch.
func raise(l *Ledger, lease *Lease, cause RaiseCause, stage Stage, reason string, now time.Time) {
	l.Epoch = max(l.Epoch+1, now.Unix())
	l.Stale, l.Cause, l.RaisedAt, l.LostBy = l.Open, cause, now, ""
	l.Connected = false
	lease.Epoch, lease.CordonedUntil = l.Epoch, time.Time{}
	setStage(lease, stage, reason, now)
}

func setStage(lease *Lease, stage Stage, reason string, now time.Time) {
	if lease.Stage != stage {
		lease.StageSince = now
	}
	lease.Stage, lease.StageReason = stage, reason
}

// adopt takes a task of an older epoch into the current one for incarnation. A
// report of that incarnation may have overtaken the inventory: its n stands (I5).
func adopt(t *Task, l *Ledger, incarnation string, n int64) {
	restamp(t, l)
	if t.Incarnation == incarnation {
		n = max(n, t.N)
	}
	t.Incarnation, t.N, t.Kept = incarnation, n, time.Time{}
}

// restamp moves an open task of an older epoch into the ledger's.
func restamp(t *Task, l *Ledger) {
	if t.Epoch < l.Epoch {
		l.Stale--
	}
	t.Epoch = l.Epoch
}
