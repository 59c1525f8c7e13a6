package agent

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/logkey"
)

// remembered is how long a tombstone answers a start that is delivered again:
// twice the retention of the command queue.
const remembered = 2 * time.Hour

// cleanRetry is when a clean-up that failed is tried again.
const cleanRetry = time.Minute

// cleanAtOnce is how many tasks are cleaned up at the same time. A removal that the
// engine does not come to the end of, five minutes long, then holds up no other.
const cleanAtOnce = 4

// cleaned is how the clean-up of one task went.
type cleaned struct {
	id  string
	err error
}

// clean is the loop that removes what ended tasks have left: after the clean-up
// wait, and then not before the end is acknowledged (R1). One loop and one timer
// serve any number of waiting tasks (R3), by the summed running time (R5); those
// that are being cleaned up have a goroutine each, a few at a time.
func (a *Agent) clean(ctx context.Context) {
	failed, under := map[string]time.Time{}, map[string]bool{}
	done := make(chan cleaned, cleanAtOnce)
	var running sync.WaitGroup
	defer running.Wait()
	for {
		a.turn("clean")
		due, wake := a.dueCleanups(failed, under)
		for _, r := range due {
			under[r.ID()] = true
			running.Go(func() {
				a.turn("clean " + r.ID())
				done <- cleaned{r.ID(), a.cleanUp(ctx, r)}
			})
		}
		timer := time.NewTimer(wake)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-a.cleanups:
		case c := <-done:
			delete(under, c.id)
			delete(failed, c.id)
			if c.err != nil && ctx.Err() == nil {
				a.Log.Warn("clean up", logkey.Task, c.id, logkey.Error, c.err)
				failed[c.id] = a.Now().Add(cleanRetry)
			}
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// dueCleanups lists what may be removed now beside what is under way, as much as
// there is room for, oldest first but what failed before last, and how long to sleep
// until there is more. It also forgets tombstones whose time is up, and says once of
// each task that it waited too long (R2).
func (a *Agent) dueCleanups(failed map[string]time.Time, under map[string]bool) (due []Record, wake time.Duration) {
	wake = mostWait
	until := func(d time.Duration) { wake = min(wake, max(d, time.Millisecond)) }
	now := a.Now()
	var lapsed []string
	var ready []*Record
	err := a.book.update(func(p *page) error {
		for r := range p.all {
			if !r.ended() || r.State.Alive() || a.owned(r.ID()) || under[r.ID()] {
				continue
			}
			at := r.EndedAt
			if r.State.Refusal == nil {
				at += a.Setting.CleanupWait
			}
			switch {
			case p.clock < at:
				until(at - p.clock)
			case r.Acked && failed[r.ID()].After(now):
				until(failed[r.ID()].Sub(now))
			case r.Acked:
				ready = append(ready, r)
			case r.Abandoned:
			case p.clock < at+a.Setting.ReportWait:
				until(at + a.Setting.ReportWait - p.clock)
			default:
				lapsed = append(lapsed, r.ID())
				c := r.clone()
				c.Abandoned = true
				p.write(c)
			}
		}
		for id, r := range p.book.tombs {
			switch {
			case r.State.Alive():
			case p.clock >= r.ForgetAt:
				p.forget(id)
			default: // several at a time, and none a moment too late
				until(max(r.ForgetAt-p.clock, time.Minute))
			}
		}
		slices.SortFunc(ready, func(x, y *Record) int {
			return cmp.Or(failed[x.ID()].Compare(failed[y.ID()]), cmp.Compare(x.EndedAt, y.EndedAt), cmp.Compare(x.ID(), y.ID()))
		})
		for _, r := range ready[:min(len(ready), cleanAtOnce-len(under))] {
			due = append(due, r.clone())
		}
		return nil
	})
	if err != nil {
		a.Log.Error("the journal cannot be written", logkey.Error, err)
		return nil, cleanRetry
	}
	for _, id := range lapsed {
		a.Log.Error("the end of a task was not acknowledged in time: its clean-up is given up and everything is kept", logkey.Task, id)
	}
	return due, wake
}

// cleanUp removes what a task has left and keeps its end as a tombstone.
func (a *Agent) cleanUp(ctx context.Context, r Record) error {
	a.usedUntilNow(r)
	for _, c := range r.State.Containers {
		id := ContainerID{Task: r.ID(), Attempt: r.Attempt(), Container: c.Name}
		if err := a.Engine.Remove(ctx, id); err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
	}
	if len(r.State.Containers) > 0 {
		if err := a.Engine.RemoveTask(ctx, r.ID(), r.Attempt()); err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
	}
	err := a.book.update(func(p *page) error {
		now, ok := p.task(r.ID())
		if !ok || now.Attempt() != r.Attempt() || !now.ended() {
			return nil
		}
		now.Tomb, now.ForgetAt = true, p.clock+remembered
		now.Definition, now.GPUs = nil, nil
		p.write(now)
		return nil
	})
	if err == nil {
		a.Log.Info("task cleaned up", logkey.Task, r.ID(), logkey.Attempt, r.Attempt())
	}
	return err
}
