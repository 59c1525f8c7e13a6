package control_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/lambdas/internal/deployment"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

func TestServe_MakesWhatAServiceWants(t *testing.T) {
	f := newYard(t, "i", "j")
	made := f.create(func(r *control.ServiceRequest) {
		r.Tags, r.PropagateTags, r.ManagedTags = map[string]string{"team": "a"}, "SERVICE", true
	})
	if made.Status != control.ServiceActive || made.Desired != 3 || len(made.Deployments) != 1 || made.Deployments[0].State != deployment.InProgress || made.Tasks.Pending != 0 {
		t.Fatalf("created as %+v", made)
	}
	f.settle("at first")
	for _, one := range f.living() {
		if one.Group != "service:web" || one.StartedBy != made.Deployments[0].ID || one.Tags["team"] != "a" || one.Tags["aws:ecs:serviceName"] != "web" || one.Tags["aws:ecs:clusterName"] != "default" {
			t.Errorf("task is %+v", one)
		}
	}
	v := f.view()
	if d := v.Deployments[0]; !d.Primary || d.State != deployment.Completed || d.Desired != 3 || d.Tasks.Running != 3 {
		t.Errorf("deployment is %+v", d)
	}
	if !f.heard("(service web) has reached a steady state.") || !f.heard("(service web) has started 3 tasks: (task ") || !f.heard("deployment completed.") {
		t.Errorf("events are %+v", v.Events)
	}
	commits := f.Memory.Commits()
	for range 3 {
		f.Memory.CatchUp()
		if err := f.Serve(ctx, control.Kick{Cluster: "default"}); err != nil {
			t.Fatal(err)
		}
	}
	if n := f.Memory.Commits() - commits; n != 0 {
		t.Errorf("a steady service was written %d times", n)
	}
}

func TestServe_ScalesUpAndDown(t *testing.T) {
	f := newYard(t, "i", "j")
	f.create()
	f.settle("at first")
	f.update(func(r *control.ServiceUpdate) { r.Desired = new(5) })
	f.settle("up")
	for _, name := range f.names {
		_, id := controltest.Identity(name)
		f.Sent.TakeCommands(id)
	}
	f.update(func(r *control.ServiceUpdate) { r.Desired = new(1) })
	f.settle("down")
	told := 0
	for _, name := range f.names {
		_, id := controltest.Identity(name)
		for _, m := range f.Sent.TakeCommands(id) {
			if _, stop := m.(*wire.Stop); stop {
				told++
			}
		}
	}
	if told != 4 {
		t.Errorf("agents were told of %d stops, want 4", told)
	}
	left := f.living()
	if len(left) != 1 || left[0].StartedBy != f.view().Deployments[0].ID {
		t.Errorf("left are %+v", left)
	}
	for _, one := range f.Memory.Tasks() {
		if one.LastStatus == task.Stopped && (one.StopCause != task.ServiceCause || !strings.HasPrefix(one.StoppedReason, "Scaling activity initiated by (deployment ecs-svc/")) {
			t.Errorf("stopped because of %s: %s", one.StopCause, one.StoppedReason)
		}
	}
}

func TestServe_OfTwoRunsAtOnceOneDecidesAgain(t *testing.T) {
	for call := 1; call <= 3; call++ {
		t.Run(fmt.Sprint("before commit ", call), func(t *testing.T) {
			f := newYard(t, "i", "j")
			f.most = 6
			f.create()
			store := f.Store
			other := func() {
				f.Store = store
				if err := f.Serve(ctx, control.Kick{Cluster: "default", Service: "web"}); err != nil {
					t.Error(err)
				}
			}
			f.Store = &between{Store: store, call: "Commit", nth: call, do: other}
			if err := f.Serve(ctx, control.Kick{Cluster: "default", Service: "web"}); err != nil {
				t.Fatal(err)
			}
			f.Store = store
			if n := len(f.living()); n != 3 {
				t.Errorf("%d tasks were made, want 3", n)
			}
		})
	}
}

func TestServe_IsHarmlessKilledAnywhere(t *testing.T) {
	settled := func(t *testing.T) *yard {
		f := newYard(t, "i", "j")
		f.create()
		f.settle("at first")
		f.Memory.CatchUp()
		return f
	}
	var f *yard
	for name, c := range map[string]struct {
		build func(t *testing.T)
		want  int
	}{
		"creating": {func(t *testing.T) { f = newYard(t, "i", "j"); f.create() }, 3},
		"stopping": {func(t *testing.T) {
			f = settled(t)
			f.update(func(r *control.ServiceUpdate) { r.Desired = new(1) })
		}, 1},
		"rolling": {func(t *testing.T) {
			f = settled(t)
			f.update(func(r *control.ServiceUpdate) { r.Definition = "app:2" })
		}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			controltest.KillEverywhere(t, func(t *testing.T) *controltest.World { c.build(t); f.least, f.most = min(c.want, 1), 6; return f.World },
				func(w *controltest.World) error {
					w.Memory.CatchUp()
					return w.Serve(ctx, control.Kick{Cluster: "default", Service: "web"})
				},
				func(t *testing.T, _ *controltest.World) {
					f.least = 0
					f.settle("after the kill")
					if n := len(f.living()); n != c.want {
						t.Errorf("%d tasks live, want %d", n, c.want)
					}
				})
		})
	}
}

