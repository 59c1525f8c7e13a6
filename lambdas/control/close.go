package control

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/longshore-run/longshore/shared/logkey"
	"github.com/longshore-run/longshore/shared/task"
)

const closeAtOnce = 40

// CloseOlder ends, or keeps, the open tasks that a reaped instance had under older
// epochs, some at a time, each chunk with its own count-down of stale (I8). It can be
// killed anywhere and run again. It does nothing for an instance whose epoch
// was raised by a new incarnation: there an inventory decides.
func (c *Control) CloseOlder(ctx context.Context, instance string) error {
	after := ""
	for {
		ids, next, err := c.Store.TaskIDs(ctx, TaskQuery{OnInstance: instance}, Page{After: after, Limit: closeAtOnce})
		if err != nil {
			return fmt.Errorf("list the open tasks of instance %s: %w", instance, err)
		}
		done, err := c.closeChunk(ctx, instance, ids)
		if err != nil || done {
			return err
		}
		if next == "" { // a lagging index may hide some: the next sweep goes on
			return nil
		}
		after = next
	}
}

// closeChunk ends, or keeps, those of ids that are open there under an older epoch;
// done says that nothing is left to close.
func (c *Control) closeChunk(ctx context.Context, instance string, ids []string) (done bool, err error) {
	var ended, kept []*Task
	ledger := &Ledger{ID: instance}
	err = c.decide(ctx, "close tasks of instance "+instance, func() ([]Write, error) {
		ended, kept, done = nil, nil, false
		in := &Instance{ID: instance}
		tasks := make([]*Task, len(ids))
		for i, id := range ids {
			tasks[i] = &Task{ID: id}
		}
		if err := c.Store.Load(ctx, append(recordsOf(tasks), ledger, in)...); err != nil {
			return nil, err
		}
		if !closable(ledger) {
			done = true
			return nil, errGiveUp
		}
		older := slices.DeleteFunc(tasks, func(t *Task) bool {
			return !t.LastStatus.Open() || t.Instance != instance || t.Epoch >= ledger.Epoch
		})
		if len(older) == 0 {
			return nil, errGiveUp
		}
		policies, err := c.policiesOf(ctx, older)
		if err != nil {
			return nil, err
		}
		w, lives := &changes{}, lives{}
		w.put(ledger)
		e := c.closing(ledger, in)
		for _, t := range older {
			w.put(t)
			if p := policies.of(t); p.keeps && ledger.EndCause == "" {
				keep(t, ledger, p, e.now)
				kept = append(kept, t)
				continue
			}
			endOpen(t, ledger, task.Closed, e)
			if err := lives.down(ctx, c.Store, t); err != nil {
				return nil, err
			}
			ended = append(ended, t)
		}
		done = ledger.Stale == 0
		return append(w.all(), lives.writes()...), nil
	})
	if err != nil {
		return false, err
	}
	for _, t := range ended {
		c.Log.WarnContext(ctx, "task closed", logkey.Task, t.ID, logkey.Instance, instance, logkey.Reason, t.StoppedReason)
	}
	for _, t := range kept {
		c.Log.WarnContext(ctx, "task kept: its instance is lost", logkey.Task, t.ID, logkey.Instance, instance, logkey.Epoch, t.Epoch)
	}
	c.kickServicesOf(ctx, ended)
	return done, nil
}

// closable says whether anything of an older epoch is to be closed there.
func closable(l *Ledger) bool { return l.Version > 0 && l.Stale > 0 && l.Cause == ReapedCause }

// closing is why an instance's tasks end: that it was lost, or what is known of
// the host's end.
func (c *Control) closing(l *Ledger, in *Instance) ending {
	e := ending{cause: task.LostCause, now: c.Now(), keepFor: c.Setting.StoppedTasksFor}
	if cause := cmp.Or(l.EndCause, l.LostBy); cause != "" {
		e.cause, e.detail = cause, in.EC2InstanceID
	}
	return e
}
