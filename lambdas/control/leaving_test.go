package control_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

// notices is a beat that says what is to come of the host; nil: nothing.
func (e *edge) notices(n *wire.Notice, inventory ...wire.Entry) {
	e.t.Helper()
	e.w.Clock.Move(time.Second)
	b := e.beat(inventory...)
	b.Message.Notice = n
	e.heard(b)
}

func (e *edge) spot() *wire.Notice {
	return &wire.Notice{Kind: wire.NoticeSpot, Action: "terminate", At: e.w.Clock.Now().Add(2 * time.Minute).Truncate(time.Second)}
}

func (e *edge) status() control.InstanceStatus { return e.w.Ledger(e.id).Status }

func TestLeaving_ANoticeDrainsTheInstanceAndItsEndUndoesThat(t *testing.T) {
	for _, kind := range []string{wire.NoticeSpot, wire.NoticeAutoScaling, wire.NoticeRebalance} {
		w := controltest.NewWorld(t)
		e := onHost(t, w)
		e.beats()
		w.Sent.TakeServiceKicks()
		n := &wire.Notice{Kind: kind, Action: "terminate"}
		e.notices(n)
		if l := w.Ledger(e.id); l.Status != control.Draining || l.DrainingSince.IsZero() || !w.Lease(e.id).Draining || !l.Connected {
			t.Fatalf("%s: %+v", kind, l)
		}
		if k := w.Sent.TakeServiceKicks(); len(k) != 1 || k[0].Cluster != "default" {
			t.Errorf("%s: services are not woken to leave it: %+v", kind, k)
		}
		job := w.AddTask(small).ID
		w.MustAdmit(job)
		if got := w.Task(job); got.Instance != "" {
			t.Errorf("%s: it takes work: %+v", kind, got)
		}
		calls := func() int { n, _ := w.Memory.Calls.Made(); return n }
		e.notices(n) // the tenth apart, the same notice again costs no more than any beat
		before := calls()
		e.notices(n)
		if made := calls() - before; made != 1 {
			t.Errorf("%s: a beat that says nothing new made %d calls", kind, made)
		}
		e.notices(nil)
		if l := w.Ledger(e.id); l.Status != control.Active || l.Leaving != nil || !l.DrainingSince.IsZero() || w.Lease(e.id).Draining {
			t.Errorf("%s: undone: %+v", kind, l)
		}
		if len(w.Sent.TakeServiceKicks()) == 0 || len(w.Sent.TakeKicks()) == 0 {
			t.Errorf("%s: nobody is told that it takes work again", kind)
		}
	}
}

func TestLeaving_APersonsDrainOutlivesTheNotice(t *testing.T) {
	for name, act := range map[string]func(e *edge){
		"drained before": func(e *edge) { setState(e.t, e.w, e.id, control.Draining); e.notices(e.spot()) },
		"drained after":  func(e *edge) { e.notices(e.spot()); setState(e.t, e.w, e.id, control.Draining) },
	} {
		w := controltest.NewWorld(t)
		e := onHost(t, w)
		act(e)
		e.notices(nil)
		if l := w.Ledger(e.id); l.Status != control.Draining || l.Leaving != nil || !w.Lease(e.id).Draining {
			t.Errorf("%s: %+v", name, l)
		}
		setState(t, w, e.id, control.Active)
		if e.status() != control.Active {
			t.Errorf("%s: %s", name, e.status())
		}
	}
}

func TestLeaving_APersonMayOverruleANoticeUntilSomethingNewIsSaid(t *testing.T) {
	w := controltest.NewWorld(t)
	e := onHost(t, w)
	n := &wire.Notice{Kind: wire.NoticeRebalance}
	e.notices(n)
	setState(t, w, e.id, control.Active)
	e.notices(n)
	minutes(t, w, 2)
	e.notices(n)
	if e.status() != control.Active {
		t.Fatalf("the same notice again overruled a person: %s", e.status())
	}
	e.notices(e.spot())
	if e.status() != control.Draining {
		t.Errorf("another notice does not count: %s", e.status())
	}
}

func TestLeaving_WhatIsLeftIsAskedToStopBeforeTheHostGoesAndToldWhy(t *testing.T) {
	w := controltest.NewWorld(t)
	e := onHost(t, w)
	e.tag(map[string]string{drainTag: "none"})
	job := e.running()
	w.Memory.CatchUp()
	n := e.spot()
	e.notices(n, e.lists(job, 1, wire.PhaseRunning))
	want := fmt.Sprintf("draining: 1 tasks left, deadline %s; Spot interruption notice for %s",
		n.At.Add(-90*time.Second).UTC().Format(time.RFC3339), n.At.UTC().Format(time.RFC3339))
	if got := statusReason(t, w, e.id); got != want {
		t.Errorf("%q, not %q", got, want)
	}
	w.Sent.TakeCommands(e.id)
	if err := w.Tick(ctx); err != nil || ends(w, job) > 0 {
		t.Fatalf("asked to end at once: %v", err)
	}
	minute(t, w, e.id)
	stops := inbox[*wire.Stop](e)
	if len(stops) != 1 || !strings.Contains(stops[0].Reason, "instance i-0abc) is interrupted: Spot interruption notice") {
		t.Fatalf("stops %+v", stops)
	}
	if left := n.At.Sub(w.Clock.Now()); left < 30*time.Second {
		t.Errorf("%s are left for it to end", left)
	}
	e.reports(job, 1, task.Stopped)
	if got := w.Task(job); got.LastStatus != task.Stopped || got.StopCause != task.SpotCause || task.EndOf(got.StopCause).Code != task.SpotInterruption {
		t.Errorf("%s %s %q", got.LastStatus, got.StopCause, got.StoppedReason)
	}
}

