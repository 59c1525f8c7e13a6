package control_test

import (
	"context"
	"slices"
	"testing"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// audited is a world of two instances with a task each and one task that waits.
func audited(t *testing.T) (w *controltest.World, a, b string) {
	w = controltest.NewWorld(t)
	a, b = w.AddInstance("a", room), w.AddInstance("b", room)
	for _, at := range []string{a, b} {
		w.AddTask(taskdef.Resources{CPU: 128, MemoryMiB: 64, TCP: []int{8080}}, func(t *control.Task) { t.Pinned = at })
	}
	w.MustAdmit()
	w.AddTask(taskdef.Resources{CPU: 1 << 20})
	return w, a, b
}

func TestAuditLedgers_FindsNothingWhereNothingIsWrong(t *testing.T) {
	w, _, _ := audited(t)
	got, err := w.AuditLedgers(ctx)
	if err != nil || got.Ledgers != 2 || got.Busy != 0 || len(got.Differences) != 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	if n, ok := w.Counts.Last("LedgerDifferences"); !ok || n != 0 {
		t.Errorf("counted %v, %v", n, ok)
	}
}

// leak makes a ledger hold more than its tasks do.
func leak(w *controltest.World, id string) {
	l := w.Ledger(id)
	l.Held.CPU += 100
	l.Held.TCP = []int{8080, 9000}
	l.Open++
	w.Put(&l)
}

func TestAuditLedgers_TellsADifferenceAndLeavesIt(t *testing.T) {
	w, a, _ := audited(t)
	leak(w, a)
	got, err := w.AuditLedgers(ctx)
	if err != nil || got.Ledgers != 2 || len(got.Differences) != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	d := got.Differences[0]
	if d.Instance != a || d.Repaired || d.Book.Held.CPU != 228 || d.Tasks.Held.CPU != 128 || d.Book.Open != 2 || d.Tasks.Open != 1 || !slices.Equal(d.Tasks.Held.TCP, []int{8080}) {
		t.Errorf("%+v", d)
	}
	if l := w.Ledger(a); l.Held.CPU != 228 {
		t.Errorf("repaired without being told to: %+v", l)
	}
	if n, _ := w.Counts.Last("LedgerDifferences"); n != 1 {
		t.Errorf("counted %v", n)
	}
}

func TestAuditLedgers_RepairsWhereItMayAndWakesAdmission(t *testing.T) {
	var a string
	controltest.KillEverywhere(t, func(t *testing.T) *controltest.World {
		w, id, _ := audited(t)
		a = id
		w.Setting.AuditRepairs = true
		leak(w, a)
		return w
	}, func(w *controltest.World) error { _, err := w.AuditLedgers(ctx); return err }, func(t *testing.T, w *controltest.World) {
		if l := w.Ledger(a); l.Held.CPU != 128 || l.Open != 1 || !slices.Equal(l.Held.TCP, []int{8080}) {
			t.Errorf("ledger %+v", l)
		}
	})
}

func TestAuditLedgers_RecountsTheTasksOfServices(t *testing.T) {
	w, a, _ := audited(t)
	w.Setting.AuditRepairs = true
	w.Put(&control.Service{Cluster: "default", Name: "web"}, &control.Live{Cluster: "default", Service: "web", Live: 2},
		&control.Service{Cluster: "default", Name: "none"}, &control.Live{Cluster: "default", Service: "none"})
	for range 2 {
		w.AddTask(taskdef.Resources{CPU: 1}, func(t *control.Task) { t.Service, t.Group, t.Pinned = "web", "service:web", a })
	}
	w.MustAdmit()
	if got, err := w.AuditLedgers(ctx); err != nil || got.Services != 2 || len(got.Differences) != 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	w.Put(&control.Live{Cluster: "default", Service: "web", Live: 3})
	got, err := w.AuditLedgers(ctx)
	if err != nil || len(got.Differences) != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	if d := got.Differences[0]; d.Service != "web" || d.Book.Live != 3 || d.Tasks.Live != 2 || !d.Repaired {
		t.Errorf("%+v", d)
	}
	if got, err := w.AuditLedgers(ctx); err != nil || len(got.Differences) != 0 {
		t.Errorf("after the repair: %+v, %v", got, err)
	}
}

// busyStore writes something each time the tasks have been read: while an audit
// looks.
type busyStore struct {
	control.Store
	meanwhile func()
}

func (s busyStore) ScanLiveTasks(c context.Context, p control.Page) ([]control.Task, string, error) {
	tasks, next, err := s.Store.ScanLiveTasks(c, p)
	s.meanwhile()
	return tasks, next, err
}

func TestAuditLedgers_TakesNoMovementForADifference(t *testing.T) {
	w, a, b := audited(t)
	w.Setting.AuditRepairs = true
	leak(w, a)
	leak(w, b)
	w.Memory.OnCommit = nil // the leak of a is there after the repair of b
	w.Store = busyStore{w.Store, func() {
		l := w.Ledger(a) // written by somebody else, again and again
		w.Put(&l)
	}}
	got, err := w.AuditLedgers(ctx)
	if err != nil || got.Busy != 1 || got.Ledgers != 1 || len(got.Differences) != 1 || got.Differences[0].Instance != b {
		t.Fatalf("%+v, %v", got, err)
	}
	if l := w.Ledger(a); l.Held.CPU != 228 {
		t.Errorf("what moved was repaired: %+v", l)
	}
}

func TestAuditLedgers_CountsTasksOfOlderEpochs(t *testing.T) {
	w, a, _ := audited(t)
	l := w.Ledger(a)
	l.Epoch++
	l.Stale = 1
	w.Put(&l)
	if got, err := w.AuditLedgers(ctx); err != nil || len(got.Differences) != 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	l = w.Ledger(a)
	l.Stale = 0
	w.Put(&l)
	if got, err := w.AuditLedgers(ctx); err != nil || len(got.Differences) != 1 || got.Differences[0].Tasks.Stale != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
}
