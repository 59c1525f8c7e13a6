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

func TestJudge_TwoThousandTasksInSteps(t *testing.T) {
	w := controltest.NewWorld(t)
	w.Memory.OnCommit = nil // checking two thousand tasks after each commit takes minutes
	e := bigHost(t, w)
	id := e.id
	l := w.Ledger(id)
	var list []wire.Entry
	for n := range 2000 {
		held := control.Held{CPU: 1}
		job := w.AddTask(small, func(t *control.Task) {
			t.LastStatus, t.Instance, t.Epoch, t.Incarnation, t.Held, t.N = task.Running, id, l.Epoch, "inc-big", &held, 1
		})
		l.Open++
		l.Held.CPU++
		if n%2 == 0 {
			list = append(list, wire.Entry{Task: job.ID, Attempt: 1, Epoch: l.Epoch, Phase: wire.PhaseRunning})
		}
	}
	w.Put(&l)
	w.Clock.Move(5 * time.Minute)
	e.incarnation, e.n = "inc-2", 0
	e.registers()
	e.welcomed()
	beats := 0
	for ; !w.Ledger(id).Connected && beats < 20; beats++ {
		commits := w.Memory.Commits()
		e.beats(list...)
		if got := w.Memory.Commits() - commits; got > 15 {
			t.Fatalf("%d commits for one beat", got)
		}
	}
	if l := w.Ledger(id); !l.Connected || l.Open != 1000 || l.Stale != 0 {
		t.Fatalf("after %d beats: %+v", beats, l)
	}
	if v := w.Memory.Violations(); len(v) > 0 {
		t.Fatal(v)
	}
	if beats != 5 {
		t.Errorf("%d beats for 2000 tasks, 400 at a time", beats)
	}
}

// hurried is a call's context with a second left whenever it is looked at, too little to
// begin more: a real deadline would have passed at the first stall of a busy machine.
var hurried = hurry{ctx}

type hurry struct{ context.Context }

// Deadline implements context.Context.
func (hurry) Deadline() (time.Time, bool) { return time.Now().Add(time.Second), true }

func TestJudge_StopsInTimeAndGoesOnWithTheNextBeat(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	id := e.running()
	w.Clock.Move(time.Second)
	e.forget()
	b := e.beat()
	w.Memory.CatchUp()
	if err := w.Heartbeats(hurried, []control.Beat{b})[0]; err != nil {
		t.Fatal(err)
	}
	if w.Task(id).LastStatus != task.Running || w.Lease(e.id).Inventory != "" {
		t.Fatal("it was not put off")
	}
	e.beats()
	if w.Task(id).LastStatus != task.Stopped {
		t.Fatal("it was forgotten")
	}
}

func TestJudge_WhatIndexesDoNotShowIsFoundLater(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	id := e.running()
	w.Clock.Move(time.Second)
	w.Memory.Lag = 1000
	more := e.w.AddTask(small).ID
	if err := w.Admit(ctx, control.Kick{Cluster: "default", Tasks: []string{more}, Instance: e.id}); err != nil {
		t.Fatal(err)
	}
	e.n += 5
	if err := w.IngestReport(ctx, e.sender(), e.report(more, 1, task.Running)); err != nil {
		t.Fatal(err)
	}
	w.Clock.Move(time.Second)
	if err := w.Heartbeats(ctx, []control.Beat{e.beat(e.lists(id, 1, wire.PhaseRunning))})[0]; err != nil {
		t.Fatal(err)
	}
	if w.Task(more).LastStatus != task.Running {
		t.Fatal("the index showed it")
	}
	for range 10 { // the inventory does not change: the tenth beat looks
		e.beats(e.lists(id, 1, wire.PhaseRunning))
	}
	if w.Task(more).LastStatus != task.Stopped {
		t.Fatal("never found")
	}
}