func TestLeaving_EC2sWarningCountsWhereTheAgentCanNotSeeIt(t *testing.T) {
	w := controltest.NewWorld(t)
	e := onHost(t, w)
	w.Clock.Move(time.Second)
	i := control.Interruption{EC2InstanceID: "i-0abc", Action: "terminate", At: w.Clock.Now()}
	for range 2 { // it may come twice
		if err := w.IngestInterruption(ctx, i); err != nil {
			t.Fatal(err)
		}
	}
	e.beats() // the agent sees nothing
	if l := w.Ledger(e.id); l.Status != control.Draining || l.Leaving.Event == nil || !l.Leaving.Event.At.Equal(i.At.Add(2*time.Minute)) {
		t.Fatalf("%+v", l)
	}
	minutes(t, w, 11, e.id) // nothing came of it
	if l := w.Ledger(e.id); l.Status != control.Draining {
		t.Fatalf("given up after 11 minutes: %+v", l)
	}
	minutes(t, w, 1, e.id)
	if l := w.Ledger(e.id); l.Status != control.Active || l.Leaving != nil {
		t.Errorf("%+v", l)
	}
	if err := w.IngestInterruption(ctx, i); err != nil || e.status() != control.Active {
		t.Errorf("an old warning counts: %v %s", err, e.status())
	}
	if err := w.IngestInterruption(ctx, control.Interruption{EC2InstanceID: "i-0other", At: w.Clock.Now()}); err != nil || e.status() != control.Active {
		t.Errorf("a stranger's warning counts: %v", err)
	}
}

func TestLeaving_AHostThatReturnsIsNoLongerGoing(t *testing.T) {
	for _, how := range []string{"the same journal", "a new journal", "a person drained it, too"} {
		w := controltest.NewWorld(t)
		e := onHost(t, w)
		w.Clock.Move(time.Second)
		i := control.Interruption{EC2InstanceID: "i-0abc", Action: "stop", At: w.Clock.Now()}
		if err := w.IngestInterruption(ctx, i); err != nil {
			t.Fatal(err)
		}
		if how == "a person drained it, too" {
			setState(t, w, e.id, control.Draining)
		}
		w.Clock.Move(2 * time.Minute)
		says(t, w, "stopped")
		w.Clock.Move(4 * time.Minute)
		if how == "a new journal" {
			e.incarnation, e.session, e.n, e.epoch = "inc-new", "s-new", 0, 0
		}
		r := e.register()
		r.EC2InstanceID = "i-0abc"
		if err := w.IngestRegister(ctx, e.sender(), r); err != nil {
			t.Fatal(err)
		}
		e.welcomed()
		e.beats()
		want := control.Active
		if how == "a person drained it, too" {
			want = control.Draining
		}
		if l := w.Ledger(e.id); l.Status != want || l.Leaving != nil || !l.Connected {
			t.Errorf("%s: %+v", how, l)
		}
		if err := w.IngestInterruption(ctx, i); err != nil || w.Ledger(e.id).Leaving != nil {
			t.Errorf("%s: the warning of its last run, delivered again, counts: %v", how, err)
		}
	}
}

func TestLeaving_OneWhoIsGivenUpKeepsNothingOfIt(t *testing.T) {
	w := controltest.NewWorld(t)
	e := onHost(t, w)
	e.notices(e.spot())
	if _, err := w.DeregisterContainerInstance(ctx, "default", e.id, true); err != nil {
		t.Fatal(err)
	}
	if l := w.Ledger(e.id); l.Leaving != nil || w.Lease(e.id).Draining {
		t.Errorf("%+v", l)
	}
	w.Clock.Move(time.Minute)
	e.epoch = w.Ledger(e.id).Epoch
	e.registers()
	e.welcomed()
	e.beats()
	if l := w.Ledger(e.id); l.Status != control.Active || l.Leaving != nil || !l.Connected {
		t.Errorf("registered again: %+v", l)
	}
}

func TestLeaving_AnOldBeatWithoutTheNoticeUndoesNothing(t *testing.T) {
	w := controltest.NewWorld(t)
	e := onHost(t, w)
	w.Clock.Move(time.Second)
	old := e.beat()
	e.notices(e.spot())
	e.heard(old)
	if e.status() != control.Draining {
		t.Errorf("%s", e.status())
	}
}

