package control_test

import (
	"slices"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
)

// backup is what the tables held at some moment, of what the tests change.
type backup struct {
	tasks  map[string]control.Task
	hosts  []*edge
	ledger map[string]control.Ledger
	lease  map[string]control.Lease
}

func takeBackup(w *controltest.World, hosts ...*edge) *backup {
	b := &backup{tasks: w.Memory.Tasks(), hosts: hosts, ledger: w.Memory.Ledgers(), lease: map[string]control.Lease{}}
	for _, e := range hosts {
		b.lease[e.id] = w.Lease(e.id)
	}
	return b
}

// restore sets the tables back, which no commit of ours does.
func (b *backup) restore(t *testing.T, w *controltest.World) {
	t.Helper()
	check := w.Memory.OnCommit
	w.Memory.OnCommit = nil
	defer func() { w.Memory.OnCommit = check }()
	for id, now := range w.Memory.Tasks() {
		if was, there := b.tasks[id]; there {
			w.Put(&was)
		} else if err := w.Memory.Commit(ctx, control.Delete(&now)); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range b.hosts {
		l, lease := b.ledger[e.id], b.lease[e.id]
		w.Put(&l, &lease)
	}
}

func raiseEpochs(t *testing.T, w *controltest.World) *control.Raised {
	t.Helper()
	out, err := w.RaiseEpochs(ctx, w.Clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// hears is what every machine does when it is told of a new epoch: it sends its
// inventory in it, with the epochs of the assigns.
func (e *edge) hears(t *testing.T, inventory ...wire.Entry) {
	t.Helper()
	e.beats(inventory...)
	fences := inbox[*wire.Fence](e)
	if len(fences) != 1 || len(fences[0].Closed) != 0 {
		t.Fatalf("%s is answered by %+v: nothing was closed", e.name, fences)
	}
	e.epoch = fences[0].Epoch
	e.beats(inventory...)
}

func TestRaiseEpochs_NothingThatRunsIsStoppedForWantOfAnItem(t *testing.T) {
	w := controltest.NewWorld(t)
	e, other := host(t, w, "i"), host(t, w, "other")
	kept, gone := e.running(), e.running()
	queued := w.AddTask(small).ID
	b := takeBackup(w, e, other)

	pinned := w.Task(queued)
	pinned.Pinned = e.id
	w.Put(&pinned)
	w.MustAdmit(queued)
	e.reports(queued, 1, task.Running)
	later := e.running()
	e.reports(gone, 1, task.Stopped)
	w.Sent.TakeCommands(e.id)
	runs := []wire.Entry{e.lists(kept, 1, wire.PhaseRunning), e.lists(queued, 1, wire.PhaseRunning), e.lists(later, 1, wire.PhaseRunning)}

	w.Clock.Move(3 * time.Hour)
	b.restore(t, w)
	if out := raiseEpochs(t, w); *out != (control.Raised{Raised: 2}) {
		t.Fatalf("raised %+v", out)
	}
	other.hears(t)
	w.MustAdmit(queued)
	if got := w.Task(queued); got.LastStatus != task.Provisioning || got.WaitingReason != "RESTORED" {
		t.Fatalf("what may run on a host that was not heard was given away: %s on %s, %s", got.LastStatus, got.Instance, got.WaitingReason)
	}
	e.hears(t, runs...)
	if stops := inbox[*wire.Stop](e); len(stops) != 0 {
		t.Fatalf("stopped: %+v", stops)
	}
	for id, want := range map[string]task.Status{kept: task.Running, queued: task.Pending, gone: task.Stopped} {
		if got := w.Task(id); got.LastStatus != want || got.LastStatus.Open() && (got.Instance != e.id || got.Epoch != e.epoch || got.Held == nil) {
			t.Errorf("task %s is %s on %q in epoch %d (%s), want %s", id, got.LastStatus, got.Instance, got.Epoch, got.StoppedReason, want)
		}
	}
	if l := w.Ledger(e.id); l.Connected || l.Open != 2 || w.Lease(e.id).Stage != control.StageFenced {
		t.Fatalf("beside a container that nobody knows it takes work: %+v", l)
	}
	e.reports(queued, 1, task.Running)
	if got := w.Task(queued); got.LastStatus != task.Running {
		t.Errorf("its report makes it %s", got.LastStatus)
	}

	// What has no item ends by itself some time; then all is as ever.
	e.reports(later, 1, task.Stopped)
	if acks := inbox[*wire.Ack](e); len(acks) != 1 || acks[0].Task != later {
		t.Fatalf("acknowledged %+v", acks)
	}
	e.beats(runs[:2]...)
	if l := w.Ledger(e.id); !l.Connected || l.Stale != 0 {
		t.Fatalf("ledger %+v, lease %s", l, w.Lease(e.id).StageReason)
	}
	w.MustAdmit(w.AddTask(small).ID)
	if out, err := w.AuditLedgers(ctx); err != nil || len(out.Differences) != 0 {
		t.Errorf("audit %+v, %v", out, err)
	}
}

// An instance that has shown what it runs holds nobody up, whatever of it is
// unknown; one that has not shown all does.
func TestRaiseEpochs_WhatIsUnknownOnOneInstanceHoldsNobodyUp(t *testing.T) {
	for _, hidden := range []int{0, 1} {
		w := controltest.NewWorld(t)
		e, other := host(t, w, "i"), host(t, w, "other")
		b := takeBackup(w, e, other)
		gone := e.running()
		b.restore(t, w)
		raiseEpochs(t, w)
		queued := w.AddTask(small).ID
		other.hears(t)
		w.MustAdmit(queued)
		if now := w.Task(queued); now.LastStatus != task.Provisioning || now.WaitingReason != "RESTORED" {
			t.Fatalf("while %s is not heard the task is %s, %q", e.name, now.LastStatus, now.WaitingReason)
		}
		runs := e.lists(gone, 1, wire.PhaseRunning)
		e.beats(runs)
		e.epoch = inbox[*wire.Fence](e)[0].Epoch
		beat := e.beat(runs)
		beat.Message.UnknownLabels = hidden
		e.heard(beat)
		if lease := w.Lease(e.id); lease.Stage != control.StageFenced {
			t.Fatalf("with an unknown container %s is %s", e.name, lease.Stage)
		}
		w.MustAdmit(queued)
		now := w.Task(queued)
		if waits := now.LastStatus == task.Provisioning; waits != (hidden > 0) {
			t.Errorf("with %d containers of which nobody can tell the task, the task is %s, %q", hidden, now.LastStatus, now.WaitingReason)
		}
		if now.Instance == e.id {
			t.Errorf("the task was given to %s, which is fenced", e.name)
		}
	}
}

// What a task has on its host may be given to one there that is gone: both are
// settled, one after the other.
func TestRaiseEpochs_APortThatAGoneTaskHeldIsHandedOn(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	port := func(t *control.Task) { t.Needs.TCP = []int{80} }
	gone := e.running(port)
	queued := w.AddTask(small, port, func(t *control.Task) { t.Pinned = e.id }).ID
	b := takeBackup(w, e)
	e.reports(gone, 1, task.Stopped)
	w.MustAdmit(queued)
	runs := e.lists(queued, 1, wire.PhaseRunning)
	w.Sent.TakeCommands(e.id)
	b.restore(t, w)
	raiseEpochs(t, w)
	e.hears(t, runs)
	e.beats(runs)
	if got, l := w.Task(queued), w.Ledger(e.id); got.LastStatus != task.Pending || !slices.Equal(l.Held.TCP, []int{80}) || !l.Connected {
		t.Fatalf("task %s, ledger %+v, lease %s", got.LastStatus, l, w.Lease(e.id).StageReason)
	}
	if stops := inbox[*wire.Stop](e); len(stops) != 0 {
		t.Fatalf("stopped: %+v", stops)
	}
}

// A later attempt than the tables know of is kept, not stopped; it is somebody's
// work, and the tables can not say whose.
func TestRaiseEpochs_ALaterAttemptThanTheTablesKnowIsKept(t *testing.T) {
	w := controltest.NewWorld(t)
	e, other := host(t, w, "i"), host(t, w, "other")
	id := other.given()
	b := takeBackup(w, e, other)
	b.restore(t, w)
	raiseEpochs(t, w)
	e.hears(t, e.lists(id, 2, wire.PhaseRunning))
	if stops := inbox[*wire.Stop](e); len(stops) != 0 || w.Ledger(e.id).Connected {
		t.Fatalf("stopped %+v, ledger %+v", stops, w.Ledger(e.id))
	}
	if n, _ := w.Counts.Last("UnknownContainers"); n != 1 {
		t.Errorf("counted %v", n)
	}
}

func TestRaiseEpochs_OurOwnSilenceLosesNobody(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	id := e.running()
	b := takeBackup(w, e)
	w.Clock.Move(5 * time.Hour)
	b.restore(t, w)
	raiseEpochs(t, w)
	minutes(t, w, 8)
	if s := w.Lease(e.id).Stage; s != control.StageFenced || w.Task(id).LastStatus != task.Running {
		t.Fatalf("stage %s, task %s", s, w.Task(id).LastStatus)
	}
	waits := w.AddTask(small).ID
	minutes(t, w, 12) // but one that stays silent is lost as ever, and holds up nothing
	if s := w.Lease(e.id).Stage; s != control.StageLost || w.Task(id).LastStatus != task.Stopped {
		t.Fatalf("stage %s, task %s", s, w.Task(id).LastStatus)
	}
	host(t, w, "new")
	w.MustAdmit(waits)
	if got := w.Task(waits); got.LastStatus != task.Pending {
		t.Errorf("task %s: %s", got.LastStatus, got.WaitingReason)
	}
}

func TestRaiseEpochs_GoesOnWhereItEndedAndRaisesNoneTwice(t *testing.T) {
	w := controltest.NewWorld(t)
	a, b := host(t, w, "a"), host(t, w, "b")
	gone := w.AddInstance("gone", room, func(_ *control.Instance, l *control.Ledger, _ *control.Lease) { l.Status = control.Inactive })
	w.AddInstance("foreign", room, func(in *control.Instance, _ *control.Ledger, _ *control.Lease) { in.Foreign = true })
	since := w.Clock.Now()
	if out, err := w.RaiseEpochs(hurried, since); err != nil || *out != (control.Raised{Skipped: 1, Left: 3}) {
		t.Fatalf("without time: %+v, %v", out, err)
	}
	before := w.Ledger(gone)
	if out, err := w.RaiseEpochs(ctx, since); err != nil || *out != (control.Raised{Raised: 2, Skipped: 2}) {
		t.Fatalf("%+v, %v", out, err)
	}
	was := w.Memory.Ledgers()
	w.Clock.Move(time.Minute)
	if out, err := w.RaiseEpochs(ctx, since); err != nil || *out != (control.Raised{Skipped: 4}) {
		t.Fatalf("again: %+v, %v", out, err)
	}
	for _, e := range []*edge{a, b} {
		if l := w.Ledger(e.id); l.Epoch != was[e.id].Epoch || l.SinceEpoch != l.Epoch || l.Epoch <= e.epoch {
			t.Errorf("ledger %+v", l)
		}
	}
	if w.Ledger(gone).Epoch != before.Epoch {
		t.Error("an instance that is INACTIVE was raised")
	}
}

func TestRaiseEpochs_KilledAnywhereItIsRunAgain(t *testing.T) {
	var ids []string
	controltest.KillEverywhere(t, func(t *testing.T) *controltest.World {
		w := controltest.NewWorld(t)
		ids = []string{host(t, w, "a").id, host(t, w, "b").id}
		return w
	}, func(w *controltest.World) error {
		_, err := w.RaiseEpochs(ctx, w.Clock.Now())
		return err
	}, func(t *testing.T, w *controltest.World) {
		for _, id := range ids {
			if l, lease := w.Ledger(id), w.Lease(id); l.SinceEpoch != l.Epoch || l.Connected || lease.Epoch != l.Epoch || lease.Stage != control.StageFenced {
				t.Errorf("ledger %+v, lease %+v", l, lease)
			}
		}
	})
}

// Who has which GPU the machine knows: since the backup one may have passed from one
// task to another.
func TestRaiseEpochs_WhatIsTakenInHoldsTheGPUsThatItHas(t *testing.T) {
	for name, listed := range map[string]bool{"listed with its GPU": true, "listed without": false} {
		t.Run(name, func(t *testing.T) {
			w := controltest.NewWorld(t)
			w.AddInstance("i", control.Held{CPU: 1000, MemoryMiB: 1000, GPUs: []string{"g0", "g1"}})
			e := newEdge(t, w, "i")
			e.epoch = w.Ledger(e.id).Epoch
			one := taskdef.Resources{MemoryMiB: 1, GPUs: 1}
			first := w.AddTask(one).ID
			w.MustAdmit(first)
			e.reports(first, 1, task.Running)
			queued := w.AddTask(one).ID
			b := takeBackup(w, e)
			e.reports(first, 1, task.Stopped)
			w.MustAdmit(queued)
			has := w.Task(queued).Held.GPUs
			e.reports(queued, 1, task.Running)
			w.Sent.TakeCommands(e.id)
			runs := e.lists(queued, 1, wire.PhaseRunning)
			if listed {
				runs.GPUs = has
			}
			w.Clock.Move(time.Hour)
			b.restore(t, w)
			raiseEpochs(t, w)
			e.hears(t, runs) // the first is gone
			e.beats(runs)    // and its GPU is free
			other := w.AddTask(one).ID
			w.MustAdmit(other)
			got, late := w.Task(queued), w.Task(other)
			if listed && (got.LastStatus != task.Pending || !slices.Equal(got.Held.GPUs, has) || late.LastStatus != task.Pending) {
				t.Errorf("it is %s with %+v, and has %v; another one is %s", got.LastStatus, got.Held, has, late.LastStatus)
			}
			if late.Held != nil && slices.Equal(late.Held.GPUs, has) {
				t.Errorf("GPU %v is given to two tasks", has)
			}
			if !listed && (got.LastStatus != task.Provisioning || w.Ledger(e.id).Connected) {
				t.Errorf("of a task nobody knows which GPU it has: it is %s, and its instance takes work: %v", got.LastStatus, w.Ledger(e.id).Connected)
			}
		})
	}
}

// The search found this one: the word that the host has ended was for its last
// life, and what it has in this one would have been closed whatever its policy.
func TestRaiseEpochs_WhatIsTakenInEndsTheWordThatItsHostHasEnded(t *testing.T) {
	w := controltest.NewWorld(t)
	e := bigHost(t, w)
	queued := w.AddTask(small).ID
	b := takeBackup(w, e)
	w.MustAdmit(queued)
	e.reports(queued, 1, task.Running)
	w.Clock.Move(time.Hour)
	b.restore(t, w)
	raiseEpochs(t, w)
	l := w.Ledger(e.id)
	l.EndCause = task.HostGoneCause
	w.Put(&l)
	e.hears(t, e.lists(queued, 1, wire.PhaseRunning))
	if got, l := w.Task(queued), w.Ledger(e.id); got.LastStatus != task.Pending || l.EndCause != "" || l.Open != 1 {
		t.Errorf("it is %s; the ledger: %+v", got.LastStatus, l)
	}
}
