package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/longshore-run/longshore/lambdas/internal/placement"
	"github.com/longshore-run/longshore/shared/logkey"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

const (
	stageRestored = "RESTORED: to echo its epoch"
	// reasonRestored is why tasks wait while an instance of their cluster has not been
	// heard since the tables were restored: it may run them.
	reasonRestored = "RESTORED"
)

// Raised is what RaiseEpochs came to.
type Raised struct {
	Raised  int `json:"raised"`
	Skipped int `json:"skipped"` // done since then, without an agent, or INACTIVE
	Left    int `json:"left"`    // there was no time for: run it again with the same time
}

// RaiseEpochs makes tables that were restored from a backup safe to work with. The
// machines have lived on since: what runs there may have no item here, or an older
// one. So every instance begins a new epoch, from which on the tables' memory
// counts: what was given under an older one is unknown rather than closed (I12),
// the first inventory that echoes it decides each open task, and admission pauses
// until each instance has echoed or is LOST. Each lease counts from now: the
// silence is ours. It can be run again with the same time, and goes on.
func (c *Control) RaiseEpochs(ctx context.Context, since time.Time) (*Raised, error) {
	out := &Raised{}
	clusters, err := everything(ctx, c.Store.Clusters)
	if err != nil {
		return nil, fmt.Errorf("raise epochs: list clusters: %w", err)
	}
	for _, cluster := range clusters {
		if err := c.announceRestore(ctx, cluster); err != nil {
			return nil, err
		}
	}
	var ids []string
	err = pages(ctx, c.Store.ScanLedgers, func(l *Ledger) {
		if l.Status == Inactive || !l.RaisedAt.Before(since) {
			out.Skipped++
			return
		}
		ids = append(ids, l.ID)
	})
	if err != nil {
		return nil, fmt.Errorf("raise epochs: scan ledgers: %w", err)
	}
	var errs []error
	for i, id := range ids {
		if outOfTime(ctx) {
			out.Left = len(ids) - i
			break
		}
		raised, err := c.raiseRestored(ctx, id, since)
		switch {
		case err != nil:
			out.Left++
			errs = append(errs, err)
		case raised:
			out.Raised++
		default:
			out.Skipped++
		}
	}
	c.Log.WarnContext(ctx, "epochs raised after a restore of the tables", logkey.Count, out.Raised, "skipped", out.Skipped, "left", out.Left)
	return out, errors.Join(errs...)
}

func (c *Control) raiseRestored(ctx context.Context, id string, since time.Time) (raised bool, err error) {
	v := &InstanceView{}
	v.Instance.ID, v.Ledger.ID, v.Lease.ID = id, id, id
	err = c.decide(ctx, "raise the epoch of instance "+id, func() ([]Write, error) {
		raised = false
		if err := c.Store.Load(ctx, &v.Instance, &v.Ledger, &v.Lease); err != nil {
			return nil, err
		}
		now := c.Now()
		if v.Ledger.Version == 0 || v.Ledger.Status == Inactive || v.Foreign || !v.Ledger.RaisedAt.Before(since) {
			return nil, errGiveUp
		}
		v.ensureLease(now)
		raise(&v.Ledger, &v.Lease, IncarnationCause, StageFenced, stageRestored, now)
		v.Ledger.SinceEpoch, v.Ledger.EndCause = v.Ledger.Epoch, ""
		v.Lease.Impaired, v.Lease.ImpairedWhy, v.Lease.Inventory = time.Time{}, "", ""
		if now.After(v.Lease.Sent) {
			v.Lease.Sent = now
		}
		raised = true
		return []Write{Put(&v.Ledger), Put(&v.Lease), Check(&v.Instance)}, nil
	})
	return raised && err == nil, err
}

// unheard says whether the tables are younger here than what the instance runs,
// and it has not shown that yet: they were restored, and it has not echoed.
func (l *Ledger) unheard() bool {
	return l.Cause == IncarnationCause && l.SinceEpoch == l.Epoch && l.Status != Inactive
}

