package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/logkey"
	"github.com/longshore-run/longshore/shared/task"
)

const (
	closeAtOnce      = 40
	lostUntilRetired = 7 * 24 * time.Hour
	rememberedFor    = 7 * 24 * time.Hour
	inboxOutlives    = 24 * time.Hour
)

// CloseOlder ends the open tasks that a reaped instance had under older epochs,
// some at a time, each chunk with its own count-down of stale (I8). It can be
// killed anywhere and run again. It does nothing for an instance whose epoch
// was raised by a new incarnation: there an inventory decides.
func (c *Control) CloseOlder(ctx context.Context, instance string) error {
	after := ""
	for {
		ids, next, err := c.Store.TaskIDs(ctx, TaskQuery{OnInstance: instance}, Page{After: after, Limit: closeAtOnce})
		if err != nil {
			return fmt.Errorf("list the open tasks of instance %s: %w", instance, err)
		}
		done, err := c.closeChunk(ctx, instance, ids)
		if err != nil || done {
			return err
		}
		if next == "" { // a lagging index may hide some: the next sweep goes on
			return nil
		}
		after = next
	}
}

// closeChunk ends those of ids that are open there under an older epoch; done
// says that nothing is left to close.
func (c *Control) closeChunk(ctx context.Context, instance string, ids []string) (done bool, err error) {
	var ended []*Task
	ledger := &Ledger{ID: instance}
	err = c.decide(ctx, "close tasks of instance "+instance, func() ([]Write, error) {
		ended, done = nil, false
		in := &Instance{ID: instance}
		tasks := make([]*Task, len(ids))
		for i, id := range ids {
			tasks[i] = &Task{ID: id}
		}
		if err := c.Store.Load(ctx, append(recordsOf(tasks), ledger, in)...); err != nil {
			return nil, err
		}
		if ledger.Version == 0 || ledger.Stale == 0 || ledger.Cause != ReapedCause {
			done = true
			return nil, errGiveUp
		}
		lives := lives{}
		e := c.closing(ledger, in)
		for _, t := range tasks {
			if !t.LastStatus.Open() || t.Instance != instance || t.Epoch >= ledger.Epoch {
				continue
			}
			if err := lives.down(ctx, c.Store, t); err != nil {
				return nil, err
			}
			endOpen(t, ledger, task.Closed, e)
			ended = append(ended, t)
		}
		if len(ended) == 0 {
			return nil, errGiveUp
		}
		done = ledger.Stale == 0
		writes := []Write{Put(ledger)}
		for _, t := range ended {
			writes = append(writes, Put(t))
		}
		return append(writes, lives.writes()...), nil
	})
	if err != nil {
		return false, err
	}
	for _, t := range ended {
		c.Log.WarnContext(ctx, "task closed", logkey.Task, t.ID, logkey.Instance, instance, logkey.Reason, t.StoppedReason)
		if t.Service != "" {
			c.kickServices(ctx, Kick{Cluster: t.Cluster, Service: t.Service, Tasks: []string{t.ID}})
		}
	}
	return done, nil
}

// closing is why an instance's tasks end: that it was lost, or what is known of
// the host's end.
func (c *Control) closing(l *Ledger, in *Instance) ending {
	e := ending{cause: task.LostCause, now: c.Now(), keepFor: c.Setting.StoppedTasksFor}
	if l.EndCause != "" {
		e.cause, e.detail = l.EndCause, in.EC2InstanceID
	}
	return e
}

// lives are the live counts that one transaction changes, each once.
type lives map[string]*Live

// down counts a task's service down, once for each task given.
func (s lives) down(ctx context.Context, store Store, t *Task) error {
	if t.Service == "" {
		return nil
	}
	live := &Live{Cluster: t.Cluster, Service: t.Service}
	if s[live.Key()] == nil {
		if err := store.Load(ctx, live); err != nil {
			return err
		}
		s[live.Key()] = live
	}
	if live = s[live.Key()]; live.Version > 0 {
		live.Live--
	}
	return nil
}

func (s lives) writes() []Write {
	var out []Write
	for _, live := range s {
		if live.Version > 0 {
			out = append(out, Put(live))
		}
	}
	return out
}

// retire ends the life of an instance that is gone for good: INACTIVE when LOST
// for 7 days with nothing open; its inbox and its lease go a day later, its
// epoch is remembered for 7 days more.
func (c *Control) retire(ctx context.Context, l Lease) error {
	now := c.Now()
	lease, ledger, in := &Lease{ID: l.ID}, &Ledger{ID: l.ID}, &Instance{ID: l.ID}
	removed := false
	err := c.decide(ctx, "retire instance "+l.ID, func() ([]Write, error) {
		removed = false
		if err := c.Store.Load(ctx, lease, ledger, in); err != nil {
			return nil, err
		}
		if lease.Version == 0 || lease.Stage != StageLost || ledger.Open > 0 {
			return nil, errGiveUp
		}
		switch {
		case ledger.Status == Inactive && !in.GoneAt.IsZero() && now.Sub(in.GoneAt) >= inboxOutlives:
			removed = true
			return []Write{Delete(lease), Check(ledger)}, nil
		case ledger.Status == Inactive && !in.GoneAt.IsZero():
			return nil, errGiveUp
		case ledger.Status != Inactive && ledger.EndCause == "" && now.Sub(lease.StageSince) < lostUntilRetired:
			return nil, errGiveUp
		}
		ledger.Status, ledger.Connected = Inactive, false
		in.GoneAt = now
		in.ExpiresAt, ledger.ExpiresAt = now.Add(rememberedFor), now.Add(rememberedFor)
		return []Write{Put(ledger), Put(in), Check(lease)}, nil
	})
	if err == nil && removed {
		err = errors.Join(err, c.Queue.RemoveInbox(ctx, l.ID))
	}
	return err
}

// HostState is what EC2 says of an instance.
type HostState struct {
	EC2InstanceID string
	State         string // stopping, stopped, terminated …
	At            time.Time
}

// IngestHostState takes EC2's word for the end of a host: terminated or stopped
// after the last heartbeat is final at once, outside the brake; stopping takes
// no new work.
func (c *Control) IngestHostState(ctx context.Context, h HostState) error {
	if h.EC2InstanceID == "" {
		return fault.Field("detail.instance-id", "must be set")
	}
	scan, err := c.Store.Leases(ctx)
	if err != nil {
		return fmt.Errorf("find the lease of %s: %w", h.EC2InstanceID, err)
	}
	var errs []error
	for _, l := range scan.Leases {
		if l.EC2 == h.EC2InstanceID && l.Stage != StageLost && h.At.After(l.Sent) {
			errs = append(errs, c.hostState(ctx, l, h))
		}
	}
	return errors.Join(errs...)
}

func (c *Control) hostState(ctx context.Context, judged Lease, h HostState) error {
	now := c.Now()
	switch h.State {
	case "terminated", "stopped":
		if err := c.mark(ctx, judged, func(lease *Lease, ledger *Ledger) bool {
			raise(ledger, lease, ReapedCause, StageLost, fmt.Sprintf("LOST: EC2 instance %s", h.State), now)
			if h.State == "terminated" {
				ledger.EndCause = task.HostGoneCause
			}
			return true
		}); err != nil {
			return err
		}
		return c.CloseOlder(ctx, judged.ID)
	case "stopping", "shutting-down":
		return c.mark(ctx, judged, func(lease *Lease, ledger *Ledger) bool {
			if lease.Stage != StageConnected {
				return false
			}
			setStage(lease, StageSuspect, "EC2 instance "+h.State, now)
			ledger.Connected = false
			return true
		})
	}
	return nil
}
