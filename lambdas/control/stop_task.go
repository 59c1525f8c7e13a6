package control

import (
	"context"
	"unicode/utf8"

	"github.com/longshore-run/longshore/shared/task"
)

const maxStopReason = 1024

// StopTask makes a task's desired status STOPPED (I3). One that still waits is
// STOPPED by the same write, and holds nothing that could be released; one that
// has an instance ends when its agent says so.
func (c *Control) StopTask(ctx context.Context, cluster, id, reason string) (*TaskView, error) {
	if n := utf8.RuneCountInString(reason); n > maxStopReason {
		return nil, invalid("reason", "has %d characters; at most %d are allowed", n, maxStopReason)
	}
	if reason == "" {
		reason = task.EndOf(task.UserCause).Reason
	}
	k, t := &Cluster{Name: cluster}, &Task{ID: id}
	withdrawn := false
	err := c.decide(ctx, "stop task "+id, func() ([]Write, error) {
		withdrawn = false
		if err := c.Store.Load(ctx, t, k); err != nil {
			return nil, err
		}
		switch {
		case k.Version == 0:
			return nil, clusterNotFound()
		case t.Version == 0 || t.Cluster != cluster || expired(t.ExpiresAt, c.Now()):
			return nil, taskNotFound()
		case t.LastStatus == task.Provisioning:
			live, err := c.liveOf(ctx, t)
			if err != nil {
				return nil, err
			}
			withdrawn = true
			withdraw(t, ending{cause: task.UserCause, reason: reason, now: c.Now(), keepFor: c.Setting.StoppedTasksFor})
			return append(countDown(live, t), Put(t)), nil
		case t.LastStatus == task.Stopped || t.DesiredStatus == task.DesiredStopped:
			return nil, errGiveUp
		}
		t.LastStatus = move(t.LastStatus, task.StopRequested)
		t.DesiredStatus, t.StopCause, t.StoppedReason = task.DesiredStopped, task.UserCause, reason
		t.Dispatched, t.DispatchAt = 1, c.Now().Add(dispatchWait(1))
		return []Write{Put(t)}, nil
	})
	if err != nil {
		return nil, err
	}
	if t.LastStatus.Open() { // also when it was asked before: that message may be lost
		c.send(ctx, stopMessage(t))
	}
	if withdrawn && t.Service != "" {
		c.kickServices(ctx, Kick{Cluster: cluster, Service: t.Service, Tasks: []string{id}})
	}
	views, err := c.views(ctx, []*Task{t})
	if err != nil {
		return nil, err
	}
	return &views[0], nil
}
