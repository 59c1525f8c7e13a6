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
	p := &pass{c: c, now: c.Now(), tasks: map[string]*Task{t.ID: t}, groups: map[string]map[string]int{}, state: &QueueState{Cluster: t.Cluster}}
	waiting := *t
	err = c.decide(ctx, "admit task "+t.ID, func() ([]Write, error) {
		*t = waiting
		if err := p.readEarmark(ctx); err != nil {
			return nil, err
		}
		if err := p.readInstances(ctx, Kick{Cluster: t.Cluster}); err != nil {
			return nil, err
		}
		if err := p.readGroups(ctx); err != nil {
			return nil, err
		}
		out := p.planNow(ctx)
		if len(out.Assign) == 0 && !p.whole() {
			if err := p.readRest(ctx, t.Cluster); err != nil {
				return nil, err
			}
			out = p.planNow(ctx)
		}
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
	if err := c.assign(ctx, map[string]*Definition{}, t); err != nil {
		c.Log.ErrorContext(ctx, "assign not made; the sweep tries again", logkey.Task, t.ID, logkey.Error, err)
	}
	return "", nil
}

// planNow is a plan for a task that does not wait: it earmarks nothing.
func (p *pass) planNow(ctx context.Context) placement.Output {
	in := p.input(ctx)
	in.StarvationAge, in.Bystander, in.Enough = 1<<62, true, nil
	return placement.Plan(in)
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
