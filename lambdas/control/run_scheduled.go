package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/logkey"
	"github.com/longshore-run/longshore/shared/schedule"
	"github.com/longshore-run/longshore/shared/task"
)

// scheduledBy begins startedBy of what a schedule runs, as it does in ECS.
const scheduledBy = "events-rule/"

// replacedBy begins the reason of tasks that a later run replaces.
const replacedBy = "Replaced by the run of schedule "

const countMissed = "MissedScheduledRuns"

// RunScheduled makes the tasks of a run that is due, or notes that it is missed,
// once for each schedule and time: tasks and the note of them are one transaction.
// Asked for again it only wakes admission again.
func (c *Control) RunScheduled(ctx context.Context, d schedule.Due) error {
	if err := d.Run.Check(); err != nil {
		return err
	}
	r := &scheduled{c: c, due: d, record: &Schedule{Name: d.Run.Schedule}}
	if d.Run.Overlap == schedule.Replace {
		if err := r.replace(ctx); err != nil {
			return fmt.Errorf("stop what schedule %s ran before: %w", d.Run.Schedule, err)
		}
	}
	err := c.decide(ctx, "run schedule "+d.Run.Schedule, func() ([]Write, error) { return r.decide(ctx) })
	if err != nil {
		return err
	}
	for _, earlier := range r.missed {
		c.tellMissed(ctx, d.Run.Schedule, earlier)
	}
	run := r.run
	switch {
	case run == nil:
		c.Log.WarnContext(ctx, "a run older than any that is remembered is not made again", logkey.Schedule, d.Run.Schedule, "at", d.ScheduledTime)
	case run.Outcome == OutcomeMissed:
		if !r.known {
			c.tellMissed(ctx, d.Run.Schedule, *run)
		}
	default:
		for ids := range slices.Chunk(run.Tasks, 10) {
			c.kick(ctx, Kick{Cluster: run.Cluster, Tasks: ids})
		}
		c.Log.InfoContext(ctx, "schedule run", logkey.Schedule, d.Run.Schedule, "at", d.ScheduledTime, logkey.Count, len(run.Tasks))
	}
	return nil
}

func (c *Control) tellMissed(ctx context.Context, name string, run ScheduledRun) {
	c.Metrics.Count(countMissed, 1)
	c.Log.WarnContext(ctx, "scheduled run missed", logkey.Schedule, name, "at", run.At, logkey.Reason, run.Reason, "detail", run.Detail)
}

// scheduled is a run on its way.
type scheduled struct {
	c      *Control
	due    schedule.Due
	record *Schedule
	run    *ScheduledRun  // as it is decided; nil if it is forgotten
	known  bool           // it had been decided before
	missed []ScheduledRun // earlier ones that it replaces
}

// giveWay notes earlier runs as missed whose tasks waited until they were replaced.
// The tasks say so themselves: who stopped them may not be who notes it.
func (r *scheduled) giveWay(ctx context.Context, now time.Time) error {
	r.missed = nil
	if r.due.Run.Overlap != schedule.Replace {
		return nil
	}
	tasks, err := r.earlier(ctx)
	if err != nil {
		return err
	}
	replaced := map[string]bool{}
	for _, t := range tasks {
		replaced[t.ID] = t.LastStatus == task.Stopped && t.AdmittedAt.IsZero() && strings.HasPrefix(t.StoppedReason, replacedBy)
	}
	for i := range r.record.Runs {
		run := &r.record.Runs[i]
		if run.Outcome == OutcomeStarted && slices.ContainsFunc(run.Tasks, func(id string) bool { return replaced[id] }) {
			run.Outcome, run.Reason, run.Decided = OutcomeMissed, MissedReplaced, now
			run.Detail = "it waited for room until the next run replaced it"
			r.missed = append(r.missed, *run)
		}
	}
	return nil
}

func (r *scheduled) request() *TaskRequest {
	d := &r.due.Run
	return &TaskRequest{Cluster: d.Cluster, Definition: d.TaskDefinition, Overrides: d.Overrides, Group: d.Group,
		StartedBy: scheduledBy + d.Schedule, Tags: d.Tags, PropagateTags: d.PropagateTags}
}

// decide is one try: the writes that make the run what it is to be.
func (r *scheduled) decide(ctx context.Context) ([]Write, error) {
	r.run, r.known, r.missed = nil, false, nil
	if err := r.c.Store.Load(ctx, r.record); err != nil {
		return nil, err
	}
	if r.settled() {
		return nil, errGiveUp
	}
	now := r.c.Now()
	run := ScheduledRun{At: r.due.ScheduledTime, Cluster: r.due.Run.Cluster, Outcome: OutcomeStarted, Decided: now}
	var writes []Write
	o, reason, detail, err := r.judge(ctx, now)
	switch {
	case err != nil:
		return nil, err
	case reason != "":
		run.Outcome, run.Reason, run.Detail = OutcomeMissed, reason, detail
	default:
		for range r.due.Run.Count {
			t := o.with(r.c.NewID())
			t.Schedule, t.NoWait = r.due.Run.Schedule, false
			if by := r.due.Run.Deadline(); by > 0 {
				left := r.due.ScheduledTime.Add(by).Sub(now)
				if t.MaxWait == 0 || left < t.MaxWait {
					t.MaxWait = left
				}
			}
			run.Tasks = append(run.Tasks, t.ID)
			writes = append(writes, Put(t))
		}
	}
	if err := r.giveWay(ctx, now); err != nil {
		return nil, err
	}
	busy, err := r.busy(ctx)
	if err != nil {
		return nil, err
	}
	r.record.add(run, now, busy)
	r.run = &run
	return append(writes, Put(r.record)), nil
}

