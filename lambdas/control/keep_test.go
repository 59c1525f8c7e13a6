package control_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

func tagged(pairs ...string) func(*control.Task) {
	return func(t *control.Task) {
		t.Tags = map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			t.Tags["longshore:"+pairs[i]] = pairs[i+1]
		}
	}
}

var kept, confirmed = tagged("onDisconnect", "keep"), tagged("replaceAfter", "confirmed")

// tagCluster sets tags of the default cluster.
func tagCluster(t *testing.T, w *controltest.World, pairs ...string) {
	t.Helper()
	tags := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		tags["longshore:"+pairs[i]] = pairs[i+1]
	}
	if err := w.TagResource(ctx, control.Resource{Kind: control.ClusterResource, Name: "default"}, tags); err != nil {
		t.Fatal(err)
	}
}

// mustBeKept holds a task of a LOST instance to what keeping it means.
func mustBeKept(t *testing.T, w *controltest.World, id string) {
	t.Helper()
	got := w.Task(id)
	l := w.Ledger(got.Instance)
	if !got.LastStatus.Open() || got.Kept.IsZero() || got.Held == nil || got.Epoch != l.Epoch || l.Stale != 0 || l.Open == 0 {
		t.Fatalf("task is not kept: %+v\nledger %+v", got, l)
	}
}

// echoes is the beat with the instance's raised epoch, after the fence that told it.
func (e *edge) echoes(inventory ...wire.Entry) *wire.Fence {
	e.t.Helper()
	e.beats(inventory...)
	fences := inbox[*wire.Fence](e)
	if len(fences) == 0 {
		e.t.Fatal("an old epoch was not answered by a fence")
	}
	last := fences[len(fences)-1]
	e.epoch = last.Epoch
	e.beats(inventory...)
	return last
}

func TestKeep_AKeptTaskIsOpenAndHeldUntilItsInstanceEchoesWithIt(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	id, gone := e.running(kept), e.running()
	list, other := e.lists(id, 1, wire.PhaseRunning), e.lists(gone, 1, wire.PhaseRunning)
	started := w.Task(id).StartedAt
	e.lost()
	mustBeKept(t, w, id)
	if got := w.Task(gone); got.LastStatus != task.Stopped || got.StopCause != task.LostCause {
		t.Fatalf("a task that is to be replaced: %+v", got)
	}
	found, _, err := w.DescribeTasks(ctx, "default", []string{id})
	if err != nil || found[0].Connected || !found[0].KeptUntil.Equal(found[0].Kept.Add(24*time.Hour)) || found[0].KeptConfirmed {
		t.Fatalf("shown as %+v, %v", found, err)
	}
	hosts, _, err := w.DescribeContainerInstances(ctx, "default", []string{e.id})
	if why := hosts[0].StatusReason(); err != nil || !strings.Contains(why, "1 tasks are kept for its return") {
		t.Fatalf("instance says %q, %v", why, err)
	}
	w.Clock.Move(2 * time.Hour)
	fence := e.echoes(list, other)
	if len(fence.Closed) != 1 || fence.Closed[0].Task != gone {
		t.Fatalf("the fence closes %+v", fence.Closed)
	}
	if got := w.Task(id); !got.Kept.IsZero() {
		t.Fatalf("the echoing inventory did not clear the mark: %+v", got)
	}
	e.reports(gone, 1, task.Stopped)
	e.beats(list)
	if l := w.Ledger(e.id); !l.Connected || l.Open != 1 {
		t.Fatalf("ledger %+v lease %+v", l, w.Lease(e.id))
	}
	if got := w.Task(id); got.LastStatus != task.Running || !got.StartedAt.Equal(started) || got.Attempt != 1 {
		t.Fatalf("it did not just go on: %+v", got)
	}
	for s := range said(e) {
		if strings.Contains(s, "assign") || strings.Contains(s, "stop "+id) {
			t.Errorf("its agent was told %s", s)
		}
	}
	e.reports(id, 1, task.Stopped)
	if l := w.Ledger(e.id); l.Open != 0 || l.Held.CPU != 0 {
		t.Errorf("ledger %+v", l)
	}
}

