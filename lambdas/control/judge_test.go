package control_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

// said are the kinds and tasks of what lies in the inbox.
func said(e *edge) map[string]int {
	out := map[string]int{}
	for _, m := range e.w.Sent.TakeCommands(e.id) {
		switch m := m.(type) {
		case *wire.Assign:
			out["assign "+m.Task]++
		case *wire.Stop:
			out["stop "+m.Task]++
		case *wire.Ack:
			out[fmt.Sprintf("ack %s/%d", m.Task, m.Attempt)]++
		case *wire.Resync:
			for _, id := range m.Tasks {
				out["resync "+id]++
			}
		default:
			out[string(wire.TypeOf(m))]++
		}
	}
	return out
}

func (e *edge) says(want ...string) {
	e.t.Helper()
	got := said(e)
	for _, w := range want {
		if got[w] != 1 {
			e.t.Errorf("said %v, want once %q", got, w)
		}
		delete(got, w)
	}
	if len(got) > 0 {
		e.t.Errorf("said %v besides", got)
	}
}

func TestJudge_RunningHereAndAbsentVanishes(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	ids, live := e.service(2)
	for _, id := range ids {
		e.reports(id, 1, task.Running)
	}
	e.beats(e.lists(ids[0], 1, wire.PhaseRunning))
	if got := w.Task(ids[1]); got.LastStatus != task.Stopped || got.StopCause != task.VanishedCause || w.Ledger(e.id).Open != 1 {
		t.Fatalf("task %+v", got)
	}
	if err := w.Store.Load(ctx, live); err != nil || live.Live != 1 {
		t.Fatalf("live %+v", live)
	}
	if w.Task(ids[0]).LastStatus != task.Running || w.Ledger(e.id).Connected != true {
		t.Fatal("the other was touched")
	}
	kicks := w.Sent.TakeServiceKicks()
	if k := kicks[len(kicks)-1]; k.Service != "web" || k.Tasks[0] != ids[1] || len(w.Sent.TakeKicks()) != 1 {
		t.Fatalf("kicks %+v", kicks)
	}
}

func TestJudge_AVanishedTaskThatWasToStopKeepsTheAskersReason(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	id := e.running()
	if _, err := w.StopTask(ctx, "default", id, "enough"); err != nil {
		t.Fatal(err)
	}
	e.looked()
	if got := w.Task(id); got.LastStatus != task.Stopped || got.StopCause != task.UserCause || got.StoppedReason != "enough" {
		t.Fatalf("task %+v", got)
	}
}

func TestJudge_AnAssignThatWasLostIsSentAgainOnceItIsTime(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	id := e.given()
	e.looked()
	e.says() // it was sent a second ago
	w.Clock.Move(15 * time.Second)
	e.beats()
	e.says("assign " + id)
	if got := w.Task(id); got.Dispatched != 2 || got.Shown {
		t.Fatalf("task %+v", got)
	}
	e.beats()
	e.says()
	e.beats(e.lists(id, 1, wire.PhasePending))
	e.says()
	if got := w.Task(id); !got.Shown || got.LastStatus != task.Pending {
		t.Fatalf("task %+v", got)
	}
}

func TestJudge_AStopThatWasNeverSentIsSentToATaskThatIsNotThere(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	id := e.given()
	if _, err := w.StopTask(ctx, "default", id, ""); err != nil {
		t.Fatal(err)
	}
	said(e) // lost
	w.Clock.Move(15 * time.Second)
	e.looked()
	e.says("stop " + id)
	if w.Task(id).LastStatus != task.Pending {
		t.Fatal("it was ended without its agent")
	}
}

func TestJudge_AnInventoryNeverChangesAStatusButAsks(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	pending, running, ended := e.given(), e.running(), e.running()
	list := []wire.Entry{e.lists(pending, 1, wire.PhaseRunning), e.lists(running, 1, wire.PhaseRunning), e.lists(ended, 1, wire.PhaseEnded)}
	e.beats(list...)
	e.says("resync "+pending, "resync "+ended)
	if w.Task(pending).LastStatus != task.Pending || w.Task(ended).LastStatus != task.Running || w.Ledger(e.id).Open != 3 {
		t.Fatal("a status was changed")
	}
	e.beats(list...) // asked again until it is answered, though nothing changed
	e.says("resync "+pending, "resync "+ended)
}

func TestJudge_WhatHasEndedHereIsAcknowledgedOrStopped(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	a, b := e.running(), e.running()
	e.reports(a, 1, task.Stopped)
	e.reports(b, 1, task.Stopped)
	said(e)
	e.beats(e.lists(a, 1, wire.PhaseEnded), e.lists(b, 1, wire.PhaseRunning), e.lists(w.NewID(), 1, wire.PhaseEnded))
	e.says("ack "+a+"/1", "stop "+b, fmt.Sprintf("ack %032x/1", mustHex(w)))
}

// mustHex is the number of the last id that was made.
func mustHex(w *controltest.World) int {
	var n int
	if _, err := fmt.Sscanf(w.NewID(), "%x", &n); err != nil {
		panic(err)
	}
	return n - 2 // the beat's message took one too
}

