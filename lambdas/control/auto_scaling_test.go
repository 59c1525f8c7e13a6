package control_test

import (
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

// grouped gives a world an Auto Scaling group, "web-1", that has i-0abc.
func grouped(w *controltest.World) *controltest.Groups {
	g := controltest.NewGroups(w.Memory.Calls, "i-0abc")
	w.Groups = g
	w.Setting.AutoScalingGroups, w.Setting.SetInstanceHealth = []string{"batch", "web-*"}, true
	return g
}

func TestGroups_InMemoryPassTheSuite(t *testing.T) {
	controltest.GroupsSuite(t, "i-member", func(*testing.T) (control.Groups, func(control.Hook)) {
		g := controltest.NewGroups(&controltest.Calls{}, "i-member")
		return g, g.Hold
	})
}

// termination is one that begins as long after all others as its token says.
func termination(token string) control.Hook {
	n := time.Duration(token[1]-'0') * time.Minute
	return control.Hook{Group: "web-1", Name: "longshore", Token: token, EC2: "i-0abc", At: time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC).Add(n)}
}

func TestTellGroups_AHostIsToldUnhealthyOnceItsInstanceIsLostAndClosed(t *testing.T) {
	w := controltest.NewWorld(t)
	e, g := onHost(t, w), grouped(w)
	job := e.running()
	w.Memory.CatchUp()
	for w.Lease(e.id).Stage != control.StageLost {
		if len(g.Unhealthy()) > 0 {
			t.Fatalf("told while it is %s", w.Lease(e.id).Stage)
		}
		minute(t, w)
	}
	minutes(t, w, 3)
	if got := g.Unhealthy(); len(got) != 1 || got[0] != "i-0abc" || w.Task(job).LastStatus != task.Stopped {
		t.Fatalf("told %v", got)
	}
	if n, counted := w.Counts.Last("AutoScalingFaults"); counted {
		t.Errorf("%v faults", n)
	}
}

func TestTellGroups_NobodyIsToldWhere(t *testing.T) {
	for name, change := range map[string]func(w *controltest.World, e *edge){
		"it is switched off":    func(w *controltest.World, _ *edge) { w.Setting.SetInstanceHealth = false },
		"it is no EC2 instance": func(w *controltest.World, e *edge) { l := w.Lease(e.id); l.EC2 = ""; w.Put(&l) },
		"the zone is braked": func(w *controltest.World, _ *edge) {
			w.AddInstance("beside", room) // else the brake is forgotten
			w.Put(&control.Brake{Zone: "local-a", Engaged: true, SetAt: w.Clock.Now()})
		},
		"it is in no group":    func(w *controltest.World, _ *edge) { w.Groups = controltest.NewGroups(w.Memory.Calls) },
		"a task is kept there": func(w *controltest.World, e *edge) { keptOn(w, e) },
		"a task is still open": func(w *controltest.World, e *edge) { hidden(w, e) },
		"EC2 says it is gone":  func(w *controltest.World, e *edge) { l := w.Ledger(e.id); l.EndCause = task.HostGoneCause; w.Put(&l) },
		"it is deregistered":   func(w *controltest.World, e *edge) { l := w.Ledger(e.id); l.Status = control.Inactive; w.Put(&l) },
		"it is back": func(w *controltest.World, e *edge) {
			l := w.Lease(e.id)
			l.Stage, l.Sent = control.StageFenced, w.Clock.Now()
			w.Put(&l)
		},
		"nothing may be reaped":   func(w *controltest.World, _ *edge) { w.Queue = unmeasured{w.Queue} },
		"it was told in its life": func(w *controltest.World, e *edge) { l := w.Lease(e.id); l.GroupTold = l.Epoch; w.Put(&l) },
	} {
		w := controltest.NewWorld(t)
		e, g := onHost(t, w), grouped(w)
		w.Groups = nil
		minutes(t, w, 12)
		if w.Lease(e.id).Stage != control.StageLost {
			t.Fatalf("%+v", w.Lease(e.id))
		}
		w.Groups = g
		change(w, e)
		w.Clock.Move(time.Second)
		deliverProbes(t, w)
		_ = w.Tick(ctx) // where the queue can not be measured it says so
		if got := g.Unhealthy(); len(got) != 0 {
			t.Errorf("%s: told %v", name, got)
		}
	}
}

