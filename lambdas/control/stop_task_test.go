package control_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

func TestStopTask_OneThatWaitsIsStoppedByTheSameWrite(t *testing.T) {
	r := newAPIRig(t)
	r.cluster()
	id := r.run(one(1)).Tasks[0].ID
	commits := r.store.Commits()
	v, err := r.StopTask(context.Background(), "default", id, "not needed")
	if err != nil {
		t.Fatal(err)
	}
	if v.LastStatus != task.Stopped || v.DesiredStatus != task.DesiredStopped || v.StopCause != task.UserCause || v.StoppedReason != "not needed" {
		t.Errorf("task is %+v", v.Task)
	}
	if r.store.Commits() != commits+1 {
		t.Errorf("%d commits, want one", r.store.Commits()-commits)
	}
	shown := v.ShownContainers()
	if len(shown) != 1 || shown[0].Status != task.ContainerStopped {
		t.Errorf("containers are %+v: a STOPPED task has none but STOPPED", shown)
	}
	r.instance(1)
	r.admit()
	if got := r.task(id); got.LastStatus != task.Stopped || got.Held != nil {
		t.Errorf("admission took a stopped task: %+v", got)
	}
}

func TestStopTask_OneWithAnInstanceIsAskedToEndAndKeepsItsRoom(t *testing.T) {
	r := newAPIRig(t)
	r.cluster()
	in := r.instance(1)
	id := r.run(one(1)).Tasks[0].ID
	r.admit()
	r.queue.TakeCommands(in)
	v, err := r.StopTask(context.Background(), "default", id, "")
	if err != nil {
		t.Fatal(err)
	}
	got := r.task(id)
	if v.LastStatus != task.Pending || got.DesiredStatus != task.DesiredStopped || got.Held == nil || got.StoppedReason != "Task stopped by user" || got.WaitingFor() != control.ForEnd || !got.DispatchAt.After(r.now) {
		t.Errorf("task is %+v", got)
	}
	sent := r.queue.TakeCommands(in)
	stop, ok := sent[0].(*wire.Stop)
	if len(sent) != 1 || !ok || stop.Task != id || stop.Attempt != 1 || stop.Reason != "Task stopped by user" {
		t.Errorf("sent %+v", sent)
	}
	again, err := r.StopTask(context.Background(), "default", id, "another reason")
	if err != nil || again.StoppedReason != "Task stopped by user" || len(r.queue.TakeCommands(in)) != 1 {
		t.Errorf("again: %v, %+v: want the first reason, and the stop sent again", err, again.Task)
	}
}

func TestStopTask_TheThreeRacesWithAdmission(t *testing.T) {
	for name, race := range map[string]func(r *apiRig, id string){
		"stop before it is looked at": func(r *apiRig, id string) { r.stop(id); r.admit() },
		"stop after it was admitted":  func(r *apiRig, id string) { r.admit(); r.stop(id) },
		"stop while it is looked at": func(r *apiRig, id string) {
			r.store.CatchUp()
			stopped := false
			r.Control.Store = &interrupted{Store: r.store, before: func(call string) {
				if call == "Commit" && !stopped { // admission has decided, and not yet written
					stopped = true
					r.Control.Store = r.store
					r.stop(id)
				}
			}}
			r.admit()
			if !stopped {
				r.t.Fatal("admission wrote nothing: there was no race")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newAPIRig(t)
			r.cluster()
			in := r.instance(1)
			id := r.run(one(1)).Tasks[0].ID
			race(r, id)
			got, l := r.task(id), r.store.Ledgers()[in]
			if got.DesiredStatus != task.DesiredStopped {
				t.Errorf("task is %+v", got)
			}
			if (got.Held != nil) != (l.Open == 1) || got.LastStatus.Open() != (l.Held.CPU == 256) {
				t.Errorf("task %s holds %+v, ledger %+v", got.LastStatus, got.Held, l)
			}
		})
	}
}

// interrupted lets something happen just before a call of the store.
type interrupted struct {
	control.Store
	before func(call string)
}

func (s *interrupted) Commit(ctx context.Context, writes ...control.Write) error {
	s.before("Commit")
	return s.Store.Commit(ctx, writes...)
}

func (r *apiRig) stop(id string) {
	r.t.Helper()
	if _, err := r.StopTask(context.Background(), "default", id, ""); err != nil {
		r.t.Fatal(err)
	}
}

