package control_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

const day = 24 * time.Hour

// ticks runs the reaper alone: what goes on without a heartbeat queue.
func ticks(t *testing.T, w *controltest.World, n int) {
	t.Helper()
	for range n {
		w.Memory.CatchUp()
		if err := w.Tick(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

func onEC2(in *control.Instance, _ *control.Ledger, l *control.Lease) {
	in.EC2InstanceID, l.EC2 = "i-0abc", "i-0abc"
}

func TestTick_ADeregisteredInstanceLeavesNoInboxWhereverTheReaperIsKilled(t *testing.T) {
	var i string
	controltest.KillEverywhere(t, func(t *testing.T) *controltest.World {
		w := controltest.NewWorld(t)
		i = w.AddInstance("i", room)
		if _, err := w.DeregisterContainerInstance(ctx, "default", i, false); err != nil {
			t.Fatal(err)
		}
		w.Clock.Move(day)
		w.Memory.CatchUp()
		return w
	}, func(w *controltest.World) error { return w.Tick(ctx) }, func(t *testing.T, w *controltest.World) {
		if w.Lease(i).Version != 0 || slices.Contains(w.Sent.Inboxes(), i) {
			t.Errorf("lease %+v inboxes %v", w.Lease(i), w.Sent.Inboxes())
		}
		if l := w.Ledger(i); l.Status != control.Inactive || l.ExpiresAt.IsZero() {
			t.Errorf("its epoch is not remembered: %+v", l)
		}
	})
}

func TestDeregister_WhatIsStillOpenNeverExpires(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	id := e.running()
	l := w.Ledger(e.id)
	w.Memory.Lag = 1000 // the index shows nothing that could be closed
	w.Memory.Calls.KillAt(3, true)
	_, _ = w.DeregisterContainerInstance(ctx, "default", e.id, true)
	w.Memory.Calls.Reset()
	if got := w.Ledger(e.id); got.Status != control.Inactive || got.Stale != 1 || got.Epoch == l.Epoch {
		t.Fatalf("ledger %+v", got)
	}
	w.Clock.Move(8 * day) // nobody closes for longer than epochs are remembered
	e.reports(id, 1, task.Stopped)
	if got := w.Task(id); got.LastStatus != task.Stopped || w.Ledger(e.id).Open != 0 {
		t.Fatalf("task %+v ledger %+v", got, w.Ledger(e.id))
	}
	w.Memory.Lag = 0
	ticks(t, w, 2)
	if l := w.Ledger(e.id); l.ExpiresAt.IsZero() || w.Lease(e.id).Version != 0 {
		t.Errorf("not forgotten: %+v", l)
	}
}

func TestIngestHostState_TheEndOfAHostThatIsLostAlready(t *testing.T) {
	w := controltest.NewWorld(t)
	i := w.AddInstance("i", room, onEC2)
	running(w, i, 1)
	minutes(t, w, 14)
	if s := w.Lease(i).Stage; s != control.StageLost {
		t.Fatalf("stage %s", s)
	}
	epoch := w.Ledger(i).Epoch
	if err := w.IngestHostState(ctx, control.HostState{EC2InstanceID: "i-0abc", State: "terminated", At: w.Clock.Now()}); err != nil {
		t.Fatal(err)
	}
	ticks(t, w, 1)
	if l := w.Ledger(i); l.Status != control.Inactive || l.Epoch != epoch {
		t.Errorf("a terminated host stays for seven days: %+v", l)
	}
}

func TestIngestHostState_AnEndOlderThanALostInstancesLeaseIsVoid(t *testing.T) {
	w := controltest.NewWorld(t)
	i := w.AddInstance("i", room, onEC2)
	old := w.Lease(i).Sent.Add(-time.Second)
	minutes(t, w, 14)
	if err := w.IngestHostState(ctx, control.HostState{EC2InstanceID: "i-0abc", State: "terminated", At: old}); err != nil {
		t.Fatal(err)
	}
	ticks(t, w, 1)
	if l := w.Ledger(i); l.Status != control.Active || l.EndCause != "" {
		t.Errorf("%+v", l)
	}
}

func TestTick_AnImpairedHostIsReapedOnceAndReturns(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	e.running()
	e.docker = wire.DockerImpaired
	pass := func(n int) {
		for range n {
			w.Clock.Move(time.Minute)
			e.heard(e.beat())
			for _, m := range w.Sent.TakeCommands(e.id) {
				if f, ok := m.(*wire.Fence); ok {
					e.epoch = f.Epoch
				}
			}
			deliverProbes(t, w)
			ticks(t, w, 1)
		}
	}
	pass(14)
	l := w.Ledger(e.id)
	if w.Lease(e.id).Stage != control.StageLost || l.Open != 0 {
		t.Fatalf("lease %+v ledger %+v", w.Lease(e.id), l)
	}
	pass(10)
	if got := w.Ledger(e.id); got.Epoch != l.Epoch {
		t.Errorf("reaped again and again, a token of its zone each time: epoch %d, then %d", l.Epoch, got.Epoch)
	}
	e.docker = wire.DockerOK
	pass(2)
	if s := w.Lease(e.id).Stage; s != control.StageConnected {
		t.Errorf("stage %s (%s) with a working engine", s, w.Lease(e.id).StageReason)
	}
}

func TestTick_ABrakeEndsWithItsZone(t *testing.T) {
	w := controltest.NewWorld(t)
	w.Put(&control.Brake{Zone: "gone", Engaged: true, SetAt: w.Clock.Now()})
	i := w.AddInstance("i", room)
	minutes(t, w, 2, i)
	scan, err := w.Store.Leases(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if v, _ := w.Counts.Last("BrakeEngaged"); v != 0 || len(scan.Brakes) != 1 {
		t.Errorf("the brake of a zone without instances is engaged for ever: %+v", scan.Brakes)
	}
}

func TestTick_AQueueThatCanNotBeMeasuredHoldsBackReapingForAWhileOnly(t *testing.T) {
	w := controltest.NewWorld(t)
	i := w.AddInstance("i", room)
	minutes(t, w, 2, i)
	w.Queue = unmeasured{w.Sent}
	pass := func(n int) {
		for range n {
			w.Clock.Move(time.Minute)
			deliverProbes(t, w)
			if w.Tick(ctx) == nil {
				t.Fatal("nobody is told")
			}
		}
	}
	pass(30)
	if s := w.Lease(i).Stage; s != control.StageSuspect {
		t.Errorf("stage %s after half an hour of silence", s)
	}
	pass(50)
	if s := w.Lease(i).Stage; s != control.StageLost {
		t.Errorf("stage %s: the guard never ended", s)
	}
}

func TestTick_WhatIsLostAndClosedCostsNoCallOfItsOwn(t *testing.T) {
	w := controltest.NewWorld(t)
	live := w.AddInstance("live", room)
	count := func() int {
		w.Memory.Calls.Reset()
		minute(t, w, live)
		n, _ := w.Memory.Calls.Made()
		return n
	}
	minutes(t, w, 2, live)
	alone := count()
	for n := range 50 {
		w.AddInstance(string(rune('a'+n)), room, func(_ *control.Instance, l *control.Ledger, lease *control.Lease) {
			l.Connected, l.Cause, lease.Stage, lease.StageSince = false, control.ReapedCause, control.StageLost, w.Clock.Now()
		})
	}
	if n := count(); n > alone+5 {
		t.Errorf("%d calls with 50 instances that are LOST, %d without", n, alone)
	}
}

// unmeasured is a queue whose backlog nobody can tell.
type unmeasured struct{ control.Queue }

func (unmeasured) Backlog(context.Context) (int, error) {
	return 0, fault.New(fault.Unavailable, "not now")
}

func TestIngestHostState_AStoppingHostTakesNoWorkThoughItBeats(t *testing.T) {
	w := controltest.NewWorld(t)
	i := w.AddInstance("i", room, onEC2)
	e := newEdge(t, w, "i")
	e.epoch = w.Ledger(i).Epoch
	w.Clock.Move(time.Second)
	if err := w.IngestHostState(ctx, control.HostState{EC2InstanceID: "i-0abc", State: "stopping", At: w.Clock.Now()}); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		e.beats()
		if w.Ledger(i).Connected || w.Lease(i).Stage != control.StageSuspect {
			t.Fatalf("a beat of a host that is shutting down made it take work: %+v", w.Lease(i))
		}
	}
	lease := w.Lease(i)
	if !lease.CordonedUntil.After(w.Clock.Now()) {
		t.Errorf("%+v", lease)
	}
	w.Clock.Move(w.Setting.ReapAfter) // it did not stop after all
	e.beats()
	if !w.Ledger(i).Connected || w.Lease(i).Stage != control.StageConnected {
		t.Errorf("%+v", w.Lease(i))
	}
}

func TestIngestHostState_AHostStartedAgainIsNotCordoned(t *testing.T) {
	w := controltest.NewWorld(t)
	i := w.AddInstance("i", room, onEC2)
	e := newEdge(t, w, "i")
	e.epoch = w.Ledger(i).Epoch
	for _, state := range []string{"stopping", "stopped"} {
		w.Clock.Move(time.Second)
		if err := w.IngestHostState(ctx, control.HostState{EC2InstanceID: "i-0abc", State: state, At: w.Clock.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	if s := w.Lease(i).Stage; s != control.StageLost {
		t.Fatalf("stage %s", s)
	}
	w.Clock.Move(time.Second)
	e.registers()
	e.welcomed()
	e.beats()
	if !w.Ledger(i).Connected {
		t.Errorf("%+v", w.Lease(i))
	}
}

// Engines that break together are more likely our fault, or one bad update, than
// theirs: IMPAIRED hosts count as late in the brake's shares, though they beat.
func TestTick_ManyImpairedAtOnceAreReapedSlowlyOrNotAtAll(t *testing.T) {
	for name, c := range map[string]struct{ impaired, least, most int }{
		"one of ten":   {1, 1, 1},
		"eight of ten": {8, 3, 5}, // one in five minutes
		"all of them":  {10, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := controltest.NewWorld(t)
			var all []string
			for n := range 10 {
				all = append(all, w.AddInstance(string(rune('a'+n)), room))
			}
			minutes(t, w, 2, all...)
			for _, id := range all[:c.impaired] {
				l, lease := w.Ledger(id), w.Lease(id)
				l.Connected, lease.Impaired, lease.ImpairedWhy = false, w.Clock.Now(), "socket does not answer"
				lease.Stage = control.StageFenced
				w.Put(&l, &lease)
			}
			minutes(t, w, 31, all...)
			if n := lostOf(w, all); n < c.least || n > c.most {
				t.Errorf("%d are LOST after 20 minutes past their time", n)
			}
		})
	}
}
