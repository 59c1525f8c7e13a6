package search

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/fault"
)

// reply is what the store answers to a request in a state, and the items as they
// then are. index is what the indexes show. The rules are those of controltest's
// store: both pass its suite.
func (b *book) reply(s *state, q *request, index []uint32) (answer, []uint32) {
	a := answer{clock: s.clock}
	switch q.verb {
	case load:
		a.items = make([]uint32, len(q.keys))
		for i, k := range q.keys {
			a.items[i] = b.find(s, k)
		}
	case commit:
		items, kind := b.commit(s, q.writes)
		a.fault = kind
		return a, items
	case renew:
		return b.renew(s, q)
	case taskIDs:
		b.taskIDs(&a, q, index)
	case instanceIDs:
		var ids []string
		for _, in := range recordsOf[*control.Instance](b, index) {
			if in.Cluster == q.cluster {
				ids = append(ids, in.ID)
			}
		}
		a.page(ids, ids, control.InstanceList(q.cluster), q.page)
	case clusters:
		var names []string
		for _, c := range recordsOf[*control.Cluster](b, s.items) {
			names = append(names, c.Name)
		}
		a.page(names, names, control.ClusterList, q.page)
	case catalog:
		b.rows(&a, s, q)
	case leases:
		for _, id := range s.items {
			if it := &b.items[id]; !b.over(it, s.clock) {
				switch it.record.(type) {
				case *control.Lease, *control.Probe, *control.Brake, *control.Guard:
					a.items = append(a.items, id)
				}
			}
		}
		slices.SortStableFunc(a.items, func(x, y uint32) int { return cmp.Compare(b.items[x].record.Key(), b.items[y].record.Key()) })
	case commands, kickAdmission, kickServices, probe, other:
	}
	return a, s.items
}

func (b *book) commit(s *state, writes []write) ([]uint32, fault.Kind) {
	if len(writes) == 0 || len(writes) > 100 {
		return s.items, fault.Invalid
	}
	for i, w := range writes {
		if i > 0 && writes[i-1].key == w.key || b.keys[w.key].key == "" {
			return s.items, fault.Invalid
		}
		version := int64(0)
		if id := b.find(s, w.key); id != 0 {
			version = b.items[id].version
		}
		if version != w.version {
			return s.items, fault.Conflict
		}
	}
	items := s.items
	for _, w := range writes {
		switch w.op {
		case control.PutOp:
			items = b.with(items, w.item)
		case control.DeleteOp:
			items = b.without(items, w.key)
		case control.CheckOp:
		}
	}
	return items, ""
}

func (b *book) renew(s *state, q *request) (answer, []uint32) {
	a, by := answer{clock: s.clock}, q.renewal
	key := b.keyNamed(keyName{control.LeaseKind, by.ID})
	id := b.find(s, key)
	if id == 0 {
		a.fault = fault.NotFound
		return a, s.items
	}
	a.items = []uint32{id}
	then, known := b.renewals[renewing{id, q}]
	if !known {
		lease := &control.Lease{ID: by.ID}
		if b.fill(lease, id); lease.Renewable(by) {
			lease.Renew(by)
			lease.Version++
			then = b.item(lease)
		}
		b.renewals[renewing{id, q}] = then
	}
	if then == 0 {
		return a, s.items
	}
	a.items[0], a.renewed = then, true
	return a, b.with(s.items, then)
}

func (b *book) taskIDs(a *answer, q *request, index []uint32) {
	type row struct{ sort, id string }
	var rows []row
	for _, t := range recordsOf[*control.Task](b, index) {
		switch {
		case !controltest.Matches(q.query, t):
		case q.query.OnInstance != "":
			rows = append(rows, row{t.ID, t.ID})
		default:
			rows = append(rows, row{fmt.Sprintf("%020d#%s", max(t.CreatedAt.UnixNano(), 0), t.ID), t.ID})
		}
	}
	slices.SortFunc(rows, func(x, y row) int { return cmp.Compare(x.sort, y.sort) })
	var sorts, ids []string
	for _, r := range rows {
		sorts, ids = append(sorts, r.sort), append(ids, r.id)
	}
	a.page(sorts, ids, q.query.ListName(), q.page)
}

// page cuts a page out of sorted rows.
func (a *answer) page(sorts, ids []string, list string, page control.Page) {
	if !slices.IsSorted(sorts) {
		slices.Sort(sorts)
	}
	after, err := page.From(list)
	if err != nil {
		a.fault = fault.Invalid
		return
	}
	for i, s := range sorts {
		if after != "" && s <= after {
			continue
		}
		if len(a.ids) == page.Size() {
			a.next = control.PageToken(list, sorts[i-1])
			return
		}
		a.ids = append(a.ids, ids[i])
	}
}

// views are what the indexes may show of the newest writes: everything, nothing
// of what was written since base, or all but one item of it.
func (b *book) views(base, items []uint32) (views [][]uint32) {
	views = append(views, items)
	var late []uint32
	for _, id := range items {
		switch b.items[id].record.(type) {
		case *control.Task, *control.Instance:
			if !slices.Contains(base, id) {
				late = append(late, id)
			}
		}
	}
	old := func(items []uint32, id uint32) []uint32 {
		key := b.items[id].key
		for _, was := range base {
			if b.items[was].key == key {
				return b.with(items, was)
			}
		}
		return b.without(items, key)
	}
	all := items
	for _, id := range late {
		views = append(views, old(items, id))
		all = old(all, id)
	}
	if len(late) > 1 {
		views = append(views, all)
	}
	return views
}
