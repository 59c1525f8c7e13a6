package control

import (
	"context"
	"fmt"

	"github.com/longshore-run/longshore/shared/taskdef/query"
)

// InstanceFilter is what ListContainerInstances lists; empty members filter
// nothing, but INACTIVE instances are not listed.
type InstanceFilter struct {
	Cluster    string
	Expression string
	Status     InstanceStatus
}

// ListContainerInstances lists the ids of a cluster's instances.
func (c *Control) ListContainerInstances(ctx context.Context, f InstanceFilter, cursor Cursor, limit int) ([]string, Cursor, error) {
	var expr query.Expr
	if f.Expression != "" {
		var err error
		if expr, err = query.Parse(f.Expression); err != nil {
			return nil, Cursor{}, invalid("filter", "can not be used: %s", err)
		}
	}
	k := &Cluster{Name: f.Cluster}
	if err := c.Store.Load(ctx, k); err != nil {
		return nil, Cursor{}, fmt.Errorf("list container instances: %w", err)
	}
	if k.Version == 0 {
		return nil, Cursor{}, clusterNotFound()
	}
	page := func(ctx context.Context, page Page) ([]string, string, error) {
		return c.Store.InstanceIDs(ctx, f.Cluster, page)
	}
	keep := func(ctx context.Context, _ string, ids []string) ([]bool, error) {
		instances, ledgers := make([]*Instance, len(ids)), make([]*Ledger, len(ids))
		for i, id := range ids {
			instances[i], ledgers[i] = &Instance{ID: id}, &Ledger{ID: id}
		}
		if err := load(ctx, c.Store, ledgers); err != nil {
			return nil, err
		}
		if expr != nil {
			if err := load(ctx, c.Store, instances); err != nil {
				return nil, err
			}
		}
		wanted := make([]bool, len(ids))
		for i, l := range ledgers {
			wanted[i] = l.Version > 0 && l.Cluster == f.Cluster && l.Status != Inactive &&
				(f.Status == "" || l.Status == f.Status) &&
				(expr == nil || expr.Match(attributesOf(instances[i])))
		}
		return wanted, nil
	}
	return walk(ctx, cursor, limit, []source{{page: page}}, keep)
}
