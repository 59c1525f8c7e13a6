package control_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/lambdas/internal/deployment"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
)

// yard is a control plane with machines that do as they are told, one step at a
// time: admission, services and agents each get what was sent to them.
type yard struct {
	*controltest.World
	t     *testing.T
	names []string
	// bad are families none of whose tasks can be started; dead are machines that
	// say nothing.
	bad, dead map[string]bool
	n         int64
	// least and most bound service web, where they are set: what is broken after any
	// commit fails the test.
	least, most int
}

func newYard(t *testing.T, hosts ...string) *yard {
	f := &yard{World: controltest.NewWorld(t), t: t, bad: map[string]bool{}, dead: map[string]bool{}}
	for i, name := range hosts {
		f.names = append(f.names, name)
		f.AddInstance(name, control.Held{CPU: 1000, MemoryMiB: 1000}, func(in *control.Instance, _ *control.Ledger, lease *control.Lease) {
			in.Zone = fmt.Sprint("zone-", i)
			lease.Zone = in.Zone
		})
	}
	for n := 2; n <= 4; n++ {
		f.Put(&control.Definition{Family: "app", Number: n, Status: "ACTIVE", Definition: taskdef.Canonical(controltest.MinimalDefinition("app")), RegisteredAt: f.Clock.Now()})
	}
	f.Put(&control.Family{Name: "app", Latest: 4, Active: 4})
	f.Put(&control.Definition{Family: "bad", Number: 1, Status: "ACTIVE", Definition: taskdef.Canonical(controltest.MinimalDefinition("bad")), RegisteredAt: f.Clock.Now()})
	f.Put(&control.Family{Name: "bad", Latest: 1, Active: 1})
	f.bad["bad"] = true
	check := f.Memory.OnCommit
	f.Memory.OnCommit = func(s *controltest.Store) {
		check(s)
		f.n++
	}
	return f
}

func (f *yard) create(change ...func(*control.ServiceRequest)) *control.ServiceView {
	f.t.Helper()
	r := control.ServiceRequest{Cluster: "default", Name: "web", Definition: "app:1", Desired: new(3)}
	for _, do := range change {
		do(&r)
	}
	v, err := f.CreateService(ctx, r)
	if err != nil {
		f.t.Fatal(err)
	}
	return v
}

func (f *yard) update(change func(*control.ServiceUpdate)) *control.ServiceView {
	f.t.Helper()
	r := control.ServiceUpdate{Cluster: "default", Name: "web"}
	change(&r)
	v, err := f.UpdateService(ctx, r)
	if err != nil {
		f.t.Fatal(err)
	}
	return v
}

func (f *yard) view() *control.ServiceView {
	f.t.Helper()
	f.Memory.CatchUp()
	found, _, err := f.DescribeServices(ctx, "default", []string{"web"})
	if err != nil || len(found) != 1 {
		f.t.Fatalf("describe: %v, %v", found, err)
	}
	return &found[0]
}

// stable is what the waiter services_stable asks.
func (f *yard) stable() bool {
	v := f.view()
	return len(v.Deployments) == 1 && v.Tasks.Running == v.Desired
}

