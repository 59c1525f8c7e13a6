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

// DeregisterContainerInstance makes an instance INACTIVE. With open tasks it
// takes force: its epoch is raised, so that everything given to it is void, the
// tasks are closed, and its agent is told to stop what it has and to end; what
// this call does not close the reaper does. The lease stays until the reaper
// removes the instance's inbox.
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
	raise(&v.Ledger, &v.Lease, ReapedCause, StageLost, "DEREGISTERED", now)
	v.Ledger.drain(&v.Lease, false, now)
	v.Ledger.forgetHost(&v.Lease)
	v.Ledger.Status, v.Ledger.EndCause = Inactive, task.ForcedDrainCause
	v.GoneAt = now
	if v.Ledger.Open == 0 { // else its expiry is set once all is closed: what is open never expires
		v.ExpiresAt, v.Ledger.ExpiresAt = now.Add(rememberedFor), now.Add(rememberedFor)
	}
	if v.Foreign { // without an agent there is nothing to close and no inbox to remove
		v.Lease = Lease{ID: v.ID}
		return []Write{Put(&v.Instance), Put(&v.Ledger)}
	}
	v.ensureLease(now)
	return []Write{Put(&v.Instance), Put(&v.Ledger), Put(&v.Lease)}
}

// ensureLease fills a lease that does not exist: the reaper finds by it what is
// to be closed.
func (v *InstanceView) ensureLease(now time.Time) {
	if v.Lease.Version == 0 {
		v.Lease.Cluster, v.Lease.Zone, v.Lease.EC2, v.Lease.Sent = v.Cluster, v.Zone, v.EC2InstanceID, now
	}
}

// dismiss closes what a deregistered instance had, and tells its agent to stop
// that. The agent's next beat, which follows a fence at once, is answered by the
// fence that ends it: there its own inventory says what is to be named. What
// fails here is made up by beats and by the reaper.
func (c *Control) dismiss(ctx context.Context, v *InstanceView) {
	closed, err := c.openOn(ctx, &v.Ledger)
	if err == nil {
		err = c.CloseOlder(ctx, v.ID)
	}
	if err != nil {
		c.Log.WarnContext(ctx, "tasks of a deregistered instance not closed; the reaper closes them", logkey.Instance, v.ID, logkey.Error, err)
	}
	if v.Incarnation != "" {
		c.send(ctx, &wire.Fence{
			Header: wire.Header{Instance: v.ID}, Incarnation: v.Incarnation, Epoch: v.Ledger.Epoch,
			Closed: closed, Reason: v.Lease.StageReason,
		})
	}
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
