package control

import (
	"context"
	"fmt"

	"github.com/longshore-run/longshore/shared/task"
)

// TaskCount is how many tasks something has that hold room (Running), or wait
// for it or for their start (Pending).
type TaskCount struct{ Running, Pending int }

// ClusterView is a cluster as it is described.
type ClusterView struct {
	Cluster
	Instances int // neither INACTIVE nor LOST
	Tasks     TaskCount
	Services  int // ACTIVE
	Draining  int // services
}

// countedAtMost bounds how many tasks one call reads to tell PENDING from
// RUNNING; what is beyond counts as running.
const countedAtMost = 2000

// DescribeClusters describes clusters by name; those that never were are missing.
func (c *Control) DescribeClusters(ctx context.Context, names []string) (found []ClusterView, missing []string, err error) {
	if len(names) > DescribeAtOnce {
		return nil, nil, invalid("clusters", "has %d entries; at most %d are allowed", len(names), DescribeAtOnce)
	}
	var all []*Cluster
	for _, name := range unique(names) {
		all = append(all, &Cluster{Name: name})
	}
	if err := load(ctx, c.Store, all); err != nil {
		return nil, nil, fmt.Errorf("describe clusters: %w", err)
	}
	for _, k := range all {
		if k.Version == 0 {
			missing = append(missing, k.Name)
			continue
		}
		v := ClusterView{Cluster: *k}
		if k.Status == ClusterActive {
			if err := c.countCluster(ctx, &v); err != nil {
				return nil, nil, fmt.Errorf("describe cluster %s: %w", k.Name, err)
			}
		}
		found = append(found, v)
	}
	return found, missing, nil
}

func (c *Control) countCluster(ctx context.Context, v *ClusterView) error {
	ledgers, err := c.ledgersOf(ctx, v.Name)
	if err != nil {
		return err
	}
	leases := make([]*Lease, len(ledgers))
	for i, l := range ledgers {
		leases[i] = &Lease{ID: l.ID}
	}
	if err := load(ctx, c.Store, leases); err != nil {
		return err
	}
	var counted []*Ledger
	for i, l := range ledgers {
		if l.Status != Inactive && leases[i].Stage != StageLost {
			counted = append(counted, l)
		}
	}
	v.Instances = len(counted)
	n, err := c.countTasks(ctx, counted)
	if err != nil {
		return err
	}
	for _, x := range n {
		v.Tasks.Running += x.Running
		v.Tasks.Pending += x.Pending
	}
	waiting, err := c.countWaiting(ctx, v.Name)
	v.Tasks.Pending += waiting
	if err != nil {
		return err
	}
	return c.countServices(ctx, v)
}

func (c *Control) countServices(ctx context.Context, v *ClusterView) error {
	services, err := c.services(ctx, v.Name)
	for _, s := range services {
		if s.Status == ServiceActive {
			v.Services++
		} else {
			v.Draining++
		}
	}
	return err
}

// countTasks counts the open tasks of instances, by instance. Their number is the ledger's
// own; which of them still pend is read through an index, and what that does not
// show yet has only just been admitted: it pends.
func (c *Control) countTasks(ctx context.Context, ledgers []*Ledger) (map[string]TaskCount, error) {
	n := map[string]TaskCount{}
	var tasks []*Task
	for _, l := range ledgers {
		if l.Open == 0 || len(tasks) >= countedAtMost {
			n[l.ID] = TaskCount{Running: l.Open}
			continue
		}
		ids, _, err := c.Store.TaskIDs(ctx, TaskQuery{OnInstance: l.ID}, Page{})
		if err != nil {
			return n, err
		}
		tasks = append(tasks, tasksOf(ids)...)
		n[l.ID] = TaskCount{Pending: l.Open}
	}
	if err := load(ctx, c.Store, tasks); err != nil {
		return n, err
	}
	for _, t := range tasks {
		if x, ok := n[t.Instance]; ok && t.LastStatus != task.Pending && t.LastStatus.Open() && x.Pending > 0 {
			n[t.Instance] = TaskCount{x.Running + 1, x.Pending - 1}
		}
	}
	return n, nil
}

// countWaiting counts the tasks that wait for room, as the index shows them.
func (c *Control) countWaiting(ctx context.Context, cluster string) (n int, err error) {
	for after := ""; n < countedAtMost*5; {
		ids, next, err := c.Store.TaskIDs(ctx, TaskQuery{Cluster: cluster, Waiting: ForRoom}, Page{After: after})
		if err != nil {
			return 0, err
		}
		n += len(ids)
		if after = next; next == "" {
			break
		}
	}
	return n, nil
}
