package control

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/logkey"
	"github.com/longshore-run/longshore/shared/task"
)

// auditRounds is how often an audit looks again at ledgers that were written
// while it read the tasks.
const auditRounds = 3

// Audit is what an audit of the ledgers found.
type Audit struct {
	Ledgers     int // compared
	Busy        int // written each time while the tasks were read: not compared
	Differences []Difference
}

// Difference is one ledger that its tasks do not add up to.
type Difference struct {
	Instance string
	Cluster  string
	Ledger   Account // what it says
	Tasks    Account // what its tasks add up to
	Repaired bool
}

// Account is what a ledger keeps of its tasks.
type Account struct {
	Held  Held
	Open  int
	Stale int
}

// AuditLedgers recomputes what every instance has given away from a strong scan
// of the tasks, tells each difference, and with the setting repairs it. Whatever
// changes what a task holds writes its instance's ledger too, so a ledger that
// has the same version before and after the scan must be what its tasks add up
// to; one that was written meanwhile is compared in another round.
func (c *Control) AuditLedgers(ctx context.Context) (*Audit, error) {
	a := &Audit{}
	want := map[string]*Ledger{}
	if err := pages(ctx, c.Store.ScanLedgers, func(l *Ledger) { want[l.ID] = l }); err != nil {
		return nil, fmt.Errorf("audit: scan ledgers: %w", err)
	}
	var errs []error
	for round := 0; len(want) > 0 && round < auditRounds; round++ {
		if round > 0 {
			c.pause(ctx, round)
			if err := c.reloadLedgers(ctx, want); err != nil {
				return nil, fmt.Errorf("audit: %w", err)
			}
		}
		sums, err := c.sumTasks(ctx, want)
		if err != nil {
			return nil, err
		}
		for _, id := range slices.Sorted(maps.Keys(want)) {
			done, err := c.auditLedger(ctx, a, want[id], sums[id])
			if errs = append(errs, err); done || err != nil {
				delete(want, id)
			}
		}
	}
	a.Busy = len(want)
	c.Metrics.Count("LedgerDifferences", float64(len(a.Differences)))
	c.Metrics.Count("LedgersAudited", float64(a.Ledgers))
	c.Metrics.Count("LedgersNotAudited", float64(a.Busy))
	return a, errors.Join(errs...)
}

// pages calls f with everything that a paged scan gives.
func pages[T any](ctx context.Context, scan func(context.Context, Page) ([]T, string, error), f func(*T)) error {
	for after := ""; ; {
		all, next, err := scan(ctx, Page{After: after})
		if err != nil {
			return err
		}
		for i := range all {
			f(&all[i])
		}
		if after = next; next == "" {
			return nil
		}
	}
}

func (c *Control) reloadLedgers(ctx context.Context, ledgers map[string]*Ledger) error {
	var records []Record
	for _, l := range ledgers {
		records = append(records, l)
	}
	return c.Store.Load(ctx, records...)
}

// sumTasks adds up what the tasks of ledgers hold, against the epochs those have.
func (c *Control) sumTasks(ctx context.Context, ledgers map[string]*Ledger) (map[string]*Account, error) {
	sums := map[string]*Account{}
	err := pages(ctx, c.Store.ScanLiveTasks, func(t *Task) {
		l := ledgers[t.Instance]
		if l == nil || t.Held == nil {
			return
		}
		if sums[l.ID] == nil {
			sums[l.ID] = &Account{}
		}
		sums[l.ID].count(t, l.Epoch)
	})
	if err != nil {
		return nil, fmt.Errorf("audit: scan tasks: %w", err)
	}
	return sums, nil
}

func (a *Account) count(t *Task, epoch int64) {
	a.Held.add(*t.Held)
	a.Open++
	if t.Epoch < epoch {
		a.Stale++
	}
}

// auditLedger compares one ledger with what its tasks add up to (nil for no
// tasks). It is not done with one that was written since it was read.
func (c *Control) auditLedger(ctx context.Context, a *Audit, l *Ledger, sum *Account) (done bool, err error) {
	if sum == nil {
		sum = &Account{}
	}
	has := Account{Held: l.Held, Open: l.Open, Stale: l.Stale}
	if reflect.DeepEqual(has.normal(), sum.normal()) {
		// That it was written meanwhile does not matter: it was right then.
		a.Ledgers++
		return true, nil
	}
	now := &Ledger{ID: l.ID}
	if err := c.Store.Load(ctx, now); err != nil {
		return false, fmt.Errorf("audit: load ledger %s: %w", l.ID, err)
	}
	if now.Version != l.Version {
		return false, nil
	}
	a.Ledgers++
	d := Difference{Instance: l.ID, Cluster: l.Cluster, Ledger: has, Tasks: *sum}
	if c.Setting.AuditRepairs {
		d.Repaired, err = c.repair(ctx, l, sum)
	}
	c.Log.ErrorContext(ctx, "ledger differs from its tasks", logkey.Instance, l.ID, logkey.Cluster, l.Cluster,
		"ledger", fmt.Sprintf("%+v", has), "tasks", fmt.Sprintf("%+v", *sum), "repaired", d.Repaired)
	a.Differences = append(a.Differences, d)
	return true, err
}

// repair makes a ledger what its tasks add up to, if nobody has written it since.
func (c *Control) repair(ctx context.Context, l *Ledger, sum *Account) (bool, error) {
	fixed := *l
	fixed.Held, fixed.Open, fixed.Stale = sum.Held, sum.Open, sum.Stale
	switch err := c.Store.Commit(ctx, Put(&fixed)); {
	case fault.Is(err, fault.Conflict): // the next audit compares it again
		return false, nil
	case err != nil:
		return false, fmt.Errorf("audit: repair ledger %s: %w", l.ID, err)
	}
	c.kick(ctx, Kick{Cluster: l.Cluster, Instance: l.ID})
	return true, nil
}

// normal is an account that compares by what it says: lists sorted, none empty.
func (a Account) normal() Account {
	a.Held.TCP, a.Held.UDP = sorted(slices.Clone(a.Held.TCP)), sorted(slices.Clone(a.Held.UDP))
	a.Held.GPUs, a.Held.Distinct = sorted(slices.Clone(a.Held.GPUs)), sorted(slices.Clone(a.Held.Distinct))
	return a
}

// Live says whether a task is not STOPPED: what an audit adds up.
func (r *Task) Live() bool { return r.LastStatus != task.Stopped }
