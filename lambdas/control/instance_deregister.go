package control

import (
	"context"
	"fmt"
	"time"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/logkey"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

// inactiveFor is how long an instance is remembered after it was deregistered,
// so that its epoch is.
const inactiveFor = 7 * 24 * time.Hour

// DeregisterContainerInstance makes an instance INACTIVE. With open tasks it
// takes force: its epoch is raised, so that everything given to it is void, and
// the reaper closes the tasks; its agent is told to stop them and to end. An
// instance with nothing open has no lease any more.
func (c *Control) DeregisterContainerInstance(ctx context.Context, cluster, id string, force bool) (*InstanceView, error) {
	k, v := &Cluster{Name: cluster}, &InstanceView{}
	v.Instance.ID, v.Ledger.ID, v.Lease.ID = id, id, id
	err := c.decide(ctx, "deregister instance "+id, func() ([]Write, error) {
		if err := c.Store.Load(ctx, k, &v.Instance, &v.Ledger, &v.Lease); err != nil {
			return nil, err
		}
		l := &v.Ledger
		switch {
		case k.Version == 0:
			return nil, clusterNotFound()
		case v.Instance.Version == 0 || l.Version == 0 || v.Cluster != cluster:
			return nil, instanceNotFound()
		case l.Status == Inactive:
			return nil, errGiveUp
		case l.Open > 0 && !force:
			return nil, fault.New(fault.Invalid, "Found running tasks on the instance.").WithCode(InvalidParameterException)
		}
		return c.deregister(v), nil
	})
	if err != nil {
		return nil, err
	}
	c.dismiss(ctx, v)
	return v, nil
}

// deregister changes an instance's records to those of one that is gone.
func (c *Control) deregister(v *InstanceView) []Write {
	now := c.Now()
	raise(&v.Ledger, &v.Lease, ReapedCause, StageLost, "deregistered", now)
	v.Ledger.Status, v.Ledger.EndCause = Inactive, task.ForcedDrainCause
	v.GoneAt, v.ExpiresAt = now, now.Add(inactiveFor)
	writes := []Write{Put(&v.Instance), Put(&v.Ledger)}
	switch {
	case v.Lease.Version == 0:
	case v.Ledger.Stale == 0:
		writes = append(writes, Delete(&v.Lease))
	default: // the reaper finds what it has to close by the lease
		writes = append(writes, Put(&v.Lease))
	}
	return writes
}

// dismiss tells the agent of a deregistered instance to stop what it has and to
// end. It is repeated when the call is; a beat of the agent is answered alike.
func (c *Control) dismiss(ctx context.Context, v *InstanceView) {
	if v.Incarnation == "" {
		return
	}
	closed, err := c.openOn(ctx, &v.Ledger)
	if err != nil {
		c.Log.WarnContext(ctx, "tasks of a deregistered instance not listed; its agent learns of them by its beats", logkey.Instance, v.ID, logkey.Error, err)
	}
	c.send(ctx, &wire.Fence{
		Header: wire.Header{Instance: v.ID}, Incarnation: v.Incarnation, Epoch: v.Ledger.Epoch,
		Closed: closed, Terminal: true, Reason: "deregistered",
	})
}

// openOn lists the open attempts on an instance, as far as the index shows them.
func (c *Control) openOn(ctx context.Context, l *Ledger) (all []wire.Attempt, err error) {
	if l.Open == 0 {
		return nil, nil
	}
	ids, _, err := c.Store.TaskIDs(ctx, TaskQuery{OnInstance: l.ID}, Page{})
	if err != nil {
		return nil, fmt.Errorf("list tasks on instance %s: %w", l.ID, err)
	}
	tasks := tasksOf(ids)
	if err := load(ctx, c.Store, tasks); err != nil {
		return nil, fmt.Errorf("load tasks on instance %s: %w", l.ID, err)
	}
	for _, t := range tasks {
		if t.LastStatus.Open() && t.Instance == l.ID {
			all = append(all, wire.Attempt{Task: t.ID, Attempt: t.Attempt})
		}
	}
	return all, nil
}
