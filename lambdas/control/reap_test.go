package control_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
)

// minute lets a minute pass in which the given instances are heard and every
// probe comes through, then runs the reaper.
func minute(t *testing.T, w *controltest.World, heard ...string) {
	t.Helper()
	w.Clock.Move(time.Minute)
	for _, id := range heard {
		l := w.Lease(id)
		if _, _, err := w.Store.Renew(ctx, control.Renewal{ID: id, Sent: w.Clock.Now(), Incarnation: l.Incarnation, Session: l.Session}); err != nil {
			t.Fatal(err)
		}
	}
	deliverProbes(t, w)
	w.Memory.CatchUp()
	if err := w.Tick(ctx); err != nil {
		t.Fatalf("tick: %v", err)
	}
}

func deliverProbes(t *testing.T, w *controltest.World) {
	t.Helper()
	for _, p := range w.Sent.TakeProbes() {
		probe := &control.Probe{ID: p.ID}
		if err := w.Store.Load(ctx, probe); err != nil || probe.Version == 0 {
			t.Fatalf("probe %s: %v", p.ID, err)
		}
		probe.SeenSent = probe.SentAt
		w.Put(probe)
	}
}

func minutes(t *testing.T, w *controltest.World, n int, heard ...string) {
	t.Helper()
	for range n {
		minute(t, w, heard...)
	}
}

func running(w *controltest.World, instance string, n int, change ...func(*control.Task)) []string {
	var ids []string
	for range n {
		ids = append(ids, w.AddTask(taskdef.Resources{CPU: 10, MemoryMiB: 1}, append(change, func(t *control.Task) { t.Pinned = instance })...).ID)
	}
	w.MustAdmit(ids[:min(len(ids), 10)]...)
	w.Sent.TakeCommands(instance)
	return ids
}

func TestTick_SilenceBecomesSuspectThenLostThenClosed(t *testing.T) {
	w := controltest.NewWorld(t)
	i := w.AddInstance("i", room)
	job := running(w, i, 1)[0]
	before := w.Ledger(i).Epoch
	minutes(t, w, 3, i)
	if s := w.Lease(i).Stage; s != control.StageConnected {
		t.Fatalf("stage %s while heard", s)
	}
	silentSince := w.Clock.Now()
	var suspectAt, lostAt time.Duration
	for range 20 {
		minute(t, w)
		switch w.Lease(i).Stage {
		case control.StageSuspect:
			if suspectAt == 0 {
				suspectAt = w.Clock.Now().Sub(silentSince)
				if w.Ledger(i).Connected || w.Task(job).LastStatus != task.Pending {
					t.Fatal("SUSPECT means no new work and nothing else")
				}
			}
		case control.StageLost:
			if lostAt == 0 {
				lostAt = w.Clock.Now().Sub(silentSince)
			}
		}
	}
	if suspectAt < 3*time.Minute || suspectAt > 5*time.Minute || lostAt < 10*time.Minute || lostAt > 12*time.Minute {
		t.Errorf("SUSPECT after %s, LOST after %s", suspectAt, lostAt)
	}
	got, l := w.Task(job), w.Ledger(i)
	if got.LastStatus != task.Stopped || got.StopCause != task.LostCause || got.Held != nil {
		t.Errorf("task %+v", got)
	}
	if l.Epoch <= before || l.Open != 0 || l.Stale != 0 || l.Held.CPU != 0 || l.Connected {
		t.Errorf("ledger %+v", l)
	}
}

func TestTick_AnInstanceHeardInTimeIsNeverTouched(t *testing.T) {
	w := controltest.NewWorld(t)
	i, j := w.AddInstance("i", room), w.AddInstance("j", room)
	minutes(t, w, 30, i, j)
	for _, id := range []string{i, j} {
		if l := w.Lease(id); l.Stage != control.StageConnected || l.Epoch != w.Ledger(id).Epoch {
			t.Errorf("%+v", l)
		}
	}
}

