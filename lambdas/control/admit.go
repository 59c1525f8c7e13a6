package control

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/longshore-run/longshore/lambdas/internal/placement"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/logkey"
	"github.com/longshore-run/longshore/shared/measure"
	"github.com/longshore-run/longshore/shared/task"
)

// Bounds of one admission pass; what it leaves is where the next one starts.
const (
	passTasks       = 2000
	passHead        = 80 // of them the oldest, which every pass looks at
	passDefinitions = 8
	passReasons     = 200
	tasksPerCommit  = 40
	passEndsBefore  = 3 * time.Second
	groupTasksAtAll = 1000
)

// Admit is one admission pass over a kick's cluster (design: Admission). It
// plans over everything that waits and every instance, then writes each
// instance's share as I2. It is safe to run twice, at the same time.
func (c *Control) Admit(ctx context.Context, k Kick) error {
	p, err := c.newPass(ctx, k)
	if err != nil {
		return fmt.Errorf("admit in cluster %s: %w", k.Cluster, err)
	}
	if p == nil {
		return nil
	}
	out, err := p.plan(ctx, k)
	if err == nil && p.state.Restored {
		err = p.pause(ctx, &out)
	}
	if err != nil {
		return fmt.Errorf("admit in cluster %s: %w", k.Cluster, err)
	}
	if out.Cut {
		p.next = p.state.Cursor // the next pass starts where this one did
	}
	for _, fault := range out.Faults {
		c.Log.ErrorContext(ctx, "task can not be judged", logkey.Cluster, k.Cluster, logkey.Error, fault)
	}
	errs := p.errs
	for _, instance := range p.order(out.Assign) {
		for chunk := range slices.Chunk(p.shares[instance], tasksPerCommit) {
			if p.out(ctx) {
				p.next = p.state.Cursor // the next pass starts where this one did
				break
			}
			// What failed has left the records in memory as they were to be: the
			// instance is left to the next pass, which reads it again.
			if err := c.admitOn(ctx, instance, chunk, p); err != nil {
				errs = append(errs, err)
				break
			}
		}
	}
	errs = append(errs, c.writeReasons(ctx, p, out.Reasons), c.writeQueueState(ctx, p, out.Earmark))
	if !p.part {
		c.measureQueue(p, out.Demand)
	}
	c.countBoth(measure.AdmissionPassSeconds, c.Now().Sub(p.now).Seconds(), k.Cluster)
	return errors.Join(errs...)
}

// plan gives the tasks places among the instances that were read and, if that
// leaves one waiting of which no pass knows why, among all. Why others wait was
// found among all, and holds until something changes: then a kick names the
// instance, or the sweep names the oldest of those tasks.
func (p *pass) plan(ctx context.Context, k Kick) (placement.Output, error) {
	out := placement.Plan(p.input(ctx))
	if p.whole() || out.Cut {
		return out, nil
	}
	judged := map[string]string{} // reasons by shape
	for _, t := range p.tasks {
		if found(t) {
			judged[ShapeOf(t)] = t.WaitingReason
		}
	}
	for id := range out.Reasons {
		t := p.tasks[id]
		if out.Reasons[id] = judged[ShapeOf(t)]; found(t) {
			out.Reasons[id] = t.WaitingReason
		}
		if out.Reasons[id] == "" || id == p.state.EarmarkTask || t.WaitingReason != "" && slices.Contains(k.Tasks, id) {
			if err := p.readRest(ctx, k.Cluster); err != nil {
				return out, err
			}
			return placement.Plan(p.input(ctx)), nil
		}
	}
	return out, nil
}

// found says whether a pass found why a task waits: that nothing was given away after
// a restore says nothing of where there is room.
func found(t *Task) bool { return t.WaitingReason != "" && t.WaitingReason != reasonRestored }

// pass is what one admission pass read.
type pass struct {
	c        *Control
	now      time.Time
	deadline time.Time
	state    *QueueState
	next     string // where the list of waiting tasks goes on
	part     bool   // it was not read on: only new tasks and the oldest were read
	tasks    map[string]*Task
	fleet
	groups      map[string]map[string]int
	definitions map[string]*Definition
	shares      map[string][]string // tasks by instance, filled by order
	errs        []error             // of single tasks, which hold up no other
	heard       bool                // each instance was heard since the tables were restored
}

func (p *pass) out(ctx context.Context) bool {
	return ctx.Err() != nil || !p.deadline.IsZero() && p.c.Now().After(p.deadline)
}