func TestStopTask_AServicesTaskCountsItDownInTheSameTransaction(t *testing.T) {
	r := newAPIRig(t)
	r.cluster()
	id := r.run(one(1)).Tasks[0].ID
	got := r.task(id)
	got.Service, got.Group = "web", "service:web"
	live := &control.Live{Cluster: "default", Service: "web", Live: 1}
	if err := r.store.Commit(context.Background(), control.Put(&got), control.Put(live)); err != nil {
		t.Fatal(err)
	}
	r.stop(id)
	r.stop(id)
	r.check()
	if kicks := r.queue.TakeServiceKicks(); len(kicks) != 1 || kicks[0].Service != "web" {
		t.Errorf("kicks are %+v", kicks)
	}
}

func TestStopTask_KilledAtAnyCallThenRepeatedStopsOnce(t *testing.T) {
	for _, admitted := range []bool{false, true} {
		for effect := range 2 {
			for n := 1; ; n++ {
				r := newAPIRig(t)
				r.cluster()
				r.instance(1)
				id := r.run(one(1)).Tasks[0].ID
				if admitted {
					r.admit()
				}
				r.store.Calls.KillAt(n, effect == 1)
				_, err := r.StopTask(context.Background(), "default", id, "why")
				made, _ := r.store.Calls.Made()
				r.store.Calls.Reset()
				r.stop(id)
				if got := r.task(id); got.DesiredStatus != task.DesiredStopped || got.StoppedReason == "" || got.LastStatus.Open() != admitted {
					t.Fatalf("killed at %d: %+v", n, got)
				}
				r.check()
				if err == nil && made < n {
					break
				}
			}
		}
	}
}

func TestStopTask_ConflictsAreTriedAgain(t *testing.T) {
	r := newAPIRig(t)
	r.cluster()
	id := r.run(one(1)).Tasks[0].ID
	r.store.Calls.FailAt(2, fault.Conflict) // the commit
	r.stop(id)
	if got := r.task(id); got.LastStatus != task.Stopped {
		t.Errorf("task is %s", got.LastStatus)
	}
}

func TestStopTask_WhatIsNotThere(t *testing.T) {
	r := newAPIRig(t)
	r.cluster()
	if _, err := r.EnsureCluster(context.Background(), "other"); err != nil {
		t.Fatal(err)
	}
	id := r.run(one(1)).Tasks[0].ID
	for name, x := range map[string]struct{ cluster, id, code, says string }{
		"unknown task":    {"default", strings.Repeat("a", 32), "InvalidParameterException", "The referenced task was not found."},
		"other cluster":   {"other", id, "InvalidParameterException", "The referenced task was not found."},
		"unknown cluster": {"nowhere", id, "ClusterNotFoundException", "Cluster not found."},
	} {
		_, err := r.StopTask(context.Background(), x.cluster, x.id, "")
		if f := coded(t, err, x.code); f.Message != x.says {
			t.Errorf("%s: says %q", name, f.Message)
		}
	}
	_, err := r.StopTask(context.Background(), "default", id, strings.Repeat("x", 1025))
	wantCode(t, err, "InvalidParameterException")
}

func TestDescribeTasks_TellsWhatIsThereAndWhatIsNot(t *testing.T) {
	r := newAPIRig(t)
	r.cluster()
	run := r.run(one(2))
	a, b := run.Tasks[0].ID, run.Tasks[1].ID
	r.instance(1)
	r.admit()
	r.stop(b)
	unknown := strings.Repeat("e", 32)
	found, missing, err := r.DescribeTasks(context.Background(), "default", []string{a, unknown, b, a})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 2 || !slices.Equal(missing, []string{unknown}) {
		t.Fatalf("found %d, missing %v", len(found), missing)
	}
	if v := found[0]; v.Zone != "z1" || !v.Connected || v.Definition.Family != "web" || v.ShownContainers()[0].Status != task.ContainerPending {
		t.Errorf("view is %+v", v)
	}
	old := r.task(b)
	old.Overrides = json.RawMessage(`{"containerOverrides":[{"name":"main","fromARelease":"that allowed it"}]}`)
	r.must(&old)
	found, _, err = r.DescribeTasks(context.Background(), "default", []string{a, b})
	if err != nil || len(found) != 2 || len(found[1].ShownContainers()) != 1 {
		t.Errorf("with overrides that are read no more: %+v, %v", found, err)
	}
	gone := r.task(a)
	gone.ExpiresAt = r.now
	r.must(&gone)
	if _, missing, _ = r.DescribeTasks(context.Background(), "default", []string{a}); len(missing) != 1 {
		t.Error("an expired task is still told")
	}
	_, _, err = r.DescribeTasks(context.Background(), "default", make([]string, 101))
	wantCode(t, err, "InvalidParameterException")
	_, _, err = r.DescribeTasks(context.Background(), "nowhere", []string{a})
	wantCode(t, err, "ClusterNotFoundException")
}
