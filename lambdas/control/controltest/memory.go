// Package controltest has what tests of the control plane share: an in-memory
// store and queue that behave like the real ones (lagging indexes on by
// default, conflicts, kills between any two calls), the invariants as a
// function over the store, and the suites that fakes and real adapters both
// pass. Only tests and sim import it.
package controltest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/fault"
)

type key struct {
	kind control.Kind
	key  string
}

type item struct {
	version int64
	expires time.Time
	doc     []byte
	rows    []row
	bytes   int // if there is a bill
}

// Store is control.Store in memory.
type Store struct {
	// Lag is how many of the last item writes no index shows yet.
	Lag int
	// Calls counts, fails and kills; see Calls.
	Calls *Calls
	// Now, if set, tells which records' time is over: they are taken for missing.
	Now func() time.Time
	// OnCommit, if set, is called with the lock held after each commit.
	OnCommit func(s *Store)

	// Bill, if set, adds up what DynamoDB would count.
	Bill *Bill

	mu      sync.Mutex
	items   map[key]item
	kinds   map[control.Kind]map[string]bool // keys of items
	indexed map[key][]row
	lists   map[string][]row // the indexes, sorted
	behind  []key
	commits int
	stream  []control.Change
}

// NewStore is an empty store whose indexes lag by three writes.
func NewStore() *Store {
	return &Store{Lag: 3, Calls: &Calls{}, items: map[key]item{}, kinds: map[control.Kind]map[string]bool{}, indexed: map[key][]row{}, lists: map[string][]row{}}
}

// CatchUp makes every index show everything.
func (s *Store) CatchUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.behind {
		s.show(k)
	}
	s.behind = nil
}

// Commits is how many commits have been made.
func (s *Store) Commits() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commits
}

// Load implements control.Store.
func (s *Store) Load(ctx context.Context, records ...control.Record) error {
	return s.Calls.do(ctx, "Load", func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, r := range records {
			if r.Key() == "" {
				return fault.New(fault.Invalid, "load %s without a key", r.Kind())
			}
			s.load(r)
		}
		s.Bill.load(s.items, records)
		return nil
	})
}

func (s *Store) load(r control.Record) {
	control.Blank(r)
	if it, ok := s.items[key{r.Kind(), r.Key()}]; ok && !s.expired(it) {
		decode(it, r)
	}
}

func (s *Store) expired(it item) bool {
	return s.Now != nil && !it.expires.IsZero() && !s.Now().Before(it.expires)
}

// Sweep removes what is expired, as DynamoDB does some hours or days later.
func (s *Store) Sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.items, func(k key, it item) bool {
		gone := s.expired(it)
		if gone {
			delete(s.kinds[k.kind], k.key)
			s.lag(k)
		}
		return gone
	})
}

// Commit implements control.Store.
func (s *Store) Commit(ctx context.Context, writes ...control.Write) error {
	return s.Calls.do(ctx, "Commit", func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if err := s.conditions(writes); err != nil {
			return err
		}
		for _, w := range writes {
			k := key{w.Record.Kind(), w.Record.Key()}
			before := s.items[k]
			switch w.Op {
			case control.PutOp:
				*w.Record.Revision()++
				s.write(k, encode(w.Record))
				s.streamed(w, before)
			case control.DeleteOp:
				delete(s.items, k)
				delete(s.kinds[k.kind], k.key)
				s.lag(k)
				s.streamed(w, before)
			case control.CheckOp:
			}
			s.Bill.write(before, s.items[k], len(writes) > 1)
		}
		s.Bill.request(1)
		s.commits++
		if s.OnCommit != nil {
			s.OnCommit(s)
		}
		return nil
	})
}