func TestKeep_ATasksTagWinsOverItsServicesAndThatOverItsClusters(t *testing.T) {
	for name, c := range map[string]struct {
		cluster, service string
		task             func(*control.Task)
		keeps            bool
	}{
		"nobody says":                  {"", "", func(*control.Task) {}, false},
		"the cluster":                  {"keep", "", func(*control.Task) {}, true},
		"the task":                     {"", "", kept, true},
		"the task, not the cluster":    {"keep", "", tagged("onDisconnect", "replace"), false},
		"the service":                  {"", "keep", func(*control.Task) {}, true},
		"the service, not the cluster": {"keep", "replace", func(*control.Task) {}, false},
		"the task, not the service":    {"replace", "replace", kept, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := controltest.NewWorld(t)
			e := host(t, w, "i")
			if c.cluster != "" {
				tagCluster(t, w, "onDisconnect", c.cluster)
			}
			w.Put(&control.Service{Cluster: "default", Name: "web", Status: control.ServiceActive, Tags: map[string]string{"longshore:onDisconnect": c.service}})
			w.Put(&control.Live{Cluster: "default", Service: "web", Live: 1})
			id := e.running(func(t *control.Task) { t.Service = "web"; c.task(t) })
			e.lost()
			if got := w.Task(id); got.LastStatus.Open() != c.keeps {
				t.Errorf("it is %s", got.LastStatus)
			}
		})
	}
}

func TestKeep_ItEndsWhenItsTimeIsOverAndNotBefore(t *testing.T) {
	for name, c := range map[string]struct {
		tag     func(*control.Task)
		cluster []string
		after   time.Duration
	}{
		"the setting":           {kept, nil, 24 * time.Hour},
		"the cluster's time":    {kept, []string{"keepFor", "3h"}, 3 * time.Hour},
		"the task's own time":   {tagged("onDisconnect", "keep", "keepFor", "30m"), []string{"keepFor", "3h"}, 30 * time.Minute},
		"all from the cluster":  {func(*control.Task) {}, []string{"keepFor", "1h", "onDisconnect", "keep"}, time.Hour},
		"as long as it may be":  {tagged("onDisconnect", "keep", "keepFor", "720h"), nil, 720 * time.Hour},
		"as short as it may be": {tagged("onDisconnect", "keep", "keepFor", "1m"), nil, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			w := controltest.NewWorld(t)
			e := host(t, w, "i")
			if c.cluster != nil {
				tagCluster(t, w, c.cluster...)
			}
			id := e.running(c.tag)
			for w.Task(id).Kept.IsZero() {
				minute(t, w)
			}
			mustBeKept(t, w, id)
			until := w.Task(id).Kept.Add(c.after)
			w.Clock.Move(until.Sub(w.Clock.Now()) - time.Second)
			ticks(t, w, 2)
			mustBeKept(t, w, id)
			w.Clock.Move(time.Second)
			ticks(t, w, 1)
			got, l := w.Task(id), w.Ledger(e.id)
			if got.LastStatus != task.Stopped || got.StopCause != task.KeptOutCause || got.StoppedReason != task.EndOf(task.KeptOutCause).Reason || l.Open != 0 || l.Held.CPU != 0 {
				t.Fatalf("task %+v\nledger %+v", got, l)
			}
		})
	}
}

func TestKeep_TagsThatChangeWhenItEndsAreObeyedSoon(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	shorter, replaced, longer := e.running(kept), e.running(kept), e.running(tagged("onDisconnect", "keep", "keepFor", "30m"))
	e.lost()
	tag := func(id string, pairs ...string) {
		t.Helper()
		if err := w.TagResource(ctx, taskResource(id), map[string]string{"longshore:" + pairs[0]: pairs[1]}); err != nil {
			t.Fatal(err)
		}
	}
	tag(shorter, "keepFor", "1m")
	tag(replaced, "onDisconnect", "replace")
	tag(longer, "keepFor", "48h")
	for range 16 { // every quarter of an hour they are looked at
		w.Clock.Move(time.Minute)
		ticks(t, w, 1)
	}
	if got := w.Task(shorter); got.StopCause != task.KeptOutCause {
		t.Errorf("kept for too long: %+v", got)
	}
	if got := w.Task(replaced); got.StopCause != task.LostCause {
		t.Errorf("to be replaced, and kept: %+v", got)
	}
	w.Clock.Move(40 * time.Hour)
	ticks(t, w, 1)
	mustBeKept(t, w, longer)
}

