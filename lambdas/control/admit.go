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
	"github.com/longshore-run/longshore/shared/task"
)

// Bounds of one admission pass; what it leaves is where the next one starts.
const (
	passTasks       = 2000
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
	in := p.input()
	in.Enough = p.enough(ctx)
	out := placement.Plan(in)
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
	c.measureQueue(p, out.Demand)
	return errors.Join(errs...)
}

// pass is what one admission pass read.
type pass struct {
	c         *Control
	now       time.Time
	deadline  time.Time
	state     *QueueState
	next      string // where the list of waiting tasks goes on
	tasks     map[string]*Task
	instances []*Instance
	ledgers   map[string]*Ledger
	groups    map[string]map[string]int
	shares    map[string][]string // tasks by instance, filled by order
	errs      []error             // of single tasks, which hold up no other
}

func (p *pass) out(ctx context.Context) bool {
	return ctx.Err() != nil || !p.deadline.IsZero() && p.c.Now().After(p.deadline)
}

func (c *Control) newPass(ctx context.Context, k Kick) (*pass, error) {
	p := &pass{c: c, now: c.Now(), tasks: map[string]*Task{}, ledgers: map[string]*Ledger{}, groups: map[string]map[string]int{}, shares: map[string][]string{}}
	if d, ok := ctx.Deadline(); ok {
		p.deadline = p.now.Add(time.Until(d) - passEndsBefore)
	}
	cluster := &Cluster{Name: k.Cluster}
	p.state = &QueueState{Cluster: k.Cluster}
	if err := c.Store.Load(ctx, cluster, p.state); err != nil {
		return nil, err
	}
	if cluster.Version == 0 || cluster.Status != "ACTIVE" {
		return nil, nil
	}
	if err := p.readTasks(ctx, k); err != nil {
		return nil, err
	}
	if len(p.tasks) == 0 && p.state.EarmarkTask == "" && p.state.Cursor == p.next {
		c.measureQueue(p, nil)
		return nil, errors.Join(p.errs...)
	}
	if err := p.readInstances(ctx, k); err != nil {
		return nil, err
	}
	return p, p.readGroups(ctx)
}

// readTasks loads what waits: as the index shows it from the cursor on, and what
// the kick names, which the index may not show yet.
func (p *pass) readTasks(ctx context.Context, k Kick) error {
	ids := append(slices.Clone(k.Tasks), p.state.EarmarkTask)
	p.next = p.state.Cursor
	for len(ids) < passTasks {
		more, next, err := p.c.Store.TaskIDs(ctx, TaskQuery{Cluster: k.Cluster, Waiting: ForRoom}, Page{After: p.next})
		if err != nil {
			return err
		}
		ids, p.next = append(ids, more...), next
		if next == "" {
			break
		}
	}
	slices.Sort(ids)
	var all []*Task
	for _, id := range slices.Compact(ids) {
		if id != "" {
			all = append(all, &Task{ID: id})
		}
	}
	if err := load(ctx, p.c.Store, all); err != nil {
		return err
	}
	for _, t := range all {
		switch {
		case t.LastStatus != task.Provisioning || t.Cluster != k.Cluster:
		case p.overdue(t):
			if !p.out(ctx) {
				p.errs = append(p.errs, p.c.expire(ctx, t))
			}
		default:
			p.tasks[t.ID] = t
		}
	}
	return nil
}

func (p *pass) overdue(t *Task) bool {
	return t.MaxWait > 0 && p.now.Sub(t.CreatedAt) >= t.MaxWait
}

// roams says whether any task may go to more than one instance.
func (p *pass) roams() bool {
	for _, t := range p.tasks {
		if t.Pinned == "" {
			return true
		}
	}
	return false
}

func (p *pass) readInstances(ctx context.Context, k Kick) error {
	ids := append([]string{k.Instance}, k.Others...)
	for after := ""; p.roams(); {
		more, next, err := p.c.Store.InstanceIDs(ctx, k.Cluster, Page{After: after})
		if err != nil {
			return err
		}
		ids = append(ids, more...)
		if after = next; next == "" {
			break
		}
	}
	for _, t := range p.tasks {
		ids = append(ids, t.Pinned)
	}
	slices.Sort(ids)
	var records []Record
	var all []*Instance
	for _, id := range slices.Compact(ids) {
		if id == "" {
			continue
		}
		in, l := &Instance{ID: id}, &Ledger{ID: id}
		all, records, p.ledgers[id] = append(all, in), append(records, in, l), l
	}
	if len(records) == 0 {
		return nil
	}
	if err := p.c.Store.Load(ctx, records...); err != nil {
		return err
	}
	for _, in := range all {
		if l := p.ledgers[in.ID]; in.Version > 0 && l.Version > 0 && in.Cluster == k.Cluster && l.Status != Inactive {
			p.instances = append(p.instances, in)
		}
	}
	return nil
}