// pause takes a plan back while any instance of the cluster may run what waits.
func (p *pass) pause(ctx context.Context, out *placement.Output) error {
	if err := p.readRest(ctx, p.state.Cluster); err != nil {
		return err
	}
	n := 0
	for _, in := range p.instances {
		if p.ledgers[in.ID].unheard() {
			n++
		}
	}
	if p.heard = n == 0; p.heard {
		return nil
	}
	p.c.Log.WarnContext(ctx, "nothing is admitted: instances have not been heard since the tables were restored", logkey.Cluster, p.state.Cluster, logkey.Count, n)
	out.Assign, out.Reasons = nil, map[string]string{}
	for id := range p.tasks {
		out.Reasons[id] = reasonRestored
	}
	return nil
}

// announceRestore lets admission ask of every instance of a cluster whether it was heard.
func (c *Control) announceRestore(ctx context.Context, cluster string) error {
	q := &QueueState{Cluster: cluster}
	return c.decide(ctx, "pause admission in cluster "+cluster, func() ([]Write, error) {
		if err := c.Store.Load(ctx, q); err != nil {
			return nil, err
		}
		if q.Restored {
			return nil, errGiveUp
		}
		q.Restored = true
		return []Write{Put(q)}, nil
	})
}

// behind says whether the machine knows more of a task than the tables do, which
// is only after they were restored.
func behind(t *Task, e wire.Entry) bool {
	return e.Attempt > t.Attempt || e.Attempt == t.Attempt && t.LastStatus == task.Provisioning
}

// takeable says whether a task that waits here is to be taken in where it is:
// it was admitted there after the backup.
func takeable(t *Task, e wire.Entry, l *Ledger) bool {
	return t.Version > 0 && t.LastStatus == task.Provisioning && behind(t, e) && e.Epoch < l.SinceEpoch && (t.Pinned == "" || t.Pinned == l.ID)
}

// listedAnew is the entry, of its last attempt, by which a waiting task is to be taken in.
func (j *judgement) listedAnew(t *Task) (last wire.Entry, ok bool) {
	if t.LastStatus != task.Provisioning {
		return last, false
	}
	for _, e := range j.m.Inventory {
		if e.Task == t.ID && takeable(t, e, j.ledger) && (!ok || e.Attempt > last.Attempt) {
			last, ok = e, true
		}
	}
	return last, ok
}

// crowded says whether what the task has there is still given to another, which
// this inventory or the next shows to be gone. Processor and memory may be over.
// GPUs go by their ids, as the entry tells them: without, nobody knows which are taken.
func crowded(t *Task, l *Ledger, e wire.Entry) bool {
	if t.Needs.GPUs > 0 && (len(e.GPUs) != t.Needs.GPUs || len(without(e.GPUs, l.FreeGPUs())) > 0) {
		return true
	}
	ask := *t
	ask.Needs.CPU, ask.Needs.MemoryMiB = 0, 0
	room := *l
	room.Held.CPU, room.Held.MemoryMiB = 0, 0
	return room.Lacks(&ask) != ""
}

// takeIn charges the ledger for a task that its instance has already, as admission
// did before the tables went back. Its report tells the rest.
func takeIn(t *Task, l *Ledger, e wire.Entry, incarnation string, now time.Time) {
	held := t.wants(l)
	if held.GPUs != nil { // it has its own already
		held.GPUs = sorted(slices.Clone(e.GPUs))
	}
	l.Held.add(held)
	l.Open++
	l.EndCause = "" // whoever has a task that runs has not ended
	t.LastStatus = move(t.LastStatus, task.Admitted)
	t.Instance, t.Epoch, t.Incarnation, t.Attempt = l.ID, l.Epoch, incarnation, e.Attempt
	t.Held, t.N, t.Shown, t.Kept = &held, 0, true, time.Time{}
	t.WaitingReason, t.AdmittedAt = "", now
	t.Dispatched, t.DispatchAt = 1, now.Add(dispatchWait(1))
}
