package control_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

// together runs all at once and waits for them.
func together(t *testing.T, all ...func() error) {
	t.Helper()
	var wait sync.WaitGroup
	begin := make(chan bool)
	for _, run := range all {
		wait.Go(func() {
			<-begin
			if err := run(); err != nil {
				t.Error(err)
			}
		})
	}
	close(begin)
	wait.Wait()
}

func TestTick_RunsThatOverlapReapNoMoreThanTheBrakeLets(t *testing.T) {
	w := controltest.NewWorld(t)
	var heard, silent []string
	for n := range 80 {
		id := w.AddInstance(fmt.Sprint(n), room)
		if n%4 == 0 {
			silent = append(silent, id)
		} else {
			heard = append(heard, id)
		}
	}
	minutes(t, w, 2, append(heard, silent...)...)
	minutes(t, w, 9, heard...)
	before := 0
	for range 4 {
		w.Clock.Move(time.Minute)
		for _, id := range heard {
			l := w.Lease(id)
			if _, _, err := w.Store.Renew(ctx, control.Renewal{ID: id, Sent: w.Clock.Now(), Incarnation: l.Incarnation, Session: l.Session}); err != nil {
				t.Fatal(err)
			}
		}
		deliverProbes(t, w)
		run := func() error { return w.Tick(ctx) }
		together(t, run, run, run)
		now := lostOf(w, silent)
		if now-before > 5 {
			t.Fatalf("%d instances of one zone in one minute", now-before)
		}
		before = now
	}
	if before < 10 || lostOf(w, heard) > 0 {
		t.Errorf("%d of 20 silent ones are LOST, and %d that were heard", before, lostOf(w, heard))
	}
}

// What ends kept tasks, what closes, and the instance that returns are at it at once:
// each task ends once, or goes on.
func TestKeep_EverybodyAtOnceEndsEachTaskOnceOrNot(t *testing.T) {
	ended, back := 0, 0
	for range 40 {
		w := controltest.NewWorld(t)
		e := bigHost(t, w)
		ids, live := e.service(6)
		var list []wire.Entry
		for i, id := range ids {
			e.reports(id, 1, task.Running)
			list = append(list, e.lists(id, 1, wire.PhaseRunning))
			if got := w.Task(id); i%2 == 0 {
				tagged("onDisconnect", "keep", "keepFor", "1h")(&got)
				w.Put(&got)
			}
		}
		e.raised(control.ReapedCause)
		w.Memory.CatchUp()
		if err := w.CloseOlder(ctx, e.id); err != nil {
			t.Fatal(err)
		}
		w.Clock.Move(2 * time.Hour)
		beat := e.beat(list...)
		closing := func() error { return w.CloseOlder(ctx, e.id) }
		ending := func() error { return w.EndKept(ctx, e.id) }
		together(t, closing, ending, ending, func() error { return w.Heartbeats(ctx, []control.Beat{beat})[0] })
		if err := w.Store.Load(ctx, live); err != nil {
			t.Fatal(err)
		}
		l, open := w.Ledger(e.id), 0
		for _, id := range ids {
			open += once(w.Task(id).LastStatus.Open())
		}
		if l.Open != open || live.Live != open || l.Stale != 0 || w.Lease(e.id).Stage != control.StageFenced {
			t.Fatalf("%d open, live %d, ledger %+v, lease %+v", open, live.Live, l, w.Lease(e.id))
		}
		ended, back = ended+once(open == 0), back+once(open == 3)
	}
	t.Logf("all ended %d times, all kept ones went on %d times", ended, back)
}
