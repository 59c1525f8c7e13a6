package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
)

// cordoned says whether a host that EC2 said is stopping takes no work though it
// still beats. It ends by itself: a host that goes on after all is used again.
func (r *Lease) cordoned(now time.Time) bool { return now.Before(r.CordonedUntil) }

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
		if l.EC2 == h.EC2InstanceID && h.At.After(l.Sent) {
			errs = append(errs, c.hostState(ctx, l.ID, h))
		}
	}
	return errors.Join(errs...)
}

// hostState takes EC2's word for one instance, conditional on its lease, as read
// here, being older. EC2 says it once: a last beat that is taken in meanwhile must not
// make it void.
func (c *Control) hostState(ctx context.Context, id string, h HostState) error {
	over := h.State == "terminated" || h.State == "stopped"
	if !over && h.State != "stopping" && h.State != "shutting-down" {
		return nil
	}
	err := c.decide(ctx, fmt.Sprintf("take in that the host of instance %s is %s", id, h.State), func() ([]Write, error) {
		lease, ledger := &Lease{ID: id}, &Ledger{ID: id}
		if err := c.Store.Load(ctx, lease, ledger); err != nil {
			return nil, err
		}
		if lease.Version == 0 || ledger.Version == 0 || lease.EC2 != h.EC2InstanceID || !h.At.After(lease.Sent) {
			return nil, errGiveUp
		}
		switch {
		case lease.Stage == StageLost:
			return confirmEnd(lease, ledger, h, c.Now())
		case over:
			raise(ledger, lease, ReapedCause, StageLost, fmt.Sprintf("LOST: EC2 instance %s", h.State), c.Now())
			if ledger.LostBy = task.HostStoppedCause; h.State == "terminated" {
				ledger.EndCause, ledger.LostBy = task.HostGoneCause, ""
			}
		default: // SUSPECT or FENCED, it is not to become CONNECTED by its next beat
			if lease.CordonedUntil = c.Now().Add(c.Setting.ReapAfter); lease.Stage == StageConnected {
				setStage(lease, StageSuspect, "EC2 instance "+h.State, c.Now())
				ledger.Connected = false
			}
		}
		return []Write{Put(lease), Put(ledger)}, nil
	})
	if err != nil || !over {
		return err
	}
	return c.CloseOlder(ctx, id)
}

// confirmEnd notes that a LOST instance is gone for good: what is still open
// there, kept or not, is closed whatever the policy, and it need not be waited for.
func confirmEnd(lease *Lease, ledger *Ledger, h HostState, now time.Time) ([]Write, error) {
	if h.State != "terminated" || ledger.Status == Inactive || ledger.EndCause != "" {
		return nil, errGiveUp
	}
	ledger.EndCause = task.HostGoneCause
	if ledger.kept() > 0 { // those are of its own epoch, which is over, too
		raise(ledger, lease, ReapedCause, StageLost, "LOST: EC2 instance terminated", now)
		return []Write{Put(ledger), Put(lease)}, nil
	}
	return []Write{Put(ledger), Check(lease)}, nil
}
