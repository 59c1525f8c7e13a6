package control_test

import (
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/wire"
)

func TestProbe_IsNotedOnceAndOnlyOurs(t *testing.T) {
	w := controltest.NewWorld(t)
	p := &control.Probe{ID: w.NewID(), SentAt: w.Clock.Now()}
	w.Put(p)
	seen := w.Clock.Now()
	for range 2 {
		if err := w.IngestProbe(ctx, control.Sender{SentAt: w.Clock.Now()}, &wire.Probe{ID: p.ID}); err != nil {
			t.Fatal(err)
		}
		w.Clock.Move(time.Second)
	}
	if err := w.Store.Load(ctx, p); err != nil || !p.SeenSent.Equal(seen) {
		t.Fatalf("probe %+v", p)
	}
	if err := w.IngestProbe(ctx, control.Sender{SentAt: w.Clock.Now()}, &wire.Probe{ID: "made-up"}); err != nil {
		t.Fatal(err)
	}
	if n, _ := w.Counts.Last("RefusedSenders"); n != 1 {
		t.Fatal("not counted")
	}
}
