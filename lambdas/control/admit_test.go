package control_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
)

var (
	ctx   = context.Background()
	small = taskdef.Resources{CPU: 100, MemoryMiB: 10}
	room  = control.Held{CPU: 1000, MemoryMiB: 100, GPUs: []string{"gpu0", "gpu1"}, TCP: []int{22}}
)

func assigned(t *testing.T, w *controltest.World, instance string) []*wire.Assign {
	t.Helper()
	var out []*wire.Assign
	for _, m := range w.Sent.TakeCommands(instance) {
		if a, ok := m.(*wire.Assign); ok {
			out = append(out, a)
		}
	}
	return out
}

func TestAdmit_ChargesTheLedgerAndSendsAnAssign(t *testing.T) {
	w := controltest.NewWorld(t)
	i := w.AddInstance("i", room)
	job := w.AddTask(taskdef.Resources{CPU: 100, MemoryMiB: 10, TCP: []int{80}, UDP: []int{53}, GPUs: 1})
	w.MustAdmit()
	got := w.Task(job.ID)
	l := w.Ledger(i)
	if got.LastStatus != task.Pending || got.Instance != i || got.Epoch != l.Epoch || got.Incarnation != "inc-i" {
		t.Fatalf("task %+v", got)
	}
	if l.Open != 1 || l.Held.CPU != 100 || l.Held.GPUs[0] != "gpu0" || l.Held.TCP[0] != 80 {
		t.Fatalf("ledger %+v", l)
	}
	sent := assigned(t, w, i)
	if len(sent) != 1 || sent[0].Task != job.ID || sent[0].Attempt != 1 || sent[0].Epoch != l.Epoch || sent[0].GPUs[0] != "gpu0" {
		t.Fatalf("sent %+v", sent)
	}
}

func TestAdmit_AKickBeforeTheIndexShowsItsTask(t *testing.T) {
	w := controltest.NewWorld(t)
	w.Memory.Lag = 1000
	w.AddInstance("i", room)
	w.Memory.CatchUp()
	job := w.AddTask(small)
	if err := w.Admit(ctx, control.Kick{Cluster: "default"}); err != nil || w.Task(job.ID).LastStatus != task.Provisioning {
		t.Fatalf("the lagging index showed it: %v", err)
	}
	if err := w.Admit(ctx, control.Kick{Cluster: "default", Tasks: []string{job.ID}}); err != nil || w.Task(job.ID).LastStatus != task.Pending {
		t.Fatalf("%v %s", err, w.Task(job.ID).LastStatus)
	}
}

func TestAdmit_NothingGoesToWhoMayNotTakeIt(t *testing.T) {
	for name, change := range map[string]func(*control.Instance, *control.Ledger, *control.Lease){
		"not connected":      func(_ *control.Instance, l *control.Ledger, _ *control.Lease) { l.Connected = false },
		"draining":           func(_ *control.Instance, l *control.Ledger, _ *control.Lease) { l.Status = control.Draining },
		"inactive":           func(_ *control.Instance, l *control.Ledger, _ *control.Lease) { l.Status = control.Inactive },
		"wire version":       func(in *control.Instance, _ *control.Ledger, _ *control.Lease) { in.WireVersions = []int{99} },
		"of another cluster": func(in *control.Instance, l *control.Ledger, _ *control.Lease) { in.Cluster, l.Cluster = "o", "o" },
	} {
		t.Run(name, func(t *testing.T) {
			w := controltest.NewWorld(t)
			i := w.AddInstance("i", room, change)
			job := w.AddTask(small)
			w.MustAdmit()
			if w.Task(job.ID).LastStatus != task.Provisioning || w.Ledger(i).Open != 0 {
				t.Fatalf("admitted: %+v", w.Task(job.ID))
			}
			if r := w.Task(job.ID).WaitingReason; r != "AGENT" && r != "EMPTY CAPACITY" {
				t.Errorf("reason %q", r)
			}
		})
	}
}

func TestAdmit_NothingWhileStaleIsNotZero(t *testing.T) {
	w := controltest.NewWorld(t)
	i := w.AddInstance("i", room)
	w.AddTask(small)
	w.MustAdmit()
	l, lease := &control.Ledger{ID: i}, &control.Lease{ID: i}
	if err := w.Store.Load(ctx, l, lease); err != nil {
		t.Fatal(err)
	}
	l.Epoch, l.Stale = l.Epoch+1, 1 // raised, and the old task is still to be judged
	w.Put(l)
	next := w.AddTask(small)
	w.MustAdmit()
	if w.Task(next.ID).LastStatus != task.Provisioning {
		t.Fatal("admitted while a task of an older epoch is open")
	}
}