func TestKeep_WhatIsKeptCostsFewCalls(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	e.running(confirmed)
	e.lost()
	w.Memory.Calls.Reset()
	for range 30 {
		w.Clock.Move(time.Minute)
		ticks(t, w, 1)
	}
	_, names := w.Memory.Calls.Made()
	looks := 0
	for _, name := range names {
		if name == "TaskIDs" {
			looks++
		}
	}
	if per := float64(looks-3*30) / 30; per > 0.1 { // three are the sweep's
		t.Errorf("%d queries in 30 runs: %.1f a minute look for kept tasks", looks, per)
	}
}

func TestKeep_LostAgainBeforeItEchoedItIsKeptSinceTheFirstTime(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	id := e.running(kept)
	list := e.lists(id, 1, wire.PhaseRunning)
	e.lost()
	first, epoch := w.Task(id).Kept, w.Ledger(e.id).Epoch
	w.Clock.Move(time.Hour)
	e.beats(list) // it is heard, and falls silent before it has echoed
	e.lost()
	mustBeKept(t, w, id)
	if got := w.Task(id); !got.Kept.Equal(first) || w.Ledger(e.id).Epoch <= epoch {
		t.Fatalf("kept since %s, first %s", got.Kept, first)
	}
	w.Clock.Move(24*time.Hour - w.Clock.Now().Sub(first))
	ticks(t, w, 1)
	if got := w.Task(id); got.StopCause != task.KeptOutCause {
		t.Errorf("a host that is heard now and then keeps its tasks for ever: %+v", got)
	}
}

func TestKeep_NothingEndsByTimeOnAnInstanceThatIsBack(t *testing.T) {
	for name, back := range map[string]func(e *edge, list wire.Entry){
		"fenced":          func(e *edge, list wire.Entry) { e.beats(list) },
		"it is all clean": func(e *edge, list wire.Entry) { e.echoes(list) },
		"registered":      func(e *edge, _ wire.Entry) { e.registers() },
	} {
		t.Run(name, func(t *testing.T) {
			w := controltest.NewWorld(t)
			e := host(t, w, "i")
			id := e.running(kept)
			list := e.lists(id, 1, wire.PhaseRunning)
			e.lost()
			w.Clock.Move(25 * time.Hour)
			back(e, list)
			w.Memory.CatchUp()
			if err := w.EndKept(ctx, e.id); err != nil {
				t.Fatal(err)
			}
			if got := w.Task(id); got.LastStatus != task.Running {
				t.Errorf("it was ended though its instance is %s: %+v", w.Lease(e.id).Stage, got)
			}
		})
	}
}

func TestKeep_AnInstanceThatReturnsMeanwhileKeepsItsTasks(t *testing.T) {
	for _, call := range []struct {
		name string
		nth  int
	}{{"Load", 1}, {"Load", 2}, {"Commit", 1}} {
		w := controltest.NewWorld(t)
		e := host(t, w, "i")
		id := e.running(kept)
		list := e.lists(id, 1, wire.PhaseRunning)
		e.lost()
		w.Clock.Move(25 * time.Hour)
		w.Memory.CatchUp()
		real := w.Store
		e.meanwhile(call.name, call.nth, func() {
			w.Store = real
			e.echoes(list)
		})
		if err := w.EndKept(ctx, e.id); err != nil {
			t.Fatal(err)
		}
		if got := w.Task(id); got.LastStatus != task.Running || !got.Kept.IsZero() || !w.Ledger(e.id).Connected {
			t.Errorf("back before %s %d: %+v", call.name, call.nth, got)
		}
	}
}

