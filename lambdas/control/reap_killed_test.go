package control_test

import (
	"context"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/fault"
)

// A run that was killed holds up none of those after it: wherever it died, what is
// due a minute later is reaped by the run of that minute.
func TestTick_ARunThatWasKilledAnywhereHoldsUpNoneAfterIt(t *testing.T) {
	var silent string
	due := func(t *testing.T, killed func(w *controltest.World) error) *controltest.World {
		w := controltest.NewWorld(t)
		silent = w.AddInstance("silent", room)
		heard := w.AddInstance("heard", room)
		minutes(t, w, 2, silent, heard)
		minutes(t, w, 10, heard)
		passes := func() { // a minute in which the other is heard, and probes come through
			w.Clock.Move(time.Minute)
			l := w.Lease(heard)
			if _, _, err := w.Store.Renew(ctx, control.Renewal{ID: heard, Sent: w.Clock.Now(), Incarnation: l.Incarnation, Session: l.Session}); err != nil {
				t.Fatal(err)
			}
			deliverProbes(t, w)
			w.Memory.CatchUp()
		}
		passes()
		_ = killed(w)
		w.Memory.Calls.Reset()
		if w.Lease(silent).Stage == control.StageLost {
			t.Fatal("reaped before it was due")
		}
		passes()
		if err := w.Tick(ctx); err != nil {
			t.Fatal(err)
		}
		return w
	}
	var names []string
	due(t, func(w *controltest.World) error {
		w.Memory.Calls.Reset()
		err := w.Tick(ctx)
		_, names = w.Memory.Calls.Made()
		return err
	})
	if len(names) < 10 {
		t.Fatalf("a run makes the calls %v", names)
	}
	for at := range names {
		for _, effect := range []bool{false, true} {
			w := due(t, func(w *controltest.World) error {
				w.Memory.Calls.KillAt(at+1, effect)
				return w.Tick(ctx)
			})
			if l := w.Lease(silent); at < 2 && l.Stage == control.StageSuspect {
				continue // its probe has not gone out, so the watermark is a minute older
			}
			if l := w.Lease(silent); l.Stage != control.StageLost {
				t.Errorf("a run was killed at call %d (%s, effect %v): the next leaves what is due %s", at+1, names[at], effect, l.Stage)
			}
		}
	}
}

// Reaping that is held back goes on after blackoutMax, also if no run since has come
// to its own end.
func TestTick_AHoldEndsThoughEveryRunIsKilled(t *testing.T) {
	w := controltest.NewWorld(t)
	var all []string
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		all = append(all, w.AddInstance(name, room))
	}
	minutes(t, w, 2, all...)
	store := w.Store
	for range 70 { // all are silent
		w.Clock.Move(time.Minute)
		deliverProbes(t, w)
		dying := &killedAfterBrakes{Store: store}
		w.Store = dying
		if err := w.Tick(ctx); !dying.dead {
			t.Fatalf("not killed: %v", err)
		}
		w.Store = store
	}
	if n := lostOf(w, all); n > 0 {
		t.Fatalf("%d reaped by runs that were killed before", n)
	}
	minutes(t, w, 12)
	if n := lostOf(w, all); n < 2 || n > 3 {
		t.Errorf("%d are LOST after the hold, want one in five minutes", n)
	}
}

// killedAfterBrakes does nothing more once a brake was set.
type killedAfterBrakes struct {
	control.Store
	dead bool
}

var errKilled = fault.New(fault.Unavailable, "killed")

func (s *killedAfterBrakes) Commit(c context.Context, writes ...control.Write) error {
	if s.dead {
		return errKilled
	}
	s.dead = len(writes) == 1 && writes[0].Record.Kind() == control.BrakeKind
	return s.Store.Commit(c, writes...)
}

func (s *killedAfterBrakes) Load(c context.Context, records ...control.Record) error {
	if s.dead {
		return errKilled
	}
	return s.Store.Load(c, records...)
}
