package control_test

import (
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

func TestSender_SpeaksOnlyForItself(t *testing.T) {
	w := controltest.NewWorld(t)
	e, other := host(t, w, "i"), host(t, w, "j")
	id := e.running()
	before, leases := stored(e), []control.Lease{w.Lease(e.id), w.Lease(other.id)}
	w.Clock.Move(time.Minute)
	forged := e.beat() // without the task, in the other's name
	forged.Sender = other.sender()
	e.heard(forged)
	if n, _ := w.Counts.Last("RefusedSenders"); n != 1 || stored(e) != before || !w.Lease(e.id).Sent.Equal(leases[0].Sent) || !w.Lease(other.id).Sent.Equal(leases[1].Sent) {
		t.Fatalf("counted %v, task %+v", n, w.Task(id))
	}
}

func TestSender_InItsOwnNameChangesNothingOfAnothersTask(t *testing.T) {
	w := controltest.NewWorld(t)
	e, other := host(t, w, "i"), host(t, w, "j")
	id := e.running()
	before, ledger := stored(e), w.Ledger(e.id)
	w.Clock.Move(time.Minute)
	for _, told := range []control.Told{
		{Sender: other.sender(), Report: other.report(id, 1, task.Stopped)},
		{Sender: other.sender(), Report: other.report(id, 1, task.Stopping)},
		{Sender: other.sender(), Refused: other.refusal(id, 1)},
	} {
		if err := w.IngestReports(ctx, []control.Told{told})[0]; err != nil {
			t.Fatal(err)
		}
	}
	other.heard(other.beat(other.lists(id, 1, wire.PhaseEnded)))
	other.heard(other.beat(other.lists(id, 1, wire.PhaseRunning)))
	other.heard(other.beat())
	if now := w.Ledger(e.id); stored(e) != before || now.Version != ledger.Version || w.Task(id).LastStatus != task.Running {
		t.Fatalf("task %+v, ledger %+v", w.Task(id), now)
	}
	if n := len(w.Sent.TakeCommands(e.id)); n != 0 {
		t.Errorf("%d commands were sent to the other", n)
	}
}

func TestSender_OnTheLocalStackEveryMessageHasTheSame(t *testing.T) {
	w := controltest.NewWorld(t)
	w.Setting.SenderFromBody = true
	a, b := newEdge(t, w, "a"), newEdge(t, w, "b")
	for _, e := range []*edge{a, b} {
		m := e.register()
		e.identity = "000000000000"
		if err := w.IngestRegister(ctx, e.sender(), m); err != nil {
			t.Fatal(err)
		}
		e.welcomed()
	}
	w.Clock.Move(time.Second)
	w.Memory.CatchUp()
	for _, err := range w.Heartbeats(ctx, []control.Beat{a.beat(), b.beat(), {Sender: a.sender()}}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if !w.Ledger(a.id).Connected || !w.Ledger(b.id).Connected {
		t.Fatalf("leases %+v %+v", w.Lease(a.id), w.Lease(b.id))
	}
	id := b.running()
	b.reports(id, 1, task.Stopped)
	if w.Task(id).LastStatus != task.Stopped {
		t.Fatal("its report was dropped")
	}
}
