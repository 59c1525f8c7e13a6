package control_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
)

const drainTag = "longshore:drainDeadline"

func setState(t *testing.T, w *controltest.World, id string, to control.InstanceStatus) {
	t.Helper()
	if _, failures, err := w.UpdateContainerInstancesState(ctx, "default", []string{id}, to); err != nil || len(failures) > 0 {
		t.Fatalf("%s: %v %v", to, failures, err)
	}
}

func statusReason(t *testing.T, w *controltest.World, id string) string {
	t.Helper()
	found, _, err := w.DescribeContainerInstances(ctx, "default", []string{id})
	if err != nil || len(found) != 1 {
		t.Fatalf("describe: %v %v", found, err)
	}
	return found[0].StatusReason()
}

func (e *edge) tag(tags map[string]string) {
	in := instanceOf(e.w, e.id)
	in.Tags = tags
	e.w.Put(&in)
}

// ends says of each of ids whether it was asked to end.
func ends(w *controltest.World, ids ...string) (asked int) {
	for _, id := range ids {
		if w.Task(id).DesiredStatus == task.DesiredStopped {
			asked++
		}
	}
	return asked
}

func TestDrain_AsksThenWaitsThenForces(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	e.tag(map[string]string{drainTag: "1h"})
	job := e.running()
	web, _ := e.service(1)
	w.Sent.TakeServiceKicks()
	setState(t, w, e.id, control.Draining)
	deadline := w.Clock.Now().Add(time.Hour)
	if k := w.Sent.TakeServiceKicks(); len(k) != 1 || k[0].Cluster != "default" {
		t.Errorf("services were not asked: %+v", k)
	}
	want := "draining: 2 tasks left, deadline " + deadline.UTC().Format(time.RFC3339)
	if got := statusReason(t, w, e.id); got != want {
		t.Errorf("reason %q, want %q", got, want)
	}
	minutes(t, w, 59, e.id)
	if n := ends(w, job, web[0]); n > 0 {
		t.Fatalf("%d were asked to end before the deadline", n)
	}
	w.Sent.TakeCommands(e.id)
	minutes(t, w, 1, e.id)
	if n := ends(w, job, web[0]); n != 2 {
		t.Fatalf("%d of 2 were asked to end at the deadline", n)
	}
	if stops := inbox[*wire.Stop](e); len(stops) != 2 {
		t.Errorf("sent %d stops", len(stops))
	}
	if k := w.Sent.TakeServiceKicks(); len(k) == 0 || k[len(k)-1].Service != "web" {
		t.Errorf("the service is not told what it loses: %+v", k)
	}
	e.reports(web[0], 1, task.Stopped)
	if got := statusReason(t, w, e.id); !strings.HasPrefix(got, "draining: 1 tasks left") {
		t.Errorf("reason %q with one left", got)
	}
	e.reports(job, 1, task.Stopped)
	if got := w.Task(job); got.StopCause != task.ForcedDrainCause || got.StoppedReason != "Container instance was drained and its deadline (longshore:drainDeadline) has passed" {
		t.Errorf("ended by %s: %s", got.StopCause, got.StoppedReason)
	}
	if got, l := statusReason(t, w, e.id), w.Ledger(e.id); got != "drained: no task is left" || l.Status != control.Draining {
		t.Errorf("reason %q, status %s", got, l.Status)
	}
}

func TestDrain_TheDeadlineIsTheInstancesTheClustersOrTheSettings(t *testing.T) {
	for name, c := range map[string]struct {
		instance, cluster map[string]string
		want              time.Duration // 0: none
	}{
		"setting":                 {nil, nil, 24 * time.Hour},
		"cluster":                 {nil, map[string]string{drainTag: "90s"}, 90 * time.Second},
		"instance":                {map[string]string{drainTag: "10m"}, map[string]string{drainTag: "90s"}, 10 * time.Minute},
		"none":                    {map[string]string{drainTag: "none"}, map[string]string{drainTag: "90s"}, 0},
		"none of the whole":       {nil, map[string]string{drainTag: "none"}, 0},
		"instance, though a none": {map[string]string{drainTag: "10m"}, map[string]string{drainTag: "none"}, 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			w := controltest.NewWorld(t)
			e := host(t, w, "i")
			e.tag(c.instance)
			w.Put(&control.Cluster{Name: "default", Status: "ACTIVE", Tags: c.cluster})
			job := e.running()
			setState(t, w, e.id, control.Draining)
			since := w.Clock.Now()
			found, _, err := w.DescribeContainerInstances(ctx, "default", []string{e.id})
			if err != nil {
				t.Fatal(err)
			}
			if c.want == 0 {
				if got := found[0].StatusReason(); got != "draining: 1 tasks left, no deadline" {
					t.Errorf("reason %q", got)
				}
				w.Clock.Move(1000 * time.Hour)
			} else if got := found[0].DrainDeadline.Sub(since); got != c.want {
				t.Errorf("deadline in %s, want %s", got, c.want)
			} else {
				w.Clock.Move(c.want - time.Nanosecond)
			}
			w.Memory.CatchUp()
			if err := w.EndDrain(ctx, e.id); err != nil || ends(w, job) > 0 {
				t.Fatalf("forced before the deadline: %v", err)
			}
			w.Clock.Move(time.Nanosecond)
			if err := w.EndDrain(ctx, e.id); err != nil || ends(w, job) > 0 != (c.want > 0) {
				t.Errorf("at the deadline: %v, %d asked to end", err, ends(w, job))
			}
		})
	}
}