func (s *Store) conditions(writes []control.Write) error {
	if len(writes) == 0 || len(writes) > 100 {
		return fault.New(fault.Invalid, "commit of %d writes; 1 to 100 are allowed", len(writes))
	}
	seen := map[key]bool{}
	for _, w := range writes {
		k := key{w.Record.Kind(), w.Record.Key()}
		if k.key == "" || seen[k] {
			return fault.New(fault.Invalid, "commit of %s %q: no key, or written twice", k.kind, k.key)
		}
		seen[k] = true
	}
	for _, w := range writes {
		k := key{w.Record.Kind(), w.Record.Key()}
		it := s.items[k]
		if s.expired(it) {
			it = item{}
		}
		if it.version != *w.Record.Revision() {
			return fault.New(fault.Conflict, "%s %s has version %d, not %d", k.kind, k.key, it.version, *w.Record.Revision())
		}
	}
	return nil
}

func (s *Store) write(k key, it item) {
	if s.Bill != nil {
		it.bytes = it.size()
	}
	s.items[k] = it
	if s.kinds[k.kind] == nil {
		s.kinds[k.kind] = map[string]bool{}
	}
	s.kinds[k.kind][k.key] = true
	s.lag(k)
}

func (s *Store) lag(k key) {
	s.behind = append(s.behind, k)
	for len(s.behind) > s.Lag {
		old := s.behind[0]
		s.behind = s.behind[1:]
		s.show(old)
	}
}

// Renew implements control.Store.
func (s *Store) Renew(ctx context.Context, r control.Renewal) (lease *control.Lease, renewed bool, err error) {
	err = s.Calls.do(ctx, "Renew", func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		l := &control.Lease{ID: r.ID}
		s.load(l)
		if l.Version == 0 {
			return fault.New(fault.NotFound, "no lease of instance %s", r.ID)
		}
		if l.Renewable(r) {
			l.Renew(r)
			l.Version++
			renewed = true
			k := key{control.LeaseKind, l.ID}
			before := s.items[k]
			s.write(k, encode(l))
			s.Bill.write(before, s.items[k], false)
		}
		s.Bill.request(1)
		lease = l
		return nil
	})
	return lease, renewed, err
}

// TaskIDs implements control.Store over the lagging index.
func (s *Store) TaskIDs(ctx context.Context, q control.TaskQuery, page control.Page) (ids []string, next string, err error) {
	err = s.Calls.do(ctx, "TaskIDs", func() error {
		ids, next, err = s.query(q.ListName(), page)
		return err
	})
	return ids, next, err
}

// InstanceIDs implements control.Store over the lagging index.
func (s *Store) InstanceIDs(ctx context.Context, cluster string, page control.Page) (ids []string, next string, err error) {
	err = s.Calls.do(ctx, "InstanceIDs", func() error {
		ids, next, err = s.query(control.InstanceList(cluster), page)
		return err
	})
	return ids, next, err
}

// Leases implements control.Store.
func (s *Store) Leases(ctx context.Context) (*control.LeaseScan, error) {
	scan := &control.LeaseScan{}
	err := s.Calls.do(ctx, "Leases", func() error {
		each(s, control.LeaseKind, func(l *control.Lease) { scan.Leases = append(scan.Leases, *l) })
		each(s, control.ProbeKind, func(p *control.Probe) { scan.Probes = append(scan.Probes, *p) })
		each(s, control.BrakeKind, func(b *control.Brake) { scan.Brakes = append(scan.Brakes, *b) })
		each(s, control.GuardKind, func(g *control.Guard) { scan.Guard = *g })
		slices.SortFunc(scan.Leases, func(a, b control.Lease) int { return cmp.Compare(a.ID, b.ID) })
		return nil
	})
	return scan, err
}

// Clusters implements control.Store.
func (s *Store) Clusters(ctx context.Context, page control.Page) (names []string, next string, err error) {
	err = s.Calls.do(ctx, "Clusters", func() error {
		each(s, control.ClusterKind, func(c *control.Cluster) { names = append(names, c.Name) })
		slices.Sort(names)
		names, next, err = cut(names, control.ClusterList, page, func(n string) string { return n })
		return err
	})
	return names, next, err
}

