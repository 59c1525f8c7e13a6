package control_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/task"
)

// fleet is a cluster with tasks of every kind; what filters should list is
// computed from the base items.
func fleet(t *testing.T) *apiRig {
	r := newAPIRig(t)
	r.cluster()
	r.register("batch")
	r.instance(1)
	r.instance(2)
	for n := range 24 {
		req := one(1)
		req.StartedBy = []string{"alice", "bob"}[n%2]
		req.Definition = []string{"web", "batch"}[n/2%2]
		req.Launch = []string{"", "EXTERNAL", ""}[n%3]
		if n%5 == 0 {
			req.Group = "mine"
		}
		r.now = r.now.Add(time.Second)
		id := r.run(req).Tasks[0].ID
		if n < 8 {
			r.admit()
		}
		if n%4 == 3 {
			r.stop(id)
		}
	}
	r.store.CatchUp()
	return r
}

func TestListTasks_AnyCombinationOfFiltersAtAnyPageSize(t *testing.T) {
	r, ctx := fleet(t), context.Background()
	in := slices.Sorted(maps.Keys(r.store.Ledgers()))[0]
	r.must(&control.Service{Cluster: "default", Name: "idle", Status: control.ServiceActive})
	for _, f := range []control.TaskFilter{
		{},
		{Desired: "STOPPED"},
		{Desired: "PENDING"},
		{Instance: in},
		{Instance: in, Desired: "STOPPED"},
		{Family: "batch"},
		{StartedBy: "alice"},
		{StartedBy: "bob", Desired: "STOPPED"},
		{StartedBy: "alice", Family: "web", Instance: in},
		{Launch: "EXTERNAL"},
		{Launch: "EXTERNAL", Family: "batch", StartedBy: "bob"},
		{Service: "idle"},
	} {
		f.Cluster = "default"
		want := []string{}
		for id, got := range r.store.Tasks() {
			desired := f.Desired
			if desired == "" {
				desired = "RUNNING"
			}
			if string(got.DesiredStatus) == desired && (f.Instance == "" || f.Instance == got.Instance) && (f.Family == "" || f.Family == got.Family) &&
				(f.StartedBy == "" || f.StartedBy == got.StartedBy) && (f.Launch == "" || f.Launch == got.Launch) && f.Service == "" {
				want = append(want, id)
			}
		}
		slices.Sort(want)
		for _, limit := range []int{1, 2, 3, 7, 100} {
			got := pages(t, func(c control.Cursor) ([]string, control.Cursor, error) {
				page, next, err := r.ListTasks(ctx, f, c, limit)
				if len(page) > limit {
					t.Fatalf("%+v: a page of %d, limit %d", f, len(page), limit)
				}
				return page, next, err
			})
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("%+v by %d: %d tasks, want %d", f, limit, len(got), len(want))
			}
		}
	}
}

func TestListTasks_ByService(t *testing.T) {
	r, ctx := newAPIRig(t), context.Background()
	r.cluster()
	id := r.run(one(1)).Tasks[0].ID
	got := r.task(id)
	got.Service, got.Group = "web", "service:web"
	_, _, err := r.ListTasks(ctx, control.TaskFilter{Cluster: "default", Service: "web"}, control.Cursor{}, 10)
	wantCode(t, err, "ServiceNotFoundException")
	r.must(&control.Service{Cluster: "default", Name: "web", Status: control.ServiceActive})
	r.must(&got, &control.Live{Cluster: "default", Service: "web", Live: 1})
	r.store.CatchUp()
	ids, _, err := r.ListTasks(ctx, control.TaskFilter{Cluster: "default", Service: "web"}, control.Cursor{}, 10)
	if err != nil || !slices.Equal(ids, []string{id}) {
		t.Errorf("lists %v, %v", ids, err)
	}
	stopping, stopped := got, got
	stopping.ID, stopping.Version, stopping.DesiredStatus = strings.Repeat("d", 32), 0, task.DesiredStopped
	stopped.ID, stopped.Version, stopped.DesiredStatus, stopped.LastStatus = strings.Repeat("e", 32), 0, task.DesiredStopped, task.Stopped
	live := &control.Live{Cluster: "default", Service: "web"}
	if err := r.store.Load(ctx, live); err != nil {
		t.Fatal(err)
	}
	live.Live = 2
	r.must(&stopping, &stopped, live)
	r.store.CatchUp()
	for desired, want := range map[string][]string{"RUNNING": {id}, "STOPPED": {stopping.ID, stopped.ID}} {
		ids := pages(t, func(c control.Cursor) ([]string, control.Cursor, error) {
			return r.ListTasks(ctx, control.TaskFilter{Cluster: "default", Service: "web", Desired: desired}, c, 1)
		})
		if !slices.Equal(ids, want) {
			t.Errorf("%s: lists %v, want %v", desired, ids, want)
		}
	}
}