func TestDrain_ActiveForgetsTheDeadlineAndDrainingAgainBeginsAnew(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	e.tag(map[string]string{drainTag: "10m"})
	job := e.running()
	setState(t, w, e.id, control.Draining)
	first := w.Ledger(e.id).DrainingSince
	w.Clock.Move(5 * time.Minute)
	setState(t, w, e.id, control.Draining)
	if got := w.Ledger(e.id).DrainingSince; !got.Equal(first) || !w.Lease(e.id).Draining {
		t.Errorf("asked twice, it counts from %s, not %s", got, first)
	}
	w.Sent.TakeServiceKicks()
	setState(t, w, e.id, control.Active)
	if k := w.Sent.TakeServiceKicks(); len(k) != 1 {
		t.Errorf("a DAEMON is not told that it may come back: %+v", k)
	}
	if l := w.Ledger(e.id); !l.DrainingSince.IsZero() || w.Lease(e.id).Draining || statusReason(t, w, e.id) != "" {
		t.Errorf("ACTIVE again: %+v", l)
	}
	setState(t, w, e.id, control.Draining)
	w.Clock.Move(6 * time.Minute) // eleven after the first time
	w.Memory.CatchUp()
	if err := w.EndDrain(ctx, e.id); err != nil || ends(w, job) > 0 {
		t.Fatalf("the first deadline still counts: %v", err)
	}
	w.Clock.Move(4 * time.Minute)
	if err := w.EndDrain(ctx, e.id); err != nil || ends(w, job) != 1 {
		t.Fatalf("the second deadline does not count: %v", err)
	}
}

func TestDrain_APersonsWordMeanwhileVoidsTheEnd(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, e *edge){
		"ACTIVE again": func(t *testing.T, e *edge) { setState(t, e.w, e.id, control.Active) },
		"drained again just now": func(t *testing.T, e *edge) {
			setState(t, e.w, e.id, control.Active)
			setState(t, e.w, e.id, control.Draining)
		},
		"given more time":        func(_ *testing.T, e *edge) { e.tag(map[string]string{drainTag: "none"}) },
		"its cluster given more": func(_ *testing.T, e *edge) { e.w.Put(&control.Cluster{Name: "default", Status: "ACTIVE"}) },
	} {
		for _, at := range []struct {
			call string
			nth  int
		}{{"TaskIDs", 1}, {"Commit", 1}} {
			w := controltest.NewWorld(t)
			e := host(t, w, "i")
			if of := map[string]string{drainTag: "10m"}; name == "its cluster given more" {
				w.Put(&control.Cluster{Name: "default", Status: "ACTIVE", Tags: of})
			} else {
				e.tag(of)
			}
			job := e.running()
			setState(t, w, e.id, control.Draining)
			w.Clock.Move(10 * time.Minute)
			w.Memory.CatchUp()
			store := w.Store
			e.meanwhile(at.call, at.nth, func() { w.Store = store; change(t, e) })
			if err := w.EndDrain(ctx, e.id); err != nil {
				t.Fatal(err)
			}
			if ends(w, job) > 0 {
				t.Errorf("%s, before %s %d: stopped all the same", name, at.call, at.nth)
			}
		}
	}
}

// fill stores n tasks as RUNNING on an instance, and looks at the invariants at
// the end instead of after each of many commits.
func fill(t *testing.T, w *controltest.World, id string, n int) (jobs []string) {
	t.Helper()
	w.Memory.OnCommit = nil
	t.Cleanup(func() {
		for _, v := range w.Memory.Violations() {
			t.Error(v)
		}
	})
	l, in := w.Ledger(id), instanceOf(w, id)
	l.Registered.CPU, l.Held, l.Open = n, control.Held{CPU: n}, n
	w.Put(&l)
	for range n {
		jobs = append(jobs, w.AddTask(taskdef.Resources{CPU: 1}, func(k *control.Task) {
			k.LastStatus, k.Instance, k.Epoch, k.Incarnation, k.Held, k.Shown = task.Running, id, l.Epoch, in.Incarnation, &control.Held{CPU: 1}, true
		}).ID)
	}
	w.Memory.CatchUp()
	return jobs
}

func TestDrain_KilledAnywhereAtTheDeadlineGoesOn(t *testing.T) {
	const chunk = 40 // how many are asked at once
	var id string
	var jobs []string
	controltest.KillEverywhere(t, func(t *testing.T) *controltest.World {
		w := controltest.NewWorld(t)
		id = w.AddInstance("i", room, func(in *control.Instance, _ *control.Ledger, _ *control.Lease) {
			in.Tags = map[string]string{drainTag: "1m"}
		})
		jobs = fill(t, w, id, chunk+5)
		setState(t, w, id, control.Draining)
		w.Clock.Move(time.Minute)
		w.Memory.CatchUp()
		return w
	}, func(w *controltest.World) error { return w.EndDrain(ctx, id) }, func(t *testing.T, w *controltest.World) {
		if n := ends(w, jobs...); n != chunk+5 {
			t.Errorf("%d of %d were asked to end", n, chunk+5)
		}
	})
}

