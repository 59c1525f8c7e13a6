package control_test

import (
	"context"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

// between is a store before whose nth call of one kind somebody else gets in.
type between struct {
	control.Store
	call string
	nth  int
	do   func()
}

func (b *between) pass(call string) {
	if call != b.call || b.nth == 0 {
		return
	}
	if b.nth--; b.nth == 0 {
		b.do()
	}
}

func (b *between) Load(ctx context.Context, records ...control.Record) error {
	b.pass("Load")
	return b.Store.Load(ctx, records...)
}

func (b *between) TaskIDs(ctx context.Context, q control.TaskQuery, page control.Page) ([]string, string, error) {
	b.pass("TaskIDs")
	return b.Store.TaskIDs(ctx, q, page)
}

func (b *between) Commit(ctx context.Context, writes ...control.Write) error {
	b.pass("Commit")
	return b.Store.Commit(ctx, writes...)
}

// meanwhile lets do run before the nth call of that kind from now.
func (e *edge) meanwhile(call string, nth int, do func()) {
	e.w.Store = &between{Store: e.w.Store, call: call, nth: nth, do: do}
}

// raised is what the reaper writes: a later epoch, everything open is stale.
func (e *edge) raised(cause control.RaiseCause) {
	l, lease := e.w.Ledger(e.id), e.w.Lease(e.id)
	l.Epoch, l.Stale, l.Cause, l.Connected = l.Epoch+1, l.Open, cause, false
	lease.Epoch, lease.Stage = l.Epoch, control.StageLost
	e.w.Put(&l, &lease)
}

// The calls of a looked-at beat whose settling changes nothing: Load (settle),
// TaskIDs, Load (candidates), Load and Commit (a chunk), Load and Commit (finish).

func TestJudge_AnEpochRaisedMeanwhileVoidsTheJudgement(t *testing.T) {
	for name, at := range map[string]struct {
		call string
		nth  int
	}{
		"before the chunk is read":    {"Load", 3},
		"before the chunk is written": {"Commit", 1},
		"before it is finished":       {"Load", 4},
		"before the end is written":   {"Commit", 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := controltest.NewWorld(t)
			e := host(t, w, "i")
			gone, fresh := e.running(), e.given()
			e.forget()
			w.Clock.Move(time.Second)
			e.meanwhile(at.call, at.nth, func() { e.raised(control.ReapedCause) })
			// Alone of both, showing the fresh one writes no ledger.
			list := []wire.Entry{e.lists(gone, 1, wire.PhaseRunning), e.lists(fresh, 1, wire.PhasePending)}
			e.heard(e.beat(list...))
			l, lease := w.Ledger(e.id), w.Lease(e.id)
			if l.Connected || l.Cause != control.ReapedCause || l.Stale != 2 || lease.Stage != control.StageLost {
				t.Fatalf("ledger %+v lease %+v", l, lease)
			}
			if shown := w.Task(fresh).Shown; shown != (name != "before the chunk is read" && name != "before the chunk is written") {
				t.Fatalf("shown %v", shown)
			}
		})
	}
}

func TestJudge_VanishedOnlyInTheEpochThatWasJudged(t *testing.T) {
	for _, call := range []string{"Load", "Commit"} {
		w := controltest.NewWorld(t)
		e := host(t, w, "i")
		id := e.running()
		e.forget()
		w.Clock.Move(time.Second)
		e.meanwhile(call, map[string]int{"Load": 3, "Commit": 1}[call], func() { e.raised(control.ReapedCause) })
		e.heard(e.beat())
		if got := w.Task(id); got.LastStatus != task.Running || w.Ledger(e.id).Stale != 1 {
			t.Fatalf("raised before the %s: %+v", call, got)
		}
	}
}

func TestJudge_WhatReapingCoversIsLeftToItsClosing(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	listed, absent := e.running(), e.running()
	old := e.epoch
	e.raised(control.ReapedCause)
	e.epoch = w.Ledger(e.id).Epoch
	e.beats(wire.Entry{Task: listed, Attempt: 1, Epoch: old, Phase: wire.PhaseRunning})
	e.says()
	l := w.Ledger(e.id)
	if l.Stale != 2 || l.Connected || w.Task(listed).Epoch != old || w.Task(absent).LastStatus != task.Running || w.Lease(e.id).Stage != control.StageFenced {
		t.Fatalf("ledger %+v", l)
	}
}

func TestJudge_AnOlderInventoryDoesNotFinishAfterALaterOne(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	id := e.running()
	e.looked(e.lists(id, 1, wire.PhaseRunning))
	e.forget()
	w.Clock.Move(time.Second)
	e.meanwhile("Load", 3, func() { // settle, candidates, finish; the later beat found a stranger's container
		lease, l := w.Lease(e.id), w.Ledger(e.id)
		lease.N, lease.Stage, l.Connected = lease.N+100, control.StageFenced, false
		w.Put(&lease, &l)
	})
	e.heard(e.beat(e.lists(id, 1, wire.PhaseRunning)))
	if w.Ledger(e.id).Connected {
		t.Fatal("schedulable by an inventory of before")
	}
}

