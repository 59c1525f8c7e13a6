package control_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
)

func TestSweep_HundredsThatCanNotBeReachedHoldUpNoOther(t *testing.T) {
	w := controltest.NewWorld(t)
	w.Memory.OnCommit = nil // the open tasks are put one by one
	gone := w.AddInstance("gone", control.Held{CPU: 1 << 20, MemoryMiB: 1 << 20}, func(_ *control.Instance, l *control.Ledger, lease *control.Lease) {
		l.Connected, lease.Stage = false, control.StageLost
	})
	here := w.AddInstance("here", room)
	stopping := func(instance string) string {
		return w.AddTask(small, func(t *control.Task) {
			t.LastStatus, t.DesiredStatus, t.StopCause = task.Running, task.DesiredStopped, task.UserCause
			t.Instance, t.Held = instance, &control.Held{CPU: 100, MemoryMiB: 10}
		}).ID
	}
	for range 700 {
		stopping(gone)
	}
	w.Clock.Move(time.Second)
	id := stopping(here)
	w.Memory.CatchUp()
	if err := w.Sweep(ctx); err != nil {
		t.Fatal(err)
	}
	for _, m := range w.Sent.TakeCommands(here) {
		if s, ok := m.(*wire.Stop); ok && s.Task == id {
			return
		}
	}
	t.Error("the stop was not sent again")
}

func TestSweep_MeasuresHowLongTasksWaitWhateverAdmissionDoes(t *testing.T) {
	w := controltest.NewWorld(t)
	w.AddTask(small)
	w.Clock.Move(10 * time.Minute)
	w.Memory.CatchUp()
	if err := w.Sweep(ctx); err != nil {
		t.Fatal(err)
	}
	if v, _ := w.Counts.Last("OldestWaitingSeconds"); v != 600 {
		t.Errorf("%v seconds", v)
	}
}

func TestRefused_ALedgerStaysSmallWhateverIsRefused(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	for n := range 16 {
		id := e.given(func(t *control.Task) {
			for k := range 20 {
				t.Constraints = append(t.Constraints, control.Placement{Type: "memberOf", Expression: fmt.Sprintf("attribute:a != %d-%d-%s", n, k, strings.Repeat("x", 1900))})
			}
			t.NoWait = true
		})
		e.refuses(id, 1)
	}
	size := 0
	for _, r := range w.Ledger(e.id).Refusals {
		size += len(r.Shape)
	}
	if n := len(w.Ledger(e.id).Refusals); n != 16 || size > 8*1024 {
		t.Errorf("%d refusals of %d bytes on the ledger, which every admission writes", n, size)
	}
}

func TestRefused_ALongShapeIsNotOfferedAgainEither(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	long := func(t *control.Task) {
		t.Constraints = []control.Placement{{Type: "memberOf", Expression: "attribute:a != " + strings.Repeat("x", 1900)}}
	}
	e.refuses(e.given(long), 1)
	w.MustAdmit()
	var waiting []control.Task
	for _, k := range w.Memory.Tasks() {
		waiting = append(waiting, k)
	}
	if len(waiting) != 1 || waiting[0].LastStatus != task.Provisioning || waiting[0].WaitingReason != "REFUSED" {
		t.Errorf("%+v", waiting)
	}
	other := w.AddTask(taskdef.Resources{CPU: 1, MemoryMiB: 1}, long)
	w.MustAdmit(other.ID)
	if got := w.Task(other.ID); got.LastStatus != task.Pending {
		t.Errorf("another shape is %s: %s", got.LastStatus, got.WaitingReason)
	}
}
