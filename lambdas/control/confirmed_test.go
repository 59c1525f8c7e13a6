package control_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

// confirmations are the ways in which the end of a task on a LOST instance is known
// for sure, with what it ends as.
var confirmations = map[string]struct {
	know  func(e *edge, id string, list wire.Entry)
	cause task.Cause
}{
	"it is reported":                        {func(e *edge, id string, _ wire.Entry) { e.reports(id, 1, task.Stopped) }, task.ExitedCause},
	"an echoing inventory does not have it": {func(e *edge, _ string, _ wire.Entry) { e.echoes() }, task.VanishedCause},
	"a new journal does not have it": {func(e *edge, _ string, _ wire.Entry) {
		e.incarnation, e.n, e.epoch = "inc-new", 0, 0
		e.registers()
		e.welcomed()
		e.beats()
	}, task.VanishedCause},
	"its host is terminated": {func(e *edge, _ string, _ wire.Entry) {
		h := control.HostState{EC2InstanceID: "i-0abc", State: "terminated", At: e.w.Clock.Now()}
		if err := e.w.IngestHostState(ctx, h); err != nil {
			e.t.Fatal(err)
		}
	}, task.HostGoneCause},
	"an operator confirms that it is off": {func(e *edge, _ string, _ wire.Entry) {
		if _, err := e.w.FenceContainerInstance(ctx, "default", e.id); err != nil {
			e.t.Fatal(err)
		}
	}, task.ConfirmedOff},
}

func TestConfirmed_NoTimeEndsItOnlyWhatIsKnown(t *testing.T) {
	for name, c := range confirmations {
		t.Run(name, func(t *testing.T) {
			w := controltest.NewWorld(t)
			e := host(t, w, "i")
			lease := w.Lease(e.id)
			lease.EC2 = "i-0abc"
			w.Put(&lease)
			tagCluster(t, w, "onDisconnect", "replace", "keepFor", "1m")
			id := e.running(confirmed)
			list := e.lists(id, 1, wire.PhaseRunning)
			e.lost()
			mustBeKept(t, w, id)
			for range 20 { // days: also past the seven after which what is LOST is given up
				w.Clock.Move(day)
				ticks(t, w, 1)
			}
			mustBeKept(t, w, id)
			if l := w.Ledger(e.id); l.Status != control.Active {
				t.Fatalf("an instance that has an open task became %s", l.Status)
			}
			if _, err := w.StopTask(ctx, "default", id, "enough"); err != nil {
				t.Fatal(err)
			}
			w.Clock.Move(day)
			ticks(t, w, 1)
			mustBeKept(t, w, id)
			found, _, err := w.DescribeTasks(ctx, "default", []string{id})
			if err != nil || !found[0].KeptConfirmed || !found[0].KeptUntil.IsZero() {
				t.Errorf("shown as %+v, %v", found, err)
			}
			c.know(e, id, list)
			if got := w.Task(id); got.LastStatus != task.Stopped || w.Ledger(e.id).Open != 0 {
				t.Errorf("task %+v", got)
			}
		})
	}
}

// singleton is a yard with a service of one task that is replaced only when its end
// is confirmed, RUNNING on the machine named, and its id.
func singleton(t *testing.T, hosts ...string) (f *yard, on string, id string) {
	t.Helper()
	f = newYard(t, hosts...)
	f.most = 1
	f.create(func(r *control.ServiceRequest) {
		r.Desired, r.Tags = new(1), map[string]string{"longshore:replaceAfter": "confirmed"}
	})
	f.settle("a singleton starts")
	first := f.living()[0]
	for _, name := range hosts {
		if _, id := controltest.Identity(name); id == first.Instance {
			on = name
		}
	}
	return f, on, first.ID
}

func TestConfirmed_ASingletonIsNotReplacedBeforeItsEndIsConfirmed(t *testing.T) {
	f, on, id := singleton(t, "a", "b")
	f.kill(on)
	f.reap(on)
	mustBeKept(t, f.World, id)
	for range 30 { // and its service is asked again and again
		f.Clock.Move(time.Hour)
		f.sweep()
		f.step()
	}
	if living := f.living(); len(living) != 1 || living[0].ID != id {
		t.Fatalf("replaced without knowing: %+v", living)
	}
	if !f.heard("longshore instances fence") {
		t.Errorf("nobody is told what it waits for: %+v", f.view().Events)
	}
	_, host := controltest.Identity(on)
	if _, err := f.FenceContainerInstance(ctx, "default", host); err != nil {
		t.Fatal(err)
	}
	f.settle("its end is confirmed")
	if living := f.living(); len(living) != 1 || living[0].ID == id || living[0].Instance == host {
		t.Errorf("not replaced: %+v", living)
	}
}