func TestDrain_TwoRunsThatOverlapAskEachOnce(t *testing.T) {
	for _, call := range []string{"Load", "Commit"} {
		for nth := 1; nth <= 3; nth++ {
			w := controltest.NewWorld(t)
			e := host(t, w, "i")
			e.tag(map[string]string{drainTag: "1m"})
			jobs := []string{e.running(), e.running(), e.running()}
			setState(t, w, e.id, control.Draining)
			w.Clock.Move(time.Minute)
			w.Memory.CatchUp()
			w.Sent.TakeCommands(e.id)
			store := w.Store
			e.meanwhile(call, nth, func() {
				w.Store = store
				if err := w.EndDrain(ctx, e.id); err != nil {
					t.Error(err)
				}
			})
			if err := w.EndDrain(ctx, e.id); err != nil {
				t.Fatal(err)
			}
			if stops := inbox[*wire.Stop](e); ends(w, jobs...) != 3 || len(stops) != 3 {
				t.Errorf("overlapping at %s %d: %d asked to end, %d stops sent", call, nth, ends(w, jobs...), len(stops))
			}
		}
	}
}

func TestDrain_AnInstanceLostMeanwhile(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	e.tag(map[string]string{drainTag: "1h"})
	job := e.running()
	setState(t, w, e.id, control.Draining)
	e.lost()
	if got := w.Task(job); got.StopCause != task.LostCause || w.Ledger(e.id).Status != control.Draining {
		t.Fatalf("%+v", got)
	}
	if got := statusReason(t, w, e.id); !strings.HasPrefix(got, "LOST since ") || !strings.HasSuffix(got, "; drained: no task is left") {
		t.Errorf("reason %q", got)
	}
	minutes(t, w, 60) // past its deadline, and nothing to end
	setState(t, w, e.id, control.Active)
	if l := w.Ledger(e.id); l.Status != control.Active || w.Lease(e.id).Draining {
		t.Errorf("%+v", l)
	}
}

func TestDrain_OneOf250IgnoresItsStop(t *testing.T) {
	const n = 250
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	e.tag(map[string]string{drainTag: "5m"})
	jobs := fill(t, w, e.id, n)
	setState(t, w, e.id, control.Draining)
	w.Sent.TakeCommands(e.id)
	minutes(t, w, 5, e.id)
	stops := inbox[*wire.Stop](e)
	if len(stops) != n || ends(w, jobs...) != n {
		t.Fatalf("%d of %d were asked to end, %d stops sent", ends(w, jobs...), n, len(stops))
	}
	for _, s := range stops[1:] {
		e.reports(s.Task, s.Attempt, task.Stopped)
	}
	minutes(t, w, 3, e.id)
	if got := statusReason(t, w, e.id); !strings.HasPrefix(got, "draining: 1 tasks left") || w.Ledger(e.id).Open != 1 {
		t.Errorf("reason %q, open %d", got, w.Ledger(e.id).Open)
	}
	if again := inbox[*wire.Stop](e); len(again) == 0 || slices.ContainsFunc(again, func(s *wire.Stop) bool { return s.Task != stops[0].Task }) {
		t.Errorf("the stop of the one is not sent again, or others are: %d", len(again))
	}
	e.reports(stops[0].Task, stops[0].Attempt, task.Stopped) // its agent has killed it
	if got := statusReason(t, w, e.id); got != "drained: no task is left" {
		t.Errorf("reason %q", got)
	}
}

func TestDrain_ANewJournalOfTheAgentChangesNothing(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	e.tag(map[string]string{drainTag: "1h"})
	e.running()
	setState(t, w, e.id, control.Draining)
	since := w.Ledger(e.id).DrainingSince
	w.Clock.Move(4 * time.Minute)
	e.forget()
	e.incarnation, e.session, e.n, e.epoch = "inc-new", "s-new", 0, 0
	e.join()
	if l := w.Ledger(e.id); l.Status != control.Draining || !l.DrainingSince.Equal(since) || !w.Lease(e.id).Draining {
		t.Errorf("%+v", l)
	}
}

func TestDrain_TagsOfADeadlineAreJudged(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	in := control.Resource{Kind: control.InstanceResource, Cluster: "default", Name: e.id}
	for _, bad := range []string{"soon", "-1h", "0s", ""} {
		if err := w.TagResource(ctx, in, map[string]string{drainTag: bad}); err == nil || !strings.Contains(err.Error(), "or none") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if err := w.TagResource(ctx, in, map[string]string{drainTag: "none"}); err != nil {
		t.Error(err)
	}
	if err := w.TagResource(ctx, control.Resource{Kind: control.ClusterResource, Name: "default"}, map[string]string{drainTag: "2h"}); err != nil {
		t.Error(err)
	}
}
