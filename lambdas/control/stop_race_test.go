package control_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
)

// The host fits one task. A runs on it and is slow to end; B waits and is
// stopped, in each of the three places that the stop can meet it.
var whole = control.Held{CPU: 1000, MemoryMiB: 100}

func fillsIt() taskdef.Resources { return taskdef.Resources{CPU: 1000, MemoryMiB: 100} }

func stopTask(t *testing.T, w *controltest.World, id string) {
	t.Helper()
	if _, err := w.StopTask(ctx, "default", id, ""); err != nil {
		t.Errorf("stop %s: %v", id, err)
	}
}

// end lets the instance report the end of a task that it has.
func end(t *testing.T, w *controltest.World, instance, id string) {
	t.Helper()
	identity := identityOf(t, w, instance)
	got := w.Task(id)
	m := &wire.Report{Header: wire.Header{Instance: instance}, Origin: wire.Origin{Incarnation: got.Incarnation, N: got.N + 1},
		Snapshot: wire.Snapshot{Task: id, Attempt: got.Attempt, Epoch: got.Epoch, Status: task.Stopped, Cause: task.ExitedCause}}
	if err := w.IngestReport(ctx, control.Sender{Identity: identity, SentAt: w.Clock.Now()}, m); err != nil {
		t.Errorf("report the end of %s: %v", id, err)
	}
}

// identityOf is the identity of an instance by its id.
func identityOf(t *testing.T, w *controltest.World, instance string) string {
	t.Helper()
	in := &control.Instance{ID: instance}
	if err := w.Store.Load(ctx, in); err != nil {
		t.Error(err)
	}
	return in.Identity
}

func nothingHeld(t *testing.T, w *controltest.World, instance string) {
	t.Helper()
	l := w.Ledger(instance)
	if l.Open != 0 || l.Stale != 0 || l.Held.CPU != 0 || l.Held.MemoryMiB != 0 || l.Held.TCP != nil || l.Held.UDP != nil || l.Held.GPUs != nil {
		t.Errorf("still held: %+v, open %d", l.Held, l.Open)
	}
}

func queueBehind(t *testing.T) (w *controltest.World, instance, a, b string) {
	w = controltest.NewWorld(t)
	instance = w.AddInstance("i", whole)
	a = w.AddTask(fillsIt()).ID
	w.MustAdmit()
	b = w.AddTask(fillsIt()).ID
	w.Memory.CatchUp()
	return w, instance, a, b
}

func TestStopWhileQueued_BeforeItIsLookedAt(t *testing.T) {
	w, i, a, b := queueBehind(t)
	stopTask(t, w, a)
	stopTask(t, w, b)
	if got := w.Task(b); got.LastStatus != task.Stopped || got.Held != nil {
		t.Fatalf("B is %s while A is still running", got.LastStatus)
	}
	if got := w.Task(a); got.LastStatus == task.Stopped {
		t.Fatal("A was released at the request to stop")
	}
	w.MustAdmit(b)
	end(t, w, i, a)
	w.MustAdmit(b)
	nothingHeld(t, w, i)
}

// stopBetween stops a task when admission has read it and before it commits.
type stopBetween struct {
	control.Store
	once sync.Once
	stop func()
}

func (s *stopBetween) Commit(ctx context.Context, writes ...control.Write) error {
	if len(writes) > 1 {
		s.once.Do(s.stop)
	}
	return s.Store.Commit(ctx, writes...)
}

func TestStopWhileQueued_WhileItIsLookedAt(t *testing.T) {
	w, i, a, b := queueBehind(t)
	end(t, w, i, a)
	w.Memory.CatchUp()
	memory := w.Store
	between := &stopBetween{Store: memory}
	between.stop = func() {
		w.Store = memory
		stopTask(t, w, b)
	}
	w.Store = between
	if err := w.Admit(ctx, control.Kick{Cluster: "default", Tasks: []string{b}}); err != nil {
		t.Fatal(err)
	}
	if got := w.Task(b); got.LastStatus != task.Stopped || got.Instance != "" {
		t.Fatalf("B is %s on %q: the decision to consume did not see the stop", got.LastStatus, got.Instance)
	}
	if n := len(assigned(t, w, i)); n != 1 { // A's
		t.Errorf("%d assigns were sent", n)
	}
	nothingHeld(t, w, i)
}

func TestStopWhileQueued_AfterItWasAdmitted(t *testing.T) {
	w, i, a, b := queueBehind(t)
	end(t, w, i, a)
	w.MustAdmit(b)
	stopTask(t, w, b)
	if got := w.Task(b); got.LastStatus != task.Pending || w.Ledger(i).Open != 1 {
		t.Fatalf("released at the request: %s, open %d", got.LastStatus, w.Ledger(i).Open)
	}
	stops := 0
	for _, m := range w.Sent.TakeCommands(i) {
		if s, ok := m.(*wire.Stop); ok && s.Task == b {
			stops++
		}
	}
	if stops != 1 {
		t.Errorf("%d stops were sent", stops)
	}
	end(t, w, i, b) // the agent had not started it, and says STOPPED
	end(t, w, i, b)
	nothingHeld(t, w, i)
}

// Both orders of stopping, with the pass racing them.
func TestStopWhileQueued_RacesLeakNothing(t *testing.T) {
	seen := map[task.Status]int{}
	for n := range 600 {
		w, i, a, b := queueBehind(t)
		jobs := []func(){
			func() { stopTask(t, w, b) },
			func() { stopTask(t, w, a); end(t, w, i, a) },
			func() { _ = w.Admit(ctx, control.Kick{Cluster: "default", Tasks: []string{b}}) },
			func() { _ = w.Admit(ctx, control.Kick{Cluster: "default", Tasks: []string{b}, Instance: i}) },
		}
		if n%2 == 1 {
			slices.Reverse(jobs)
		}
		var wg sync.WaitGroup
		for _, job := range jobs {
			wg.Go(job)
		}
		wg.Wait()
		seen[w.Task(b).LastStatus]++
		if w.Task(b).LastStatus.Open() {
			end(t, w, i, b)
		}
		nothingHeld(t, w, i)
		if t.Failed() {
			t.Fatalf("at round %d", n)
		}
	}
	t.Log("B after the race:", seen)
}
