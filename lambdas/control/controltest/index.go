package controltest

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/task"
)

// row is what an index holds of an item: under a list's name, by its sort key.
type row struct{ list, sort, id string }

// rowsOf are the rows of a record: what the real tables' indexes find it by.
func rowsOf(r control.Record) (rows []row) {
	switch r := r.(type) {
	case *control.Task:
		since := fmt.Sprintf("%020d#%s", max(r.CreatedAt.UnixNano(), 0), r.ID)
		add := func(q control.TaskQuery, sort string) { rows = append(rows, row{q.ListName(), sort, r.ID}) }
		if r.Cluster != "" {
			add(control.TaskQuery{Cluster: r.Cluster}, since)
		}
		if r.LastStatus.Open() && r.Instance != "" { // by id, all others by age
			add(control.TaskQuery{OnInstance: r.Instance}, r.ID)
		}
		if r.Cluster != "" && r.Group != "" {
			add(control.TaskQuery{Cluster: r.Cluster, Group: r.Group, Stopped: r.LastStatus == task.Stopped}, since)
		}
		if w := r.WaitingFor(); w != control.NotWaiting && r.Cluster != "" {
			add(control.TaskQuery{Cluster: r.Cluster, Waiting: w}, since)
		}
	case *control.Instance:
		if r.Cluster != "" {
			rows = append(rows, row{control.InstanceList(r.Cluster), r.ID, r.ID})
		}
	}
	return rows
}

func bySort(a, b row) int { return cmp.Compare(a.sort, b.sort) }

// matches says whether an index lists a task under a query.
func matches(q control.TaskQuery, t *control.Task) bool {
	switch {
	case q.OnInstance != "":
		return t.LastStatus.Open() && t.Instance == q.OnInstance
	case q.Group != "":
		return t.Cluster == q.Cluster && t.Group == q.Group && (t.LastStatus == task.Stopped) == q.Stopped
	case q.Waiting != "":
		return t.Cluster == q.Cluster && t.WaitingFor() == q.Waiting
	}
	return t.Cluster == q.Cluster
}

// show makes the indexes show an item as it is now.
func (s *Store) show(k key) {
	it, ok := s.items[k]
	if ok && slices.Equal(s.indexed[k], it.rows) { // as most writes leave them
		return
	}
	for _, r := range s.indexed[k] {
		rows := s.lists[r.list]
		if at, ok := slices.BinarySearchFunc(rows, r, bySort); ok {
			s.lists[r.list] = slices.Delete(rows, at, at+1)
		}
	}
	if !ok {
		delete(s.indexed, k)
		return
	}
	s.indexed[k] = it.rows
	for _, r := range it.rows {
		rows := s.lists[r.list]
		at, _ := slices.BinarySearchFunc(rows, r, bySort)
		s.lists[r.list] = slices.Insert(rows, at, r)
	}
}

// query is a page of an index, and the token of the next one.
func (s *Store) query(list string, page control.Page) (ids []string, next string, err error) {
	after, err := page.From(list)
	if err != nil {
		return nil, "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	rows := s.lists[list]
	if after != "" {
		at, found := slices.BinarySearchFunc(rows, row{sort: after}, bySort)
		if found {
			at++
		}
		rows = rows[at:]
	}
	if n := page.Size(); len(rows) > n {
		rows, next = rows[:n], control.PageToken(list, rows[n-1].sort)
	}
	for _, r := range rows {
		ids = append(ids, r.id)
	}
	s.Bill.query(rows, next != "")
	return ids, next, nil
}
