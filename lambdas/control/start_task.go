package control

import (
	"context"
	"fmt"

	"github.com/longshore-run/longshore/shared/logkey"
)

const maxStartInstances = 10

// StartTaskRequest asks for a task on each of the instances, at once.
type StartTaskRequest struct {
	TaskRequest
	Instances []string
}

// StartTask places a task on each instance named, or says why it can not. Such
// a task never waits: refused by its agent, it ends.
func (c *Control) StartTask(ctx context.Context, r StartTaskRequest) (*Run, error) {
	if n := len(r.Instances); n < 1 || n > maxStartInstances {
		return nil, invalid("containerInstances", "has %d entries; 1 to %d are allowed", n, maxStartInstances)
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	o, err := c.originOf(ctx, &r.TaskRequest, nil, "")
	if err != nil {
		return nil, err
	}
	o.task.NoWait, o.task.MaxWait = true, 0
	ids := unique(r.Instances)
	var records []Record
	for _, id := range ids {
		records = append(records, &Ledger{ID: id})
	}
	if err := c.Store.Load(ctx, records...); err != nil {
		return nil, fmt.Errorf("start task: %w", err)
	}
	run := &Run{}
	var placed []*Task
	for i, id := range ids {
		l := records[i].(*Ledger)
		arn := c.InstanceARN(r.Cluster, id)
		switch {
		case l.Version == 0 || l.Cluster != r.Cluster:
			run.fail(arn, reasonMissing)
			continue
		case l.Status == Inactive:
			run.fail(arn, reasonInactive)
			continue
		}
		t := o.with(c.NewID())
		t.Pinned = id
		reason, err := c.AdmitNow(ctx, t)
		switch {
		case err != nil && len(placed) == 0:
			return nil, fmt.Errorf("start task on %s: %w", id, err)
		case err != nil: // what was placed must be told
			c.Log.ErrorContext(ctx, "task not started", logkey.Instance, id, logkey.Error, err)
			reason = reasonUnavailable
		}
		if reason != "" {
			run.fail(arn, reason)
			continue
		}
		placed = append(placed, t)
	}
	run.Tasks, err = c.views(ctx, placed)
	return run, err
}