func TestConfirmed_ASingletonThatReturnsGoesOnAndIsNotDoubled(t *testing.T) {
	f, on, id := singleton(t, "a", "b")
	f.kill(on)
	f.reap(on)
	f.Clock.Move(10 * day)
	f.sweep()
	f.step()
	e := newEdge(t, f.World, on)
	e.epoch, e.n = f.Task(id).Epoch-1, 1000
	e.echoes(wire.Entry{Task: id, Attempt: 1, Epoch: e.epoch, Phase: wire.PhaseRunning})
	f.dead[on] = false
	f.settle("it is back")
	if living := f.living(); len(living) != 1 || living[0].ID != id || !living[0].Kept.IsZero() {
		t.Errorf("%+v", living)
	}
}

// k8s#115844: the start of the new one is not before the end of the old one, whatever
// the percentages say.
func TestConfirmed_ARolloutStartsTheNewOneAfterTheOldOnesEnd(t *testing.T) {
	for _, percent := range [][2]int{{100, 200}, {0, 200}, {50, 150}} {
		t.Run(fmt.Sprint(percent), func(t *testing.T) {
			f, _, id := singleton(t, "a", "b")
			f.update(func(r *control.ServiceUpdate) {
				r.Definition, r.Deployment = "app:2", control.DeploymentRules{MinimumPercent: &percent[0], MaximumPercent: &percent[1]}
			})
			f.settle("another revision")
			living := f.living()
			if len(living) != 1 || living[0].ID == id || living[0].Number != 2 {
				t.Fatalf("%+v", living)
			}
			if old := f.Task(id); living[0].CreatedAt.Before(old.StoppedAt) {
				t.Errorf("the new one was made at %s, the old one ended at %s", living[0].CreatedAt, old.StoppedAt)
			}
		})
	}
}

// Whoever tags a service wants it to hold for what it runs now.
func TestConfirmed_ATagOnTheServiceHoldsForTasksThatRunAlready(t *testing.T) {
	f := newYard(t, "a", "b")
	f.create(func(r *control.ServiceRequest) { r.Desired = new(1) })
	f.settle("it starts")
	first := f.living()[0]
	of := control.Resource{Kind: control.ServiceResource, Cluster: "default", Name: "web"}
	if err := f.TagResource(ctx, of, map[string]string{"longshore:replaceAfter": "confirmed"}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		f.kill(name)
		f.reap(name)
	}
	mustBeKept(t, f.World, first.ID)
}

func TestKeep_AServicesKeptTaskFillsItsPlaceWithoutBeingHealthy(t *testing.T) {
	f := newYard(t, "a", "b", "c")
	f.create(func(r *control.ServiceRequest) {
		r.Tags = map[string]string{"longshore:onDisconnect": "keep"}
	})
	f.settle("three of it, one a host")
	f.kill("a")
	f.reap("a")
	f.sweep()
	for range 20 {
		f.step()
	}
	living, away := f.living(), 0
	for _, got := range living {
		if !got.Kept.IsZero() {
			away++
		}
	}
	if len(living) != 3 || away != 1 {
		t.Fatalf("%d live, %d of them kept", len(living), away)
	}
	// A rollout finds too few healthy to stop any other before it has new ones.
	f.least = 2
	f.update(func(r *control.ServiceUpdate) {
		r.Definition, r.Deployment = "app:2", control.DeploymentRules{MinimumPercent: new(66), MaximumPercent: new(134)}
	})
	f.settle("a rollout ends with a host away")
	number := 0
	for _, got := range f.living() {
		if got.Number == 2 && got.Kept.IsZero() {
			number++
		}
	}
	if number != 3 {
		t.Fatalf("%+v", f.living())
	}
	_, host := controltest.Identity("a")
	f.Clock.Move(day)
	f.Memory.CatchUp()
	if err := f.EndKept(ctx, host); err != nil {
		t.Fatal(err)
	}
	f.settle("its time is over")
	if living := f.living(); len(living) != 3 {
		t.Errorf("%d live", len(living))
	}
}
