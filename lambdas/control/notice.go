package control

import (
	"maps"
	"slices"
	"time"

	"github.com/longshore-run/longshore/shared/task"
)

// This file says which changes of records are state changes that subscribers are
// told of: functions of the record before and after, and of nothing else.

// Change is what one commit did to one record, as a table's stream tells it.
type Change struct {
	// Old and New are the record before and after; nil where it was not there.
	Old, New Record
	// At is when it was committed.
	At time.Time
	// Expired says that the store removed it because its time was over.
	Expired bool
}

// noteworthy says whether a change is a state change.
func noteworthy(c Change) bool {
	if c.New == nil || c.Expired {
		return false // what is forgotten has ended before
	}
	switch r := c.New.(type) {
	case *Task:
		old, _ := c.Old.(*Task)
		return old == nil || taskChanged(old, r)
	case *Instance:
		old, _ := c.Old.(*Instance)
		return old == nil || instanceChanged(old, r)
	case *Ledger:
		old, _ := c.Old.(*Ledger)
		return old == nil || ledgerChanged(old, r)
	case *ServiceEvents:
		old, _ := c.Old.(*ServiceEvents)
		return len(newEvents(old, r)) > 0
	case *Schedule:
		old, _ := c.Old.(*Schedule)
		return len(newlyMissed(old, r)) > 0
	}
	return false
}

// taskChanged: everything by which DescribeTasks shows how a task is doing. Not
// what the control plane notes for itself (dispatches, who has shown it, numbers
// of reports), nor why it waits, which each admission pass may see differently,
// nor its tags.
func taskChanged(a, b *Task) bool {
	return a.LastStatus != b.LastStatus || a.DesiredStatus != b.DesiredStatus || a.Attempt != b.Attempt || a.Instance != b.Instance ||
		a.Health != b.Health || a.StopCause != b.StopCause || a.StoppedReason != b.StoppedReason || a.Kept.IsZero() != b.Kept.IsZero() ||
		!sameTimes(a, b) || !slices.EqualFunc(a.Containers, b.Containers, alike)
}

func sameTimes(a, b *Task) bool {
	times := func(t *Task) []time.Time {
		return []time.Time{t.PullStartedAt, t.PullStoppedAt, t.StartedAt, t.StoppingAt, t.ExecStoppedAt, t.StoppedAt}
	}
	return slices.EqualFunc(times(a), times(b), time.Time.Equal)
}

func alike(a, b task.Container) bool {
	return a.Name == b.Name && a.Status == b.Status && sameCode(a.ExitCode, b.ExitCode) && a.Reason == b.Reason && a.Health == b.Health &&
		a.RuntimeID == b.RuntimeID && a.ImageDigest == b.ImageDigest && slices.Equal(a.Bindings, b.Bindings) && slices.Equal(a.GPUs, b.GPUs)
}

func sameCode(a, b *int) bool { return a == b || a != nil && b != nil && *a == *b }

// instanceChanged: what an instance is and carries. Who its agent is, by
// incarnation, is between it and us.
func instanceChanged(a, b *Instance) bool {
	return a.Cluster != b.Cluster || a.EC2InstanceID != b.EC2InstanceID || a.Zone != b.Zone || a.AgentVersion != b.AgentVersion ||
		a.AgentHash != b.AgentHash || a.DockerVersion != b.DockerVersion || !a.RegisteredAt.Equal(b.RegisteredAt) || !maps.Equal(a.Attributes, b.Attributes) || !maps.Equal(a.Custom, b.Custom)
}

// ledgerChanged: its status, whether its agent is connected and its host has room, what it has and what
// remains; and its epoch, as a raise is how an instance is lost and comes back.
func ledgerChanged(a, b *Ledger) bool {
	return a.Status != b.Status || a.Connected != b.Connected || a.Epoch != b.Epoch || a.NoRoom != b.NoRoom || !sameHeld(a.Registered, b.Registered) || !sameHeld(a.Held, b.Held)
}

func sameHeld(a, b Held) bool {
	return a.CPU == b.CPU && a.MemoryMiB == b.MemoryMiB && slices.Equal(a.TCP, b.TCP) && slices.Equal(a.UDP, b.UDP) && slices.Equal(a.GPUs, b.GPUs)
}

// newEvents are what a service told with a change, oldest first, as far as it is
// for the bus: what has a name there.
func newEvents(old, r *ServiceEvents) []ServiceEvent {
	var out []ServiceEvent
	for _, e := range slices.Backward(r.Events) {
		known := old != nil && slices.ContainsFunc(old.Events, func(o ServiceEvent) bool { return o.ID == e.ID })
		if e.Name != "" && !known {
			out = append(out, e)
		}
	}
	return out
}

// newlyMissed are the runs that a change of a schedule says are missed, oldest first.
func newlyMissed(old, r *Schedule) []ScheduledRun {
	var out []ScheduledRun
	for _, run := range slices.Backward(r.Runs) {
		if run.Outcome != OutcomeMissed {
			continue
		}
		if old != nil {
			if before := old.run(run.At); before != nil && before.Outcome == OutcomeMissed {
				continue
			}
		}
		out = append(out, run)
	}
	return out
}