func TestJudge_AnotherAttemptIsNotTheOpenOne(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	id := e.given()
	e.refuses(id, 1)
	w.Clock.Move(10 * time.Minute)
	w.MustAdmit(id)
	said(e)
	w.Clock.Move(15 * time.Second)
	e.beats(e.lists(id, 1, wire.PhaseEnded)) // the first attempt's end is not acknowledged yet
	e.says("ack "+id+"/1", "assign "+id)
	if got := w.Task(id); got.LastStatus != task.Pending || got.Attempt != 2 {
		t.Fatalf("task %+v", got)
	}
}

func TestJudge_ALostJournalAdoptsWhatRunsAndEndsWhatIsGone(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	runs, gone, pending := e.running(), e.running(), e.given()
	said(e)
	w.Clock.Move(5 * time.Minute)
	e.incarnation, e.n = "inc-2", 0
	e.registers()
	old := e.epoch
	e.welcomed()
	rebuilt := wire.Entry{Task: runs, Attempt: 1, Epoch: old, Phase: wire.PhaseRunning} // from its labels
	e.beats(rebuilt)
	l, got := w.Ledger(e.id), w.Task(runs)
	if got.LastStatus != task.Running || got.Epoch != e.epoch || got.Incarnation != "inc-2" || l.Stale != 0 || !l.Connected || l.Open != 1 || l.Cause != control.NoCause {
		t.Fatalf("ledger %+v task %+v", l, got)
	}
	for _, id := range []string{gone, pending} {
		if got := w.Task(id); got.LastStatus != task.Stopped || got.StopCause != task.VanishedCause {
			t.Errorf("task %+v", got)
		}
	}
	e.says()
	e.reports(runs, 1, task.Stopped)
	if w.Ledger(e.id).Open != 0 {
		t.Fatal("the adopted task is not released")
	}
}

func TestJudge_ATaskOfAnOlderIncarnationIsNotAssignedToTheNewOne(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	id := e.given(func(t *control.Task) { t.Tags = map[string]string{"longshore:onDisconnect": "keep"} })
	epoch := w.Ledger(e.id)
	// Its epoch was raised by a new incarnation and again by the reaper, which
	// re-stamped the kept task: it stays the old incarnation's.
	got := w.Task(id)
	got.Incarnation = "inc-before"
	w.Put(&got)
	w.Clock.Move(time.Minute)
	e.looked()
	e.says()
	if got := w.Task(id); got.LastStatus != task.Stopped || got.StopCause != task.VanishedCause || w.Ledger(e.id).Epoch != epoch.Epoch {
		t.Fatalf("task %+v", got)
	}
}

func TestJudge_ARegisterHandlerKilledBeforeAnythingWasAdopted(t *testing.T) {
	controltest.KillEverywhere(t,
		func(t *testing.T) *controltest.World {
			w := controltest.NewWorld(t)
			e := host(t, w, "i")
			e.running()
			w.Clock.Move(5 * time.Minute)
			return w
		},
		func(w *controltest.World) error {
			e := newEdge(t, w, "i")
			e.incarnation = "inc-2"
			return w.IngestRegister(ctx, e.sender(), e.register())
		},
		func(t *testing.T, w *controltest.World) {
			e := newEdge(t, w, "i")
			e.incarnation = "inc-2"
			e.welcomed()
			l := w.Ledger(e.id)
			if l.Cause != control.IncarnationCause || l.Stale != 1 || l.Epoch != w.Clock.Now().Unix() {
				t.Fatalf("ledger %+v", l)
			}
			for id := range w.Memory.Tasks() {
				e.beats(wire.Entry{Task: id, Attempt: 1, Epoch: 1, Phase: wire.PhaseRunning})
				if got := w.Task(id); got.LastStatus != task.Running || !w.Ledger(e.id).Connected {
					t.Fatalf("task %+v", got)
				}
			}
		})
}

func TestJudge_AHostThatReturnsBetweenTwoChunksOfItsClosing(t *testing.T) {
	w := controltest.NewWorld(t)
	e := bigHost(t, w)
	id := e.id
	var ids []string
	for range 60 {
		ids = append(ids, e.running())
	}
	var list []wire.Entry
	for _, id := range ids {
		list = append(list, e.lists(id, 1, wire.PhaseRunning))
	}
	l, lease := w.Ledger(id), w.Lease(id)
	l.Epoch, l.Stale, l.Cause, l.Connected = l.Epoch+1, l.Open, control.ReapedCause, false
	lease.Epoch, lease.Stage = l.Epoch, control.StageLost
	w.Put(&l, &lease)
	w.Memory.CatchUp()
	w.Memory.Calls.KillAt(5, false) // the list, a chunk's two reads and its commit, and no more
	_ = w.CloseOlder(ctx, id)
	w.Memory.Calls.Reset()
	if got := w.Ledger(id); got.Stale == 0 || got.Stale == 60 {
		t.Fatalf("stale %d: it was not stopped between two chunks", got.Stale)
	}
	e.epoch = l.Epoch
	e.beats(list...)
	if got := w.Ledger(id); got.Connected || w.Lease(id).Stage != control.StageFenced {
		t.Fatalf("schedulable before it was closed: %+v", got)
	}
	w.Memory.CatchUp()
	if err := w.CloseOlder(ctx, id); err != nil {
		t.Fatal(err)
	}
	e.beats(list...)
	if got := w.Ledger(id); got.Stale != 0 || got.Open != 0 || got.Connected {
		t.Fatalf("ledger %+v", got)
	}
	if stops := said(e); len(stops) < 60 {
		t.Fatalf("%d of 60 were told to stop", len(stops))
	}
	e.beats()
	if got := w.Ledger(id); !got.Connected {
		t.Fatalf("ledger %+v lease %+v", got, w.Lease(id))
	}
}