// settled says whether the run has been decided on before, or is too old to know.
func (r *scheduled) settled() bool {
	if known := r.record.run(r.due.ScheduledTime); known != nil {
		r.run, r.known = known, true
		return true
	}
	return r.record.before(r.due.ScheduledTime)
}

// judge says what to make tasks from, or why the run is missed.
func (r *scheduled) judge(ctx context.Context, now time.Time) (o *origin, reason MissedReason, detail string, err error) {
	if by := r.due.Run.Deadline(); by > 0 && !now.Before(r.due.ScheduledTime.Add(by)) {
		return nil, MissedLate, fmt.Sprintf("it was asked for %s after its time; its starting deadline is %s", now.Sub(r.due.ScheduledTime).Round(time.Second), by), nil
	}
	if later := r.later(); r.due.Run.Overlap == schedule.Replace && later != nil {
		return nil, MissedReplaced, fmt.Sprintf("the run of %s was started before it was asked for", later.At.Format(time.RFC3339)), nil
	}
	if r.due.Run.Overlap == schedule.Forbid {
		open, err := r.unfinished(ctx)
		if err != nil {
			return nil, "", "", err
		}
		if len(open) > 0 {
			return nil, MissedOverlap, fmt.Sprintf("task %s of an earlier run has not stopped", open[0].ID), nil
		}
	}
	if o, err = r.origin(ctx); refusal(err) {
		return nil, MissedRefused, cut(err.Error(), maxReason), nil
	}
	return o, "", "", err
}

// later is a remembered run of a later time that was started; nil for none.
// EventBridge tries again for long what it could not deliver.
func (r *scheduled) later() *ScheduledRun {
	for i := range r.record.Runs {
		if run := &r.record.Runs[i]; run.At.After(r.due.ScheduledTime) && run.Outcome == OutcomeStarted {
			return run
		}
	}
	return nil
}

// origin is what the tasks are made from.
func (r *scheduled) origin(ctx context.Context) (*origin, error) {
	q := r.request()
	if err := q.check(); err != nil {
		return nil, err
	}
	if _, ok := q.Tags[noCapacityTag]; ok {
		return nil, invalid("tags", "%s is not for scheduled tasks: they wait, and startingDeadline says for how long", noCapacityTag)
	}
	return r.c.originOf(ctx, q, nil, "")
}

// refusal says whether an error is about what is to run: asking again does not help.
func refusal(err error) bool {
	return fault.Is(err, fault.Invalid) || fault.Is(err, fault.NotFound) || fault.Is(err, fault.Unsupported) || fault.Is(err, fault.Denied)
}

// unfinished are the tasks of remembered runs that have not STOPPED.
func (r *scheduled) unfinished(ctx context.Context) ([]*Task, error) {
	tasks, err := r.earlier(ctx)
	return slices.DeleteFunc(tasks, func(t *Task) bool { return t.LastStatus == task.Stopped }), err
}

// busy are the ids of tasks whose runs must not be forgotten yet: the policy asks
// for them. They are read only when some run is to be.
func (r *scheduled) busy(ctx context.Context) (map[string]bool, error) {
	if len(r.record.Runs) < maxRuns || r.due.Run.Overlap == schedule.Allow {
		return nil, nil
	}
	tasks, err := r.unfinished(ctx)
	ids := map[string]bool{}
	for _, t := range tasks {
		ids[t.ID] = true
	}
	return ids, err
}

// earlier are the tasks of remembered runs that are still there, read strongly.
func (r *scheduled) earlier(ctx context.Context) ([]*Task, error) {
	var ids []string
	for _, run := range r.record.Runs {
		ids = append(ids, run.Tasks...)
	}
	tasks := tasksOf(ids)
	if len(tasks) == 0 {
		return nil, nil
	}
	if err := load(ctx, r.c.Store, tasks); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(tasks, func(t *Task) bool { return t.Version == 0 }), nil
}

// replace asks what earlier runs left to stop, if this one is to be made at all.
func (r *scheduled) replace(ctx context.Context) error {
	if err := r.c.Store.Load(ctx, r.record); err != nil {
		return err
	}
	if r.settled() {
		return nil
	}
	if _, reason, _, err := r.judge(ctx, r.c.Now()); err != nil || reason != "" {
		return err
	}
	open, err := r.unfinished(ctx)
	if err != nil {
		return err
	}
	why := fmt.Sprintf(replacedBy+"%s at %s", r.due.Run.Schedule, r.due.ScheduledTime.Format(time.RFC3339))
	var errs []error
	for _, t := range open {
		if _, err := r.c.StopTask(ctx, t.Cluster, t.ID, why); err != nil && !fault.Is(err, fault.NotFound) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// missScheduled notes in its schedule that a task waited for room in vain: a
// write of the transaction that ends it, and the run if that makes it missed.
func (c *Control) missScheduled(ctx context.Context, t *Task, waitedFor string) (writes []Write, missed *ScheduledRun, err error) {
	if t.Schedule == "" || t.StopCause != task.MaxWaitCause {
		return nil, nil, nil
	}
	s := &Schedule{Name: t.Schedule}
	if err := c.Store.Load(ctx, s); err != nil {
		return nil, nil, err
	}
	for i := range s.Runs {
		run := &s.Runs[i]
		if run.Outcome != OutcomeStarted || !slices.Contains(run.Tasks, t.ID) {
			continue
		}
		run.Outcome, run.Reason, run.Decided = OutcomeMissed, MissedNoRoom, c.Now()
		run.Detail = fmt.Sprintf("task %s waited for room until its starting deadline", t.ID)
		if waitedFor != "" {
			run.Detail += ": " + waitedFor
		}
		return []Write{Put(s)}, run, nil
	}
	return nil, nil, nil
}
