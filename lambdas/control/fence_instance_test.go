package control_test

import (
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

func TestFenceContainerInstance_ClosesEverythingWhereverItIsKilled(t *testing.T) {
	const tasks = 45 // more than are closed at once
	var i string
	controltest.KillEverywhere(t, func(t *testing.T) *controltest.World {
		w := controltest.NewWorld(t)
		i = w.AddInstance("i", room)
		w.Put(&control.Live{Cluster: "default", Service: "web", Live: tasks})
		running(w, i, tasks, func(t *control.Task) { t.Service = "web" })
		for range 5 { // a pass is told of ten
			w.MustAdmit()
		}
		if open := w.Ledger(i).Open; open != tasks {
			t.Fatalf("%d tasks are open", open)
		}
		w.Memory.CatchUp()
		return w
	}, func(w *controltest.World) error {
		w.Memory.CatchUp()
		_, err := w.FenceContainerInstance(ctx, "default", i)
		return err
	}, func(t *testing.T, w *controltest.World) {
		if l := w.Ledger(i); l.Open != 0 || l.Stale != 0 || l.Connected || l.EndCause != task.ConfirmedOff || l.Cause != control.ReapedCause || l.Status != control.Active {
			t.Errorf("ledger %+v", l)
		}
		if l := w.Lease(i); l.Stage != control.StageLost || l.Epoch != w.Ledger(i).Epoch {
			t.Errorf("lease %+v", l)
		}
		live := &control.Live{Cluster: "default", Service: "web"}
		if err := w.Store.Load(ctx, live); err != nil || live.Live != 0 {
			t.Errorf("live %d, %v", live.Live, err)
		}
		for _, got := range w.Memory.Tasks() {
			if got.LastStatus != task.Stopped || got.StopCause != task.ConfirmedOff || got.StoppedReason != task.EndOf(task.ConfirmedOff).Reason {
				t.Errorf("task %+v", got)
			}
		}
	})
}

func TestFenceContainerInstance_IsIdempotent(t *testing.T) {
	w := controltest.NewWorld(t)
	i := w.AddInstance("i", room)
	running(w, i, 1)
	before := w.Ledger(i).Epoch
	w.Memory.CatchUp()
	first, err := w.FenceContainerInstance(ctx, "default", i)
	if err != nil || first.Ledger.Epoch <= before || first.StatusReason() == "" || first.Ledger.Connected {
		t.Fatalf("%+v, %v", first, err)
	}
	w.Clock.Move(time.Minute)
	again, err := w.FenceContainerInstance(ctx, "default", i)
	if err != nil || again.Ledger.Version != first.Ledger.Version || again.Lease.Version != first.Lease.Version {
		t.Errorf("the second word changed something: %+v, %v", again, err)
	}
}

func TestFenceContainerInstance_ClosesWhatALostInstanceStillHas(t *testing.T) {
	w := controltest.NewWorld(t)
	i := w.AddInstance("i", room)
	id := running(w, i, 1)[0]
	l, lease := w.Ledger(i), w.Lease(i)
	l.Epoch, l.Stale, l.Connected, l.Cause = l.Epoch+1, 1, false, control.ReapedCause // and its run was killed here
	lease.Epoch, lease.Stage = l.Epoch, control.StageLost
	w.Put(&l, &lease)
	w.Memory.CatchUp()
	if _, err := w.FenceContainerInstance(ctx, "default", i); err != nil {
		t.Fatal(err)
	}
	if got := w.Task(id); got.LastStatus != task.Stopped || got.StopCause != task.ConfirmedOff {
		t.Errorf("task %+v", got)
	}
}

// A task that was kept, or adopted by an instance that fell silent again, is of
// the present epoch: only a further raise makes it one to close.
func TestFenceContainerInstance_ClosesATaskOfALostInstancesOwnEpoch(t *testing.T) {
	w := controltest.NewWorld(t)
	i := w.AddInstance("i", room)
	id := running(w, i, 1)[0]
	l, lease := w.Ledger(i), w.Lease(i)
	l.Connected, l.Cause, l.EndCause = false, control.ReapedCause, task.HostGoneCause
	lease.Stage = control.StageLost
	w.Put(&l, &lease)
	w.Memory.CatchUp()
	v, err := w.FenceContainerInstance(ctx, "default", i)
	if err != nil || v.Ledger.Epoch <= l.Epoch || v.Ledger.Open != 0 {
		t.Errorf("%+v, %v", v, err)
	}
	if got := w.Task(id); got.LastStatus != task.Stopped || got.StopCause != task.HostGoneCause {
		t.Errorf("EC2's word came first and stays: %+v", got)
	}
}

func TestFenceContainerInstance_OneThatComesBackIsFencedAndThenUsed(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	id := e.running()
	listed := e.lists(id, 1, wire.PhaseRunning)
	w.Memory.CatchUp()
	if _, err := w.FenceContainerInstance(ctx, "default", e.id); err != nil {
		t.Fatal(err)
	}
	ticks(t, w, 2)
	if l := w.Ledger(e.id); l.Status != control.Active {
		t.Fatalf("a host that may be switched on again became %s", l.Status)
	}
	w.Sent.TakeCommands(e.id)
	e.beats(listed) // it was the wrong cable
	if s := w.Lease(e.id).Stage; s != control.StageFenced {
		t.Fatalf("stage %s", s)
	}
	fences := inbox[*wire.Fence](e)
	if len(fences) != 1 || fences[0].Terminal || len(fences[0].Closed) != 1 || fences[0].Epoch != w.Ledger(e.id).Epoch {
		t.Fatalf("fences %+v", fences)
	}
	e.epoch = fences[0].Epoch
	e.beats()
	if l := w.Ledger(e.id); !l.Connected || l.EndCause != "" {
		t.Errorf("ledger %+v", l)
	}
	if got := w.Task(e.given()); got.Instance != e.id {
		t.Errorf("task %+v", got)
	}
}

func TestFenceContainerInstance_RefusesWhatIsNotThere(t *testing.T) {
	w := controltest.NewWorld(t)
	i := w.AddInstance("i", room)
	w.Put(&control.Cluster{Name: "other", Status: "ACTIVE", CreatedAt: w.Clock.Now()})
	for _, c := range []struct{ cluster, id, code string }{
		{"nowhere", i, control.ClusterNotFoundException},
		{"other", i, control.InvalidParameterException},
		{"default", "0123", control.InvalidParameterException},
	} {
		_, err := w.FenceContainerInstance(ctx, c.cluster, c.id)
		coded(t, err, c.code)
	}
	if l := w.Ledger(i); !l.Connected {
		t.Errorf("ledger %+v", l)
	}
	if _, err := w.DeregisterContainerInstance(ctx, "default", i, false); err != nil {
		t.Fatal(err)
	}
	before := w.Ledger(i)
	if _, err := w.FenceContainerInstance(ctx, "default", i); err != nil || w.Ledger(i).Version != before.Version {
		t.Errorf("INACTIVE is as off as can be: %v", err)
	}
}