func TestJudge_AHostThatReturnsAfterItsTasksItemsExpired(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	ids := []string{e.running(), e.running()}
	old := e.epoch
	e.lost()
	for _, id := range ids {
		gone := w.Task(id)
		if err := w.Store.Commit(ctx, control.Delete(&gone)); err != nil {
			t.Fatal(err)
		}
	}
	e.epoch = w.Ledger(e.id).Epoch
	e.beats(wire.Entry{Task: ids[0], Attempt: 1, Epoch: old, Phase: wire.PhaseRunning}, wire.Entry{Task: ids[1], Attempt: 1, Epoch: old, Phase: wire.PhaseEnded})
	e.says("stop "+ids[0], "ack "+ids[1]+"/1")
	if w.Ledger(e.id).Connected {
		t.Fatal("schedulable while a closed task runs")
	}
}

func TestJudge_WhatNobodyKnowsIsKeptAlarmsAndFences(t *testing.T) {
	for name, change := range map[string]func(e *edge) []wire.Entry{
		"of this epoch": func(e *edge) []wire.Entry { return []wire.Entry{e.lists(e.w.NewID(), 1, wire.PhaseRunning)} },
		"of an epoch before it was made": func(e *edge) []wire.Entry {
			return []wire.Entry{{Task: e.w.NewID(), Attempt: 1, Epoch: 1, Phase: wire.PhasePending}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := controltest.NewWorld(t)
			e := host(t, w, "i")
			list := change(e)
			e.beats(list...)
			e.says()
			if n, _ := w.Counts.Last("UnknownContainers"); n != 1 || w.Ledger(e.id).Connected || w.Lease(e.id).Stage != control.StageFenced {
				t.Fatalf("counted %v, lease %+v", n, w.Lease(e.id))
			}
			e.beats(list...)
			if w.Ledger(e.id).Connected {
				t.Fatal("cleared by itself")
			}
			e.beats() // somebody removed it
			if !w.Ledger(e.id).Connected {
				t.Fatalf("lease %+v", w.Lease(e.id))
			}
		})
	}
}

func TestJudge_ContainersWithoutAReadableTaskFenceToo(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	w.Clock.Move(time.Second)
	b := e.beat()
	b.Message.UnknownLabels = 2
	e.heard(b)
	if n, _ := w.Counts.Last("UnknownContainers"); n != 2 || w.Ledger(e.id).Connected {
		t.Fatalf("counted %v", n)
	}
}

func TestJudge_KeptTasksAreBackWhenTheyAreListed(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	id := e.running()
	l, got, lease := w.Ledger(e.id), w.Task(id), w.Lease(e.id)
	l.Epoch, l.Cause, l.Connected = l.Epoch+1, control.ReapedCause, false
	got.Epoch, got.Kept = l.Epoch, w.Clock.Now() // as closing re-stamps a kept task
	lease.Epoch, lease.Stage = l.Epoch, control.StageLost
	w.Put(&l, &got, &lease)
	e.epoch = l.Epoch
	e.beats(wire.Entry{Task: id, Attempt: 1, Epoch: l.Epoch - 1, Phase: wire.PhaseRunning})
	if got := w.Task(id); got.LastStatus != task.Running || !got.Kept.IsZero() || !w.Ledger(e.id).Connected {
		t.Fatalf("task %+v", got)
	}
	e.says()
}

func TestJudge_AnInventoryOlderThanAReportIsJudgedAgainByTheNextBeat(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	id := e.given()
	w.Clock.Move(time.Second)
	old := e.beat() // drawn before the task was seen running …
	r := e.report(id, 1, task.Running)
	if err := w.IngestReport(ctx, e.sender(), r); err != nil {
		t.Fatal(err)
	}
	e.forget()
	e.heard(old) // … and judged after it
	if got := w.Task(id); got.LastStatus != task.Running {
		t.Fatalf("task %+v", got)
	}
	e.beats() // nothing has changed: it is gone
	if got := w.Task(id); got.LastStatus != task.Stopped || got.StopCause != task.VanishedCause {
		t.Errorf("the next beat was not looked at: %s", got.LastStatus)
	}
}
