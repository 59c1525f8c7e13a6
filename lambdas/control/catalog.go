package control

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/logkey"
	"github.com/longshore-run/longshore/shared/task"
)

// A cluster's statuses.
const (
	ClusterActive   = "ACTIVE"
	ClusterInactive = "INACTIVE"
)

// DefaultCluster is the cluster meant by a request that names none.
const DefaultCluster = "default"

// withdrawAtOnce bounds how many waiting tasks the call that deletes their
// cluster ends itself; the sweep ends the rest.
const withdrawAtOnce = 200

// ClusterRequest is a cluster to create.
type ClusterRequest struct {
	Name     string
	Tags     map[string]string
	Settings json.RawMessage
}

// CreateCluster makes a cluster, or returns the ACTIVE one of the name as it is.
func (c *Control) CreateCluster(ctx context.Context, req ClusterRequest) (*Cluster, error) {
	if !nameForm.MatchString(req.Name) {
		return nil, invalid("clusterName", "must be 1 to 255 letters, digits, hyphens and underscores")
	}
	if err := c.checkClusterTags(req.Tags); err != nil {
		return nil, err
	}
	k := &Cluster{Name: req.Name}
	err := c.decide(ctx, "create cluster "+req.Name, func() ([]Write, error) {
		if err := c.Store.Load(ctx, k); err != nil {
			return nil, err
		}
		if k.Status == ClusterActive {
			return nil, errGiveUp
		}
		k.Status, k.Tags, k.Settings, k.CreatedAt = ClusterActive, req.Tags, req.Settings, c.Now()
		return []Write{Put(k)}, nil
	})
	return k, err
}

// EnsureCluster makes the cluster with nothing but its name, if it is not there.
func (c *Control) EnsureCluster(ctx context.Context, name string) (*Cluster, error) {
	return c.CreateCluster(ctx, ClusterRequest{Name: name})
}

// ListClusters lists the ACTIVE clusters' names.
func (c *Control) ListClusters(ctx context.Context, cursor Cursor, limit int) ([]string, Cursor, error) {
	keep := func(ctx context.Context, _ string, names []string) ([]bool, error) {
		all := make([]*Cluster, len(names))
		for i, n := range names {
			all[i] = &Cluster{Name: n}
		}
		err := load(ctx, c.Store, all)
		return keepIf(all, func(k *Cluster) bool { return k.Status == ClusterActive }), err
	}
	return walk(ctx, cursor, limit, []source{{page: c.Store.Clusters}}, keep)
}

// DeleteCluster makes an empty cluster INACTIVE, and ends the tasks that wait
// in it. Emptiness is judged by indexes, which may lag: an instance that
// registers at the same moment finds its cluster INACTIVE and gets no work.
func (c *Control) DeleteCluster(ctx context.Context, name string) (*Cluster, error) {
	k := &Cluster{Name: name}
	err := c.decide(ctx, "delete cluster "+name, func() ([]Write, error) {
		if err := c.Store.Load(ctx, k); err != nil {
			return nil, err
		}
		switch {
		case k.Version == 0:
			return nil, clusterNotFound()
		case k.Status == ClusterInactive:
			return nil, errGiveUp
		}
		if err := c.mustBeEmpty(ctx, name); err != nil {
			return nil, err
		}
		k.Status = ClusterInactive
		return []Write{Put(k)}, nil
	})
	if err != nil {
		return nil, err
	}
	c.emptyQueue(ctx, name)
	return k, nil
}

// mustBeEmpty says what a cluster still has that keeps it from being deleted.
func (c *Control) mustBeEmpty(ctx context.Context, cluster string) error {
	ledgers, err := c.ledgersOf(ctx, cluster)
	if err != nil {
		return err
	}
	refuse := func(code, what string) error {
		return fault.New(fault.Invalid, "The Cluster cannot be deleted while %s.", what).WithCode(code)
	}
	switch {
	case slices.ContainsFunc(ledgers, func(l *Ledger) bool { return l.Status != Inactive }):
		return refuse("ClusterContainsContainerInstancesException", "Container Instances are active or draining")
	case slices.ContainsFunc(ledgers, func(l *Ledger) bool { return l.Open > 0 }):
		return refuse("ClusterContainsTasksException", "Tasks are active")
	}
	services, err := c.services(ctx, cluster)
	if err == nil && len(services) > 0 {
		return refuse("ClusterContainsServicesException", "Services are active")
	}
	return err
}

// emptyQueue ends tasks that wait in a deleted cluster. What fails or is too
// much is left to the sweep.
func (c *Control) emptyQueue(ctx context.Context, cluster string) {
	waiting, err := c.waitingTasks(ctx, cluster)
	for _, t := range waiting {
		if err == nil {
			err = c.withdrawTask(ctx, t.ID, func(*Task) ending { return ending{cause: task.ClusterGoneCause} })
		}
	}
	if err != nil {
		c.Log.WarnContext(ctx, "waiting tasks of a deleted cluster not ended; the sweep ends them", logkey.Cluster, cluster, logkey.Error, err)
	}
}

// waitingTasks are some of the tasks that wait for room in a cluster.
func (c *Control) waitingTasks(ctx context.Context, cluster string) ([]*Task, error) {
	ids, _, err := c.Store.TaskIDs(ctx, TaskQuery{Cluster: cluster, Waiting: ForRoom}, Page{Limit: withdrawAtOnce})
	if err != nil {
		return nil, err
	}
	tasks := tasksOf(ids)
	err = load(ctx, c.Store, tasks)
	return slices.DeleteFunc(tasks, func(t *Task) bool { return t.LastStatus != task.Provisioning }), err
}

// ledgersOf are the ledgers of a cluster's instances, INACTIVE ones too, as far
// as the index shows them.
func (c *Control) ledgersOf(ctx context.Context, cluster string) ([]*Ledger, error) {
	var all []*Ledger
	for after := ""; ; {
		ids, next, err := c.Store.InstanceIDs(ctx, cluster, Page{After: after})
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			all = append(all, &Ledger{ID: id})
		}
		if after = next; next == "" {
			break
		}
	}
	err := load(ctx, c.Store, all)
	return slices.DeleteFunc(all, func(l *Ledger) bool { return l.Version == 0 || l.Cluster != cluster }), err
}

func tasksOf(ids []string) []*Task {
	all := make([]*Task, len(ids))
	for i, id := range ids {
		all[i] = &Task{ID: id}
	}
	return all
}

func keepIf[T any](all []T, keep func(T) bool) []bool {
	out := make([]bool, len(all))
	for i, x := range all {
		out[i] = keep(x)
	}
	return out
}

// cluster loads a cluster that must be ACTIVE.
func (c *Control) cluster(ctx context.Context, name string) error {
	k := &Cluster{Name: name}
	if err := c.Store.Load(ctx, k); err != nil {
		return err
	}
	return k.mustBeActive()
}

func (r *Cluster) mustBeActive() error {
	switch {
	case r.Version == 0:
		return clusterNotFound()
	case r.Status != ClusterActive:
		return clusterInactive()
	}
	return nil
}