func TestAdmit_WaitsWithItsReasonAndStartsWhenRoomAppears(t *testing.T) {
	w := controltest.NewWorld(t)
	i := w.AddInstance("i", room)
	first := w.AddTask(taskdef.Resources{MemoryMiB: 60})
	w.MustAdmit()
	second := w.AddTask(taskdef.Resources{MemoryMiB: 60})
	w.MustAdmit()
	if got := w.Task(second.ID); got.LastStatus != task.Provisioning || got.WaitingReason != "RESOURCE:MEMORY" {
		t.Fatalf("%+v", got)
	}
	if n, _ := w.Counts.Last("WaitingTasks"); n != 1 {
		t.Errorf("WaitingTasks counted %v", n)
	}
	a, l := w.Task(first.ID), w.Ledger(i)
	a.LastStatus, a.DesiredStatus, a.Held = task.Stopped, task.DesiredStopped, nil
	l.Held, l.Open = control.Held{}, 0
	w.Memory.OnCommit = nil // the two puts are one transaction of the report use case
	w.Put(&a, &l)
	w.MustAdmit()
	if got := w.Task(second.ID); got.LastStatus != task.Pending || got.WaitingReason != "" {
		t.Fatalf("%+v", got)
	}
}

func TestAdmit_TwoPassesAtOnceNeverGiveMoreThanThereIs(t *testing.T) {
	for range 50 {
		w := controltest.NewWorld(t)
		i := w.AddInstance("i", control.Held{CPU: 1000, MemoryMiB: 100})
		var ids []string
		for range 8 {
			ids = append(ids, w.AddTask(taskdef.Resources{CPU: 300, MemoryMiB: 30, TCP: nil}).ID)
		}
		w.Memory.CatchUp()
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if err := w.Admit(ctx, control.Kick{Cluster: "default", Tasks: ids}); err != nil && !fault.Is(err, fault.Conflict) {
					t.Errorf("admit: %v", err)
				}
			})
		}
		wg.Wait()
		if l := w.Ledger(i); l.Open != 3 || l.Held.CPU != 900 {
			t.Fatalf("ledger %+v, want 3 tasks", l)
		}
		if sent := assigned(t, w, i); len(sent) < 3 {
			t.Fatalf("%d assigns were sent for 3 tasks", len(sent))
		}
	}
}

func TestAdmit_KilledAnywhere(t *testing.T) {
	var ids []string
	controltest.KillEverywhere(t, func(t *testing.T) *controltest.World {
		w := controltest.NewWorld(t)
		w.AddInstance("i", control.Held{CPU: 1000, MemoryMiB: 100})
		w.AddInstance("j", control.Held{CPU: 1000, MemoryMiB: 100})
		ids = nil
		for range 5 {
			ids = append(ids, w.AddTask(taskdef.Resources{CPU: 500, MemoryMiB: 50}).ID)
		}
		w.Memory.CatchUp()
		return w
	}, func(w *controltest.World) error {
		return w.Admit(ctx, control.Kick{Cluster: "default", Tasks: ids})
	}, func(t *testing.T, w *controltest.World) {
		pending := 0
		for _, id := range ids {
			if w.Task(id).LastStatus == task.Pending {
				pending++
			}
		}
		if pending != 4 {
			t.Errorf("%d tasks are PENDING, want 4", pending)
		}
		// an assign that was not sent is the sweep's
		w.Clock.Move(time.Minute)
		w.Memory.CatchUp()
		if err := w.Sweep(ctx); err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, l := range w.Memory.Ledgers() {
			for _, a := range assigned(t, w, l.ID) {
				seen[a.Task] = true
			}
		}
		if len(seen) != 4 {
			t.Errorf("%d tasks' assigns were sent, want 4", len(seen))
		}
	})
}

func TestAdmit_ATaskThatWaitedTooLongEndsWithItsReason(t *testing.T) {
	w := controltest.NewWorld(t)
	job := w.AddTask(small, func(t *control.Task) { t.MaxWait = time.Minute })
	w.MustAdmit()
	if w.Task(job.ID).LastStatus != task.Provisioning {
		t.Fatal("ended early")
	}
	w.Clock.Move(time.Minute)
	w.MustAdmit()
	if got := w.Task(job.ID); got.LastStatus != task.Stopped || got.StopCause != task.MaxWaitCause || got.StoppedReason == "" {
		t.Fatalf("%+v", got)
	}
}