func TestTick_AStalledQueueAgesNobody(t *testing.T) {
	w := controltest.NewWorld(t)
	i := w.AddInstance("i", room)
	minutes(t, w, 3, i)
	for range 30 { // heartbeats and probes are both stuck
		w.Clock.Move(time.Minute)
		if err := w.Tick(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if s := w.Lease(i).Stage; s != control.StageConnected {
		t.Fatalf("stage %s while our own queue stood still", s)
	}
	// the queue comes back: the probes that waited are delivered before the heartbeat
	deliverProbes(t, w)
	if err := w.Tick(ctx); err != nil {
		t.Fatal(err)
	}
	if s := w.Lease(i).Stage; s == control.StageLost {
		t.Fatal("reaped at once after our own outage")
	}
	minutes(t, w, 2, i)
	if s := w.Lease(i).Stage; s == control.StageLost {
		t.Fatalf("stage %s", s)
	}
}

func TestTick_ALeaseRenewedAfterTheJudgementIsNotReaped(t *testing.T) {
	w := controltest.NewWorld(t)
	i := w.AddInstance("i", room)
	running(w, i, 1)
	minutes(t, w, 9)
	w.Clock.Move(5 * time.Minute)
	deliverProbes(t, w)
	w.Store = renewAfterScan{w.Store, func() {
		l := w.Lease(i)
		if _, _, err := w.Memory.Renew(ctx, control.Renewal{ID: i, Sent: w.Clock.Now(), Incarnation: l.Incarnation, Session: l.Session}); err != nil {
			t.Fatal(err)
		}
	}}
	if err := w.Tick(ctx); err != nil {
		t.Fatal(err)
	}
	if l := w.Lease(i); l.Stage == control.StageLost || w.Ledger(i).Stale != 0 {
		t.Fatalf("reaped over a newer lease: %+v", l)
	}
}

func TestTick_ManyTasksCloseInChunksAndResume(t *testing.T) {
	w := controltest.NewWorld(t)
	i := w.AddInstance("i", control.Held{CPU: 1 << 20, MemoryMiB: 1 << 20})
	ids := running(w, i, 95)
	w.MustAdmit()
	minutes(t, w, 8)
	for at := 1; ; at++ { // killed after one more call each time
		w.Clock.Move(time.Minute)
		deliverProbes(t, w)
		w.Memory.CatchUp()
		w.Memory.Calls.KillAt(at+20, true)
		_ = w.Tick(ctx)
		w.Memory.Calls.Reset()
		if w.Ledger(i).Epoch != w.Ledger(i).SinceEpoch && w.Ledger(i).Stale == 0 {
			break
		}
		if at > 60 {
			t.Fatalf("not closed: %+v", w.Ledger(i))
		}
	}
	for _, id := range ids {
		if w.Task(id).LastStatus != task.Stopped {
			t.Fatalf("task %s is %s", id, w.Task(id).LastStatus)
		}
	}
	if l := w.Ledger(i); l.Open != 0 || l.Held.CPU != 0 {
		t.Fatalf("%+v", l)
	}
}

func TestTick_ManySilentAtOnceAreReapedSlowlyOrNotAtAll(t *testing.T) {
	build := func(t *testing.T) (w *controltest.World, a, b []string) {
		w = controltest.NewWorld(t)
		for n := range 20 {
			zone := []string{"a", "b"}[n%2]
			id := w.AddInstance(fmt.Sprint(n), room, func(in *control.Instance, _ *control.Ledger, l *control.Lease) { in.Zone, l.Zone = zone, zone })
			if zone == "a" {
				a = append(a, id)
			} else {
				b = append(b, id)
			}
		}
		minutes(t, w, 2, append(a, b...)...)
		return w, a, b
	}
	lost := func(w *controltest.World, ids []string) (n int) {
		for _, id := range ids {
			if w.Lease(id).Stage == control.StageLost {
				n++
			}
		}
		return n
	}
	t.Run("one of many is reaped in time", func(t *testing.T) {
		w, a, b := build(t)
		minutes(t, w, 12, append(a[1:], b...)...)
		if lost(w, a) != 1 {
			t.Errorf("%d lost", lost(w, a))
		}
	})
	t.Run("a whole zone goes at the slow rate", func(t *testing.T) {
		w, a, b := build(t)
		minutes(t, w, 31, b...)
		if n := lost(w, a); n < 3 || n > 5 {
			t.Errorf("%d of a silent zone lost after 20 minutes, want one in five minutes", n)
		}
		if lost(w, b) != 0 {
			t.Errorf("instances that were heard are lost")
		}
		if v, _ := w.Counts.Last("BrakeEngaged"); v == 0 {
			t.Error("the brake is not counted as engaged")
		}
	})
	t.Run("all of them: none until the blackout is over", func(t *testing.T) {
		w, a, b := build(t)
		all := append(a, b...)
		minutes(t, w, 60)
		if n := lost(w, all); n != 0 {
			t.Fatalf("%d lost while everything was silent", n)
		}
		if v, _ := w.Counts.Last("GuardBlackout"); v != 1 {
			t.Error("the guard is not counted")
		}
		minutes(t, w, 20)
		if n := lost(w, all); n < 1 || n > 8 {
			t.Errorf("%d lost after the blackout, want the slow rate in each zone", n)
		}
	})
	t.Run("a fleet of one", func(t *testing.T) {
		w := controltest.NewWorld(t)
		i := w.AddInstance("i", room)
		minutes(t, w, 14)
		if lost(w, []string{i}) != 1 {
			t.Error("not reaped")
		}
	})
}

func TestTick_ASuspectIsNotMarkedFromFenced(t *testing.T) {
	w := controltest.NewWorld(t)
	i := w.AddInstance("i", room, func(_ *control.Instance, l *control.Ledger, lease *control.Lease) {
		l.Connected, lease.Stage = false, control.StageFenced
	})
	minutes(t, w, 6)
	if s := w.Lease(i).Stage; s != control.StageFenced {
		t.Fatalf("stage %s", s)
	}
	minutes(t, w, 8)
	if s := w.Lease(i).Stage; s != control.StageLost {
		t.Fatalf("stage %s", s)
	}
}

func TestTick_AnImpairedHostIsReapedThoughItBeats(t *testing.T) {
	w := controltest.NewWorld(t)
	i := w.AddInstance("i", room, func(_ *control.Instance, l *control.Ledger, lease *control.Lease) {
		l.Connected, lease.Impaired, lease.ImpairedWhy = false, w.Clock.Now(), "socket does not answer"
	})
	minutes(t, w, 13, i)
	if l := w.Lease(i); l.Stage != control.StageLost {
		t.Fatalf("%+v", l)
	}
}

func TestCloseOlder_LeavesWhatANewIncarnationsInventoryDecides(t *testing.T) {
	w := controltest.NewWorld(t)
	i := w.AddInstance("i", room)
	job := running(w, i, 1)[0]
	l := w.Ledger(i)
	l.Epoch, l.Stale, l.Cause = l.Epoch+1, 1, control.IncarnationCause
	w.Put(&l)
	if err := w.CloseOlder(ctx, i); err != nil {
		t.Fatal(err)
	}
	if w.Task(job).LastStatus != task.Pending {
		t.Fatal("closed a task that the inventory was to decide on")
	}
}

func TestCloseOlder_CountsAServicesTasksDownOnce(t *testing.T) {
	var i string
	controltest.KillEverywhere(t, func(t *testing.T) *controltest.World {
		w := controltest.NewWorld(t)
		i = w.AddInstance("i", room)
		w.Put(&control.Live{Cluster: "default", Service: "web", Live: 3})
		running(w, i, 3, func(t *control.Task) { t.Service = "web" })
		l, lease := w.Ledger(i), w.Lease(i)
		l.Epoch, l.Stale, l.Cause, l.Connected, lease.Stage = l.Epoch+1, 3, control.ReapedCause, false, control.StageLost
		w.Put(&l, &lease)
		w.Memory.CatchUp()
		return w
	}, func(w *controltest.World) error { return w.CloseOlder(ctx, i) },
		func(t *testing.T, w *controltest.World) {
			live := &control.Live{Cluster: "default", Service: "web"}
			if err := w.Store.Load(ctx, live); err != nil || live.Live != 0 {
				t.Errorf("live %d %v", live.Live, err)
			}
			if l := w.Ledger(i); l.Open != 0 || l.Stale != 0 {
				t.Errorf("%+v", l)
			}
		})
}

func TestIngestHostState_TerminatedClosesAtOnceWithEC2sWords(t *testing.T) {
	w := controltest.NewWorld(t)
	i := w.AddInstance("i", room, func(in *control.Instance, _ *control.Ledger, l *control.Lease) {
		in.EC2InstanceID, l.EC2 = "i-0abc", "i-0abc"
	})
	job := running(w, i, 1)[0]
	old := control.HostState{EC2InstanceID: "i-0abc", State: "terminated", At: w.Lease(i).Sent.Add(-time.Second)}
	w.Memory.CatchUp()
	if err := w.IngestHostState(ctx, old); err != nil || w.Task(job).LastStatus == task.Stopped {
		t.Fatalf("an event older than the lease was believed: %v", err)
	}
	w.Clock.Move(time.Second)
	if err := w.IngestHostState(ctx, control.HostState{EC2InstanceID: "i-0abc", State: "terminated", At: w.Clock.Now()}); err != nil {
		t.Fatal(err)
	}
	if got := w.Task(job); got.LastStatus != task.Stopped || got.StoppedReason != "Host EC2 (instance i-0abc) terminated." {
		t.Fatalf("%s %q", got.LastStatus, got.StoppedReason)
	}
	minute(t, w)
	if w.Ledger(i).Status != control.Inactive {
		t.Errorf("status %s", w.Ledger(i).Status)
	}
}

func TestSweep_MakesUpForWhatWasLost(t *testing.T) {
	w := controltest.NewWorld(t)
	i := w.AddInstance("i", room)
	job := running(w, i, 1)[0] // its assign was taken and lost
	w.AddTask(taskdef.Resources{MemoryMiB: 1000})
	sweep := func() {
		w.Memory.CatchUp()
		if err := w.Sweep(ctx); err != nil {
			t.Fatal(err)
		}
	}
	sweep()
	if n := len(assigned(t, w, i)); n != 0 {
		t.Errorf("%d assigns repeated before their time", n)
	}
	if k := w.Sent.TakeKicks(); len(k) != 1 || len(k[0].Tasks) != 1 {
		t.Errorf("kicks %+v", k)
	}
	w.Clock.Move(15 * time.Second)
	sweep()
	if a := assigned(t, w, i); len(a) != 1 || a[0].Task != job || a[0].Attempt != 1 {
		t.Errorf("assigns %+v", a)
	}
	w.Clock.Move(15 * time.Second) // the interval grows
	sweep()
	if n := len(assigned(t, w, i)); n != 0 {
		t.Errorf("repeated again after 15 s")
	}
	got := w.Task(job)
	got.DesiredStatus, got.StopCause, got.DispatchAt = task.DesiredStopped, task.UserCause, time.Time{}
	w.Put(&got)
	l := w.Ledger(i)
	l.Connected = false
	w.Put(&l) // a stop goes to every instance that is not LOST
	sweep()
	var stops int
	for _, m := range w.Sent.TakeCommands(i) {
		if s, ok := m.(*wire.Stop); ok && s.Task == job {
			stops++
		}
	}
	if stops != 1 {
		t.Errorf("%d stops", stops)
	}
}

func TestSweep_NoAssignToAnotherIncarnationThanTheTaskWasGivenTo(t *testing.T) {
	w := controltest.NewWorld(t)
	i := w.AddInstance("i", room)
	job := w.Task(running(w, i, 1)[0])
	job.Incarnation, job.DispatchAt = "an-older-one", time.Time{}
	w.Put(&job)
	w.Memory.CatchUp()
	if err := w.Sweep(ctx); err != nil || len(assigned(t, w, i)) != 0 {
		t.Fatalf("assigned again: %v", err)
	}
}

func TestSweep_EndsWhatWaitsInADeletedCluster(t *testing.T) {
	w := controltest.NewWorld(t)
	job := w.AddTask(small)
	w.Put(&control.Cluster{Name: "default", Status: "INACTIVE"})
	w.Memory.CatchUp()
	if err := w.Sweep(ctx); err != nil || w.Task(job.ID).LastStatus != task.Stopped {
		t.Fatalf("%v %+v", err, w.Task(job.ID))
	}
}

// renewAfterScan renews a lease right after the reaper has scanned it.
type renewAfterScan struct {
	control.Store
	renew func()
}

func (s renewAfterScan) Leases(c context.Context) (*control.LeaseScan, error) {
	scan, err := s.Store.Leases(c)
	s.renew()
	return scan, err
}

// A run that could not set the brakes must not spend what an earlier minute left:
// another run sets them and reaps too, in the same minute (I9).
func TestTick_AnEarlierMinutesTokenIsGoneForARunThatSetsNone(t *testing.T) {
	w := controltest.NewWorld(t)
	i := w.AddInstance("i", room)
	minutes(t, w, 10)
	due := func() { // as it is between two runs: the token of a minute ago is there, and i is due
		w.Clock.Move(time.Minute)
		for _, p := range w.Sent.TakeProbes() {
			if err := w.IngestProbe(ctx, control.Sender{SentAt: w.Clock.Now()}, &p); err != nil {
				t.Fatal(err)
			}
		}
	}
	due()
	if l := w.Lease(i); l.Stage == control.StageLost {
		t.Fatalf("reaped before it was due: %+v", l)
	}
	b := &control.Brake{Zone: "local-a"}
	if err := w.Store.Load(ctx, b); err != nil || b.Tokens != 1 {
		t.Fatalf("%v: brake %+v", err, b)
	}
	store := w.Store
	w.Store = brakeless{store}
	if err := w.Tick(ctx); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("the brake could not be set: %v", err)
	}
	if l := w.Lease(i); l.Stage == control.StageLost {
		t.Fatalf("reaped with a token of an earlier minute: %+v", l)
	}
	w.Store = store
	due()
	if err := w.Tick(ctx); err != nil {
		t.Fatal(err)
	}
	if l := w.Lease(i); l.Stage != control.StageLost {
		t.Fatalf("not reaped: %+v", l)
	}
}

// brakeless refuses to write a brake alone, as it is set; a token is taken together
// with what it is for.
type brakeless struct{ control.Store }

func (s brakeless) Commit(c context.Context, writes ...control.Write) error {
	if len(writes) == 1 && writes[0].Record.Kind() == control.BrakeKind {
		return fault.New(fault.Unavailable, "no brake is set")
	}
	return s.Store.Commit(c, writes...)
}