// readGroups counts the open tasks of each group that a strategy spreads. It is
// a preference, so a lagging index will do; a large group is judged by a part.
func (p *pass) readGroups(ctx context.Context) error {
	for _, t := range p.tasks {
		spreads := slices.ContainsFunc(t.Strategy, func(s Placement) bool { return s.Type == placement.Spread })
		if _, done := p.groups[t.Group]; done || !spreads {
			continue
		}
		ids, _, err := p.c.Store.TaskIDs(ctx, TaskQuery{Cluster: t.Cluster, Group: t.Group}, Page{Limit: groupTasksAtAll})
		if err != nil {
			return err
		}
		members := make([]*Task, len(ids))
		for i, id := range ids {
			members[i] = &Task{ID: id}
		}
		if err := load(ctx, p.c.Store, members); err != nil {
			return err
		}
		count := map[string]int{}
		for _, m := range members {
			if m.LastStatus.Open() {
				count[m.Instance]++
			}
		}
		p.groups[t.Group] = count
	}
	return nil
}

func (p *pass) input() placement.Input {
	in := placement.Input{
		Now:           p.now,
		GroupTasks:    p.groups,
		Earmark:       placement.Earmark{Task: p.state.EarmarkTask, Instance: p.state.EarmarkInstance, Until: p.state.EarmarkUntil},
		StarvationAge: p.c.Setting.StarvationAge,
		EarmarkFor:    p.c.Setting.EarmarkFor,
		Random:        rand.IntN,
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
	return c.assign(ctx, admitted...)
}

// assign sends the assigns of admitted tasks; a send that fails is the sweep's.
func (c *Control) assign(ctx context.Context, tasks ...*Task) error {
	if len(tasks) == 0 {
		return nil
	}
	messages, err := c.assignments(ctx, tasks...)
	c.send(ctx, messages...)
	return err
}

func (p *pass) instance(id string) *Instance {
	i := slices.IndexFunc(p.instances, func(in *Instance) bool { return in.ID == id })
	return p.instances[i]
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
	s.EarmarkTask, s.EarmarkInstance, s.EarmarkUntil, s.Cursor = e.Task, e.Instance, e.Until, p.next
	if s.EarmarkTask == p.state.EarmarkTask && s.EarmarkInstance == p.state.EarmarkInstance && s.EarmarkUntil.Equal(p.state.EarmarkUntil) && s.Cursor == p.state.Cursor {
		return nil
	}
	if err := c.Store.Commit(ctx, Put(&s)); err != nil && !fault.Is(err, fault.Conflict) {
		return fmt.Errorf("write admission state of cluster %s: %w", s.Cluster, err)
	}
	return nil
}

// measureQueue tells waiting demand, for alarms and Auto Scaling.
func (c *Control) measureQueue(p *pass, demand []placement.Demand) {
	oldest, cpu, memory, gpus, count := time.Duration(0), 0, 0, 0, 0
	for _, d := range demand {
		oldest = max(oldest, p.now.Sub(d.Oldest))
		cpu += d.Count * d.Needs.CPU
		memory += d.Count * d.Needs.MemoryMiB
		gpus += d.Count * d.Needs.GPUs
		count += d.Count
		c.Log.Info("waiting demand", logkey.Cluster, p.state.Cluster, "shape", d.Shape, logkey.Count, d.Count, logkey.Reason, d.Reason)
	}
	for name, v := range map[string]float64{"OldestWaitingSeconds": oldest.Seconds(), "WaitingTasks": float64(count), "WaitingCPU": float64(cpu), "WaitingMemoryMiB": float64(memory), "WaitingGPUs": float64(gpus)} {
		c.Metrics.Count(name, v, "Cluster", p.state.Cluster)
	}
	c.Metrics.Count("OldestWaitingSeconds", oldest.Seconds())
}