func TestAdmit_AnEarmarkIsKeptBetweenPasses(t *testing.T) {
	w := controltest.NewWorld(t)
	w.AddInstance("i", control.Held{CPU: 1000, MemoryMiB: 100})
	w.AddTask(taskdef.Resources{MemoryMiB: 30})
	w.MustAdmit()
	big := w.AddTask(taskdef.Resources{MemoryMiB: 100})
	w.Clock.Move(w.Setting.StarvationAge)
	w.MustAdmit()
	late := w.AddTask(taskdef.Resources{MemoryMiB: 10}, func(t *control.Task) { t.Priority = 100 })
	w.MustAdmit()
	if got := w.Task(late.ID); got.WaitingReason != "RESERVED" {
		t.Errorf("a later task passed the earmark: %s %q", got.LastStatus, got.WaitingReason)
	}
	state := &control.QueueState{Cluster: "default"}
	if err := w.Store.Load(ctx, state); err != nil || state.EarmarkTask != big.ID {
		t.Fatalf("%v %+v", err, state)
	}
}

func TestAdmit_MoreThanAPassReachesGoesOnFromTheCursor(t *testing.T) {
	w := controltest.NewWorld(t)
	w.Memory.OnCommit = nil // 2,500 tasks: the invariants are checked at the end
	i := w.AddInstance("i", control.Held{CPU: 1000, MemoryMiB: 100})
	for range 2100 { // fit nowhere, and are older
		w.AddTask(taskdef.Resources{MemoryMiB: 1000})
		w.Clock.Move(time.Millisecond)
	}
	job := w.AddTask(taskdef.Resources{MemoryMiB: 10}, func(t *control.Task) { t.CreatedAt = w.Clock.Now() })
	w.MustAdmit()
	w.MustAdmit()
	if got := w.Task(job.ID); got.LastStatus != task.Pending {
		t.Fatalf("hidden behind %d tasks that fit nowhere: %+v", 2100, got)
	}
	for _, v := range w.Memory.Violations() {
		t.Error(v, i)
	}
}

func TestAdmitNow_StoresAnAdmittedTaskOrNothing(t *testing.T) {
	w := controltest.NewWorld(t)
	fresh := func() *control.Task {
		return &control.Task{ID: w.NewID(), Cluster: "default", LastStatus: task.Provisioning, DesiredStatus: task.DesiredRunning, Attempt: 1,
			Family: "app", Number: 1, Group: "family:app", Needs: taskdef.Resources{MemoryMiB: 60}, NoWait: true, CreatedAt: w.Clock.Now()}
	}
	none := fresh()
	if reason, err := w.AdmitNow(ctx, none); err != nil || reason != "EMPTY CAPACITY" {
		t.Fatalf("%q %v", reason, err)
	}
	i := w.AddInstance("i", room)
	w.Memory.CatchUp()
	first, second := fresh(), fresh()
	if reason, err := w.AdmitNow(ctx, first); err != nil || reason != "" {
		t.Fatalf("%q %v", reason, err)
	}
	if reason, err := w.AdmitNow(ctx, second); err != nil || reason != "RESOURCE:MEMORY" {
		t.Fatalf("%q %v", reason, err)
	}
	tasks := w.Memory.Tasks()
	if len(tasks) != 1 || tasks[first.ID].LastStatus != task.Pending || len(assigned(t, w, i)) != 1 {
		t.Fatalf("%+v", tasks)
	}
}

// firstCall is the number of the first call of a name that a use case makes.
func firstCall(t *testing.T, w *controltest.World, name string, run func()) int {
	t.Helper()
	w.Memory.Calls.Reset()
	run()
	_, names := w.Memory.Calls.Made()
	at := slices.Index(names, name)
	if at < 0 {
		t.Fatalf("no %s among %v", name, names)
	}
	return at + 1
}

func TestAdmit_AFailedTransactionChargesNothingInTheNextOne(t *testing.T) {
	build := func() (*controltest.World, string) {
		w := controltest.NewWorld(t)
		i := w.AddInstance("i", control.Held{CPU: 10000, MemoryMiB: 1000})
		for range 60 { // more than one transaction takes
			w.AddTask(small)
		}
		w.Memory.CatchUp()
		return w, i
	}
	pass := func(w *controltest.World) { _ = w.Admit(ctx, control.Kick{Cluster: "default"}) }
	w, _ := build()
	at := firstCall(t, w, "Commit", func() { pass(w) })
	w, i := build()
	w.Memory.Calls.FailAt(at, fault.Unavailable)
	pass(w) // every commit is checked: the ledger holds what its tasks hold
	w.Memory.Calls.Reset()
	w.MustAdmit()
	if l := w.Ledger(i); l.Open != 60 || l.Held.CPU != 6000 {
		t.Errorf("ledger %+v", l)
	}
}