func TestServe_AnIndexThatHidesTasksMakesNoMoreOfThem(t *testing.T) {
	f := newYard(t, "i", "j")
	f.most = 3
	f.Memory.Lag = 1000
	f.create()
	for range 4 {
		if err := f.Serve(ctx, control.Kick{Cluster: "default", Service: "web"}); err != nil {
			t.Fatal(err)
		}
		if n := len(f.living()); n != 3 {
			t.Fatalf("%d tasks live, want 3", n)
		}
	}
	v, _, err := f.DescribeServices(ctx, "default", []string{"web"})
	if err != nil || v[0].Tasks.Pending != 3 {
		t.Errorf("described as %+v, %v", v[0].Tasks, err)
	}
}

func TestServe_TasksOnASilentHostFillTheirPlacesWithoutRunning(t *testing.T) {
	f := newYard(t, "i", "j")
	f.create()
	f.settle("at first")
	f.kill("i")
	f.Memory.CatchUp()
	if err := f.Serve(ctx, control.Kick{Cluster: "default"}); err != nil {
		t.Fatal(err)
	}
	if n := len(f.living()); n != 3 {
		t.Errorf("%d tasks live, want 3: a host that was silent for a moment is not replaced", n)
	}
	if v := f.view(); v.Tasks.Running == 3 {
		t.Errorf("a silent host's tasks are shown as running")
	}
	f.reap("i")
	f.settle("healed")
}

func TestServe_DaemonsFollowTheInstances(t *testing.T) {
	f := newYard(t, "i", "j")
	f.Memory.CatchUp()
	if v := f.create(func(r *control.ServiceRequest) { r.Strategy, r.Desired = deployment.Daemon, nil }); v.Desired != 2 {
		t.Errorf("made with a desired count of %d: a waiter would take it for stable", v.Desired)
	}
	f.settle("at first")
	on := func() map[string]int {
		n := map[string]int{}
		for _, one := range f.living() {
			n[one.Instance]++
		}
		return n
	}
	_, i := controltest.Identity("i")
	_, j := controltest.Identity("j")
	if n := on(); len(n) != 2 || n[i] != 1 || n[j] != 1 || f.view().Desired != 2 {
		t.Fatalf("one on each instance: %v", n)
	}
	k := f.AddInstance("k", control.Held{CPU: 10, MemoryMiB: 100})
	f.names = append(f.names, "k")
	f.sweep()
	f.settle("one more")
	if n := on(); n[k] != 1 {
		t.Fatalf("the new instance has %v", n)
	}
	if _, _, err := f.UpdateContainerInstancesState(ctx, "default", []string{i}, control.Draining); err != nil {
		t.Fatal(err)
	}
	f.settle("one is drained")
	if n := on(); n[i] != 0 || len(n) != 2 {
		t.Fatalf("the drained instance has %v", n)
	}
	f.kill("j")
	f.reap("j")
	f.sweep()
	f.settle("one is lost")
	if n := on(); len(n) != 1 || n[k] != 1 || f.view().Desired != 1 {
		t.Fatalf("left %v", n)
	}
	f.update(func(r *control.ServiceUpdate) { r.Definition = "app:2" })
	f.settle("rolled")
}

func TestServe_ReplacesWhatADrainedInstanceHas(t *testing.T) {
	f := newYard(t, "i", "j")
	f.create()
	f.settle("at first")
	f.least, f.most = 3, 6
	_, i := controltest.Identity("i")
	if _, _, err := f.UpdateContainerInstancesState(ctx, "default", []string{i}, control.Draining); err != nil {
		t.Fatal(err)
	}
	for range 30 {
		f.step()
	}
	f.settle("drained")
	for _, one := range f.living() {
		if one.Instance == i {
			t.Errorf("task %s is still on the drained instance", one.ID)
		}
	}
}

func TestServe_StopsAnUnhealthyTaskOnceAnotherHasItsPlace(t *testing.T) {
	f := newYard(t, "i", "j")
	f.create()
	f.settle("at first")
	sick := f.living()[0]
	sick.Health = task.Unhealthy
	f.Put(&sick)
	f.sweep()
	for range 20 {
		f.step()
	}
	got := f.Task(sick.ID)
	if got.LastStatus != task.Stopped || got.StopCause != task.UnhealthyCause || got.StoppedReason != "Task failed container health checks" {
		t.Errorf("the sick task is %s because of %q: %s", got.LastStatus, got.StopCause, got.StoppedReason)
	}
	f.settle("healed")
}

func TestServe_AnUnhealthyTaskHasItsGrace(t *testing.T) {
	f := newYard(t, "i", "j")
	f.create(func(r *control.ServiceRequest) { r.HealthGrace = new(3600) })
	f.settle("at first")
	sick := f.living()[0]
	sick.Health = task.Unhealthy
	f.Put(&sick)
	f.sweep()
	for range 10 {
		f.step()
	}
	if got := f.Task(sick.ID); got.DesiredStatus != task.DesiredRunning {
		t.Errorf("stopped within its grace")
	}
}
