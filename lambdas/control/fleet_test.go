package control_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// tallied is a store that counts the instances that are read.
type tallied struct {
	control.Store
	instances int
}

func (s *tallied) Load(ctx context.Context, records ...control.Record) error {
	for _, r := range records {
		if r.Kind() == control.LedgerKind {
			s.instances++
		}
	}
	return s.Store.Load(ctx, records...)
}

// herd is a world of many instances, of which all but some are full.
func herd(t *testing.T, many int, roomy ...int) (*controltest.World, *tallied) {
	w := controltest.NewWorld(t)
	w.Memory.OnCommit = nil
	for n := range many {
		w.AddInstance(fmt.Sprintf("i%04d", n), room, func(_ *control.Instance, l *control.Ledger, _ *control.Lease) {
			if len(roomy) > 0 && !slices.Contains(roomy, n) {
				l.Held.MemoryMiB = l.Registered.MemoryMiB
			}
		})
	}
	w.Memory.CatchUp()
	s := &tallied{Store: w.Store}
	w.Store = s
	return w, s
}

func TestFleet_ATaskThatFitsReadsAPartOfALargeFleet(t *testing.T) {
	w, s := herd(t, 1000)
	job := w.AddTask(small)
	w.MustAdmit(job.ID)
	if got := w.Task(job.ID); got.LastStatus != task.Pending {
		t.Fatalf("%+v", got)
	}
	if s.instances == 0 || s.instances > 100 {
		t.Errorf("%d instances were read for one task", s.instances)
	}
}

func TestFleet_ATaskThatFitsOneOfAThousandFindsIt(t *testing.T) {
	w, s := herd(t, 1000, 777)
	job := w.AddTask(small)
	w.MustAdmit(job.ID)
	_, id := controltest.Identity("i0777")
	if got := w.Task(job.ID); got.Instance != id {
		t.Fatalf("%+v", got)
	}
	if s.instances > 1001 {
		t.Errorf("%d instances were read of 1000", s.instances)
	}
}

func TestFleet_ATaskThatWaitsIsNotLookedForEverywhereAtEachKick(t *testing.T) {
	w, s := herd(t, 1000, 0)
	old := w.AddTask(taskdef.Resources{MemoryMiB: 1 << 20})
	w.MustAdmit(old.ID)
	if got := w.Task(old.ID); got.WaitingReason != "RESOURCE:MEMORY" || s.instances < 1000 {
		t.Fatalf("%q after a look at %d instances", got.WaitingReason, s.instances)
	}
	s.instances = 0
	alike := w.AddTask(taskdef.Resources{MemoryMiB: 1 << 20})
	w.MustAdmit(alike.ID)
	if got := w.Task(alike.ID); got.WaitingReason != "RESOURCE:MEMORY" || s.instances > 200 {
		t.Errorf("one like it waits for %q, and %d instances were read", got.WaitingReason, s.instances)
	}
	s.instances = 0
	_, id := controltest.Identity("i0500")
	l := w.Ledger(id)
	l.Held, l.Registered.MemoryMiB = control.Held{}, 1<<20
	w.Put(&l)
	w.Memory.CatchUp()
	if err := w.Admit(ctx, control.Kick{Cluster: "default", Instance: id}); err != nil {
		t.Fatal(err)
	}
	if got := w.Task(old.ID); got.Instance != id || s.instances > 200 {
		t.Errorf("the instance that got room: %+v, after a look at %d instances", got, s.instances)
	}
	s.instances = 0
	w.MustAdmit(alike.ID) // as the sweep names it
	if s.instances < 1000 {
		t.Errorf("the sweep's kick looked at %d instances", s.instances)
	}
}

func TestFleet_IsRememberedUntilATaskFindsNoPlace(t *testing.T) {
	w := controltest.NewWorld(t)
	w.Fleet = &control.Fleet{}
	i := w.AddInstance("i", control.Held{CPU: 1000, MemoryMiB: 10})
	lists := func(tasks ...string) (n int) {
		t.Helper()
		w.Memory.Calls.Reset()
		w.MustAdmit(tasks...)
		_, names := w.Memory.Calls.Made()
		for _, name := range names {
			if name == "InstanceIDs" {
				n++
			}
		}
		return n
	}
	if n := lists(w.AddTask(taskdef.Resources{MemoryMiB: 4}).ID); n != 1 {
		t.Errorf("the first pass asked %d times", n)
	}
	if n := lists(w.AddTask(taskdef.Resources{MemoryMiB: 4}).ID); n != 0 {
		t.Errorf("a second one asked %d times", n)
	}
	j := w.AddInstance("j", control.Held{CPU: 1000, MemoryMiB: 10})
	last := w.AddTask(taskdef.Resources{MemoryMiB: 4})
	if n := lists(last.ID); n != 1 || w.Task(last.ID).Instance != j {
		t.Errorf("a task without a place asked %d times and is on %q, not %q", n, w.Task(last.ID).Instance, j)
	}
	w.Clock.Move(2 * time.Minute)
	if n := lists(w.AddTask(taskdef.Resources{MemoryMiB: 4}).ID); n != 1 {
		t.Errorf("after two minutes the index was asked %d times", n)
	}
	if w.Ledger(i).Open != 2 || w.Ledger(j).Open != 2 {
		t.Errorf("%+v %+v", w.Ledger(i), w.Ledger(j))
	}
}

