package control

import (
	"context"

	"github.com/longshore-run/longshore/shared/task"
)

// expire ends a task that has waited longer than it was to.
func (c *Control) expire(ctx context.Context, t *Task) error {
	return c.withdrawTask(ctx, t.ID, func(*Task) ending { return ending{cause: task.MaxWaitCause} })
}

// withdrawTask ends a waiting task, if it still waits: nothing was held (I3).
func (c *Control) withdrawTask(ctx context.Context, id string, why func(*Task) ending) error {
	t := &Task{ID: id}
	var missed *ScheduledRun
	err := c.decide(ctx, "withdraw task "+id, func() ([]Write, error) {
		if err := c.Store.Load(ctx, t); err != nil {
			return nil, err
		}
		if t.LastStatus != task.Provisioning {
			return nil, errGiveUp
		}
		live, err := c.liveOf(ctx, t)
		if err != nil {
			return nil, err
		}
		e, waitedFor := why(t), t.WaitingReason
		e.now, e.keepFor = c.Now(), c.Setting.StoppedTasksFor
		withdraw(t, e)
		var noted []Write
		if noted, missed, err = c.missScheduled(ctx, t, waitedFor); err != nil {
			return nil, err
		}
		return append(append(countDown(live, t), noted...), Put(t)), nil
	})
	if err == nil && missed != nil {
		c.tellMissed(ctx, t.Schedule, *missed)
	}
	if err == nil && t.Service != "" {
		c.kickServices(ctx, Kick{Cluster: t.Cluster, Service: t.Service, Tasks: []string{t.ID}})
	}
	return err
}
