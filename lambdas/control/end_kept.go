package control

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/longshore-run/longshore/shared/logkey"
	"github.com/longshore-run/longshore/shared/task"
)

// keptDue says whether kept tasks of an instance are to be looked at.
func keptDue(lease Lease, l *Ledger, now time.Time) bool {
	return lease.Stage == StageLost && l.Version > 0 && l.kept() > 0 && !now.Before(l.KeptUntil)
}

// EndKept ends the tasks of a LOST instance that have been kept for as long as
// they are to be, some at a time. It can be killed anywhere, run again, and run
// twice: what has returned meanwhile, or is listed again, is left alone.
func (c *Control) EndKept(ctx context.Context, instance string) error {
	next := time.Time{} // when the first of those that remain is due
	for after := ""; ; {
		ids, more, err := c.Store.TaskIDs(ctx, TaskQuery{OnInstance: instance}, Page{After: after, Limit: closeAtOnce})
		if err != nil {
			return fmt.Errorf("list the open tasks of instance %s: %w", instance, err)
		}
		soonest, lost, err := c.endKeptOf(ctx, instance, ids)
		if err != nil || !lost || outOfTime(ctx) { // the next run goes on
			return err
		}
		next = earlier(next, soonest)
		if after = more; more == "" { // what a lagging index hides is looked at a little later
			return c.lookAgain(ctx, instance, next)
		}
	}
}

// earlier is the earlier of two times of which either may be none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// endKeptOf ends those of ids whose time is over, if the instance is still LOST in
// the epoch they were kept into. It says when the first of the others is due.
func (c *Control) endKeptOf(ctx context.Context, instance string, ids []string) (next time.Time, lost bool, err error) {
	var ended []*Task
	err = c.decide(ctx, "end kept tasks of instance "+instance, func() ([]Write, error) {
		ended, next, lost = nil, time.Time{}, false
		ledger, lease, tasks := &Ledger{ID: instance}, &Lease{ID: instance}, tasksOf(ids)
		if err := c.Store.Load(ctx, append(recordsOf(tasks), ledger, lease)...); err != nil {
			return nil, err
		}
		if lost = lease.Stage == StageLost && ledger.Version > 0; !lost {
			return nil, errGiveUp
		}
		kept := slices.DeleteFunc(tasks, func(t *Task) bool {
			return !t.LastStatus.Open() || t.Instance != instance || t.Kept.IsZero() || t.Epoch != ledger.Epoch
		})
		policies, err := c.policiesOf(ctx, kept)
		if err != nil {
			return nil, err
		}
		w, lives, now := &changes{}, lives{}, c.Now()
		for _, t := range kept {
			p := policies.of(t)
			if until := p.until(t); until.IsZero() || now.Before(until) {
				next = earlier(next, until)
				continue
			}
			endOpen(t, ledger, task.Closed, c.keptFor(p, now))
			if err := lives.down(ctx, c.Store, t); err != nil {
				return nil, err
			}
			w.put(t, ledger)
			ended = append(ended, t)
		}
		if len(ended) == 0 {
			return nil, errGiveUp
		}
		w.check(lease)
		return append(w.all(), lives.writes()...), nil
	})
	if err != nil {
		return next, false, err
	}
	for _, t := range ended {
		c.Log.WarnContext(ctx, "kept task closed: its instance did not return in time", logkey.Task, t.ID, logkey.Instance, instance, logkey.Reason, t.StoppedReason)
	}
	c.kickServicesOf(ctx, ended)
	return next, lost, nil
}

// keptFor is why a kept task ends by time.
func (c *Control) keptFor(p policy, now time.Time) ending {
	e := ending{cause: task.KeptOutCause, now: now, keepFor: c.Setting.StoppedTasksFor}
	if !p.keeps { // its tags were changed meanwhile: it ends as it would have at once
		e.cause = task.LostCause
	}
	return e
}

// lookAgain notes when the kept tasks of a LOST instance are looked at next.
func (c *Control) lookAgain(ctx context.Context, instance string, next time.Time) error {
	return c.decide(ctx, "look again at the kept tasks of instance "+instance, func() ([]Write, error) {
		ledger, lease := &Ledger{ID: instance}, &Lease{ID: instance}
		if err := c.Store.Load(ctx, ledger, lease); err != nil {
			return nil, err
		}
		now, was := c.Now(), ledger.KeptUntil
		if !keptDue(*lease, ledger, now) {
			return nil, errGiveUp
		}
		ledger.KeptUntil = time.Time{}
		if ledger.lookAtKept(next, now); ledger.KeptUntil.Equal(was) {
			return nil, errGiveUp
		}
		return []Write{Put(ledger)}, nil
	})
}