func (p *pass) input(ctx context.Context) placement.Input {
	in := placement.Input{
		Now:           p.now,
		Enough:        p.enough(ctx),
		GroupTasks:    p.groups,
		Earmark:       placement.Earmark{Task: p.state.EarmarkTask, Instance: p.state.EarmarkInstance, Until: p.state.EarmarkUntil},
		StarvationAge: p.c.Setting.StarvationAge,
		EarmarkFor:    p.c.Setting.EarmarkFor,
		Random:        rand.IntN,
	}
	if len(p.unread) > 0 || p.part { // an instance is kept free after a look at all, and for the first of all
		in.StarvationAge = 1 << 62
	}
	for _, t := range p.tasks {
		in.Tasks = append(in.Tasks, placementTask(t))
	}
	for _, instance := range p.instances {
		in.Instances = append(in.Instances, placementInstance(instance, p.ledgers[instance.ID], p.now))
	}
	return in
}

// order groups assignments by instance, in the order of each one's first.
func (p *pass) order(assign []placement.Assignment) []string {
	var order []string
	for _, a := range assign {
		if _, ok := p.shares[a.Instance]; !ok {
			order = append(order, a.Instance)
		}
		p.shares[a.Instance] = append(p.shares[a.Instance], a.Task)
	}
	return order
}

// admitOn writes some tasks' admission on one instance: one transaction, each
// task under I2. After a conflict all is read again, and what no longer holds
// is left to a later pass.
func (c *Control) admitOn(ctx context.Context, instance string, ids []string, p *pass) error {
	in, l := p.instance(instance), p.ledgers[instance]
	tasks := make([]*Task, len(ids))
	for i, id := range ids {
		tasks[i] = p.tasks[id]
	}
	var admitted []*Task
	read := true // the first try goes by what the pass has read
	err := c.decide(ctx, "admit on instance "+instance, func() ([]Write, error) {
		if !read {
			if err := c.Store.Load(ctx, append(recordsOf(tasks), in, l)...); err != nil {
				return nil, err
			}
		}
		read, admitted = false, nil
		for _, t := range tasks {
			if admit(t, l, in, c.Now()) == nil {
				admitted = append(admitted, t)
			}
		}
		if len(admitted) == 0 {
			return nil, errGiveUp
		}
		writes := []Write{Put(l)}
		for _, t := range admitted {
			writes = append(writes, Put(t))
		}
		return writes, nil
	})
	if err != nil {
		return err
	}
	if len(admitted) > 0 {
		c.measureAdmitted(p.state.Cluster, admitted)
	}
	return c.assign(ctx, p.definitions, admitted...)
}

// assign sends the assigns of admitted tasks; a send that fails is the sweep's.
// Definitions that are not known yet are read.
func (c *Control) assign(ctx context.Context, known map[string]*Definition, tasks ...*Task) error {
	if len(tasks) == 0 {
		return nil
	}
	messages, err := c.assignments(ctx, known, tasks...)
	c.send(ctx, messages...)
	return err
}

// writeReasons stores why tasks wait where that has changed.
func (c *Control) writeReasons(ctx context.Context, p *pass, reasons map[string]string) error {
	var errs []error
	written := 0
	for _, id := range slices.Sorted(maps.Keys(reasons)) {
		t := p.tasks[id]
		if t.WaitingReason == reasons[id] || t.LastStatus != task.Provisioning {
			continue
		}
		if written++; written > passReasons || p.out(ctx) {
			break
		}
		t.WaitingReason = reasons[id]
		if err := c.Store.Commit(ctx, Put(t)); err != nil && !fault.Is(err, fault.Conflict) {
			errs = append(errs, fmt.Errorf("write the reason why task %s waits: %w", id, err))
		}
	}
	return errors.Join(errs...)
}

// writeQueueState stores the earmark and the cursor. A conflict means another
// pass wrote them, which is as good.
func (c *Control) writeQueueState(ctx context.Context, p *pass, e placement.Earmark) error {
	s := *p.state
	s.EarmarkTask, s.EarmarkInstance, s.EarmarkUntil, s.Cursor, s.Restored = e.Task, e.Instance, e.Until, p.next, s.Restored && !p.heard
	if s.Restored == p.state.Restored && s.EarmarkTask == p.state.EarmarkTask && s.EarmarkInstance == p.state.EarmarkInstance && s.EarmarkUntil.Equal(p.state.EarmarkUntil) && s.Cursor == p.state.Cursor {
		return nil
	}
	if err := c.Store.Commit(ctx, Put(&s)); err != nil && !fault.Is(err, fault.Conflict) {
		return fmt.Errorf("write admission state of cluster %s: %w", s.Cluster, err)
	}
	return nil
}