func TestFleet_ATaskThatIsNotToWaitIsLookedForEverywhere(t *testing.T) {
	w, s := herd(t, 1000, 321)
	run, err := w.RunTask(ctx, control.RunTaskRequest{Count: 1, TaskRequest: control.TaskRequest{
		Cluster: "default", Definition: "app:1", Tags: map[string]string{"longshore:onNoCapacity": "fail"},
	}})
	_, id := controltest.Identity("i0321")
	if err != nil || len(run.Tasks) != 1 || run.Tasks[0].Instance != id {
		t.Fatalf("%+v %v, after a look at %d", run, err, s.instances)
	}
}

func TestAdmit_ATaskAloneCostsFewCalls(t *testing.T) {
	w := controltest.NewWorld(t)
	w.Fleet = &control.Fleet{}
	w.AddInstance("i", room)
	w.MustAdmit(w.AddTask(small).ID)
	job := w.AddTask(small)
	w.Memory.Calls.Reset()
	w.MustAdmit(job.ID)
	if _, names := w.Memory.Calls.Made(); fmt.Sprint(names) != "[TaskIDs Load Load Commit Commands]" {
		t.Errorf("a pass made %v", names)
	}
	w.Memory.Calls.Reset()
	w.MustAdmit()
	if _, names := w.Memory.Calls.Made(); fmt.Sprint(names) != "[TaskIDs]" {
		t.Errorf("a pass with nothing to do made %v", names)
	}
}

func TestAdmit_ManyThatWaitAreNotReadForANewTask(t *testing.T) {
	w, _ := herd(t, 3)
	var first string
	for range 500 {
		first = w.AddTask(taskdef.Resources{MemoryMiB: 1 << 20}, func(t *control.Task) { t.WaitingReason = "RESOURCE:MEMORY" }).ID
		w.Clock.Move(time.Millisecond)
	}
	reads := &read{Store: w.Store}
	w.Store = reads
	job := w.AddTask(small)
	w.MustAdmit(job.ID)
	if got := w.Task(job.ID); got.LastStatus != task.Pending || reads.tasks > 100 {
		t.Errorf("%s after %d tasks were read", got.LastStatus, reads.tasks)
	}
	if _, told := w.Counts.Last("WaitingTasks"); told {
		t.Error("a pass that saw a part told how many wait")
	}
	for what, k := range map[string]control.Kick{
		"the sweep's kick": {Cluster: "default", Tasks: []string{first}}, "a kick of room": {Cluster: "default", Instance: "00000000000000000000000000000001"},
	} {
		reads.tasks = 0
		if err := w.Admit(ctx, k); err != nil || reads.tasks < 500 {
			t.Errorf("%s: %d tasks were read, %v", what, reads.tasks, err)
		}
	}
	if n, _ := w.Counts.Last("WaitingTasks"); n != 500 {
		t.Errorf("%v tasks wait, it is told", n)
	}
}

// read is a store that counts the tasks that are read.
type read struct {
	control.Store
	tasks int
}

func (s *read) Load(ctx context.Context, records ...control.Record) error {
	for _, r := range records {
		if r.Kind() == control.TaskKind {
			s.tasks++
		}
	}
	return s.Store.Load(ctx, records...)
}

// That nothing was admitted after a restore says nothing of where there is room.
func TestFleet_ThatATaskWaitedForARestoreIsNoReasonNotToLookForARoom(t *testing.T) {
	w, _ := herd(t, 1000, 777)
	old := w.AddTask(small, func(j *control.Task) { j.WaitingReason = "RESTORED" })
	alike := w.AddTask(small)
	w.Memory.CatchUp()
	w.MustAdmit(alike.ID)
	_, id := controltest.Identity("i0777")
	for _, job := range []string{old.ID, alike.ID} {
		if got := w.Task(job); got.Instance != id {
			t.Errorf("it is %s on %q, and waits for %q", got.LastStatus, got.Instance, got.WaitingReason)
		}
	}
}

// A kick for a new task reads the oldest tasks alone: who of those further back is
// to have the next room it does not know.
func TestAdmit_APartOfTheQueueEarmarksNothing(t *testing.T) {
	w := controltest.NewWorld(t)
	w.AddInstance("i", control.Held{CPU: 1000, MemoryMiB: 1000}, func(_ *control.Instance, l *control.Ledger, _ *control.Lease) {
		l.Held.MemoryMiB, l.Held.CPU = 900, 900
	})
	w.Memory.OnCommit = nil
	var first string
	for n := range 100 {
		job := w.AddTask(taskdef.Resources{MemoryMiB: 1000}, func(j *control.Task) { j.Priority, j.WaitingReason = 0, "RESOURCE:MEMORY" })
		if n == 0 {
			first = job.ID
		}
	}
	w.Clock.Move(time.Second)
	urgent := w.AddTask(taskdef.Resources{MemoryMiB: 1000}, func(j *control.Task) { j.Priority, j.WaitingReason = 100, "RESOURCE:MEMORY" })
	w.Clock.Move(3 * time.Minute)
	fresh := w.AddTask(taskdef.Resources{MemoryMiB: 2000})
	w.Memory.CatchUp()
	earmark := func(k control.Kick) string {
		t.Helper()
		if err := w.Admit(ctx, k); err != nil {
			t.Fatal(err)
		}
		q := &control.QueueState{Cluster: "default"}
		if err := w.Store.Load(ctx, q); err != nil {
			t.Fatal(err)
		}
		return q.EarmarkTask
	}
	if got := earmark(control.Kick{Cluster: "default", Tasks: []string{fresh.ID}}); got != "" {
		t.Errorf("the next room is kept for %s, and %s is served before", got, urgent.ID)
	}
	if got := earmark(control.Kick{Cluster: "default", Tasks: []string{first}}); got != urgent.ID {
		t.Errorf("the sweep's pass keeps it for %q, not %s", got, urgent.ID)
	}
}
