package control

import (
	"context"
	"fmt"
	"time"
)

// reapAfterMost is the longest time of silence after which an instance is given up.
const reapAfterMost = 168 * time.Hour

// leastReapAfter is the shortest that a cluster may ask for: an instance that is
// late takes no new work first, and has one more heartbeat's time to be heard.
func (c *Control) leastReapAfter() time.Duration {
	return c.Setting.SuspectAfter + c.Setting.HeartbeatEvery
}

// patience is for how long each cluster waits for its silent instances: its tag's
// word, else the setting's.
type patience struct {
	usual time.Duration
	of    map[string]time.Duration // of clusters; one that is missing is not known
}

// patienceWith reads it for the clusters of leases that may be due. A cluster that
// can not be read gives up no instance in this run.
func (c *Control) patienceWith(ctx context.Context, leases []Lease, late func(Lease) bool) (patience, error) {
	p := patience{usual: c.Setting.ReapAfter, of: map[string]time.Duration{}}
	named := map[string]*Cluster{}
	var clusters []*Cluster
	for _, l := range leases {
		if l.Stage != StageLost && late(l) && named[l.Cluster] == nil {
			named[l.Cluster] = &Cluster{Name: l.Cluster}
			clusters = append(clusters, named[l.Cluster])
		}
	}
	if err := load(ctx, c.Store, clusters); err != nil {
		return p, fmt.Errorf("load the clusters of late instances: %w", err)
	}
	for name, k := range named {
		p.of[name] = c.reapAfter(k)
	}
	return p, nil
}

// reapAfter is how long a cluster's instances may be silent. A tag from before the
// heartbeat's interval was changed is held to what is allowed now.
func (c *Control) reapAfter(k *Cluster) time.Duration {
	if d, err := time.ParseDuration(k.Tags[reapAfterTag]); err == nil {
		return min(max(d, c.leastReapAfter()), reapAfterMost)
	}
	return c.Setting.ReapAfter
}

// over says whether something has lasted for longer than a cluster waits.
func (p patience) over(cluster string, lasted time.Duration) bool {
	after, known := p.of[cluster]
	return known && lasted > after
}

// awaited says whether only its cluster's patience keeps an instance from being
// LOST: then it counts for nothing in the brake's shares, as it would if it were.
// Boxes that are off for days must not slow down what is done about others.
func (p patience) awaited(cluster string, lasted time.Duration) bool {
	after, known := p.of[cluster]
	return known && p.usual < lasted && lasted <= after
}