func TestJudge_DeregisteredMeanwhileTakesNoWork(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	e.lost()
	e.epoch = w.Ledger(e.id).Epoch
	w.Clock.Move(time.Second)
	e.meanwhile("Load", 2, func() { // settle, finish
		l := w.Ledger(e.id)
		l.Status = control.Inactive
		w.Put(&l)
	})
	e.heard(e.beat())
	if w.Ledger(e.id).Connected {
		t.Fatal("schedulable")
	}
}

func TestHeartbeat_OneThatALaterOneOvertakesChangesNothing(t *testing.T) {
	for _, overtaken := range []string{"before it is renewed", "after it was renewed"} {
		w := controltest.NewWorld(t)
		e := host(t, w, "i")
		w.Clock.Move(time.Second)
		e.docker = wire.DockerImpaired
		old := e.beat()
		e.docker = wire.DockerOK
		w.Clock.Move(time.Second)
		later := e.beat() // shows nothing new, so its n is not kept
		if overtaken == "before it is renewed" {
			e.heard(later)
		} else {
			e.meanwhile("Load", 1, func() { e.heard(later) })
		}
		e.heard(old)
		if lease := w.Lease(e.id); !lease.Impaired.IsZero() || !w.Ledger(e.id).Connected {
			t.Fatalf("%s: lease %+v", overtaken, lease)
		}
	}
}

func TestJudge_ReapedAndBackMeanwhileIsNotConnectedByTheOldEcho(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	e.forget()
	w.Clock.Move(time.Second)
	e.meanwhile("Load", 2, func() { // settle, finish
		e.raised(control.ReapedCause)
		lease := w.Lease(e.id)
		lease.Stage = control.StageFenced
		w.Put(&lease)
	})
	e.heard(e.beat())
	if w.Ledger(e.id).Connected {
		t.Fatal("schedulable before its epoch was echoed")
	}
}

func TestJudge_AnInventoryThatDidNotEchoTheEpochDecidesNothingOfIt(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	listed, absent := e.given(), e.running()
	old := e.epoch
	e.forget()
	w.Clock.Move(time.Second)
	e.meanwhile("Load", 3, func() { e.raised(control.IncarnationCause) }) // as for an agent ahead of restored tables
	e.heard(e.beat(e.lists(listed, 1, wire.PhasePending)))
	if a, b := w.Task(listed), w.Task(absent); a.Epoch != old || a.Shown || b.LastStatus != task.Running || w.Ledger(e.id).Stale != 2 {
		t.Fatalf("listed %+v absent %+v", a, b)
	}
}

func TestHeartbeat_ASuspectOfAnOldEpochIsFencedNotConnected(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	e.raised(control.ReapedCause)
	lease := w.Lease(e.id)
	lease.Stage = control.StageSuspect
	w.Put(&lease)
	e.beats()
	if w.Ledger(e.id).Connected || len(inbox[*wire.Fence](e)) != 1 {
		t.Fatalf("lease %+v", w.Lease(e.id))
	}
}

// The reaper closes a task that still runs there between an inventory's reading
// and its end: the inventory that listed it is not a clean one (I7).
func TestJudge_WhatIsClosedMeanwhileStillRuns(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	id := e.running()
	listed := e.lists(id, 1, wire.PhaseRunning)
	e.raised(control.ReapedCause)
	e.epoch = w.Ledger(e.id).Epoch
	w.Clock.Move(time.Second)
	store := w.Store
	e.meanwhile("Load", 3, func() {
		w.Memory.CatchUp()
		if err := w.CloseOlder(ctx, e.id); err != nil {
			t.Fatal(err)
		}
	})
	e.heard(e.beat(listed))
	w.Store = store
	if got := w.Task(id); got.LastStatus != task.Stopped {
		t.Fatalf("nothing was closed meanwhile: %+v", got)
	}
	if l, lease := w.Ledger(e.id), w.Lease(e.id); l.Connected || lease.Stage != control.StageFenced {
		t.Fatalf("its container runs, and it takes work: ledger %+v lease %+v", l, lease)
	}
	e.beats(listed) // it is told to stop it
	e.beats()
	if l := w.Ledger(e.id); !l.Connected {
		t.Fatalf("it runs nothing that is closed, and takes no work: %+v", l)
	}
}

// A report of the new incarnation may overtake the inventory that adopts its task:
// its n stands (I5).
func TestJudge_AdoptionKeepsTheNOfAReportThatOvertookIt(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	id := e.running()
	old := e.lists(id, 1, wire.PhaseRunning)
	w.Clock.Move(5 * time.Minute)
	e.incarnation, e.n = "inc-2", 0
	e.registers()
	e.welcomed()
	w.Clock.Move(time.Second)
	late := e.beat(old)
	r := e.report(id, 1, task.Running)
	if err := w.IngestReport(ctx, e.sender(), r); err != nil {
		t.Fatal(err)
	}
	e.heard(late)
	if got := w.Task(id); got.Epoch != e.epoch || got.N != r.N {
		t.Fatalf("adopted with n %d after a report with n %d: %+v", got.N, r.N, got)
	}
}