func TestKeep_StopTaskWaitsForTheReturnOrTheEndOfTheTimeOrAnOperator(t *testing.T) {
	for name, c := range map[string]struct {
		ends  func(e *edge, id string)
		cause task.Cause
	}{
		"its return": {func(e *edge, id string) {
			list := e.lists(id, 1, wire.PhaseRunning)
			list.Epoch--
			e.echoes(list)
			e.w.Clock.Move(11 * time.Minute)
			deliverProbes(e.t, e.w)
			ticks(e.t, e.w, 1)
			if !slices.ContainsFunc(inbox[*wire.Stop](e), func(s *wire.Stop) bool { return s.Task == id }) {
				e.t.Fatal("it was not told to stop it")
			}
			e.reports(id, 1, task.Stopped)
		}, task.UserCause},
		"the end of its time": {func(e *edge, _ string) {
			e.w.Clock.Move(24 * time.Hour)
			ticks(e.t, e.w, 1)
		}, task.KeptOutCause},
		"an operator's word": {func(e *edge, _ string) {
			if _, err := e.w.FenceContainerInstance(ctx, "default", e.id); err != nil {
				e.t.Fatal(err)
			}
		}, task.ConfirmedOff},
	} {
		t.Run(name, func(t *testing.T) {
			w := controltest.NewWorld(t)
			e := host(t, w, "i")
			id := e.running(kept)
			e.lost()
			v, err := w.StopTask(ctx, "default", id, "enough")
			if err != nil || v.LastStatus != task.Running || v.DesiredStatus != task.DesiredStopped {
				t.Fatalf("%+v, %v", v, err)
			}
			ticks(t, w, 2)
			mustBeKept(t, w, id)
			c.ends(e, id)
			if got := w.Task(id); got.LastStatus != task.Stopped || got.StopCause != c.cause || w.Ledger(e.id).Open != 0 {
				t.Errorf("task %+v", got)
			}
		})
	}
}

// A confirmed end of the host closes all, whatever the policy, and also what was
// kept into the instance's own epoch.
func TestKeep_AConfirmedEndOfTheHostClosesAllOfIt(t *testing.T) {
	ends := map[string]struct {
		say   func(e *edge) error
		cause task.Cause
	}{
		"terminated": {func(e *edge) error {
			return e.w.IngestHostState(ctx, control.HostState{EC2InstanceID: "i-0abc", State: "terminated", At: e.w.Clock.Now()})
		}, task.HostGoneCause},
		"confirmed off": {func(e *edge) error { _, err := e.w.FenceContainerInstance(ctx, "default", e.id); return err }, task.ConfirmedOff},
		"deregistered":  {func(e *edge) error { _, err := e.w.DeregisterContainerInstance(ctx, "default", e.id, true); return err }, task.ForcedDrainCause},
	}
	for name, end := range ends {
		for when, lost := range map[string]func(e *edge){"at once": func(*edge) {}, "while they are kept": func(e *edge) { e.lost() }} {
			t.Run(name+" "+when, func(t *testing.T) {
				w := controltest.NewWorld(t)
				e := host(t, w, "i")
				lease := w.Lease(e.id)
				lease.EC2 = "i-0abc"
				w.Put(&lease)
				ids := []string{e.running(kept), e.running(confirmed), e.running()}
				lost(e)
				w.Clock.Move(time.Minute)
				w.Memory.CatchUp()
				if err := end.say(e); err != nil {
					t.Fatal(err)
				}
				for _, id := range ids[:2] {
					if got := w.Task(id); got.LastStatus != task.Stopped || got.StopCause != end.cause {
						t.Errorf("task %+v", got)
					}
				}
				if l := w.Ledger(e.id); l.Open != 0 || l.Stale != 0 || l.Held.CPU != 0 {
					t.Errorf("ledger %+v", l)
				}
			})
		}
	}
}

// A host that EC2 says is stopped may be started again with all that it has.
func TestKeep_AStoppedHostKeepsItsTasks(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	lease := w.Lease(e.id)
	lease.EC2 = "i-0abc"
	w.Put(&lease)
	id := e.running(kept)
	w.Clock.Move(time.Second)
	w.Memory.CatchUp()
	if err := w.IngestHostState(ctx, control.HostState{EC2InstanceID: "i-0abc", State: "stopped", At: w.Clock.Now()}); err != nil {
		t.Fatal(err)
	}
	mustBeKept(t, w, id)
}

func TestKeep_ATaskThatNeverGotThereIsAssignedOnReturnOnce(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	id := e.given(kept)
	e.lost()
	mustBeKept(t, w, id)
	e.echoes()
	assigns := inbox[*wire.Assign](e)
	if len(assigns) != 1 || assigns[0].Task != id || assigns[0].Epoch != w.Ledger(e.id).Epoch {
		t.Fatalf("assigned %+v", assigns)
	}
	if got := w.Task(id); !got.Kept.IsZero() || got.LastStatus != task.Pending {
		t.Errorf("task %+v", got)
	}
	e.reports(id, 1, task.Running)
	if got := w.Task(id); got.LastStatus != task.Running {
		t.Errorf("task %+v", got)
	}
}

