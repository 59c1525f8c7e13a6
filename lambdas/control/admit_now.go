package control

import (
	"context"

	"github.com/longshore-run/longshore/lambdas/internal/placement"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/logkey"
	"github.com/longshore-run/longshore/shared/task"
)

// AdmitNow decides at once about a task that is not stored yet and is not to
// wait: it is stored as admitted, in one transaction with also, or not at all.
// The reason, in ECS's words, is "" if it was admitted.
func (c *Control) AdmitNow(ctx context.Context, t *Task, also ...Write) (reason string, err error) {
	p := &pass{c: c, now: c.Now(), tasks: map[string]*Task{t.ID: t}, ledgers: map[string]*Ledger{}, groups: map[string]map[string]int{}, shares: map[string][]string{}}
	p.state = &QueueState{Cluster: t.Cluster}
	waiting := *t
	err = c.decide(ctx, "admit task "+t.ID, func() ([]Write, error) {
		*t = waiting
		p.instances = nil
		if err := p.readEarmark(ctx); err != nil {
			return nil, err
		}
		if err := p.readInstances(ctx, Kick{Cluster: t.Cluster}); err != nil {
			return nil, err
		}
		if err := p.readGroups(ctx); err != nil {
			return nil, err
		}
		in := p.input()
		in.StarvationAge, in.Bystander = 1<<62, true // a task that does not wait earmarks nothing
		out := placement.Plan(in)
		if len(out.Assign) == 0 {
			reason = out.Reasons[t.ID]
			return nil, errGiveUp
		}
		l := p.ledgers[out.Assign[0].Instance]
		if err := admit(t, l, p.instance(l.ID), c.Now()); err != nil {
			return nil, fault.Wrap(fault.Conflict, err, "plan and ledger differ")
		}
		reason = ""
		return append([]Write{Put(t), Put(l)}, also...), nil
	})
	if err != nil || reason != "" {
		*t = waiting
		return reason, err
	}
	if err := c.assign(ctx, t); err != nil {
		c.Log.ErrorContext(ctx, "assign not made; the sweep tries again", logkey.Task, t.ID, logkey.Error, err)
	}
	return "", nil
}

// readEarmark loads the cluster's earmark, if it still keeps room for a task
// that waits.
func (p *pass) readEarmark(ctx context.Context) error {
	if err := p.c.Store.Load(ctx, p.state); err != nil || p.state.EarmarkTask == "" {
		return err
	}
	starving := &Task{ID: p.state.EarmarkTask}
	if err := p.c.Store.Load(ctx, starving); err != nil {
		return err
	}
	if starving.LastStatus != task.Provisioning || !p.now.Before(p.state.EarmarkUntil) {
		p.state.EarmarkTask, p.state.EarmarkInstance = "", ""
	}
	return nil
}
