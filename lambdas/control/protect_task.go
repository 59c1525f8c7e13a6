package control

import (
	"context"
	"fmt"
	"time"

	"github.com/longshore-run/longshore/shared/task"
)

const (
	maxProtect        = 10
	defaultProtection = 2 * time.Hour
	maxProtection     = 48 * time.Hour
	reasonNotValid    = "TASK_NOT_VALID"
)

// Protection is a task's protection from being stopped by its service.
type Protection struct {
	Task  string // its id
	Until time.Time
}

// TaskProtection tells which of some tasks of a cluster are protected. A task
// that could not be is a failure, as in ECS.
func (c *Control) TaskProtection(ctx context.Context, cluster string, ids []string) (found []Protection, failures []Failure, err error) {
	if len(ids) == 0 || len(ids) > DescribeAtOnce {
		return nil, nil, invalid("tasks", "has %d entries; 1 to %d are allowed", len(ids), DescribeAtOnce)
	}
	k, all := &Cluster{Name: cluster}, tasksOf(unique(ids))
	if err := c.Store.Load(ctx, append(recordsOf(all), k)...); err != nil {
		return nil, nil, fmt.Errorf("read task protection: %w", err)
	}
	if err := k.mustBeActive(); err != nil {
		return nil, nil, err
	}
	for _, t := range all {
		if f := c.unprotectable(cluster, t); f != nil {
			failures = append(failures, *f)
			continue
		}
		found = append(found, c.protectionOf(t))
	}
	return found, failures, nil
}

// protectionOf is a task's protection; one that is over is none.
func (c *Control) protectionOf(t *Task) Protection {
	p := Protection{Task: t.ID}
	if t.ProtectedUntil.After(c.Now()) {
		p.Until = t.ProtectedUntil
	}
	return p
}

// unprotectable says why a task can have no protection, in ECS's words.
func (c *Control) unprotectable(cluster string, t *Task) *Failure {
	arn := c.TaskARN(cluster, t.ID)
	switch {
	case t.Version == 0 || t.Cluster != cluster || expired(t.ExpiresAt, c.Now()):
		return &Failure{ARN: arn, Reason: reasonMissing}
	case t.Service == "":
		return &Failure{ARN: arn, Reason: reasonNotValid, Detail: "The task does not belong to a service."}
	case t.LastStatus == task.Stopped:
		return &Failure{ARN: arn, Reason: reasonNotValid, Detail: "The task is stopped."}
	}
	return nil
}

// ProtectTasks protects tasks of services for a while from being stopped by
// their service (0: two hours), or ends that. The time begins anew at each call.
func (c *Control) ProtectTasks(ctx context.Context, cluster string, ids []string, protect bool, lasting time.Duration) (found []Protection, failures []Failure, err error) {
	if len(ids) == 0 || len(ids) > maxProtect {
		return nil, nil, invalid("tasks", "has %d entries; 1 to %d are allowed", len(ids), maxProtect)
	}
	if lasting == 0 {
		lasting = defaultProtection
	}
	if lasting < time.Minute || lasting > maxProtection {
		return nil, nil, invalid("expiresInMinutes", "is %d; 1 to %d are allowed", lasting/time.Minute, maxProtection/time.Minute)
	}
	if err := c.cluster(ctx, cluster); err != nil {
		return nil, nil, err
	}
	for _, id := range unique(ids) {
		t := &Task{ID: id}
		var failure *Failure
		err := c.decide(ctx, "protect task "+id, func() ([]Write, error) {
			if err := c.Store.Load(ctx, t); err != nil {
				return nil, err
			}
			if failure = c.unprotectable(cluster, t); failure != nil {
				return nil, errGiveUp
			}
			t.ProtectedUntil = time.Time{}
			if protect {
				t.ProtectedUntil = c.Now().Add(lasting)
			}
			return []Write{Put(t)}, nil
		})
		switch {
		case err != nil:
			return nil, nil, err
		case failure != nil:
			failures = append(failures, *failure)
		default:
			found = append(found, c.protectionOf(t))
			if !protect { // what was held off may go on
				c.kickServices(ctx, Kick{Cluster: cluster, Service: t.Service})
			}
		}
	}
	return found, failures, nil
}