func TestKeep_ATaskThatEndedWhileItWasAwayKeepsItsExitCode(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	id := e.running(kept)
	ended := e.lists(id, 1, wire.PhaseEnded)
	e.lost()
	e.reports(id, 1, task.Stopped) // under the old epoch, before any beat
	got := w.Task(id)
	if got.LastStatus != task.Stopped || got.StopCause != task.ExitedCause || *got.Containers[0].ExitCode != 7 || w.Ledger(e.id).Stale != 0 || w.Ledger(e.id).Open != 0 {
		t.Fatalf("task %+v ledger %+v", got, w.Ledger(e.id))
	}
	e.echoes(ended)
	if !w.Ledger(e.id).Connected {
		t.Errorf("lease %+v", w.Lease(e.id))
	}
}

func TestKeep_AnExitCodeThatComesAfterItsTimeIsFilledIn(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	id := e.running(kept)
	e.lost()
	w.Clock.Move(24 * time.Hour)
	ticks(t, w, 1)
	e.reports(id, 1, task.Stopped)
	got := w.Task(id)
	if got.StopCause != task.KeptOutCause || len(got.Containers) != 1 || got.Containers[0].ExitCode == nil || *got.Containers[0].ExitCode != 7 {
		t.Errorf("task %+v", got)
	}
	if len(inbox[*wire.Ack](e)) != 1 {
		t.Error("its end is not acknowledged")
	}
}

func TestKeep_ChunksResumeWhereverTheyAreKilled(t *testing.T) {
	const tasks = 45 // more than one transaction holds
	var i string
	lose := func(w *controltest.World) {
		l, lease := w.Ledger(i), w.Lease(i)
		l.Epoch, l.Stale, l.Cause, l.Connected = l.Epoch+1, l.Open, control.ReapedCause, false
		lease.Epoch, lease.Stage, lease.StageSince = l.Epoch, control.StageLost, w.Clock.Now()
		w.Put(&l, &lease)
		w.Memory.CatchUp()
	}
	build := func(t *testing.T) *controltest.World {
		w := controltest.NewWorld(t)
		i = w.AddInstance("i", control.Held{CPU: tasks, MemoryMiB: tasks}, func(_ *control.Instance, l *control.Ledger, _ *control.Lease) {
			l.Held, l.Open = control.Held{CPU: tasks, MemoryMiB: tasks}, tasks
		})
		w.Put(&control.Live{Cluster: "default", Service: "web", Live: tasks})
		for n := range tasks {
			w.AddTask(small, func(t *control.Task) {
				t.Service, t.LastStatus, t.Instance, t.Epoch, t.Held = "web", task.Running, i, w.Ledger(i).Epoch, &control.Held{CPU: 1, MemoryMiB: 1}
				if n%2 == 0 {
					kept(t)
				}
			})
		}
		lose(w)
		return w
	}
	split := func(t *testing.T, w *controltest.World, cause task.Cause, held int) {
		t.Helper()
		l, closed := w.Ledger(i), 0
		for _, got := range w.Memory.Tasks() {
			if closed += map[bool]int{true: 1}[got.StopCause == cause]; got.LastStatus.Open() == got.Kept.IsZero() {
				t.Errorf("task %+v", got)
			}
		}
		live := &control.Live{Cluster: "default", Service: "web"}
		if err := w.Store.Load(ctx, live); err != nil || live.Live != held || l.Open != held || l.Stale != 0 || closed == 0 {
			t.Errorf("live %d, %v, %d closed; ledger %+v", live.Live, err, closed, l)
		}
	}
	t.Run("closing", func(t *testing.T) {
		controltest.KillEverywhere(t, build, func(w *controltest.World) error {
			w.Memory.CatchUp()
			return w.CloseOlder(ctx, i)
		}, func(t *testing.T, w *controltest.World) { split(t, w, task.LostCause, (tasks+1)/2) })
	})
	t.Run("the end of their time", func(t *testing.T) {
		controltest.KillEverywhere(t, func(t *testing.T) *controltest.World {
			w := build(t)
			tagCluster(t, w, "onDisconnect", "keep")
			if err := w.CloseOlder(ctx, i); err != nil || w.Ledger(i).Open != tasks {
				t.Fatalf("%v, ledger %+v", err, w.Ledger(i))
			}
			w.Clock.Move(24 * time.Hour)
			w.Memory.CatchUp()
			return w
		}, func(w *controltest.World) error {
			w.Memory.CatchUp()
			return w.EndKept(ctx, i)
		}, func(t *testing.T, w *controltest.World) { split(t, w, task.KeptOutCause, 0) })
	})
}

