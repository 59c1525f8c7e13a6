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
			errs = append(errs, c.hostState(ctx, l, h))
		}
	}
	return errors.Join(errs...)
}

func (c *Control) hostState(ctx context.Context, judged Lease, h HostState) error {
	now := c.Now()
	if judged.Stage == StageLost {
		if h.State != "terminated" {
			return nil
		}
		return c.confirmEnd(ctx, judged)
	}
	switch h.State {
	case "terminated", "stopped":
		if err := c.mark(ctx, judged, func(lease *Lease, ledger *Ledger) bool {
			raise(ledger, lease, ReapedCause, StageLost, fmt.Sprintf("LOST: EC2 instance %s", h.State), now)
			if ledger.LostBy = task.HostStoppedCause; h.State == "terminated" {
				ledger.EndCause, ledger.LostBy = task.HostGoneCause, ""
			}
			return true
		}); err != nil {
			return err
		}
		return c.CloseOlder(ctx, judged.ID)
	case "stopping", "shutting-down":
		return c.mark(ctx, judged, func(lease *Lease, ledger *Ledger) bool {
			if lease.CordonedUntil = now.Add(c.Setting.ReapAfter); lease.Stage == StageConnected {
				setStage(lease, StageSuspect, "EC2 instance "+h.State, now)
				ledger.Connected = false
			}
			return true // SUSPECT or FENCED, it is not to become CONNECTED by its next beat
		})
	}
	return nil
}

// confirmEnd notes that a LOST instance is gone for good: what is still open
// there, kept or not, is closed whatever the policy, and it need not be waited for.
func (c *Control) confirmEnd(ctx context.Context, judged Lease) error {
	lease, ledger := &Lease{ID: judged.ID}, &Ledger{ID: judged.ID}
	err := c.decide(ctx, "confirm the end of instance "+judged.ID, func() ([]Write, error) {
		if err := c.Store.Load(ctx, lease, ledger); err != nil {
			return nil, err
		}
		if lease.Version == 0 || lease.Stage != StageLost || !lease.Sent.Equal(judged.Sent) ||
			ledger.Version == 0 || ledger.Status == Inactive || ledger.EndCause != "" {
			return nil, errGiveUp
		}
		ledger.EndCause = task.HostGoneCause
		if ledger.kept() > 0 { // those are of its own epoch, which is over, too
			raise(ledger, lease, ReapedCause, StageLost, "LOST: EC2 instance terminated", c.Now())
			return []Write{Put(ledger), Put(lease)}, nil
		}
		return []Write{Put(ledger), Check(lease)}, nil
	})
	if err != nil {
		return err
	}
	return c.CloseOlder(ctx, judged.ID)
}