func TestListTasks_PagesGoOnWhenTheirLastTaskHasLeftTheIndex(t *testing.T) {
	r, ctx := newAPIRig(t), context.Background()
	r.cluster()
	want := r.run(one(6))
	r.store.CatchUp()
	first, next, err := r.ListTasks(ctx, control.TaskFilter{Cluster: "default"}, control.Cursor{}, 3)
	if err != nil || len(first) != 3 {
		t.Fatal(first, err)
	}
	r.stop(first[2])
	r.store.CatchUp()
	rest := pages(t, func(c control.Cursor) ([]string, control.Cursor, error) {
		if c == (control.Cursor{}) {
			c = next
		}
		return r.ListTasks(ctx, control.TaskFilter{Cluster: "default"}, c, 3)
	})
	for _, v := range want.Tasks {
		if !slices.Contains(first, v.ID) && !slices.Contains(rest, v.ID) {
			t.Errorf("task %s is in no page", v.ID)
		}
	}
}

func TestListTasks_ATaskAdmittedMeanwhileIsNotMissed(t *testing.T) {
	r, ctx := newAPIRig(t), context.Background()
	r.cluster()
	r.instance(1)
	want := r.run(one(4))
	r.store.CatchUp()
	first, next, err := r.ListTasks(ctx, control.TaskFilter{Cluster: "default"}, control.Cursor{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	r.admit()
	seen := first
	for next != (control.Cursor{}) {
		var page []string
		if page, next, err = r.ListTasks(ctx, control.TaskFilter{Cluster: "default"}, next, 1); err != nil {
			t.Fatal(err)
		}
		seen = append(seen, page...)
	}
	for _, v := range want.Tasks {
		if !slices.Contains(seen, v.ID) {
			t.Errorf("task %s was missed", v.ID)
		}
	}
}

func TestListTasks_ReadsNothingOfTheManyThatHaveStopped(t *testing.T) {
	r, ctx := newAPIRig(t), context.Background()
	r.cluster()
	for range 30 {
		for _, v := range r.run(one(10)).Tasks {
			r.stop(v.ID)
		}
	}
	r.store.CatchUp()
	r.store.Calls.Reset()
	ids, next, err := r.ListTasks(ctx, control.TaskFilter{Cluster: "default"}, control.Cursor{}, 100)
	if err != nil || len(ids) != 0 || next != (control.Cursor{}) {
		t.Fatal(ids, next, err)
	}
	if n, calls := r.store.Calls.Made(); n > 5 {
		t.Errorf("%d calls: %v", n, calls)
	}
}

func TestListTasks_WhatIsNotThere(t *testing.T) {
	r, ctx := newAPIRig(t), context.Background()
	r.cluster()
	_, _, err := r.ListTasks(ctx, control.TaskFilter{Cluster: "nowhere"}, control.Cursor{}, 10)
	wantCode(t, err, "ClusterNotFoundException")
	_, _, err = r.ListTasks(ctx, control.TaskFilter{Cluster: "default", Instance: strings.Repeat("1", 32)}, control.Cursor{}, 10)
	wantCode(t, err, "InvalidParameterException")
	expired := r.task(r.run(one(1)).Tasks[0].ID)
	r.stop(expired.ID)
	r.now = r.now.Add(r.Setting.StoppedTasksFor)
	r.store.CatchUp()
	ids, _, err := r.ListTasks(ctx, control.TaskFilter{Cluster: "default", Desired: string(task.DesiredStopped)}, control.Cursor{}, 10)
	if err != nil || len(ids) != 0 {
		t.Errorf("lists %v, %v: its time has come", ids, err)
	}
}
