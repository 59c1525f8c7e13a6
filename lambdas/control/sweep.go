package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/logkey"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

// sweepAtMost bounds what one sweep repeats or ends for one cluster.
const sweepAtMost = 500

// Sweep backs up every wake-up and every command (Q9): whatever was lost is
// made up here, after a strong read, at growing intervals.
func (c *Control) Sweep(ctx context.Context) error {
	var errs []error
	for after := ""; ; {
		names, next, err := c.Store.Clusters(ctx, Page{After: after})
		if err != nil {
			return errors.Join(append(errs, fmt.Errorf("list clusters: %w", err))...)
		}
		for _, name := range names {
			if outOfTime(ctx) { // the next run goes on: what was repeated is not due again
				return errors.Join(errs...)
			}
			if err := c.sweepCluster(ctx, name); err != nil {
				errs = append(errs, fmt.Errorf("sweep cluster %s: %w", name, err))
			}
		}
		if after = next; next == "" {
			return errors.Join(errs...)
		}
	}
}

func (c *Control) sweepCluster(ctx context.Context, name string) error {
	cluster := &Cluster{Name: name}
	if err := c.Store.Load(ctx, cluster); err != nil {
		return err
	}
	var errs []error
	if cluster.Status == "ACTIVE" {
		errs = append(errs, c.sweepQueue(ctx, name), c.sweepServices(ctx, name))
	} else {
		errs = append(errs, c.endWaiting(ctx, name))
	}
	return errors.Join(append(errs, c.repeat(ctx, name, ForSign), c.repeat(ctx, name, ForEnd))...)
}

// sweepQueue wakes admission if anything waits there.
func (c *Control) sweepQueue(ctx context.Context, cluster string) error {
	ids, _, err := c.Store.TaskIDs(ctx, TaskQuery{Cluster: cluster, Waiting: ForRoom}, Page{Limit: 10})
	if err != nil || len(ids) == 0 {
		return err
	}
	c.kick(ctx, Kick{Cluster: cluster, Tasks: ids})
	return c.measureWaiting(ctx, cluster, ids)
}

// sweepServices wakes those who serve the cluster's services, if it has any.
func (c *Control) sweepServices(ctx context.Context, cluster string) error {
	names, _, err := c.Store.Services(ctx, cluster, Page{Limit: 1})
	if err != nil || len(names) == 0 {
		return err
	}
	c.kickServices(ctx, Kick{Cluster: cluster})
	return nil
}

// measureWaiting tells how long the oldest tasks have waited, as admission does:
// also when admission does not get that far.
func (c *Control) measureWaiting(ctx context.Context, cluster string, oldest []string) error {
	tasks := tasksOf(oldest)
	if err := load(ctx, c.Store, tasks); err != nil {
		return err
	}
	longest := time.Duration(0)
	for _, t := range tasks {
		if t.LastStatus == task.Provisioning {
			longest = max(longest, c.Now().Sub(t.CreatedAt))
		}
	}
	c.Metrics.Count("OldestWaitingSeconds", longest.Seconds(), "Cluster", cluster)
	c.Metrics.Count("OldestWaitingSeconds", longest.Seconds())
	return nil
}

// endWaiting ends what waits in a cluster that was deleted.
func (c *Control) endWaiting(ctx context.Context, cluster string) error {
	ids, _, err := c.Store.TaskIDs(ctx, TaskQuery{Cluster: cluster, Waiting: ForRoom}, Page{Limit: sweepAtMost})
	if err != nil {
		return err
	}
	var errs []error
	for _, id := range ids {
		if outOfTime(ctx) {
			break
		}
		errs = append(errs, c.withdrawTask(ctx, id, func(*Task) ending { return ending{cause: task.ClusterGoneCause} }))
	}
	return errors.Join(errs...)
}

// repeat sends again the assigns that nothing has shown, or the stops that have
// not ended, if their next time has come. Those that can not be sent now do not
// count: any number of them may be the oldest.
func (c *Control) repeat(ctx context.Context, cluster string, what Waiting) error {
	var errs []error
	sent := 0
	for after := ""; sent < sweepAtMost && !outOfTime(ctx); {
		ids, next, err := c.Store.TaskIDs(ctx, TaskQuery{Cluster: cluster, Waiting: what}, Page{After: after, Limit: sweepAtMost})
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
		n, err := c.repeatSome(ctx, ids, what)
		if sent, errs = sent+n, append(errs, err); next == "" {
			break
		}
		after = next
	}
	return errors.Join(errs...)
}

// repeatSome is repeat for some tasks, and says how many were due.
func (c *Control) repeatSome(ctx context.Context, ids []string, what Waiting) (due int, err error) {
	tasks := tasksOf(ids)
	if err := load(ctx, c.Store, tasks); err != nil {
		return 0, err
	}
	hosts, err := c.hostsOf(ctx, tasks)
	if err != nil {
		return 0, err
	}
	var errs []error
	var assign []*Task
	var stops []wire.Message
	for _, t := range tasks {
		if t.WaitingFor() != what || t.DispatchAt.After(c.Now()) || !hosts[t.Instance].reaches(t, what) {
			continue
		}
		if outOfTime(ctx) {
			break
		}
		due++
		t.Dispatched++
		t.DispatchAt = c.Now().Add(dispatchWait(t.Dispatched))
		if err := c.Store.Commit(ctx, Put(t)); err != nil {
			if !fault.Is(err, fault.Conflict) {
				errs = append(errs, fmt.Errorf("note that task %s is sent again: %w", t.ID, err))
			}
			continue
		}
		c.Log.InfoContext(ctx, "command repeated", logkey.Task, t.ID, logkey.Attempt, t.Attempt, logkey.Instance, t.Instance, logkey.Count, t.Dispatched, "what", what)
		if what == ForSign {
			assign = append(assign, t)
		} else {
			stops = append(stops, stopMessage(t))
		}
	}
	c.send(ctx, stops...)
	return due, errors.Join(append(errs, c.assign(ctx, map[string]*Definition{}, assign...))...)
}

// host is what decides whether a command may go to an instance.
type host struct {
	in     *Instance
	ledger *Ledger
	lease  *Lease
}

func (c *Control) hostsOf(ctx context.Context, tasks []*Task) (map[string]*host, error) {
	hosts := map[string]*host{}
	var records []Record
	for _, t := range tasks {
		if t.Instance == "" || hosts[t.Instance] != nil {
			continue
		}
		h := &host{&Instance{ID: t.Instance}, &Ledger{ID: t.Instance}, &Lease{ID: t.Instance}}
		hosts[t.Instance] = h
		records = append(records, h.in, h.ledger, h.lease)
	}
	if len(records) == 0 {
		return hosts, nil
	}
	return hosts, c.Store.Load(ctx, records...)
}

// reaches: an assign goes only to the connected incarnation and epoch the task
// was given to; a stop to every instance that is not LOST.
func (h *host) reaches(t *Task, what Waiting) bool {
	if h == nil || h.lease.Version == 0 || h.lease.Stage == StageLost {
		return false
	}
	return what == ForEnd || h.ledger.Connected && h.ledger.Epoch == t.Epoch && h.in.Incarnation == t.Incarnation
}