// living are the tasks of service web that are not STOPPED, by id.
func (f *yard) living() []control.Task {
	var out []control.Task
	for _, t := range f.Memory.Tasks() {
		if t.Service == "web" && t.LastStatus != task.Stopped {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b control.Task) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// step lets everybody do what was sent to them, once.
func (f *yard) step() {
	f.t.Helper()
	f.Clock.Move(time.Second)
	for _, k := range f.Sent.TakeServiceKicks() {
		if err := f.Serve(ctx, k); err != nil {
			f.t.Fatal(err)
		}
		f.bounds()
	}
	for _, k := range f.Sent.TakeKicks() {
		if err := f.Admit(ctx, k); err != nil {
			f.t.Fatal(err)
		}
	}
	for _, name := range f.names {
		if !f.dead[name] {
			f.agent(name)
		}
	}
}

// agent tells of each task on a machine what became of it.
func (f *yard) agent(name string) {
	identity, id := controltest.Identity(name)
	for _, t := range f.living() {
		if t.Instance != id || !t.LastStatus.Open() {
			continue
		}
		r := &wire.Report{Header: wire.Header{Instance: id}, Origin: wire.Origin{Incarnation: "inc-" + name, N: f.n + 1},
			Snapshot: wire.Snapshot{Task: t.ID, Attempt: t.Attempt, Status: task.Running, StartedAt: f.Clock.Now()}}
		f.n++
		switch {
		case t.DesiredStatus == task.DesiredStopped:
			r.Status, r.Cause = task.Stopped, task.ExitedCause
			r.StartedAt = t.StartedAt
		case f.bad[t.Family]:
			r.Status, r.Cause, r.StartedAt = task.Stopped, task.FailedCause, time.Time{}
		case t.LastStatus == task.Running:
			continue
		}
		if err := f.IngestReport(ctx, control.Sender{Identity: identity, SentAt: f.Clock.Now()}, r); err != nil {
			f.t.Fatal(err)
		}
		f.bounds()
	}
}

// bounds checks service web against its bounds.
func (f *yard) bounds() {
	f.t.Helper()
	living, healthy := f.living(), 0
	for _, t := range living {
		if t.LastStatus == task.Running && t.DesiredStatus == task.DesiredRunning && f.Ledger(t.Instance).Connected {
			healthy++
		}
	}
	if f.most > 0 && len(living) > f.most {
		f.t.Errorf("%d tasks live, more than %d", len(living), f.most)
	}
	if healthy < f.least {
		f.t.Errorf("%d tasks are healthy, fewer than %d", healthy, f.least)
	}
}

// settle goes on until the service is stable, sweeping when nothing else happens.
func (f *yard) settle(why string) {
	f.t.Helper()
	for n := range 200 {
		f.step()
		if n > 2 && f.stable() {
			return
		}
		if n%5 == 4 {
			f.Clock.Move(time.Minute)
			f.Memory.CatchUp()
			if err := f.Sweep(ctx); err != nil {
				f.t.Fatal(err)
			}
		}
	}
	v := f.view()
	f.t.Fatalf("%s: not stable: %+v, deployments %+v, events %+v", why, v.Tasks, v.Deployments, v.Events)
}

func (f *yard) heard(message string) bool {
	return slices.ContainsFunc(f.view().Events, func(e control.ServiceEvent) bool { return strings.Contains(e.Message, message) })
}

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

func TestServe_RollsWithinItsBounds(t *testing.T) {
	for name, rules := range map[string]struct{ minimum, maximum, least, most int }{
		"as ECS does by default": {100, 200, 3, 6},
		"in place":               {34, 100, 2, 3},
		"some of both":           {67, 134, 3, 4},
	} {
		t.Run(name, func(t *testing.T) {
			f := newYard(t, "i", "j")
			f.create(func(r *control.ServiceRequest) {
				r.Deployment = control.DeploymentRules{MaximumPercent: &rules.maximum, MinimumPercent: &rules.minimum}
			})
			f.settle("at first")
			f.least, f.most = rules.least, rules.most
			if name == "in place" || name == "some of both" {
				f.least = (3*rules.minimum + 99) / 100
			}
			v := f.update(func(r *control.ServiceUpdate) { r.Definition = "app:2" })
			if len(v.Deployments) != 2 || v.Deployments[0].Number != 2 || v.Deployments[1].Primary {
				t.Fatalf("rolls with %+v", v.Deployments)
			}
			f.settle("rolled")
			for _, one := range f.living() {
				if one.Number != 2 || one.StartedBy != v.Deployments[0].ID {
					t.Errorf("task %s is of revision %d", one.ID, one.Number)
				}
			}
		})
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

// Two runs of a rollout whose reads are as far apart as can be.
func TestServe_TwoRunsOfARolloutStopNoMoreThanOne(t *testing.T) {
	for call := 1; call <= 8; call++ {
		for _, kind := range []string{"Load", "Commit"} {
			f := newYard(t, "i", "j")
			f.create(func(r *control.ServiceRequest) {
				r.Deployment = control.DeploymentRules{MaximumPercent: new(134), MinimumPercent: new(67)}
			})
			f.settle("at first")
			f.least, f.most = 3, 4
			f.least = 2 + 1 - 1
			f.update(func(r *control.ServiceUpdate) { r.Definition = "app:2" })
			store := f.Store
			f.Store = &between{Store: store, call: kind, nth: call, do: func() {
				f.Store = store
				f.step()
				f.step()
			}}
			if err := f.Serve(ctx, control.Kick{Cluster: "default", Service: "web"}); err != nil {
				t.Fatal(err)
			}
			f.Store = store
			f.bounds()
			f.settle("rolled")
		}
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

func TestServe_ABadRevisionTripsTheBreakerAndGoesBack(t *testing.T) {
	yes := true
	f := newYard(t, "i", "j")
	f.create(func(r *control.ServiceRequest) { r.Deployment = control.DeploymentRules{Breaker: &yes, Rollback: &yes} })
	f.settle("at first")
	first := f.view().Deployments[0].ID
	f.least, f.most = 3, 6
	bad := f.update(func(r *control.ServiceUpdate) { r.Definition = "bad:1" }).Deployments[0].ID
	f.settle("rolled back")
	v := f.view()
	if d := v.Deployments[0]; d.ID != first || d.Family != "app" || d.State != deployment.Completed || v.Deployments[0].RollingBack {
		t.Errorf("after the rollback %+v", v.Deployments)
	}
	if v.Family != "app" || v.Number != 1 {
		t.Errorf("the service is described with %s:%d", v.Family, v.Number)
	}
	if !f.heard("(service web) (deployment "+bad+") deployment failed: tasks failed to start.") || !f.heard("rolling back to deployment "+first) {
		t.Errorf("events are %+v", v.Events)
	}
	rows := f.history()
	if len(rows) != 2 || rows[0].Status != control.RolloutRollbackSuccessful || rows[1].Status != control.RolloutSuccessful || rows[0].Failures < 3 || rows[0].Threshold != 3 || !rows[0].Tripped {
		t.Errorf("history is %+v", rows)
	}
}

func TestServe_WithoutRollbackABadRevisionEndsAndTheOldGoOn(t *testing.T) {
	yes := true
	f := newYard(t, "i", "j")
	f.create(func(r *control.ServiceRequest) { r.Deployment = control.DeploymentRules{Breaker: &yes} })
	f.settle("at first")
	f.least, f.most = 3, 6
	f.update(func(r *control.ServiceUpdate) { r.Definition = "bad:1" })
	for range 30 {
		f.step()
	}
	v := f.view()
	if d := v.Deployments; len(d) != 2 || d[0].State != deployment.Failed || d[0].Desired != 0 || d[0].Failed < 3 || d[1].Tasks.Running != 3 {
		t.Errorf("deployments are %+v", v.Deployments)
	}
	if rows := f.history(); rows[0].Status != control.RolloutStopped || !rows[0].Tripped {
		t.Errorf("history is %+v", rows)
	}
	f.update(func(r *control.ServiceUpdate) { r.Definition = "app:2" })
	f.settle("mended")
}

func (f *yard) history() []control.ServiceDeployment {
	f.t.Helper()
	ids, _, err := f.Store.ServiceDeployments(ctx, "default", "web", control.Page{})
	if err != nil {
		f.t.Fatal(err)
	}
	var out []control.ServiceDeployment
	for _, id := range ids {
		row := &control.ServiceDeployment{Cluster: "default", Service: "web", ID: id}
		if err := f.Store.Load(ctx, row); err != nil {
			f.t.Fatal(err)
		}
		out = append(out, *row)
	}
	return out
}

// kill silences a machine and lets it be reaped.
func (f *yard) kill(name string) {
	f.dead[name] = true
	_, id := controltest.Identity(name)
	l, lease := f.Ledger(id), f.Lease(id)
	l.Connected, lease.Stage = false, control.StageSuspect
	f.Put(&l, &lease)
}

func (f *yard) reap(name string) {
	_, id := controltest.Identity(name)
	l, lease := f.Ledger(id), f.Lease(id)
	l.Epoch, l.Stale, l.Cause = l.Epoch+1, l.Open, control.ReapedCause
	lease.Stage, lease.Epoch = control.StageLost, l.Epoch
	f.Put(&l, &lease)
	f.Memory.CatchUp()
	if err := f.CloseOlder(ctx, id); err != nil {
		f.t.Fatal(err)
	}
}

// The reason why this product is there: a host dies in the middle, without a word.
func TestServe_ARolloutAndARollbackFinishThoughAHostDies(t *testing.T) {
	yes := true
	for _, to := range []string{"app:2", "bad:1"} {
		for at := range 8 {
			t.Run(fmt.Sprint(to, " killed at step ", at), func(t *testing.T) {
				f := newYard(t, "i", "j", "k")
				f.create(func(r *control.ServiceRequest) { r.Deployment = control.DeploymentRules{Breaker: &yes, Rollback: &yes} })
				f.settle("at first")
				f.most = 6
				f.update(func(r *control.ServiceUpdate) { r.Definition = to })
				for range at {
					f.step()
				}
				f.kill("i")
				for range 10 {
					f.step()
				}
				f.reap("i")
				f.settle("without the host")
				want := 2
				if to == "bad:1" {
					want = 1
				}
				for _, one := range f.living() {
					if one.Family != "app" || one.Number != want {
						t.Errorf("task of %s:%d lives", one.Family, one.Number)
					}
				}
			})
		}
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

func (f *yard) sweep() {
	f.t.Helper()
	f.Memory.CatchUp()
	if err := f.Sweep(ctx); err != nil {
		f.t.Fatal(err)
	}
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

func TestDeleteService_IsDoneWhenNothingLivesAndDescribableForADay(t *testing.T) {
	f := newYard(t, "i", "j")
	f.create()
	f.settle("at first")
	if _, err := f.DeleteService(ctx, "default", "web", false); err == nil || !strings.Contains(err.Error(), "The service cannot be stopped while it is scaled above 0.") {
		t.Fatalf("without force: %v", err)
	}
	v, err := f.DeleteService(ctx, "default", "web", true)
	if err != nil || v.Status != control.ServiceDraining || v.Desired != 0 || v.Tasks.Running != 3 {
		t.Fatalf("%+v, %v", v, err)
	}
	if _, err := f.CreateService(ctx, control.ServiceRequest{Cluster: "default", Name: "web", Definition: "app", Desired: new(1)}); err == nil || !strings.Contains(err.Error(), "still Draining") {
		t.Errorf("created again while it drains: %v", err)
	}
	for range 6 {
		f.step()
	}
	if v := f.view(); v.Status != control.ServiceInactive || len(v.Deployments) != 0 || v.Tasks != (control.TaskCount{}) {
		t.Fatalf("after all have ended it is %+v", v)
	}
	if _, err := f.UpdateService(ctx, control.ServiceUpdate{Cluster: "default", Name: "web", Desired: new(1)}); codeOf(err) != control.ServiceNotActiveException {
		t.Errorf("update: %v", err)
	}
	f.Clock.Move(23 * time.Hour)
	f.view()
	f.create()
	f.settle("made again")
	if _, err := f.DeleteService(ctx, "default", "web", true); err != nil {
		t.Fatal(err)
	}
	for range 6 {
		f.step()
	}
	f.Clock.Move(25 * time.Hour)
	if _, missing, err := f.DescribeServices(ctx, "default", []string{"web"}); err != nil || len(missing) != 1 {
		t.Errorf("a day later: missing %v, %v", missing, err)
	}
}

func codeOf(err error) string {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f.Code
	}
	return fmt.Sprint(err)
}

func TestCreateService_OfAClusterThatIsDeletedMeanwhileOneOfBothFails(t *testing.T) {
	for _, first := range []string{"create", "delete"} {
		w := controltest.NewWorld(t)
		create := func() error {
			_, err := w.CreateService(ctx, control.ServiceRequest{Cluster: "default", Name: "web", Definition: "app:1", Desired: new(1)})
			return err
		}
		remove := func() error { _, err := w.DeleteCluster(ctx, "default"); return err }
		store, outer, inner := w.Store, create, remove
		if first == "delete" {
			outer, inner = remove, create
		}
		var within error
		w.Store = &between{Store: store, call: "Commit", nth: 1, do: func() {
			w.Store = store
			within = inner()
		}}
		without := outer()
		if within != nil || without == nil {
			t.Errorf("%s began: it gave %v, the other %v", first, without, within)
		}
	}
}

func TestServices_ChangesAreHarmlessKilledAnywhere(t *testing.T) {
	var f *yard
	settled := func(t *testing.T) *controltest.World {
		f = newYard(t, "i", "j")
		f.create()
		f.settle("at first")
		return f.World
	}
	for name, c := range map[string]struct {
		build func(t *testing.T) *controltest.World
		run   func(w *controltest.World) error
		check func(t *testing.T)
	}{
		"create": {func(t *testing.T) *controltest.World { f = newYard(t, "i", "j"); return f.World },
			func(w *controltest.World) error {
				_, err := w.CreateService(ctx, control.ServiceRequest{Cluster: "default", Name: "web", Definition: "app:1", Desired: new(2), Token: "t"})
				return err
			}, func(t *testing.T) {
				f.settle("made")
				if n := len(f.living()); n != 2 || len(f.history()) != 1 {
					t.Errorf("%d live, history %+v", n, f.history())
				}
			}},
		"update": {settled,
			func(w *controltest.World) error {
				_, err := w.UpdateService(ctx, control.ServiceUpdate{Cluster: "default", Name: "web", Definition: "app:2"})
				return err
			}, func(t *testing.T) {
				f.settle("rolled")
				if rows := f.history(); len(rows) != 2 || rows[0].Status != control.RolloutSuccessful {
					t.Errorf("history %+v", rows)
				}
			}},
		"delete": {settled,
			func(w *controltest.World) error { _, err := w.DeleteService(ctx, "default", "web", true); return err },
			func(t *testing.T) {
				f.sweep()
				for range 6 {
					f.step()
				}
				if v := f.view(); v.Status != control.ServiceInactive {
					t.Errorf("it is %s", v.Status)
				}
			}},
	} {
		t.Run(name, func(t *testing.T) {
			controltest.KillEverywhere(t, c.build, c.run, func(t *testing.T, _ *controltest.World) { c.check(t) })
		})
	}
}
