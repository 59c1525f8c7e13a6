package control

import (
	"context"

	"github.com/longshore-run/longshore/shared/logkey"
	"github.com/longshore-run/longshore/shared/task"
)

// FenceContainerInstance takes an operator's word that an instance's host is
// off: LOST at once, outside the brake, with a raised epoch, and every open task
// ends, whatever the policy for disconnection. What this call does not close the
// reaper does. The word is final for the tasks alone: an instance that comes back
// after all is fenced like any that was lost, and is used again.
func (c *Control) FenceContainerInstance(ctx context.Context, cluster, id string) (*InstanceView, error) {
	k, v := &Cluster{Name: cluster}, &InstanceView{}
	v.Instance.ID, v.Ledger.ID, v.Lease.ID = id, id, id
	err := c.decide(ctx, "fence instance "+id, func() ([]Write, error) {
		if err := c.Store.Load(ctx, k, &v.Instance, &v.Ledger, &v.Lease); err != nil {
			return nil, err
		}
		now := c.Now()
		switch {
		case k.Version == 0:
			return nil, clusterNotFound()
		case v.Instance.Version == 0 || v.Ledger.Version == 0 || v.Cluster != cluster || expired(v.ExpiresAt, now):
			return nil, instanceNotFound()
		case v.Ledger.Status == Inactive || v.endConfirmed():
			return nil, errGiveUp
		case v.Foreign:
			return nil, invalid("containerInstance", "was registered without an agent, so nothing runs there that could end; deregister it")
		}
		v.ensureLease(now)
		raise(&v.Ledger, &v.Lease, ReapedCause, StageLost, "LOST: confirmed off by an operator", now)
		if v.Ledger.EndCause == "" {
			v.Ledger.EndCause = task.ConfirmedOff
		}
		return []Write{Put(&v.Ledger), Put(&v.Lease), Check(&v.Instance)}, nil
	})
	if err != nil {
		return nil, err
	}
	if err := c.CloseOlder(ctx, id); err != nil {
		c.Log.WarnContext(ctx, "tasks of a fenced instance not closed; the reaper closes them", logkey.Instance, id, logkey.Error, err)
	}
	found, _, err := c.DescribeContainerInstances(ctx, cluster, []string{id})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, instanceNotFound()
	}
	return &found[0], nil
}

// endConfirmed says whether the host's end is known and nothing was given or
// kept since: a further word for it changes nothing.
func (v *InstanceView) endConfirmed() bool {
	return v.Lease.Stage == StageLost && v.Ledger.EndCause != "" && v.Ledger.Stale == v.Ledger.Open
}
