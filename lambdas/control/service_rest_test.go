package control_test

import (
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/lambdas/internal/deployment"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// What the rest of the API says of tasks and instances, as services heed it.

func TestServe_StopsNoProtectedTaskBeforeItsTimeIsOver(t *testing.T) {
	f := newYard(t, "i", "j")
	f.create()
	f.settle("at first")
	var ids []string
	for _, one := range f.living()[:2] {
		ids = append(ids, one.ID)
	}
	if _, _, err := f.ProtectTasks(ctx, "default", ids, true, time.Hour); err != nil {
		t.Fatal(err)
	}
	f.update(func(r *control.ServiceUpdate) { r.Desired = new(1) })
	for range 20 {
		f.step()
	}
	for _, id := range ids {
		if got := f.Task(id); got.DesiredStatus != task.DesiredRunning {
			t.Errorf("protected task %s is to stop", id)
		}
	}
	if n := len(f.living()); n != 2 {
		t.Errorf("%d tasks live: the two that are protected are to", n)
	}
	if _, _, err := f.ProtectTasks(ctx, "default", ids[:1], false, 0); err != nil {
		t.Fatal(err)
	}
	f.settle("no longer protected")
	if left := f.living(); len(left) != 1 || left[0].ID != ids[1] {
		t.Errorf("left is %+v", left)
	}
}

func TestServe_ADefinitionThatIsGoneStopsNoDaemon(t *testing.T) {
	f := newYard(t, "i", "j")
	f.create(func(r *control.ServiceRequest) { r.Strategy, r.Desired = deployment.Daemon, nil })
	f.settle("at first")
	gone := &control.Definition{Family: "app", Number: 1}
	if err := f.Store.Load(ctx, gone); err != nil {
		t.Fatal(err)
	}
	if err := f.Store.Commit(ctx, control.Delete(gone)); err != nil {
		t.Fatal(err)
	}
	f.sweep()
	f.step()
	for _, one := range f.living() {
		if one.DesiredStatus != task.DesiredRunning {
			t.Errorf("the task on %s is to stop", one.Instance)
		}
	}
	if v := f.view(); v.Desired != 2 || v.Tasks.Running != 2 {
		t.Errorf("desired %d, tasks %+v", v.Desired, v.Tasks)
	}
}

func TestServe_WaitsForRoomWhateverItsClusterSays(t *testing.T) {
	f := newYard(t)
	if err := f.TagResource(ctx, control.Resource{Kind: control.ClusterResource, Name: "default"}, map[string]string{"longshore:onNoCapacity": "fail"}); err != nil {
		t.Fatal(err)
	}
	f.create()
	for range 5 {
		f.step()
	}
	waiting := f.living()
	if len(waiting) != 3 {
		t.Fatalf("%d tasks live", len(waiting))
	}
	for _, one := range waiting {
		if one.LastStatus != task.Provisioning || one.NoWait {
			t.Errorf("task is %+v", one)
		}
	}
}

func TestServe_GoesOnWithADefinitionThatIsBeingDeleted(t *testing.T) {
	f := newYard(t, "i")
	f.create(func(r *control.ServiceRequest) { r.Desired = new(1) })
	f.settle("at first")
	if _, err := f.DeregisterTaskDefinition(ctx, "app:1"); err != nil {
		t.Fatal(err)
	}
	if _, failures, err := f.DeleteTaskDefinitions(ctx, []string{"app:1"}); err != nil || len(failures) > 0 {
		t.Fatal(failures, err)
	}
	now := f.Clock.Now()
	f.Clock.Move(now.Truncate(10 * time.Minute).Add(20 * time.Minute).Sub(now)) // when the sweep looks
	f.Memory.CatchUp()
	if err := f.Tick(ctx); err != nil {
		t.Fatal(err)
	}
	f.update(func(r *control.ServiceUpdate) { r.Desired = new(2) })
	f.settle("scaled up")
	if n := len(f.living()); n != 2 {
		t.Errorf("%d tasks live", n)
	}
}

func TestServe_ADaemonDoesNotBelongWhereNoAgentIs(t *testing.T) {
	f := newYard(t, "i")
	if _, err := f.RegisterForeign(ctx, control.ForeignRequest{Cluster: "default", Registered: control.Held{CPU: 1000, MemoryMiB: 1000}}); err != nil {
		t.Fatal(err)
	}
	f.create(func(r *control.ServiceRequest) { r.Strategy, r.Desired = deployment.Daemon, nil })
	f.settle("at first")
	if v := f.view(); v.Desired != 1 || len(f.living()) != 1 {
		t.Errorf("%d are wanted, %d live", v.Desired, len(f.living()))
	}
}

// Whoever calls again after being killed gets what the first call was for.
func TestRest_IsHarmlessKilledAnywhere(t *testing.T) {
	const host = "i"
	_, id := controltest.Identity(host)
	for name, x := range map[string]struct {
		run   func(w *controltest.World) error
		check func(t *testing.T, w *controltest.World)
	}{
		"PutAttributes": {
			func(w *controltest.World) error {
				return w.PutAttributes(ctx, "default", []control.Attribute{{Name: "pool", Value: "a", Instance: id}})
			},
			func(t *testing.T, w *controltest.World) {
				if in := instanceOf(w, id); in.Custom["pool"] != "a" {
					t.Errorf("instance has %v", in.Custom)
				}
			},
		},
		"TagResource": {
			func(w *controltest.World) error {
				return w.TagResource(ctx, defaultResource, map[string]string{"team": "a"})
			},
			func(t *testing.T, w *controltest.World) {
				if tags, err := w.TagsOf(ctx, defaultResource); err != nil || len(tags) != 1 || tags["team"] != "a" {
					t.Errorf("cluster has %v, %v", tags, err)
				}
			},
		},
		"DeleteTaskDefinitions": {
			func(w *controltest.World) error {
				_, _, err := w.DeleteTaskDefinitions(ctx, []string{"app:1", "app:2"})
				return err
			},
			func(t *testing.T, w *controltest.World) {
				f := &control.Family{Name: "app"}
				if err := w.Store.Load(ctx, f); err != nil || f.Deleting != 2 {
					t.Errorf("%d are being deleted, %v", f.Deleting, err)
				}
			},
		},
		"DeregisterContainerInstance of one without an agent": {
			func(w *controltest.World) error {
				_, err := w.DeregisterContainerInstance(ctx, "default", "foreign", false)
				return err
			},
			func(t *testing.T, w *controltest.World) {
				if l := w.Ledger("foreign"); l.Status != control.Inactive || w.Lease("foreign").Version != 0 {
					t.Errorf("ledger %+v, lease %+v", l, w.Lease("foreign"))
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			controltest.KillEverywhere(t, func(t *testing.T) *controltest.World {
				w := controltest.NewWorld(t)
				w.AddInstance(host, control.Held{CPU: 10, MemoryMiB: 10})
				w.Put(&control.Instance{ID: "foreign", Cluster: "default", Foreign: true}, &control.Ledger{ID: "foreign", Cluster: "default", Status: control.Active, Epoch: 1})
				for n := 1; n <= 2; n++ {
					w.Put(&control.Definition{Family: "app", Number: n, Status: "INACTIVE", Definition: taskdef.Canonical(controltest.MinimalDefinition("app"))})
				}
				w.Put(&control.Family{Name: "app", Latest: 2})
				return w
			}, x.run, x.check)
		})
	}
}

func TestServices_AreWokenOnceForAllTheyLoseWithAnInstance(t *testing.T) {
	f := newYard(t, "i")
	f.create(func(r *control.ServiceRequest) { r.Desired = new(9) })
	f.settle("at first")
	_, i := controltest.Identity("i")
	if _, _, err := f.UpdateContainerInstancesState(ctx, "default", []string{i}, control.Draining); err != nil {
		t.Fatal(err)
	}
	f.Sent.TakeServiceKicks()
	f.Clock.Move(25 * time.Hour)
	f.Memory.CatchUp()
	if err := f.EndDrain(ctx, i); err != nil {
		t.Fatal(err)
	}
	if k := f.Sent.TakeServiceKicks(); len(k) != 1 || k[0].Service != "web" || len(k[0].Tasks) != 9 {
		t.Errorf("after the drain's end: %+v", k)
	}
	if _, err := f.FenceContainerInstance(ctx, "default", i); err != nil {
		t.Fatal(err)
	}
	if k := f.Sent.TakeServiceKicks(); len(k) != 1 || k[0].Service != "web" || len(k[0].Tasks) != 9 {
		t.Errorf("after the instance's end: %+v", k)
	}
}