func TestLeaving_KilledAnywhereTheNoticeCounts(t *testing.T) {
	var e *edge
	var b control.Beat
	controltest.KillEverywhere(t, func(t *testing.T) *controltest.World {
		w := controltest.NewWorld(t)
		e = onHost(t, w)
		w.Clock.Move(time.Second)
		b = e.beat()
		b.Message.Notice = e.spot()
		return w
	}, func(w *controltest.World) error { return w.Heartbeats(ctx, []control.Beat{b})[0] }, func(t *testing.T, w *controltest.World) {
		if l := w.Ledger(e.id); l.Status != control.Draining || l.Leaving == nil {
			t.Errorf("%+v", l)
		}
	})
}

// Whatever comes in whatever order, the status is what a person wants and what is
// known of the host add up to.
func TestLeaving_EveryOrderOfWordsAddsUp(t *testing.T) {
	steps := map[string]func(e *edge){
		"notice":  func(e *edge) { e.notices(&wire.Notice{Kind: wire.NoticeRebalance}) },
		"nothing": func(e *edge) { e.notices(nil) },
		"drain":   func(e *edge) { setState(e.t, e.w, e.id, control.Draining) },
		"warning": func(e *edge) {
			if err := e.w.IngestInterruption(ctx, control.Interruption{EC2InstanceID: "i-0abc", At: e.w.Clock.Now()}); err != nil {
				e.t.Fatal(err)
			}
		},
		"expiry": func(e *edge) { minutes(e.t, e.w, 13, e.id) },
	}
	names := []string{"notice", "nothing", "drain", "warning", "expiry"}
	for a := range names {
		for b := range names {
			for c := range names {
				w := controltest.NewWorld(t)
				e := onHost(t, w)
				said, warned, asked := false, false, false
				order := []string{names[a], names[b], names[c]}
				for _, step := range order {
					w.Clock.Move(time.Second)
					steps[step](e)
					switch step {
					case "notice":
						said = true
					case "nothing":
						said = false
					case "drain":
						asked = true
					case "warning":
						warned = true
					case "expiry":
						warned = false
					}
				}
				want := control.Active
				if said || warned || asked {
					want = control.Draining
				}
				if l := w.Ledger(e.id); l.Status != want || (l.Leaving != nil) != (said || warned) {
					t.Errorf("%v: %s, not %s: %+v", order, l.Status, want, l.Leaving)
				}
			}
		}
	}
}

// What a person overruled is over when its time is: what comes later must not bring
// it back, with a deadline that has long passed.
func TestLeaving_AnOldWarningThatWasOverruledIsNoDeadlineOfWhatComesLater(t *testing.T) {
	for name, comes := range map[string]func(e *edge, job string){
		"another notice": func(e *edge, job string) {
			e.notices(&wire.Notice{Kind: wire.NoticeRebalance}, e.lists(job, 1, wire.PhaseRunning))
		},
		"a person's drain": func(e *edge, _ string) { setState(e.t, e.w, e.id, control.Draining) },
	} {
		w := controltest.NewWorld(t)
		e := onHost(t, w)
		e.tag(map[string]string{drainTag: "none"})
		w.Clock.Move(time.Second)
		if err := w.IngestInterruption(ctx, control.Interruption{EC2InstanceID: "i-0abc", Action: "terminate", At: w.Clock.Now()}); err != nil {
			t.Fatal(err)
		}
		setState(t, w, e.id, control.Active)
		minutes(t, w, 20, e.id) // nothing came of it
		job := e.running()
		w.Memory.CatchUp()
		comes(e, job)
		if e.status() != control.Draining {
			t.Fatalf("%s: %s", name, e.status())
		}
		if err := w.Tick(ctx); err != nil {
			t.Fatal(err)
		}
		if got := w.Task(job); got.DesiredStatus != task.DesiredRunning {
			t.Errorf("%s: asked to stop at once: %s", name, got.StoppedReason)
		}
	}
}

// The agent of a host's next run registers while the warning of its last is read.
func TestLeaving_AWarningOfTheLastRunDoesNotDrainTheOneThatBeginsMeanwhile(t *testing.T) {
	w := controltest.NewWorld(t)
	e := onHost(t, w)
	w.Clock.Move(time.Second)
	i := control.Interruption{EC2InstanceID: "i-0abc", Action: "stop", At: w.Clock.Now()}
	w.Clock.Move(time.Minute)
	e.meanwhile("Load", 1, func() {
		lease := w.Lease(e.id)
		lease.RegisterSent, lease.Sent = w.Clock.Now(), w.Clock.Now()
		if err := w.Memory.Commit(ctx, control.Put(&lease)); err != nil {
			t.Fatal(err)
		}
	})
	if err := w.IngestInterruption(ctx, i); err != nil {
		t.Fatal(err)
	}
	if l := w.Ledger(e.id); l.Status != control.Active || l.Leaving != nil {
		t.Errorf("%s: %+v", l.Status, l.Leaving)
	}
}
