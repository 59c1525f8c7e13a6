package control_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

func TestDescribeContainerInstances_SaysWhatIsLeftAndWhatKeepsItFromWork(t *testing.T) {
	r, ctx := newAPIRig(t), context.Background()
	r.cluster()
	in := r.instance(1)
	r.run(one(3))
	r.admit()
	unknown := strings.Repeat("d", 32)
	found, missing, err := r.DescribeContainerInstances(ctx, "default", []string{in, unknown})
	if err != nil || len(found) != 1 || !slices.Equal(missing, []string{unknown}) {
		t.Fatalf("%+v, missing %v, %v", found, missing, err)
	}
	v := found[0]
	if cpu, memory := v.Ledger.Free(); cpu != 1024-3*256 || memory != 1024-3*128 || v.Tasks.Pending != 3 || v.StatusReason() != "" || v.ShownAttributes()["ecs.availability-zone"] != "z1" {
		t.Errorf("view is %+v, reason %q", v, v.StatusReason())
	}
	for stage, says := range map[control.Stage]string{control.StageLost: "LOST since ", control.StageSuspect: "SUSPECT since ", control.StageFenced: "FENCED since "} {
		lease := &control.Lease{ID: in}
		if err := r.store.Load(ctx, lease); err != nil {
			t.Fatal(err)
		}
		lease.Stage, lease.StageReason = stage, string(stage)+": because" // as reap has it
		r.must(lease)
		found, _, _ = r.DescribeContainerInstances(ctx, "default", []string{in})
		if got := found[0].StatusReason(); !strings.HasPrefix(got, says) || !strings.Contains(got, "Z: because") || found[0].Lost() != (stage == control.StageLost) {
			t.Errorf("%s: reason %q, lost %t", stage, got, found[0].Lost())
		}
	}
	_, _, err = r.DescribeContainerInstances(ctx, "default", nil)
	wantCode(t, err, "InvalidParameterException")
	_, _, err = r.DescribeContainerInstances(ctx, "nowhere", []string{in})
	wantCode(t, err, "ClusterNotFoundException")
}

func TestListContainerInstances_ByStatusAndExpression(t *testing.T) {
	r, ctx := newAPIRig(t), context.Background()
	r.cluster()
	a, b, gone := r.instance(1), r.instance(2), r.instance(3)
	for id, status := range map[string]control.InstanceStatus{b: control.Draining, gone: control.Inactive} {
		l := r.store.Ledgers()[id]
		l.Status = status
		r.must(&l)
	}
	in := &control.Instance{ID: b}
	if err := r.store.Load(ctx, in); err != nil {
		t.Fatal(err)
	}
	in.Attributes["disk"] = "hdd"
	r.must(in)
	for _, x := range []struct {
		f    control.InstanceFilter
		want []string
	}{
		{control.InstanceFilter{}, []string{a, b}},
		{control.InstanceFilter{Status: control.Active}, []string{a}},
		{control.InstanceFilter{Status: control.Draining}, []string{b}},
		{control.InstanceFilter{Expression: "attribute:disk == hdd"}, []string{b}},
		{control.InstanceFilter{Expression: "attribute:ecs.availability-zone == z1 and attribute:disk == ssd"}, []string{a}},
	} {
		x.f.Cluster = "default"
		got := pages(t, func(c control.Cursor) ([]string, control.Cursor, error) {
			return r.ListContainerInstances(ctx, x.f, c, 1)
		})
		if !slices.Equal(got, x.want) {
			t.Errorf("%+v: %v, want %v", x.f, got, x.want)
		}
	}
	_, _, err := r.ListContainerInstances(ctx, control.InstanceFilter{Cluster: "default", Expression: "runningTasksCount > 1"}, control.Cursor{}, 10)
	if f := coded(t, err, "InvalidParameterException"); !strings.Contains(f.Message, "runningTasksCount") {
		t.Errorf("says %q", f.Message)
	}
}

func TestUpdateContainerInstancesState_DrainsAndUndrains(t *testing.T) {
	r, ctx := newAPIRig(t), context.Background()
	r.cluster()
	in, gone := r.instance(1), r.instance(2)
	l := r.store.Ledgers()[gone]
	l.Status = control.Inactive
	r.must(&l)
	unknown := strings.Repeat("d", 32)
	found, failures, err := r.UpdateContainerInstancesState(ctx, "default", []string{in, gone, unknown}, control.Draining)
	if err != nil || len(found) != 1 || found[0].Ledger.Status != control.Draining || len(failures) != 2 || failures[0].Reason != "INACTIVE" || failures[1].Reason != "MISSING" {
		t.Fatalf("%+v, %+v, %v", found, failures, err)
	}
	id := r.run(one(1)).Tasks[0].ID
	r.admit()
	if got := r.task(id); got.LastStatus != task.Provisioning {
		t.Errorf("a draining instance got work: %+v", got)
	}
	r.queue.TakeKicks()
	if _, _, err := r.UpdateContainerInstancesState(ctx, "default", []string{in}, control.Active); err != nil {
		t.Fatal(err)
	}
	if kicks := r.queue.TakeKicks(); len(kicks) != 1 || kicks[0].Instance != in {
		t.Errorf("kicks are %+v", kicks)
	}
	_, _, err = r.UpdateContainerInstancesState(ctx, "default", []string{in}, control.Inactive)
	wantCode(t, err, "InvalidParameterException")
	_, _, err = r.UpdateContainerInstancesState(ctx, "default", make([]string, 11), control.Active)
	wantCode(t, err, "InvalidParameterException")
}

