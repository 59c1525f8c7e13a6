package search

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/longshore-run/longshore/lambdas/control"
)

// rows asks for a page of the stored records that row picks, in the order it
// gives them; list names the list.
func (r *runner) rows(list string, page control.Page, row func(control.Record) (sort string, ok bool)) ([]uint32, string, error) {
	if _, err := page.From(list); err != nil {
		return nil, "", err
	}
	a := r.ask(&request{verb: catalog, list: list, page: page, row: row})
	return a.items, a.next, a.failure("list " + list)
}

func (b *book) rows(a *answer, s *state, q *request) {
	type entry struct {
		sort string
		id   uint32
	}
	var all []entry
	for _, id := range s.items {
		if it := &b.items[id]; !b.over(it, s.clock) {
			if sort, ok := q.row(it.record); ok {
				all = append(all, entry{sort, id})
			}
		}
	}
	slices.SortFunc(all, func(x, y entry) int { return cmp.Compare(x.sort, y.sort) })
	var sorts, ids []string
	for _, e := range all {
		sorts, ids = append(sorts, e.sort), append(ids, fmt.Sprint(e.id))
	}
	a.page(sorts, ids, q.list, q.page)
	for i := range a.ids {
		at := slices.Index(ids, a.ids[i])
		a.items = append(a.items, all[at].id)
	}
	a.ids = nil
}

// copied is a copy of a record that its holder may change.
func copied[T any, P interface {
	*T
	control.Record
}](b *book, id uint32) T {
	out := *(b.items[id].record.(P))
	b.fill(P(&out), id)
	return out
}

func (r *runner) Services(_ context.Context, cluster string, page control.Page) (names []string, next string, err error) {
	items, next, err := r.rows(control.ServiceList(cluster), page, func(x control.Record) (string, bool) {
		s, ok := x.(*control.Service)
		return name(ok, func() string { return s.Name }), ok && s.Cluster == cluster
	})
	for _, id := range items {
		names = append(names, r.b.items[id].record.(*control.Service).Name)
	}
	return names, next, err
}

func (r *runner) ServiceDeployments(_ context.Context, cluster, service string, page control.Page) (ids []string, next string, err error) {
	items, next, err := r.rows(control.ServiceDeploymentList(cluster, service), page, func(x control.Record) (string, bool) {
		d, ok := x.(*control.ServiceDeployment)
		return name(ok, func() string { return d.ID }), ok && d.Cluster == cluster && d.Service == service
	})
	for _, id := range items {
		ids = append(ids, r.b.items[id].record.(*control.ServiceDeployment).ID)
	}
	return ids, next, err
}

func (r *runner) Families(_ context.Context, prefix string, page control.Page) (out []control.Family, next string, err error) {
	items, next, err := r.rows(control.FamilyList(prefix), page, func(x control.Record) (string, bool) {
		f, ok := x.(*control.Family)
		n := name(ok, func() string { return f.Name })
		return n, ok && len(n) >= len(prefix) && n[:len(prefix)] == prefix
	})
	for _, id := range items {
		out = append(out, copied[control.Family](r.b, id))
	}
	return out, next, err
}

func (r *runner) Revisions(_ context.Context, family string, descending bool, page control.Page) (out []control.Definition, next string, err error) {
	items, next, err := r.rows(control.RevisionList(family, descending), page, func(x control.Record) (string, bool) {
		d, ok := x.(*control.Definition)
		return name(ok, func() string {
			if descending {
				return fmt.Sprintf("%010d", 1<<31-d.Number)
			}
			return fmt.Sprintf("%010d", d.Number)
		}), ok && d.Family == family
	})
	for _, id := range items {
		d := copied[control.Definition](r.b, id)
		d.Definition = nil
		out = append(out, d)
	}
	return out, next, err
}

func (r *runner) ScanLedgers(_ context.Context, page control.Page) (out []control.Ledger, next string, err error) {
	items, next, err := r.rows(control.LedgerList, page, func(x control.Record) (string, bool) {
		l, ok := x.(*control.Ledger)
		return name(ok, func() string { return l.ID }), ok
	})
	for _, id := range items {
		out = append(out, copied[control.Ledger](r.b, id))
	}
	return out, next, err
}

func (r *runner) ScanLiveTasks(_ context.Context, page control.Page) (out []control.Task, next string, err error) {
	items, next, err := r.rows(control.LiveTaskList, page, func(x control.Record) (string, bool) {
		t, ok := x.(*control.Task)
		return name(ok, func() string { return t.ID }), ok && t.Live()
	})
	for _, id := range items {
		out = append(out, copied[control.Task](r.b, id))
	}
	return out, next, err
}

func name(ok bool, of func() string) string {
	if !ok {
		return ""
	}
	return of()
}