// keptOn leaves a task open on a LOST instance, in its epoch.
func keptOn(w *controltest.World, e *edge) {
	l := w.Ledger(e.id)
	held := control.Held{CPU: 1}
	w.Memory.OnCommit = nil
	w.AddTask(small, func(t *control.Task) {
		kept(t)
		t.LastStatus, t.Instance, t.Epoch, t.Held, t.Kept, t.Shown = task.Running, e.id, l.Epoch, &held, w.Clock.Now(), true
	})
	l.Open, l.Held = l.Open+1, held
	w.Put(&l)
}

// hidden leaves a task of an older epoch open there that the index does not show.
func hidden(w *controltest.World, e *edge) {
	l := w.Ledger(e.id)
	w.Memory.OnCommit = nil
	l.Open, l.Stale = 1, 1
	w.Put(&l)
}

// A singleton has to have ended before another begins: its host's end is what says so.
func TestTellGroups_TheEndOfTheHostEndsWhatWaitsForIt(t *testing.T) {
	for name, c := range map[string]struct {
		tags map[string]string
		told int
	}{
		"kept until its end is confirmed": {map[string]string{"longshore:replaceAfter": "confirmed"}, 1},
		"kept because its owner wants it": {map[string]string{"longshore:onDisconnect": "keep"}, 0},
		"kept for both":                   {map[string]string{"longshore:replaceAfter": "confirmed", "longshore:onDisconnect": "keep"}, 0},
		"one of each":                     {nil, 0},
	} {
		w := controltest.NewWorld(t)
		e, g := onHost(t, w), grouped(w)
		tagged := func(tags map[string]string) string { return e.running(func(k *control.Task) { k.Tags = tags }) }
		var job string
		if c.tags != nil {
			job = tagged(c.tags)
		} else {
			job = tagged(map[string]string{"longshore:replaceAfter": "confirmed"})
			tagged(map[string]string{"longshore:onDisconnect": "keep"})
		}
		minutes(t, w, 20)
		if got := g.Unhealthy(); len(got) != c.told || w.Task(job).LastStatus != task.Running {
			t.Errorf("%s: told %v, %+v", name, got, w.Task(job))
		}
		says(t, w, "terminated")
		if got := w.Task(job); got.LastStatus != task.Stopped || got.StoppedReason != "Host EC2 (instance i-0abc) terminated." {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestTellGroups_ACallThatFailsIsMadeAgainAndFailsNoRun(t *testing.T) {
	w := controltest.NewWorld(t)
	e, g := onHost(t, w), grouped(w)
	g.Down(true)
	minutes(t, w, 14)
	if w.Lease(e.id).Stage != control.StageLost || len(g.Unhealthy()) != 0 {
		t.Fatalf("%+v, told %v", w.Lease(e.id), g.Unhealthy())
	}
	if n, _ := w.Counts.Last("AutoScalingFaults"); n == 0 {
		t.Error("nobody is told of it")
	}
	g.Down(false)
	minutes(t, w, 2)
	if got := g.Unhealthy(); len(got) != 1 {
		t.Errorf("told %v", got)
	}
}

func TestTellGroups_KilledAnywhereItIsTold(t *testing.T) {
	var g *controltest.Groups
	var id string
	controltest.KillEverywhere(t, func(t *testing.T) *controltest.World {
		w := controltest.NewWorld(t)
		id = onHost(t, w).id
		minutes(t, w, 10)
		g = grouped(w)
		w.Clock.Move(time.Minute)
		deliverProbes(t, w)
		return w
	}, func(w *controltest.World) error { return w.Tick(ctx) }, func(t *testing.T, w *controltest.World) {
		minutes(t, w, 4) // a killed run keeps the guard for two
		if got := g.Unhealthy(); len(got) == 0 || len(got) > 2 || w.Lease(id).GroupTold != w.Lease(id).Epoch {
			t.Errorf("told %v, %+v", got, w.Lease(id))
		}
	})
}

func TestTellGroups_OneThatWasLostTwiceIsToldTwice(t *testing.T) {
	w := controltest.NewWorld(t)
	e, g := onHost(t, w), grouped(w)
	minutes(t, w, 12)
	w.Clock.Move(time.Second)
	r := e.register()
	r.EC2InstanceID = "i-0abc"
	if err := w.IngestRegister(ctx, e.sender(), r); err != nil {
		t.Fatal(err)
	}
	e.welcomed()
	e.beats()
	minutes(t, w, 14)
	if got := g.Unhealthy(); len(got) != 2 {
		t.Errorf("told %v", got)
	}
}

func TestTermination_IsAnsweredWhenTheInstanceIsDrained(t *testing.T) {
	w := controltest.NewWorld(t)
	e, g := onHost(t, w), grouped(w)
	job := e.running()
	g.Hold(termination("t1"))
	for range 2 { // the event may come twice
		if err := w.IngestTermination(ctx, termination("t1")); err != nil {
			t.Fatal(err)
		}
	}
	if l := w.Ledger(e.id); l.Status != control.Draining || !w.Lease(e.id).Draining {
		t.Fatalf("%+v", l)
	}
	minutes(t, w, 5, e.id)
	if len(g.Continued()) != 0 || g.Extended() < 5 {
		t.Fatalf("answered %v, extended %d times, while a task runs", g.Continued(), g.Extended())
	}
	e.reports(job, 1, task.Stopped)
	minutes(t, w, 2, e.id)
	if got := g.Continued(); len(got) != 1 || got[0] != "t1" {
		t.Fatalf("answered %v", got)
	}
	if e.status() != control.Draining {
		t.Errorf("it takes work while it is terminated: %s", e.status())
	}
	if err := w.IngestTermination(ctx, termination("t1")); err != nil || len(g.Continued()) != 1 {
		t.Errorf("the event of before: %v, answered %v", err, g.Continued())
	}
	minutes(t, w, 11, e.id) // it was not terminated: a warm pool has it
	if l := w.Ledger(e.id); l.Status != control.Active || l.Leaving != nil || w.Lease(e.id).Draining {
		t.Errorf("%+v", l)
	}
}

func TestTermination_AnEarlierOneThatComesLateDoesNotTakeItsPlace(t *testing.T) {
	w := controltest.NewWorld(t)
	e, g := onHost(t, w), grouped(w)
	job := e.running()
	g.Hold(termination("t2")) // its first went into a warm pool, long ago
	for _, token := range []string{"t2", "t1"} {
		if err := w.IngestTermination(ctx, termination(token)); err != nil {
			t.Fatal(err)
		}
	}
	minutes(t, w, 1, e.id)
	e.reports(job, 1, task.Stopped)
	minutes(t, w, 1, e.id)
	if got := g.Continued(); len(got) != 1 || got[0] != "t2" {
		t.Errorf("answered %v", got)
	}
}

func TestTermination_OfAHostWithNothingOfOursIsAnsweredAtOnce(t *testing.T) {
	for _, known := range []bool{false, true} {
		w := controltest.NewWorld(t)
		if known {
			onHost(t, w)
		}
		g := grouped(w)
		g.Hold(termination("t1"))
		if err := w.IngestTermination(ctx, termination("t1")); err != nil || len(g.Continued()) != 1 {
			t.Errorf("registered %v: %v, answered %v", known, err, g.Continued())
		}
		g.Down(true)
		g.Hold(termination("t2"))
		err := w.IngestTermination(ctx, termination("t2"))
		if known && err != nil || !known && !fault.Is(err, fault.Unavailable) { // an event that failed is delivered again
			t.Errorf("registered %v: %v", known, err)
		}
	}
}

func TestTermination_OfOthersIsLeftToThem(t *testing.T) {
	for name, change := range map[string]func(h *control.Hook, w *controltest.World){
		"another hook":  func(h *control.Hook, _ *controltest.World) { h.Name = "ship-logs" },
		"another group": func(h *control.Hook, _ *controltest.World) { h.Group = "data" },
		"none is ours":  func(_ *control.Hook, w *controltest.World) { w.Setting.AutoScalingGroups = nil },
		"switched off":  func(_ *control.Hook, w *controltest.World) { w.Groups = nil },
	} {
		w := controltest.NewWorld(t)
		e, g := onHost(t, w), grouped(w)
		h := termination("t1")
		change(&h, w)
		g.Hold(h)
		if err := w.IngestTermination(ctx, h); err != nil || len(g.Continued()) != 0 || e.status() != control.Active {
			t.Errorf("%s: %v, answered %v, %s", name, err, g.Continued(), e.status())
		}
	}
	w := controltest.NewWorld(t)
	grouped(w)
	if err := w.IngestTermination(ctx, control.Hook{Name: "longshore"}); !fault.Is(err, fault.Invalid) {
		t.Errorf("%v", err)
	}
}

func TestTermination_AtTheDeadlineTasksStopAndTheGroupGoesOnWhateverTheyDo(t *testing.T) {
	w := controltest.NewWorld(t)
	e, g := onHost(t, w), grouped(w)
	e.tag(map[string]string{drainTag: "10m"})
	job := e.running()
	g.Hold(termination("t1"))
	if err := w.IngestTermination(ctx, termination("t1")); err != nil {
		t.Fatal(err)
	}
	w.Sent.TakeCommands(e.id)
	minutes(t, w, 11, e.id)
	if stops := inbox[*wire.Stop](e); len(stops) == 0 || stops[0].Reason != "Host EC2 (instance i-0abc) is to be terminated by its Auto Scaling group." {
		t.Fatalf("%+v", stops)
	}
	if got := w.Task(job); got.StopCause != task.TerminationCause || len(g.Continued()) != 0 {
		t.Fatalf("%+v, answered %v", got, g.Continued())
	}
	minutes(t, w, 3, e.id) // it ignores its stop
	if len(g.Continued()) != 1 {
		t.Errorf("answered %v, extended %d times", g.Continued(), g.Extended())
	}
}

func TestTermination_ThatTimesOutIsForgotten(t *testing.T) {
	w := controltest.NewWorld(t)
	e, g := onHost(t, w), grouped(w)
	e.running()
	g.Hold(termination("t1"))
	if err := w.IngestTermination(ctx, termination("t1")); err != nil {
		t.Fatal(err)
	}
	g.TimeOut("t1")
	minutes(t, w, 2, e.id)
	n := g.Extended()
	minutes(t, w, 2, e.id)
	if h := w.Ledger(e.id).Leaving.Hook; h == nil || h.AnsweredAt.IsZero() || g.Extended() != n {
		t.Errorf("%+v, extended %d times after %d", h, g.Extended(), n)
	}
}

func TestTermination_KilledAnywhereItIsAnswered(t *testing.T) {
	var g *controltest.Groups
	var e *edge
	controltest.KillEverywhere(t, func(t *testing.T) *controltest.World {
		w := controltest.NewWorld(t)
		e, g = onHost(t, w), grouped(w)
		g.Hold(termination("t1"))
		return w
	}, func(w *controltest.World) error { return w.IngestTermination(ctx, termination("t1")) }, func(t *testing.T, w *controltest.World) {
		for range 2 {
			minute(t, w, e.id)
		}
		if h := w.Ledger(e.id).Leaving.Hook; len(g.Continued()) != 1 || h.AnsweredAt.IsZero() || e.status() != control.Draining {
			t.Errorf("answered %v, %+v", g.Continued(), h)
		}
	})
}

func TestTermination_TheReaperKilledAnywhereAnswersIt(t *testing.T) {
	var g *controltest.Groups
	var e *edge
	controltest.KillEverywhere(t, func(t *testing.T) *controltest.World {
		w := controltest.NewWorld(t)
		e, g = onHost(t, w), grouped(w)
		job := e.running()
		g.Hold(termination("t1"))
		if err := w.IngestTermination(ctx, termination("t1")); err != nil {
			t.Fatal(err)
		}
		e.reports(job, 1, task.Stopped)
		w.Memory.CatchUp()
		return w
	}, func(w *controltest.World) error { return w.Tick(ctx) }, func(t *testing.T, w *controltest.World) {
		for range 2 {
			minute(t, w, e.id)
		}
		if h := w.Ledger(e.id).Leaving.Hook; len(g.Continued()) != 1 || h.AnsweredAt.IsZero() {
			t.Errorf("answered %v, %+v", g.Continued(), h)
		}
	})
}

func TestTermination_TwoRunsThatOverlapAnswerOnce(t *testing.T) {
	for _, call := range []string{"Load", "Commit"} {
		for nth := 1; nth <= 6; nth++ {
			w := controltest.NewWorld(t)
			e, g := onHost(t, w), grouped(w)
			g.Hold(termination("t1"))
			store := w.Store
			e.meanwhile(call, nth, func() {
				w.Store = store
				if err := w.IngestTermination(ctx, termination("t1")); err != nil {
					t.Error(err)
				}
			})
			if err := w.IngestTermination(ctx, termination("t1")); err != nil {
				t.Fatal(err)
			}
			if len(g.Continued()) != 1 {
				t.Errorf("overlapping at %s %d: answered %v", call, nth, g.Continued())
			}
		}
	}
}

func TestTermination_APersonWhoWantsItToWorkIsNotContradicted(t *testing.T) {
	w := controltest.NewWorld(t)
	e, g := onHost(t, w), grouped(w)
	job := e.running()
	g.Hold(termination("t1"))
	if err := w.IngestTermination(ctx, termination("t1")); err != nil {
		t.Fatal(err)
	}
	setState(t, w, e.id, control.Active)
	e.reports(job, 1, task.Stopped)
	before := g.Extended()
	minutes(t, w, 3, e.id)
	if len(g.Continued()) != 0 || g.Extended() != before || e.status() != control.Active {
		t.Errorf("answered %v, extended %d times, %s", g.Continued(), g.Extended(), e.status())
	}
}

func TestTermination_OfAnInstanceThatIsLostOrGivenUpMeanwhileIsAnswered(t *testing.T) {
	for name, end := range map[string]func(e *edge){
		"lost":         func(e *edge) { e.lost() },
		"terminated":   func(e *edge) { says(e.t, e.w, "terminated") },
		"deregistered": func(e *edge) { _, _ = e.w.DeregisterContainerInstance(ctx, "default", e.id, true) },
	} {
		w := controltest.NewWorld(t)
		e, g := onHost(t, w), grouped(w)
		w.Setting.SetInstanceHealth = false
		e.running()
		g.Hold(termination("t1"))
		if err := w.IngestTermination(ctx, termination("t1")); err != nil {
			t.Fatal(err)
		}
		end(e)
		minutes(t, w, 2)
		if len(g.Continued()) != 1 {
			t.Errorf("%s: answered %v; %+v", name, g.Continued(), w.Ledger(e.id))
		}
	}
}

func TestTermination_WhereItIsSwitchedOffMeanwhileTheInstanceIsUsedAgain(t *testing.T) {
	w := controltest.NewWorld(t)
	e, g := onHost(t, w), grouped(w)
	e.running()
	g.Hold(termination("t1"))
	if err := w.IngestTermination(ctx, termination("t1")); err != nil {
		t.Fatal(err)
	}
	w.Groups = nil
	minutes(t, w, 1, e.id)
	if l := w.Ledger(e.id); l.Status != control.Active || l.Leaving != nil {
		t.Errorf("%+v", l)
	}
}
