package control_test

import (
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/wire"
)

// A thief who keeps the heartbeat queue full holds back the reaping of a machine
// that is really dead, for the queue can not be believed; but no longer than
// blackoutMax, and it shows.
func TestAttack_AFullHeartbeatQueueHoldsReapingNoLongerThanItsBound(t *testing.T) {
	w := controltest.NewWorld(t)
	room := control.Held{CPU: 100, MemoryMiB: 100}
	dead, thief := w.AddInstance("dead", room), w.AddInstance("thief", room)
	minutes(t, w, 2, dead, thief)
	type late struct {
		probe wire.Probe
		sent  time.Time
	}
	var queue []late
	w.Sent.Waiting = 1_000_000
	heard := 0
	for minute := range 90 {
		w.Clock.Move(time.Minute)
		w.Memory.CatchUp()
		lease := w.Lease(thief)
		lease.Sent = w.Clock.Now().Add(-5 * time.Minute) // its beats wait as long as all others
		w.Put(&lease)
		for len(queue) > 0 && w.Clock.Now().Sub(queue[0].sent) >= 5*time.Minute {
			if err := w.IngestProbe(ctx, control.Sender{Identity: "AROAREAPER:reaper", SentAt: queue[0].sent}, &queue[0].probe); err != nil {
				t.Fatal(err)
			}
			queue = queue[1:]
		}
		if err := w.Tick(ctx); err != nil {
			t.Fatal(err)
		}
		for _, p := range w.Sent.TakeProbes() {
			queue = append(queue, late{p, w.Clock.Now()})
		}
		if v, _ := w.Counts.Last("GuardBlackout"); v == 1 {
			heard++
		}
		if w.Lease(dead).Stage == control.StageLost {
			t.Logf("reaped after %d minutes", minute+1)
			if minute < 20 {
				t.Error("what a queue says that is full was believed")
			}
			if heard < 20 {
				t.Errorf("the guard was counted in %d of %d minutes", heard, minute)
			}
			if w.Lease(thief).Stage == control.StageLost {
				t.Error("the thief was reaped: it was heard")
			}
			return
		}
	}
	t.Error("the dead machine is not reaped after 90 minutes")
}
