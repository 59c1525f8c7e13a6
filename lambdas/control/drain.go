package control

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/longshore-run/longshore/shared/logkey"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

// noDeadline is the tag's value for draining that waits for ever.
const noDeadline = "none"

// drainedReason is told of a task that was stopped at the deadline; one of a
// deregistered instance has its cause's own.
const drainedReason = "Container instance was drained and its deadline (" + drainTag + ") has passed"

// drainFor reads the tag: how long what is left on an instance may stay, 0 for
// ever.
func drainFor(value string) (d time.Duration, ok bool) {
	if value == noDeadline {
		return 0, true
	}
	d, err := time.ParseDuration(value)
	return d, err == nil && d > 0
}

// drainDeadline is when what is left on a DRAINING instance is stopped; zero for
// never. It follows the tags as they are now: a person in a hurry changes them.
func (c *Control) drainDeadline(l *Ledger, in *Instance, k *Cluster) time.Time {
	if l.Status != Draining || l.DrainingSince.IsZero() {
		return time.Time{}
	}
	d := c.Setting.DrainDeadline
	if tagged, ok := drainFor(cmp.Or(in.Tags[drainTag], k.Tags[drainTag])); ok {
		d = tagged
	}
	var deadline time.Time
	if d > 0 {
		deadline = l.DrainingSince.Add(d)
	}
	if goes := l.Leaving.foremost().At; l.Leaving.drains() && !goes.IsZero() {
		if early := goes.Add(-stopsBefore); deadline.IsZero() || early.Before(deadline) {
			return early
		}
	}
	return deadline
}

// drain makes an instance DRAINING or ACTIVE, and says whether that changes
// anything. The deadline counts from the first time; ACTIVE forgets it.
func (l *Ledger) drain(lease *Lease, drains bool, now time.Time) bool {
	status, since := Active, time.Time{}
	if drains {
		status, since = Draining, l.DrainingSince
		if l.Status != Draining || since.IsZero() {
			since = now
		}
	}
	if l.Status == status && l.DrainingSince.Equal(since) && lease.Draining == drains {
		return false
	}
	l.Status, l.DrainingSince, lease.Draining = status, since, drains
	return true
}

// drainProgress says how far the draining of an instance is, "" if there is none.
func (v *InstanceView) drainProgress() string {
	l, host := v.Ledger, ""
	if l.Leaving.drains() {
		host = "; " + l.Leaving.foremost().String()
	}
	switch {
	case l.Status != Draining:
		return ""
	case l.Open == 0:
		return "drained: no task is left" + host
	case v.DrainDeadline.IsZero():
		return fmt.Sprintf("draining: %d tasks left, no deadline%s", l.Open, host)
	}
	return fmt.Sprintf("draining: %d tasks left, deadline %s%s", l.Open, v.DrainDeadline.UTC().Format(time.RFC3339), host)
}

// EndDrain stops what is left on an instance that is drained past its deadline,
// some tasks at a time. It may be killed anywhere, run again, and run twice: what
// was asked to stop is not asked again here, but by the sweep.
func (c *Control) EndDrain(ctx context.Context, instance string) error {
	l, in := &Ledger{ID: instance}, &Instance{ID: instance}
	if rests, err := c.loadOverdue(ctx, l, in); err != nil || rests == nil || l.Open == 0 {
		return err
	}
	for after := ""; ; {
		ids, next, err := c.Store.TaskIDs(ctx, TaskQuery{OnInstance: instance}, Page{After: after, Limit: closeAtOnce})
		if err != nil {
			return fmt.Errorf("list the open tasks of instance %s: %w", instance, err)
		}
		over, err := c.endDrainOf(ctx, instance, ids)
		if err != nil || !over || next == "" || outOfTime(ctx) { // a lagging index may hide some: the next run goes on
			return err
		}
		after = next
	}
}

// loadOverdue loads an instance with more records. If it is drained and its
// deadline has passed it returns what that rests on, to be checked by a commit:
// somebody may make the instance ACTIVE, or give it more time. Else it is nil.
func (c *Control) loadOverdue(ctx context.Context, l *Ledger, in *Instance, more ...Record) (rests []Write, err error) {
	if err := c.Store.Load(ctx, append(more, l, in)...); err != nil {
		return nil, fmt.Errorf("load instance %s: %w", l.ID, err)
	}
	if l.Status != Draining {
		return nil, nil
	}
	rests = []Write{Check(l), Check(in)}
	k := &Cluster{Name: l.Cluster}
	if in.Tags[drainTag] == "" {
		if err := c.Store.Load(ctx, k); err != nil {
			return nil, fmt.Errorf("load cluster %s: %w", k.Name, err)
		}
		rests = append(rests, Check(k))
	}
	if deadline := c.drainDeadline(l, in, k); deadline.IsZero() || c.Now().Before(deadline) {
		return nil, nil
	}
	return rests, nil
}

// endDrainOf asks those of ids to stop that are still to run there; over says
// that the deadline has passed.
func (c *Control) endDrainOf(ctx context.Context, instance string, ids []string) (over bool, err error) {
	var stopped []*Task
	err = c.decide(ctx, "end the draining of instance "+instance, func() ([]Write, error) {
		stopped = nil
		l, in, tasks := &Ledger{ID: instance}, &Instance{ID: instance}, tasksOf(ids)
		writes, err := c.loadOverdue(ctx, l, in, recordsOf(tasks)...)
		if over = writes != nil; err != nil || !over {
			return nil, cmp.Or(err, errGiveUp)
		}
		for _, t := range tasks {
			if !t.LastStatus.Open() || t.Instance != instance || t.DesiredStatus == task.DesiredStopped {
				continue
			}
			t.LastStatus = move(t.LastStatus, task.StopRequested)
			t.DesiredStatus = task.DesiredStopped
			t.StopCause, t.StoppedReason = l.forced(in)
			t.Dispatched, t.DispatchAt = 1, c.Now().Add(dispatchWait(1))
			stopped, writes = append(stopped, t), append(writes, Put(t))
		}
		if len(stopped) == 0 {
			return nil, errGiveUp
		}
		return writes, nil
	})
	if err != nil {
		return false, err
	}
	c.tellForced(ctx, instance, stopped)
	return over, nil
}

// tellForced sends the stops, and wakes the services that lose tasks.
func (c *Control) tellForced(ctx context.Context, instance string, stopped []*Task) {
	var stops []wire.Message
	for _, t := range stopped {
		c.Log.WarnContext(ctx, "task stopped: its instance is drained past the deadline", logkey.Task, t.ID, logkey.Instance, instance)
		stops = append(stops, stopMessage(t))
	}
	c.kickServicesOf(ctx, stopped)
	c.send(ctx, stops...)
}
