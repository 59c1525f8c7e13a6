package control_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// away stops the agent of a machine, whose containers go on, until it is LOST; all
// others do what they do.
func (w *walk) away(m *peer) {
	m.Up, m.Welcomed = false, false
	for range 15 {
		for _, other := range w.machines {
			if other != m {
				other.repeat()
				other.beat()
			}
		}
		w.quiet()
		w.Memory.CatchUp()
		w.tick(false)
		w.serve(false)
		w.admit(false)
		w.quiet()
	}
	if s := w.Lease(m.ID).Stage; s != control.StageLost {
		w.fail("%s is %s after 15 silent minutes", m.Name, s)
	}
}

// An instance that is lost and returns again and again: each time costs one epoch,
// what is to be replaced ends once, what is kept goes on as if nothing had been,
// nothing leaks, and people are told.
func TestFlapping_NothingIsLostOrDoubledAndItIsTold(t *testing.T) {
	w := newWalk(t, 1)
	w.rounds(2)
	i := w.machines[0]
	tagCluster(t, w.World, "keepFor", "720h")
	pinned := func(tags map[string]string) string {
		return w.AddTask(taskdef.Resources{MemoryMiB: walkMemory}, func(t *control.Task) { t.Pinned, t.Tags = i.ID, tags }).ID
	}
	stays := pinned(map[string]string{"longshore:onDisconnect": "keep"})
	w.MustAdmit(stays)
	w.rounds(2)
	started, epoch := w.Task(stays).StartedAt, w.Ledger(i.ID).Epoch
	if started.IsZero() {
		t.Fatalf("%+v", w.Task(stays))
	}
	for cycle := range 6 {
		goes := pinned(nil)
		w.MustAdmit(goes)
		w.quiet()
		w.away(i)
		if got := w.Ledger(i.ID).Epoch; got <= epoch {
			t.Fatalf("cycle %d: epoch %d", cycle, got)
		}
		epoch = w.Ledger(i.ID).Epoch
		mustBeKept(t, w.World, stays)
		i.Restart()
		w.rounds(4)
		l := w.Ledger(i.ID)
		if !l.Connected || l.Epoch != epoch || l.Stale != 0 {
			t.Fatalf("cycle %d: it did not return: %+v %+v", cycle, l, w.Lease(i.ID))
		}
		if got := w.Task(goes); w.starts[goes] != 1 || got.StopCause != task.LostCause || got.Containers[0].ExitCode == nil {
			t.Fatalf("cycle %d: what is replaced, started %d times: %+v", cycle, w.starts[goes], got)
		}
		if got := w.Task(stays); got.LastStatus != task.Running || got.Attempt != 1 || !got.StartedAt.Equal(started) || !got.Kept.IsZero() || w.starts[stays] != 1 {
			t.Fatalf("cycle %d: what is kept: %+v", cycle, got)
		}
		found, _, err := w.DescribeContainerInstances(ctx, "default", []string{i.ID})
		if err != nil {
			t.Fatal(err)
		}
		told := strings.Contains(found[0].StatusReason(), fmt.Sprintf("flapping: LOST %d times", cycle+1))
		if n, _ := w.Counts.Last("FlappingInstances"); told != (cycle >= 2) || (n == 1) != told {
			t.Errorf("cycle %d: reason %q, counted %v", cycle, found[0].StatusReason(), n)
		}
	}
	w.settle()
	w.settled()
	w.Clock.Move(24 * time.Hour)
	if found, _, _ := w.DescribeContainerInstances(ctx, "default", []string{i.ID}); strings.Contains(found[0].StatusReason(), "flapping") {
		t.Errorf("told a day later: %q", found[0].StatusReason())
	}
}
