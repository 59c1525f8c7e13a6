package control_test

import (
	"fmt"
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

func (f *yard) sweep() {
	f.t.Helper()
	f.Memory.CatchUp()
	if err := f.Sweep(ctx); err != nil {
		f.t.Fatal(err)
	}
}