func TestKeep_TwoRunsThatOverlapEndEachTaskOnce(t *testing.T) {
	for _, call := range []string{"TaskIDs", "Load", "Commit"} {
		for nth := 1; nth <= 6; nth++ {
			w := controltest.NewWorld(t)
			e := bigHost(t, w)
			_, live := e.service(3)
			tagCluster(t, w, "onDisconnect", "keep")
			e.raised(control.ReapedCause)
			w.Memory.CatchUp()
			if err := w.CloseOlder(ctx, e.id); err != nil {
				t.Fatal(err)
			}
			w.Clock.Move(24 * time.Hour)
			real := w.Store
			e.meanwhile(call, nth, func() {
				w.Store = real
				if err := w.EndKept(ctx, e.id); err != nil {
					t.Error(err)
				}
			})
			if err := w.EndKept(ctx, e.id); err != nil {
				t.Fatal(err)
			}
			if err := w.Store.Load(ctx, live); err != nil || live.Live != 0 || w.Ledger(e.id).Open != 0 {
				t.Errorf("%s %d: live %d ledger %+v", call, nth, live.Live, w.Ledger(e.id))
			}
		}
	}
}

// Beating with a broken engine is no return: the instance stays LOST, so the mark has
// to stand for the task's time to end it, and nothing is assigned there.
func TestKeep_AHostThatBeatsWithABrokenEngineHasNotReturned(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	id, untaken := e.running(kept), e.given(kept)
	list := e.lists(id, 1, wire.PhaseRunning)
	e.lost()
	w.Clock.Move(time.Hour)
	e.docker = wire.DockerImpaired
	e.echoes(list)
	e.beats(list)
	if s := w.Lease(e.id).Stage; s != control.StageLost {
		t.Fatalf("stage %s", s)
	}
	mustBeKept(t, w, id)
	mustBeKept(t, w, untaken)
	if assigns := inbox[*wire.Assign](e); len(assigns) != 0 {
		t.Errorf("assigned to a broken engine: %+v", assigns)
	}
	e.docker = wire.DockerOK
	e.beats(list) // it works again
	e.beats(list)
	if got := w.Task(id); !got.Kept.IsZero() || !w.Ledger(e.id).Connected {
		t.Fatalf("task %+v lease %+v", got, w.Lease(e.id))
	}
	if assigns := inbox[*wire.Assign](e); len(assigns) != 1 || assigns[0].Task != untaken {
		t.Errorf("assigned %+v", assigns)
	}
}

func TestKeep_AHostWhoseEngineStaysBrokenLosesItsTasksWhenTheirTimeIsOver(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	id := e.running(kept)
	list := e.lists(id, 1, wire.PhaseRunning)
	e.docker = wire.DockerImpaired
	for w.Lease(e.id).Stage != control.StageLost { // it beats all the time
		w.Clock.Move(time.Minute)
		e.heard(e.beat(list))
		deliverProbes(t, w)
		ticks(t, w, 1)
	}
	mustBeKept(t, w, id)
	e.echoes(list)
	w.Clock.Move(24 * time.Hour)
	e.heard(e.beat(list))
	ticks(t, w, 1)
	if got := w.Task(id); got.StopCause != task.KeptOutCause || w.Ledger(e.id).Open != 0 {
		t.Fatalf("task %+v", got)
	}
	w.Sent.TakeCommands(e.id)
	e.docker = wire.DockerOK
	e.beats(list)
	e.beats(list)
	if stops := inbox[*wire.Stop](e); len(stops) == 0 || stops[0].Task != id {
		t.Errorf("it returns with what was closed, and is told %+v", stops)
	}
}
