package control_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
)

// counted is a world in which one task of service web is given to instance i.
func counted(t *testing.T, live *control.Live) (w *controltest.World, id string) {
	w = controltest.NewWorld(t)
	w.AddInstance("i", control.Held{CPU: 10, MemoryMiB: 10})
	live.Cluster, live.Service, live.Live = "default", "web", 1
	id = w.NewID()
	task := &control.Task{ID: id, Cluster: "default", LastStatus: task.Provisioning, DesiredStatus: task.DesiredRunning, Attempt: 1,
		Family: "app", Number: 1, Group: "service:web", Service: "web", StartedBy: "ecs-svc/1", Needs: taskdef.Resources{CPU: 1, MemoryMiB: 1}, CreatedAt: w.Clock.Now()}
	if err := w.Store.Commit(ctx, control.Put(task), control.Put(live)); err != nil {
		t.Fatal(err)
	}
	w.MustAdmit(id)
	return w, id
}

func liveNow(t *testing.T, w *controltest.World) *control.Live {
	t.Helper()
	live := &control.Live{Cluster: "default", Service: "web"}
	if err := w.Store.Load(ctx, live); err != nil {
		t.Fatal(err)
	}
	return live
}

func tellEnd(w *controltest.World, id string, change func(*wire.Report)) error {
	w.Clock.Move(time.Minute)
	identity, instance := controltest.Identity("i")
	r := &wire.Report{Header: wire.Header{Instance: instance}, Origin: wire.Origin{Incarnation: "inc-i", N: 9},
		Snapshot: wire.Snapshot{Task: id, Attempt: 1, Status: task.Stopped, Cause: task.ExitedCause}}
	change(r)
	return w.IngestReport(ctx, control.Sender{Identity: identity, SentAt: w.Clock.Now()}, r)
}

func TestLive_CountsWhatItsDeploymentIsToBlameFor(t *testing.T) {
	for name, c := range map[string]struct {
		stop   task.Cause
		report func(w *controltest.World, r *wire.Report)
		all    int
		inARow int
	}{
		"it could not be started":        {"", func(_ *controltest.World, r *wire.Report) { r.Cause = task.FailedCause }, 1, 1},
		"it came to a dead-lock":         {"", func(_ *controltest.World, r *wire.Report) { r.Cause = task.DeadlockCause }, 1, 1},
		"it ran and ended by itself":     {"", func(w *controltest.World, r *wire.Report) { r.StartedAt = w.Clock.Now() }, 1, 0},
		"it vanished before it ran":      {"", func(_ *controltest.World, r *wire.Report) { r.Cause = task.VanishedCause }, 0, 0},
		"it ended on a fenced instance":  {"", func(_ *controltest.World, r *wire.Report) { r.Cause = task.FencedCause }, 0, 0},
		"its service stopped it":         {task.ServiceCause, func(*controltest.World, *wire.Report) {}, 0, 0},
		"somebody stopped it":            {task.UserCause, func(*controltest.World, *wire.Report) {}, 0, 0},
		"it was stopped as unhealthy":    {task.UnhealthyCause, func(w *controltest.World, r *wire.Report) { r.StartedAt = w.Clock.Now() }, 0, 0},
		"its agent could not read of it": {"", func(_ *controltest.World, r *wire.Report) { r.Cause = task.UnreadableCause }, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w, id := counted(t, &control.Live{})
			if c.stop != "" {
				one := w.Task(id)
				one.DesiredStatus, one.StopCause = task.DesiredStopped, c.stop
				w.Put(&one)
			}
			if err := tellEnd(w, id, func(r *wire.Report) { c.report(w, r) }); err != nil {
				t.Fatal(err)
			}
			got, want := liveNow(t, w), []control.Failed(nil)
			if c.all > 0 {
				want = []control.Failed{{Deployment: "ecs-svc/1", All: c.all, InARow: c.inARow, Last: w.Task(id).StoppedAt}}
			}
			if got.Live != 0 || !reflect.DeepEqual(got.Failed, want) {
				t.Errorf("live is %+v, want 0 with %+v", got, want)
			}
		})
	}
}

func TestLive_CountsEachDeploymentsFailuresApart(t *testing.T) {
	before := []control.Failed{{Deployment: "ecs-svc/0", All: 5, InARow: 4}, {Deployment: "ecs-svc/1", All: 2, Unhealthy: 1, InARow: 1}}
	w, id := counted(t, &control.Live{Failed: before})
	if err := tellEnd(w, id, func(r *wire.Report) { r.StartedAt = w.Clock.Now() }); err != nil {
		t.Fatal(err)
	}
	want := []control.Failed{before[0], {Deployment: "ecs-svc/1", All: 3, Unhealthy: 1, InARow: 1, Last: w.Task(id).StoppedAt}}
	if got := liveNow(t, w).Failed; !reflect.DeepEqual(got, want) {
		t.Errorf("failed is %+v, want %+v", got, want)
	}
}

// A lost instance takes the tasks that were about to start on it with it: that
// is no failure of their deployment, or a host's death would trip the breaker.
func TestLive_ATaskClosedWithItsInstanceIsNoFailure(t *testing.T) {
	w, _ := counted(t, &control.Live{})
	_, instance := controltest.Identity("i")
	l, lease := w.Ledger(instance), w.Lease(instance)
	l.Epoch, l.Stale, l.Cause, l.Connected = l.Epoch+1, l.Open, control.ReapedCause, false
	lease.Stage, lease.Epoch = control.StageLost, l.Epoch
	w.Put(&l, &lease)
	w.Memory.CatchUp()
	if err := w.CloseOlder(ctx, instance); err != nil {
		t.Fatal(err)
	}
	if got := liveNow(t, w); got.Live != 0 || got.Failed != nil {
		t.Errorf("live is %+v", got)
	}
}

func TestLive_AFailureIsCountedOnceHoweverOftenItIsToldAndWhateverDies(t *testing.T) {
	var id string
	controltest.KillEverywhere(t, func(t *testing.T) *controltest.World {
		var w *controltest.World
		w, id = counted(t, &control.Live{})
		return w
	}, func(w *controltest.World) error {
		if err := tellEnd(w, id, func(r *wire.Report) { r.Cause = task.FailedCause }); err != nil && !fault.Is(err, fault.Unavailable) {
			return err
		}
		return tellEnd(w, id, func(r *wire.Report) { r.Cause = task.FailedCause })
	}, func(t *testing.T, w *controltest.World) {
		if got := liveNow(t, w); got.Live != 0 || len(got.Failed) != 1 || got.Failed[0].All != 1 {
			t.Errorf("live is %+v", got)
		}
	})
}