func TestDeregisterContainerInstance_WithOpenTasksTakesForce(t *testing.T) {
	r, ctx := newAPIRig(t), context.Background()
	r.cluster()
	in := r.instance(1)
	id := r.run(one(1)).Tasks[0].ID
	r.admit()
	r.queue.TakeCommands(in)
	_, err := r.DeregisterContainerInstance(ctx, "default", in, false)
	if f := coded(t, err, "InvalidParameterException"); f.Message != "Found running tasks on the instance." {
		t.Errorf("says %q", f.Message)
	}
	v, err := r.DeregisterContainerInstance(ctx, "default", in, true)
	if err != nil || v.Ledger.Status != control.Inactive {
		t.Fatalf("%+v, %v", v, err)
	}
	l := r.store.Ledgers()[in]
	if l.Epoch != r.now.Unix() || l.Cause != control.ReapedCause || l.EndCause != task.ForcedDrainCause || l.Open != 0 || l.Stale != 0 || l.Connected {
		t.Errorf("ledger is %+v", l)
	}
	got := r.task(id)
	if got.LastStatus != task.Stopped || got.StopCause != task.ForcedDrainCause || got.Held != nil {
		t.Errorf("task is %+v", got)
	}
	sent := r.queue.TakeCommands(in)
	fence, ok := sent[0].(*wire.Fence)
	if !ok || fence.Epoch != l.Epoch || fence.Incarnation != "inc" || !slices.Equal(fence.Closed, []wire.Attempt{{Task: id, Attempt: 1}}) {
		t.Errorf("sent %+v", sent)
	}
	if _, err := r.DeregisterContainerInstance(ctx, "default", in, false); err != nil {
		t.Errorf("again: %v", err)
	}
	if ids, _, _ := r.ListContainerInstances(ctx, control.InstanceFilter{Cluster: "default"}, control.Cursor{}, 10); len(ids) != 0 {
		t.Errorf("still listed: %v", ids)
	}
	gone := r.now
	r.now = gone.Add(24 * time.Hour)
	if err := r.Tick(ctx); err != nil { // with the lease goes what is left to be closed
		t.Fatal(err)
	}
	r.now = gone.Add(7*24*time.Hour - time.Second)
	if found, _, _ := r.DescribeContainerInstances(ctx, "default", []string{in}); len(found) != 1 {
		t.Error("forgotten within 7 days")
	}
	r.now = r.now.Add(time.Second)
	if found, _, _ := r.DescribeContainerInstances(ctx, "default", []string{in}); len(found) != 0 {
		t.Error("remembered for more than 7 days")
	}
}

func TestDeregisterContainerInstance_KilledAtAnyCallThenReapedEndsEverything(t *testing.T) {
	for effect := range 2 {
		for n := 1; ; n++ {
			r, ctx := newAPIRig(t), context.Background()
			r.cluster()
			in := r.instance(1)
			r.run(one(3))
			r.admit()
			r.store.Calls.KillAt(n, effect == 1)
			_, err := r.DeregisterContainerInstance(ctx, "default", in, true)
			made, _ := r.store.Calls.Made()
			r.store.Calls.Reset()
			r.check()
			if r.store.Ledgers()[in].Status == control.Inactive {
				err := r.Tick(ctx) // the reaper alone goes on
				if err != nil {
					t.Fatal(err)
				}
			} else if _, err := r.DeregisterContainerInstance(ctx, "default", in, true); err != nil {
				t.Fatal(err)
			}
			for id, got := range r.store.Tasks() {
				if got.LastStatus != task.Stopped || got.StopCause != task.ForcedDrainCause {
					t.Fatalf("killed at %d: task %s is %s by %s", n, id, got.LastStatus, got.StopCause)
				}
			}
			r.check()
			if err == nil && made < n {
				break
			}
		}
	}
}

func TestDeregisterContainerInstance_WhatIsNotThere(t *testing.T) {
	r, ctx := newAPIRig(t), context.Background()
	r.cluster()
	in := r.instance(1)
	if _, err := r.EnsureCluster(ctx, "other"); err != nil {
		t.Fatal(err)
	}
	for _, x := range [][3]string{
		{"default", strings.Repeat("d", 32), "InvalidParameterException"},
		{"other", in, "InvalidParameterException"},
		{"nowhere", in, "ClusterNotFoundException"},
	} {
		_, err := r.DeregisterContainerInstance(ctx, x[0], x[1], true)
		wantCode(t, err, x[2])
	}
}
