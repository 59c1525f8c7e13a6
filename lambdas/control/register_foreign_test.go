package control_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
)

func (r *apiRig) foreign() string {
	r.t.Helper()
	v, err := r.RegisterForeign(context.Background(), control.ForeignRequest{Cluster: "default", Registered: control.Held{CPU: 4096, MemoryMiB: 8192, TCP: []int{22}}, Attributes: map[string]string{"disk": "ssd"}})
	if err != nil {
		r.t.Fatal(err)
	}
	r.store.CatchUp()
	return v.ID
}

func TestRegisterForeign_IsListedAndDisconnectedAndGetsNoWork(t *testing.T) {
	r := newAPIRig(t)
	r.cluster()
	id := r.foreign()
	ctx := context.Background()
	ids, _, err := r.ListContainerInstances(ctx, control.InstanceFilter{Cluster: "default"}, control.Cursor{}, 10)
	if err != nil || !slices.Equal(ids, []string{id}) {
		t.Errorf("listed are %v, %v", ids, err)
	}
	found, _, err := r.DescribeContainerInstances(ctx, "default", []string{id})
	if err != nil || len(found) != 1 || found[0].Ledger.Connected || found[0].Ledger.Status != control.Active || found[0].Lease.Version != 0 || found[0].StatusReason() == "" {
		t.Fatalf("described as %+v, %v", found, err)
	}
	run, err := r.StartTask(ctx, control.StartTaskRequest{TaskRequest: one(1).TaskRequest, Instances: []string{id}})
	if err != nil || len(run.Tasks) > 0 || len(run.Failures) != 1 || run.Failures[0].Reason != "AGENT" {
		t.Errorf("StartTask answers %+v, %v", run, err)
	}
	req := one(1)
	req.Tags = map[string]string{"longshore:onNoCapacity": "fail"}
	if run := r.run(req); len(run.Failures) != 1 || run.Failures[0].Reason != "AGENT" {
		t.Errorf("RunTask answers %+v", run)
	}
	waits := r.run(one(1)).Tasks[0].ID
	r.admit()
	if got := r.task(waits); got.Instance != "" || got.WaitingReason != "AGENT" {
		t.Errorf("the task that waits is %+v", got)
	}
}

func TestRegisterForeign_IsNeverReapedAndCountsForNoBrake(t *testing.T) {
	w := controltest.NewWorld(t)
	w.AddInstance("real", control.Held{CPU: 1024, MemoryMiB: 1024})
	v, err := w.RegisterForeign(ctx, control.ForeignRequest{Cluster: "default", Registered: control.Held{CPU: 1024, MemoryMiB: 1024}})
	if err != nil {
		t.Fatal(err)
	}
	for range 30 {
		w.Clock.Move(time.Hour)
		if err := w.Tick(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if l := w.Ledger(v.ID); l.Status != control.Active || l.Epoch != v.Ledger.Epoch {
		t.Errorf("ledger is %+v", l)
	}
	scan, err := w.Store.Leases(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range scan.Leases {
		if l.ID == v.ID {
			t.Errorf("it has a lease: %+v", l)
		}
	}
}

func TestRegisterForeign_IsDeregisteredForGoodAndUpdatedByItsARN(t *testing.T) {
	r := newAPIRig(t)
	r.cluster()
	ctx := context.Background()
	id := r.foreign()
	v, err := r.RegisterForeign(ctx, control.ForeignRequest{Cluster: "default", ID: id, Registered: control.Held{CPU: 1}})
	if err != nil || v.ID != id || v.Ledger.Registered.CPU != 1 {
		t.Fatalf("registered again as %+v, %v", v, err)
	}
	if _, err := r.DeregisterContainerInstance(ctx, "default", id, false); err != nil {
		t.Fatal(err)
	}
	r.store.CatchUp()
	if ids, _, _ := r.ListContainerInstances(ctx, control.InstanceFilter{Cluster: "default"}, control.Cursor{}, 10); len(ids) > 0 {
		t.Errorf("still listed: %v", ids)
	}
	lease := &control.Lease{ID: id}
	if err := r.store.Load(ctx, lease); err != nil || lease.Version != 0 {
		t.Errorf("deregistering made a lease: %+v, %v", lease, err)
	}
	_, err = r.RegisterForeign(ctx, control.ForeignRequest{Cluster: "default", ID: id})
	wantCode(t, err, "InvalidParameterException")
	_, err = r.RegisterForeign(ctx, control.ForeignRequest{Cluster: "default", ID: r.instance(1)})
	wantCode(t, err, "InvalidParameterException")
	_, err = r.RegisterForeign(ctx, control.ForeignRequest{Cluster: "none"})
	wantCode(t, err, "ClusterNotFoundException")
	_, err = r.RegisterForeign(ctx, control.ForeignRequest{Cluster: "default", Attributes: map[string]string{"longshore.pool": "x"}})
	wantCode(t, err, "InvalidParameterException")
}

func TestRegisterForeign_AnAgentThatRegistersAsItTakesItOver(t *testing.T) {
	w := controltest.NewWorld(t)
	e := newEdge(t, w, "i")
	w.Put(&control.Instance{ID: e.id, Cluster: "default", Foreign: true, Zone: "edge"}, &control.Ledger{ID: e.id, Cluster: "default", Status: control.Active, Epoch: 1, SinceEpoch: 1})
	e.registers()
	e.welcomed()
	e.beats()
	if in := instanceOf(w, e.id); in.Foreign || !w.Ledger(e.id).Connected {
		t.Errorf("instance is %+v, ledger %+v", in, w.Ledger(e.id))
	}
}

func TestSubmitState_TakesNothingOfATaskThatItsOwnAgentRuns(t *testing.T) {
	r := newAPIRig(t)
	r.cluster()
	r.instance(1)
	id := r.run(one(1)).Tasks[0].ID
	r.admit()
	before := r.task(id)
	wantCode(t, r.SubmitState(context.Background(), "default", id), "InvalidParameterException")
	if got := r.task(id); got.Version != before.Version {
		t.Error("the task was written")
	}
	if err := r.SubmitState(context.Background(), "default", "nobody"); err != nil {
		t.Errorf("of a task that is not there: %v", err)
	}
	wantCode(t, r.SubmitState(context.Background(), "none"), "ClusterNotFoundException")
}
