package control

import (
	"context"
	"fmt"
	"time"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
)

const (
	lostUntilRetired = 7 * 24 * time.Hour
	rememberedFor    = 7 * 24 * time.Hour
	inboxOutlives    = 24 * time.Hour
)

// retirable says whether retire has anything to do, as far as a lease and a
// ledger tell.
func retirable(lease Lease, l *Ledger, now time.Time) bool {
	switch {
	case l.Open > 0:
		return false
	case l.Version == 0:
		return true
	case l.Status == Inactive: // its expiry was set when it became so
		return l.ExpiresAt.IsZero() || !now.Before(l.ExpiresAt.Add(inboxOutlives-rememberedFor))
	}
	return l.neverReturns() || now.Sub(lease.StageSince) >= lostUntilRetired
}

// neverReturns says whether the host is known not to come back: EC2 terminated
// it. One that an operator saw off may be switched on again.
func (l *Ledger) neverReturns() bool { return l.EndCause == task.HostGoneCause }

// retire ends the life of an instance that is gone for good: INACTIVE when LOST
// for 7 days with nothing open; its inbox and its lease go a day later, its
// epoch is remembered for 7 days after it became INACTIVE.
func (c *Control) retire(ctx context.Context, l Lease) error {
	now := c.Now()
	lease, ledger, in := &Lease{ID: l.ID}, &Ledger{ID: l.ID}, &Instance{ID: l.ID}
	over := false
	err := c.decide(ctx, "retire instance "+l.ID, func() ([]Write, error) {
		over = false
		if err := c.Store.Load(ctx, lease, ledger, in); err != nil {
			return nil, err
		}
		if lease.Version == 0 || lease.Stage != StageLost || ledger.Open > 0 {
			return nil, errGiveUp
		}
		switch {
		case ledger.Version == 0, ledger.Status == Inactive:
			over = ledger.Version == 0 || now.Sub(in.GoneAt) >= inboxOutlives
			return nil, errGiveUp
		case !ledger.neverReturns() && now.Sub(lease.StageSince) < lostUntilRetired:
			return nil, errGiveUp
		}
		ledger.Status, ledger.Connected, ledger.DrainingSince = Inactive, false, time.Time{}
		in.GoneAt = now
		in.ExpiresAt, ledger.ExpiresAt = now.Add(rememberedFor), now.Add(rememberedFor)
		return []Write{Put(ledger), Put(in), Check(lease)}, nil
	})
	if err != nil || !over {
		return err
	}
	return c.forget(ctx, lease, ledger, in)
}

// forget removes the inbox and then the lease by which the inbox is found: a run
// that ends between the two is made up by the next. An agent that registers just
// then finds its inbox gone, and registers again.
func (c *Control) forget(ctx context.Context, lease *Lease, ledger *Ledger, in *Instance) error {
	if err := c.Queue.RemoveInbox(ctx, lease.ID); err != nil {
		return fmt.Errorf("remove the inbox of instance %s: %w", lease.ID, err)
	}
	writes := []Write{Delete(lease), Check(ledger)}
	if ledger.Version > 0 && in.Version > 0 && ledger.ExpiresAt.IsZero() { // it had open tasks when it became INACTIVE
		in.ExpiresAt = in.GoneAt.Add(rememberedFor)
		if soon := c.Now().Add(time.Hour); in.ExpiresAt.Before(soon) {
			in.ExpiresAt = soon
		}
		ledger.ExpiresAt = in.ExpiresAt
		writes = []Write{Delete(lease), Put(ledger), Put(in)}
	}
	if err := c.Store.Commit(ctx, writes...); err != nil && !fault.Is(err, fault.Conflict) {
		return fmt.Errorf("forget instance %s: %w", lease.ID, err)
	}
	return nil
}
