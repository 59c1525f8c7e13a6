package control

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Bounds of what a pass reads of a large fleet before it has to read all of it.
const (
	sampleLeast   = 64 // instances …
	samplePerTask = 4  // … and so many more for each new task that roams
	fleetFor      = time.Minute
)

// Fleet remembers, between the passes of one process, which instances the index
// showed of each cluster: an index that lags a little more. What is placed by it is
// confirmed as ever; a pass that finds no place by it asks the index again. The
// zero value is ready, and nil remembers nothing. It is safe for concurrent use.
type Fleet struct {
	mu   sync.Mutex
	seen map[string]fleetSeen
}

type fleetSeen struct {
	ids []string
	at  time.Time
}

// of is what is remembered of a cluster, if it is not too old.
func (f *Fleet) of(cluster string, now time.Time) ([]string, bool) {
	if f == nil {
		return nil, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.seen[cluster]
	return slices.Clone(s.ids), ok && now.Sub(s.at) < fleetFor && !now.Before(s.at)
}

func (f *Fleet) remember(cluster string, ids []string, now time.Time) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.seen == nil {
		f.seen = map[string]fleetSeen{}
	}
	f.seen[cluster] = fleetSeen{slices.Clone(ids), now}
}

// fleet is what a pass knows of its cluster's instances.
type fleet struct {
	instances []*Instance // read, by id
	ledgers   map[string]*Ledger
	unread    []string // known, and not read
	asked     bool     // the index was asked in this pass
}

// instance is one that was read, nil if it was not, or takes no work at all.
func (f *fleet) instance(id string) *Instance {
	i, ok := slices.BinarySearchFunc(f.instances, id, func(in *Instance, id string) int { return cmp.Compare(in.ID, id) })
	if !ok {
		return nil
	}
	return f.instances[i]
}

// roaming is how many tasks may go to more than one instance, and how many of them
// no pass has looked at.
func (p *pass) roaming() (n, unseen int) {
	for _, t := range p.tasks {
		if t.Pinned == "" {
			n++
			if t.WaitingReason == "" {
				unseen++
			}
		}
	}
	return n, unseen
}

// readInstances reads the instances that a kick or a task names and, if any task
// roams, some of the others: of a small fleet all, of a large one as many as the
// tasks will hardly need, anywhere in it. also is read in the same breath.
func (p *pass) readInstances(ctx context.Context, k Kick, also ...Record) error {
	p.fleet = fleet{ledgers: map[string]*Ledger{}}
	named := append([]string{k.Instance, p.state.EarmarkInstance}, k.Others...)
	for _, t := range p.tasks {
		named = append(named, t.Pinned)
	}
	if n, unseen := p.roaming(); n > 0 {
		known, ok := p.c.Fleet.of(k.Cluster, p.now)
		if !ok {
			var err error
			if known, err = p.list(ctx, k.Cluster); err != nil {
				return err
			}
		}
		sample := sampleLeast + samplePerTask*unseen
		if at := 0; len(known) > sample {
			at = rand.IntN(len(known))
			known = slices.Concat(known[at:], known[:at])
		}
		named = append(named, first(known, sample)...)
		p.unread = known[min(sample, len(known)):]
	}
	return p.readMore(ctx, k.Cluster, named, also...)
}

// list asks the index for the cluster's instances.
func (p *pass) list(ctx context.Context, cluster string) (ids []string, err error) {
	for after := ""; ; {
		more, next, err := p.c.Store.InstanceIDs(ctx, cluster, Page{After: after})
		if err != nil {
			return nil, err
		}
		ids = append(ids, more...)
		if after = next; next == "" {
			break
		}
	}
	p.asked = true
	p.c.Fleet.remember(cluster, ids, p.now)
	return ids, nil
}

// readRest reads every instance of the cluster that is not read yet.
func (p *pass) readRest(ctx context.Context, cluster string) error {
	if !p.asked {
		ids, err := p.list(ctx, cluster)
		if err != nil {
			return err
		}
		p.unread = ids
	}
	ids := p.unread
	p.unread = nil
	return p.readMore(ctx, cluster, ids)
}

// whole says whether the pass has seen all of the cluster that it can.
func (p *pass) whole() bool {
	n, _ := p.roaming()
	return len(p.unread) == 0 && (p.asked || n == 0)
}

// readMore reads instances that were not read before.
func (p *pass) readMore(ctx context.Context, cluster string, ids []string, also ...Record) error {
	records := also
	var more []*Instance
	for _, id := range ids {
		if id == "" || p.ledgers[id] != nil {
			continue
		}
		in, l := &Instance{ID: id}, &Ledger{ID: id}
		more, records, p.ledgers[id] = append(more, in), append(records, in, l), l
	}
	if len(records) == 0 {
		return nil
	}
	if err := p.c.Store.Load(ctx, records...); err != nil {
		return err
	}
	for _, in := range more {
		if l := p.ledgers[in.ID]; in.Version > 0 && l.Version > 0 && in.Cluster == cluster && l.Status != Inactive {
			p.instances = append(p.instances, in)
		}
	}
	slices.SortFunc(p.instances, func(a, b *Instance) int { return cmp.Compare(a.ID, b.ID) })
	return nil
}
