package control

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/longshore-run/longshore/lambdas/internal/placement"
	"github.com/longshore-run/longshore/shared/task"
)

// This file is what an admission pass reads, in few calls, of what may be much.

// newPass reads what a pass decides about; nil if there is nothing to decide.
func (c *Control) newPass(ctx context.Context, k Kick) (*pass, error) {
	p := &pass{
		c: c, now: c.Now(), state: &QueueState{Cluster: k.Cluster}, tasks: map[string]*Task{},
		groups: map[string]map[string]int{}, definitions: map[string]*Definition{}, shares: map[string][]string{},
	}
	if d, ok := ctx.Deadline(); ok {
		p.deadline = p.now.Add(time.Until(d) - passEndsBefore)
	}
	query := TaskQuery{Cluster: k.Cluster, Waiting: ForRoom}
	head, next, err := c.Store.TaskIDs(ctx, query, Page{Limit: passHead})
	if err != nil {
		return nil, err
	}
	if len(head)+len(k.Tasks) == 0 { // as most ends of tasks find it
		c.measureQueue(p, nil)
		return nil, nil
	}
	cluster := &Cluster{Name: k.Cluster}
	read := tasksNamed(append(head, k.Tasks...))
	if err := c.Store.Load(ctx, append(recordsOf(read), cluster, p.state)...); err != nil {
		return nil, err
	}
	if cluster.Version == 0 || cluster.Status != "ACTIVE" {
		return nil, nil
	}
	if p.state.Cursor != "" {
		next = p.state.Cursor
	}
	if p.next = next; next != "" && onlyNew(k, read) {
		p.next, p.part, next = p.state.Cursor, true, ""
	}
	rest, err := p.rest(ctx, query, next, read)
	if err != nil {
		return nil, err
	}
	p.take(ctx, append(read, rest...))
	if len(p.tasks) == 0 && p.state.EarmarkTask == "" && p.state.Cursor == p.next {
		c.measureQueue(p, nil)
		return nil, errors.Join(p.errs...)
	}
	if err := p.readInstances(ctx, k, p.newDefinitions()...); err != nil {
		return nil, err
	}
	return p, p.readGroups(ctx)
}

// onlyNew says whether a kick is about new tasks alone: then those that no pass
// found a place for have none now either, and are left to the kicks that tell of
// room, and to the sweep's, which name some of them.
func onlyNew(k Kick, read []*Task) bool {
	return k.Instance == "" && len(k.Tasks) > 0 && !slices.ContainsFunc(read, func(t *Task) bool {
		return t.WaitingReason != "" && slices.Contains(k.Tasks, t.ID)
	})
}

// rest loads what waits from there on, beyond the oldest few, and the earmark's task.
func (p *pass) rest(ctx context.Context, query TaskQuery, from string, read []*Task) ([]*Task, error) {
	var ids []string
	for from != "" && len(read)+len(ids) < passTasks {
		more, next, err := p.c.Store.TaskIDs(ctx, query, Page{After: from})
		if err != nil {
			return nil, err
		}
		ids, from, p.next = append(ids, more...), next, next
	}
	ids = append(ids, p.state.EarmarkTask)
	known := map[string]bool{}
	for _, t := range read {
		known[t.ID] = true
	}
	rest := tasksNamed(slices.DeleteFunc(ids, func(id string) bool { return known[id] }))
	return rest, load(ctx, p.c.Store, rest)
}

// tasksNamed makes a record of each id, once and in their order; "" names none.
func tasksNamed(ids []string) []*Task {
	slices.Sort(ids)
	ids = slices.Compact(ids)
	return tasksOf(slices.DeleteFunc(ids, func(id string) bool { return id == "" }))
}

// take keeps the tasks that wait, and ends those that have waited too long.
func (p *pass) take(ctx context.Context, all []*Task) {
	for _, t := range all {
		switch {
		case t.LastStatus != task.Provisioning || t.Cluster != p.state.Cluster:
		case p.overdue(t):
			if !p.out(ctx) {
				p.errs = append(p.errs, p.c.expire(ctx, t))
			}
		default:
			p.tasks[t.ID] = t
		}
	}
}

// newDefinitions are those of the tasks that no pass has looked at: most likely
// they will be sent in a moment, and read with the instances they cost no call.
func (p *pass) newDefinitions() (records []Record) {
	for _, id := range slices.Sorted(maps.Keys(p.tasks)) {
		t := p.tasks[id]
		name := DefinitionName(t.Family, t.Number)
		if t.WaitingReason != "" || p.definitions[name] != nil || len(records) == passDefinitions {
			continue
		}
		d := &Definition{Family: t.Family, Number: t.Number}
		p.definitions[name] = d
		records = append(records, d)
	}
	return records
}

func (p *pass) overdue(t *Task) bool {
	return t.MaxWait > 0 && p.now.Sub(t.CreatedAt) >= t.MaxWait
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
