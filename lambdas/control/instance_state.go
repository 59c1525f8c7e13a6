package control

import (
	"context"
	"fmt"
)

const maxStateInstances = 10

// UpdateContainerInstancesState drains instances, or ends their draining: a
// person's wish, which no reaping or return undoes.
func (c *Control) UpdateContainerInstancesState(ctx context.Context, cluster string, ids []string, status InstanceStatus) (found []InstanceView, failures []Failure, err error) {
	if len(ids) == 0 || len(ids) > maxStateInstances {
		return nil, nil, invalid("containerInstances", "has %d entries; 1 to %d are allowed", len(ids), maxStateInstances)
	}
	if status != Active && status != Draining {
		return nil, nil, invalid("status", "is %q; ACTIVE and DRAINING are allowed", status)
	}
	if err := c.cluster(ctx, cluster); err != nil {
		return nil, nil, err
	}
	var done []string
	for _, id := range unique(ids) {
		reason, err := c.setState(ctx, cluster, id, status)
		switch {
		case err != nil:
			return nil, nil, err
		case reason != "":
			failures = append(failures, Failure{ARN: c.InstanceARN(cluster, id), Reason: reason})
		default:
			done = append(done, id)
		}
	}
	if len(done) == 0 {
		return nil, failures, nil
	}
	if status == Active {
		for _, id := range done {
			c.kick(ctx, Kick{Cluster: cluster, Instance: id})
		}
	}
	c.kickServices(ctx, Kick{Cluster: cluster}) // to leave it; or a DAEMON to come back
	found, _, err = c.DescribeContainerInstances(ctx, cluster, done)
	return found, failures, err
}

func (c *Control) setState(ctx context.Context, cluster, id string, status InstanceStatus) (failure string, err error) {
	l, lease := &Ledger{ID: id}, &Lease{ID: id}
	err = c.decide(ctx, fmt.Sprintf("set instance %s %s", id, status), func() ([]Write, error) {
		if err := c.Store.Load(ctx, l, lease); err != nil {
			return nil, err
		}
		failure = ""
		switch {
		case l.Version == 0 || l.Cluster != cluster:
			failure = reasonMissing
		case l.Status == Inactive:
			failure = reasonInactive
		case !l.ask(lease, status == Draining, c.Now()):
			return nil, errGiveUp
		case lease.Version > 0:
			return []Write{Put(l), Put(lease)}, nil
		default:
			return []Write{Put(l)}, nil
		}
		return nil, errGiveUp
	})
	return failure, err
}