func TestAdmitNow_LeavesRoomThatIsKeptForAStarvingTask(t *testing.T) {
	w := controltest.NewWorld(t)
	i := w.AddInstance("i", control.Held{CPU: 1000, MemoryMiB: 100})
	w.AddTask(taskdef.Resources{CPU: 100, MemoryMiB: 50})
	w.MustAdmit()
	big := w.AddTask(taskdef.Resources{CPU: 1000, MemoryMiB: 100})
	w.Clock.Move(w.Setting.StarvationAge + time.Second)
	w.MustAdmit()
	hasty := func() (string, *control.Task) {
		job := &control.Task{ID: w.NewID(), Cluster: "default", LastStatus: task.Provisioning, DesiredStatus: task.DesiredRunning, Attempt: 1,
			Family: "app", Number: 1, Group: "family:app", Needs: small, NoWait: true, CreatedAt: w.Clock.Now()}
		reason, err := w.AdmitNow(ctx, job)
		if err != nil {
			t.Fatal(err)
		}
		return reason, job
	}
	if reason, _ := hasty(); reason != "RESERVED" || w.Ledger(i).Open != 1 {
		t.Errorf("reason %q: the room of %s went to one that does not wait", reason, big.ID)
	}
	if _, err := w.StopTask(ctx, "default", big.ID, ""); err != nil {
		t.Fatal(err)
	}
	if reason, _ := hasty(); reason != "" { // nobody starves any more
		t.Errorf("reason %q after the starving task was stopped", reason)
	}
}

func TestAdmitNow_OfAPinnedTaskReadsItsInstanceAlone(t *testing.T) {
	w := controltest.NewWorld(t)
	i := w.AddInstance("i", room)
	w.AddInstance("j", room)
	w.Memory.CatchUp()
	w.Memory.Calls.Reset()
	run, err := w.StartTask(ctx, control.StartTaskRequest{TaskRequest: control.TaskRequest{Cluster: "default", Definition: "app:1"}, Instances: []string{i}})
	if err != nil || len(run.Tasks) != 1 {
		t.Fatalf("%+v %v", run, err)
	}
	if _, names := w.Memory.Calls.Made(); slices.Contains(names, "InstanceIDs") {
		t.Errorf("the cluster's instances were listed for one: %v", names)
	}
}

func TestAdmit_OneTaskThatCanNotBeEndedHoldsUpNoOther(t *testing.T) {
	build := func() (*controltest.World, string) {
		w := controltest.NewWorld(t)
		w.AddInstance("i", room)
		w.AddTask(small, func(t *control.Task) { t.MaxWait = time.Second })
		job := w.AddTask(small)
		w.Clock.Move(time.Minute)
		w.Memory.CatchUp()
		return w, job.ID
	}
	pass := func(w *controltest.World) error { return w.Admit(ctx, control.Kick{Cluster: "default"}) }
	w, _ := build()
	at := firstCall(t, w, "Commit", func() { _ = pass(w) }) // the overdue one's end
	w, job := build()
	w.Memory.Calls.FailAt(at, fault.Internal)
	if err := pass(w); err == nil {
		t.Error("nobody is told of the one that could not be ended")
	}
	if s := w.Task(job).LastStatus; s != task.Pending {
		t.Errorf("the other is %s", s)
	}
}

func TestAdmit_SeesEveryInstanceThatMergedKicksName(t *testing.T) {
	w := controltest.NewWorld(t)
	w.Memory.Lag = 1000
	i, j := w.AddInstance("i", control.Held{CPU: 100, MemoryMiB: 10}), w.AddInstance("j", control.Held{CPU: 100, MemoryMiB: 10})
	a, b := w.AddTask(small), w.AddTask(small)
	if err := w.Admit(ctx, control.Kick{Cluster: "default", Tasks: []string{a.ID, b.ID}, Instance: i, Others: []string{j}}); err != nil {
		t.Fatal(err)
	}
	if w.Ledger(i).Open != 1 || w.Ledger(j).Open != 1 {
		t.Errorf("%+v %+v", w.Ledger(i), w.Ledger(j))
	}
}

func TestAdmit_TellsHowLongTasksHadWaited(t *testing.T) {
	w := controltest.NewWorld(t)
	waits := w.AddTask(small).ID
	w.MustAdmit(waits)
	if _, told := w.Counts.Last("AdmissionWaitSeconds"); told {
		t.Error("nothing was admitted")
	}
	w.Clock.Move(90 * time.Second)
	w.AddInstance("i", room)
	young := w.AddTask(small).ID
	w.MustAdmit(waits, young)
	for name, want := range map[string]float64{"AdmissionWaitSeconds": 90, "AdmittedTasks": 2, "AdmissionPassSeconds": 0} {
		if got, told := w.Counts.Last(name); !told || got != want {
			t.Errorf("%s is %v (%v), want %v", name, got, told, want)
		}
	}
}
