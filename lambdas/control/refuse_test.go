package control_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

func TestRefused_WaitsAgainAndTheInstanceIsNotOfferedIt(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*wire.Refused)
		want   control.Refusal
	}{
		"a shape": {func(*wire.Refused) {}, control.Refusal{}},
		"a port":  {func(m *wire.Refused) { m.Code, m.TCP = wire.RefusedPort, []int{80, 80} }, control.Refusal{TCP: []int{80}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := controltest.NewWorld(t)
			e := host(t, w, "i")
			needs := small
			needs.TCP = []int{80}
			id := w.AddTask(needs).ID
			w.MustAdmit(id)
			e.reports(id, 1, task.Pending)
			w.Sent.TakeCommands(e.id)
			e.refuses(id, 1, c.change)
			got, l := w.Task(id), w.Ledger(e.id)
			if got.LastStatus != task.Provisioning || got.Attempt != 2 || got.Held != nil || got.Instance != "" || got.WaitingReason == "" || l.Open != 0 {
				t.Fatalf("task %+v ledger %+v", got, l)
			}
			if c.want.TCP == nil {
				c.want.Shape = control.ShapeOf(&got)
			}
			c.want.Until = w.Clock.Now().Add(5 * time.Minute)
			if !reflect.DeepEqual(l.Refusals, []control.Refusal{c.want}) {
				t.Fatalf("remembered %+v", l.Refusals)
			}
			if acks := inbox[*wire.Ack](e); len(acks) != 1 || acks[0].Attempt != 1 {
				t.Fatalf("acks %+v", acks)
			}
			if kicks := w.Sent.TakeKicks(); len(kicks) != 1 || kicks[0].Tasks[0] != id || kicks[0].Instance != e.id {
				t.Fatalf("kicks %+v", kicks)
			}
			w.MustAdmit(id)
			if w.Task(id).LastStatus != task.Provisioning {
				t.Fatal("offered again at once")
			}
			w.Clock.Move(5*time.Minute + time.Second)
			w.MustAdmit(id)
			if got := w.Task(id); got.LastStatus != task.Pending || got.Attempt != 2 {
				t.Fatalf("task %+v", got)
			}
			e.refuses(id, 1) // the first refusal, once more
			if got := w.Task(id); got.LastStatus != task.Pending || got.Attempt != 2 {
				t.Fatalf("an old refusal ended a later attempt: %+v", got)
			}
		})
	}
}

func TestRefused_CrossingAStopEndsIt(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	id := e.given()
	m := e.refusal(id, 1)
	if _, err := w.StopTask(ctx, "default", id, "enough"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := w.IngestRefused(ctx, e.sender(), m); err != nil {
			t.Fatal(err)
		}
	}
	e.reports(id, 1, task.Stopped, func(r *wire.Report) { r.Containers = nil }) // and the stop's answer
	got := w.Task(id)
	if got.LastStatus != task.Stopped || got.StopCause != task.UserCause || got.StoppedReason != "enough" || got.Attempt != 1 || w.Ledger(e.id).Open != 0 {
		t.Fatalf("task %+v", got)
	}
}

func TestRefused_ATaskThatIsNotToWaitEnds(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	id := e.given(func(t *control.Task) { t.NoWait = true })
	e.refuses(id, 1)
	if got := w.Task(id); got.LastStatus != task.Stopped || got.StopCause != task.RefusedCause || !strings.HasSuffix(got.StoppedReason, "not enough") {
		t.Fatalf("task %+v", got)
	}
}

func TestRefused_AServicesTaskStaysLiveUnlessItEnds(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	ids, live := e.service(2)
	again, over := ids[0], ids[1]
	noWait := w.Task(over)
	noWait.NoWait = true
	w.Put(&noWait)
	e.refuses(again, 1)
	if err := w.Store.Load(ctx, live); err != nil || live.Live != 2 || w.Task(again).LastStatus != task.Provisioning {
		t.Fatalf("live %+v", live)
	}
	for range 2 {
		e.refuses(over, 1)
	}
	if err := w.Store.Load(ctx, live); err != nil || live.Live != 1 {
		t.Fatalf("live %+v", live)
	}
}

func TestRefused_WhatWasSeenRunningIsNeverQueuedAgain(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	id := e.running()
	e.refuses(id, 1)
	if got := w.Task(id); got.LastStatus != task.Stopped || got.Attempt != 1 {
		t.Fatalf("task %+v", got)
	}
}

func TestRefused_SixteenAreRemembered(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	for n := range 20 {
		id := e.given()
		e.refuses(id, 1, func(m *wire.Refused) { m.UDP = []int{1000 + n} })
		if _, err := w.StopTask(ctx, "default", id, ""); err != nil {
			t.Fatal(err)
		}
		w.Clock.Move(time.Second)
	}
	l := w.Ledger(e.id)
	if len(l.Refusals) != 16 || l.Refusals[15].UDP[0] != 1019 || l.Refusals[0].UDP[0] != 1004 {
		t.Fatalf("remembered %+v", l.Refusals)
	}
	w.Clock.Move(time.Hour)
	e.refuses(e.given(), 1)
	if l = w.Ledger(e.id); len(l.Refusals) != 1 {
		t.Fatalf("run out, and kept: %+v", l.Refusals)
	}
}