// Services implements control.Store.
func (s *Store) Services(ctx context.Context, cluster string, page control.Page) (names []string, next string, err error) {
	err = s.Calls.do(ctx, "Services", func() error {
		each(s, control.ServiceKind, func(r *control.Service) {
			if r.Cluster == cluster {
				names = append(names, r.Name)
			}
		})
		slices.Sort(names)
		names, next, err = cut(names, control.ServiceList(cluster), page, func(n string) string { return n })
		return err
	})
	return names, next, err
}

// ServiceDeployments implements control.Store.
func (s *Store) ServiceDeployments(ctx context.Context, cluster, service string, page control.Page) (ids []string, next string, err error) {
	err = s.Calls.do(ctx, "ServiceDeployments", func() error {
		each(s, control.ServiceDeploymentKind, func(r *control.ServiceDeployment) {
			if r.Cluster == cluster && r.Service == service {
				ids = append(ids, r.ID)
			}
		})
		slices.Sort(ids)
		ids, next, err = cut(ids, control.ServiceDeploymentList(cluster, service), page, func(id string) string { return id })
		return err
	})
	return ids, next, err
}

// Families implements control.Store.
func (s *Store) Families(ctx context.Context, prefix string, page control.Page) (families []control.Family, next string, err error) {
	err = s.Calls.do(ctx, "Families", func() error {
		each(s, control.FamilyKind, func(f *control.Family) {
			if strings.HasPrefix(f.Name, prefix) {
				families = append(families, *f)
			}
		})
		slices.SortFunc(families, func(a, b control.Family) int { return cmp.Compare(a.Name, b.Name) })
		families, next, err = cut(families, control.FamilyList(prefix), page, func(f control.Family) string { return f.Name })
		return err
	})
	return families, next, err
}

// Revisions implements control.Store.
func (s *Store) Revisions(ctx context.Context, family string, descending bool, page control.Page) (all []control.Definition, next string, err error) {
	err = s.Calls.do(ctx, "Revisions", func() error {
		each(s, control.DefinitionKind, func(d *control.Definition) {
			if d.Family == family {
				d.Definition = nil
				all = append(all, *d)
			}
		})
		sort := func(d control.Definition) string {
			if descending {
				return fmt.Sprintf("%010d", 1<<31-d.Number)
			}
			return fmt.Sprintf("%010d", d.Number)
		}
		slices.SortFunc(all, func(a, b control.Definition) int { return cmp.Compare(sort(a), sort(b)) })
		all, next, err = cut(all, control.RevisionList(family, descending), page, sort)
		return err
	})
	return all, next, err
}

// cut is the page of sorted rows, and the token of the next one.
func cut[T any](rows []T, list string, page control.Page, sort func(T) string) ([]T, string, error) {
	after, err := page.From(list)
	if err != nil {
		return nil, "", err
	}
	rows = slices.DeleteFunc(rows, func(r T) bool { return after != "" && sort(r) <= after })
	if n := page.Size(); len(rows) > n {
		return rows[:n], control.PageToken(list, sort(rows[n-1])), nil
	}
	return rows, "", nil
}

// each calls f with a copy of every record of a kind that is not expired, in key order.
func each[T any, P interface {
	*T
	control.Record
}](s *Store, kind control.Kind, f func(P)) {
	s.mu.Lock()
	from := make(map[key]item, len(s.kinds[kind]))
	for name := range s.kinds[kind] {
		if it := s.items[key{kind, name}]; !s.expired(it) {
			from[key{kind, name}] = it
		}
	}
	s.Bill.scan(kind, from)
	s.mu.Unlock()
	all(from, kind, f)
}

// all is each over given items.
func all[T any, P interface {
	*T
	control.Record
}](from map[key]item, kind control.Kind, f func(P)) {
	for _, k := range slices.SortedFunc(maps.Keys(from), func(a, b key) int { return cmp.Compare(a.key, b.key) }) {
		if k.kind == kind {
			r := P(new(T))
			decode(from[k], r)
			f(r)
		}
	}
}
