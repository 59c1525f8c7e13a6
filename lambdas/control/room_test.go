package control_test

import (
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

// full is a beat that says why the host has no room; "": it has.
func (e *edge) full(why string, inventory ...wire.Entry) {
	e.t.Helper()
	e.w.Clock.Move(time.Second)
	b := e.beat(inventory...)
	b.Message.NoRoom = why
	e.heard(b)
}

func (e *edge) statusReason() string {
	e.t.Helper()
	found, _, err := e.w.DescribeContainerInstances(ctx, "default", []string{e.id})
	if err != nil || len(found) != 1 {
		e.t.Fatalf("%d found: %v", len(found), err)
	}
	return found[0].StatusReason()
}

func TestHeartbeat_AHostWithoutRoomTakesNoWorkAndStaysConnected(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	id := e.running()
	list := e.lists(id, 1, wire.PhaseRunning)
	e.full("no room for images: 97 %", list)
	since := w.Clock.Now()
	e.full("no room for images: 98 %", list)
	if l := w.Ledger(e.id); !l.NoRoom || !l.Connected {
		t.Fatalf("ledger %+v, want connected and without room", l)
	}
	if lease := w.Lease(e.id); !lease.NoRoom.Equal(since) || lease.Stage != control.StageConnected || !lease.Impaired.IsZero() {
		t.Fatalf("lease %+v, want connected, without room since %s", lease, since)
	}
	if why := e.statusReason(); !strings.HasPrefix(why, "NO_ROOM since ") || !strings.HasSuffix(why, ": no room for images: 97 %") {
		t.Errorf("its status reason is %q", why)
	}
	waits := w.AddTask(small).ID
	w.MustAdmit(waits)
	if got := w.Task(waits); got.LastStatus != task.Provisioning || got.WaitingReason != "RESOURCE:DISK" {
		t.Fatalf("the waiting task is %s (%q)", got.LastStatus, got.WaitingReason)
	}
	ticks(t, w, 1)
	if n, _ := w.Counts.Last("FullInstances"); n != 1 {
		t.Errorf("%v full instances are counted, want 1", n)
	}
	w.Sent.TakeKicks()
	e.full("", list)
	if l, lease := w.Ledger(e.id), w.Lease(e.id); l.NoRoom || !lease.NoRoom.IsZero() || lease.NoRoomWhy != "" {
		t.Fatalf("ledger %+v lease %+v, want room", l, lease)
	}
	if why := e.statusReason(); why != "" {
		t.Errorf("its status reason is %q", why)
	}
	if len(w.Sent.TakeKicks()) == 0 {
		t.Error("nobody was told that there is room again")
	}
	w.MustAdmit(waits)
	if got := w.Task(waits).LastStatus; got != task.Pending {
		t.Errorf("the waiting task is %s", got)
	}
}

// A full disk ends nothing: however long it is full, the instance is not reaped.
func TestTick_AHostWithoutRoomIsNotReapedWhileItBeats(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	id := e.running()
	list := e.lists(id, 1, wire.PhaseRunning)
	for range 30 {
		e.full("no room for images", list)
		w.Clock.Move(time.Minute)
		ticks(t, w, 1)
	}
	if got, lease := w.Task(id), w.Lease(e.id); got.LastStatus != task.Running || lease.Stage == control.StageLost {
		t.Fatalf("task %s, stage %s", got.LastStatus, lease.Stage)
	}
}

func TestHeartbeat_KilledAnywhereAHostWithoutRoomIsKnown(t *testing.T) {
	var b control.Beat
	var e *edge
	controltest.KillEverywhere(t, func(t *testing.T) *controltest.World {
		w := controltest.NewWorld(t)
		e = host(t, w, "i")
		w.Clock.Move(time.Second)
		b = e.beat()
		b.Message.NoRoom = "no room"
		return w
	}, func(w *controltest.World) error { return w.Heartbeats(ctx, []control.Beat{b})[0] }, func(t *testing.T, w *controltest.World) {
		if l, lease := w.Ledger(e.id), w.Lease(e.id); l.NoRoom != !lease.NoRoom.IsZero() || !l.NoRoom {
			t.Errorf("ledger %v, lease %s", l.NoRoom, lease.NoRoom)
		}
	})
}

// What the machine of an older journal said is not believed of a new one.
func TestRegister_ANewIncarnationHasRoomUntilItSaysOtherwise(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	e.full("no room")
	w.Clock.Move(10 * time.Minute)
	e.incarnation = "inc-other"
	e.registers()
	if l, lease := w.Ledger(e.id), w.Lease(e.id); l.NoRoom || !lease.NoRoom.IsZero() {
		t.Errorf("ledger %v, lease %s", l.NoRoom, lease.NoRoom)
	}
}
