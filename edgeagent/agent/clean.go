package agent

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/logkey"
)

// remembered is how long a tombstone answers a start that is delivered again:
// twice the retention of the command queue.
const remembered = 2 * time.Hour

// cleanRetry is when a clean-up that failed is tried again.
const cleanRetry = time.Minute

// clean is the loop that removes what ended tasks have left: after the clean-up
// wait, and then not before the end is acknowledged (R1). One loop and one timer
// serve any number of waiting tasks (R3), by the summed running time (R5).
func (a *Agent) clean(ctx context.Context) {
	failed := map[string]time.Time{}
	for {
		a.turn("clean")
		due, wake := a.dueCleanups(failed)
		for _, r := range due {
			if err := a.cleanUp(ctx, r); err != nil {
				if ctx.Err() != nil {
					return
				}
				a.Log.Warn("clean up", logkey.Task, r.ID(), logkey.Error, err)
				failed[r.ID()] = a.Now().Add(cleanRetry)
				continue
			}
			delete(failed, r.ID())
		}
		if len(due) > 0 {
			continue
		}
		if !sleep(ctx, wake, a.cleanups) {
			return
		}
	}
}

// dueCleanups lists what may be removed now, oldest first, and how long to sleep
// if there is nothing. It also forgets tombstones whose time is up, and says
// once of each task that it waited too long (R2).
func (a *Agent) dueCleanups(failed map[string]time.Time) (due []Record, wake time.Duration) {
	wake = mostWait
	until := func(d time.Duration) { wake = min(wake, max(d, time.Millisecond)) }
	now := a.Now()
	var lapsed []string
	err := a.book.update(func(p *page) error {
		for r := range p.all {
			if !r.ended() || r.State.Alive() || a.owned(r.ID()) {
				continue
			}
			ready := r.EndedAt
			if r.State.Refusal == nil {
				ready += a.Setting.CleanupWait
			}
			switch {
			case p.clock < ready:
				until(ready - p.clock)
			case r.Acked && failed[r.ID()].After(now):
				until(failed[r.ID()].Sub(now))
			case r.Acked:
				due = append(due, r.clone())
			case r.Abandoned:
			case p.clock < ready+a.Setting.ReportWait:
				until(ready + a.Setting.ReportWait - p.clock)
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
		return nil
	})
	if err != nil {
		a.Log.Error("the journal cannot be written", logkey.Error, err)
		return nil, cleanRetry
	}
	for _, id := range lapsed {
		a.Log.Error("the end of a task was not acknowledged in time: its clean-up is given up and everything is kept", logkey.Task, id)
	}
	slices.SortFunc(due, func(x, y Record) int { return cmp.Or(cmp.Compare(x.EndedAt, y.EndedAt), cmp.Compare(x.ID(), y.ID())) })
	return due, wake
}

// cleanUp removes what a task has left and keeps its end as a tombstone.
func (a *Agent) cleanUp(ctx context.Context, r Record) error {
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
