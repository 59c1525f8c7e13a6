package control_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/lambdas/internal/deployment"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

var sieges = flag.Int("sieges", 12, "how many random lives TestServe_AnyLifeOfServicesComesToRest lives")

// siege is the life of some services under everything that may happen to them.
type siege struct {
	*yard
	random *rand.Rand
	done   map[string]int
}

func (x *siege) name() string { return []string{"web", "daemon", "one"}[x.random.IntN(3)] }

// refused notes an answer; any refusal will do, a fault of ours will not.
func (x *siege) refused(what string, err error) {
	x.done[what]++
	switch {
	case err == nil:
	case fault.Is(err, fault.Invalid), fault.Is(err, fault.NotFound), fault.Is(err, fault.Unavailable), fault.Is(err, fault.Conflict):
		x.done[what+" refused"]++
	default:
		x.t.Errorf("%s: %v", what, err)
	}
}

func (x *siege) create(name string) {
	r := control.ServiceRequest{Cluster: "default", Name: name, Definition: []string{"app:1", "app:2", "bad:1"}[x.random.IntN(3)]}
	if x.random.IntN(3) == 0 {
		r.Token = "token"
	}
	yes := x.random.IntN(2) == 0
	r.Deployment = control.DeploymentRules{Breaker: &yes, Rollback: &yes}
	if name == "daemon" {
		r.Strategy = "DAEMON"
	} else {
		r.Desired = new(x.random.IntN(5))
	}
	_, err := x.CreateService(ctx, r)
	x.refused("create", err)
}

func (x *siege) change(name string) {
	r := control.ServiceUpdate{Cluster: "default", Name: name, Force: x.random.IntN(4) == 0}
	switch x.random.IntN(4) {
	case 0:
		r.Definition = []string{"app:1", "app:2", "app:3", "bad:1"}[x.random.IntN(4)]
	case 1:
		r.Desired = new(x.random.IntN(5))
	case 2:
		r.Deployment = control.DeploymentRules{MinimumPercent: new(x.random.IntN(100)), MaximumPercent: new(100 + x.random.IntN(100))}
	}
	_, err := x.UpdateService(ctx, r)
	x.refused("update", err)
}

func (x *siege) stopRollout(name string) {
	s := &control.Service{Cluster: "default", Name: name}
	_ = x.Memory.Load(ctx, s)
	if s.Rollout == "" {
		s.Rollout = "none"
	}
	x.refused("stop deployment", x.StopServiceDeployment(ctx, control.ServiceItem{Cluster: "default", Service: name, ID: s.Rollout}, x.random.IntN(2) == 0))
}

// open are the tasks of services that are not STOPPED, by id: a seed is a life.
func (x *siege) open() []control.Task {
	var out []control.Task
	for _, t := range x.Memory.Tasks() {
		if t.Service != "" && t.LastStatus != task.Stopped {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b control.Task) int { return strings.Compare(a.ID, b.ID) })
	return out
}

func (x *siege) any() *control.Task {
	if all := x.open(); len(all) > 0 {
		return &all[x.random.IntN(len(all))]
	}
	return nil
}

func (x *siege) reports(name string) {
	identity, id := controltest.Identity(name)
	for _, t := range x.open() {
		if t.Instance == id && t.LastStatus.Open() {
			x.said(identity, id, name, t)
		}
	}
}

// said is what an agent says next of a task.
func (x *siege) said(identity, id, name string, t control.Task) {
	x.n++
	r := &wire.Report{Header: wire.Header{Instance: id}, Origin: wire.Origin{Incarnation: "inc-" + name, N: x.n},
		Snapshot: wire.Snapshot{Task: t.ID, Attempt: t.Attempt, Status: task.Running, StartedAt: x.Clock.Now()}}
	switch {
	case t.DesiredStatus == task.DesiredStopped:
		r.Status, r.Cause, r.StartedAt = task.Stopped, task.ExitedCause, t.StartedAt
	case x.bad[t.Family]:
		r.Status, r.Cause, r.StartedAt = task.Stopped, task.FailedCause, time.Time{}
	case t.LastStatus == task.Running:
		return
	}
	if err := x.IngestReport(ctx, control.Sender{Identity: identity, SentAt: x.Clock.Now()}, r); err != nil && !fault.Is(err, fault.Unavailable) {
		x.t.Errorf("report: %v", err)
	}
}

func (x *siege) event() {
	name, host := x.name(), x.names[x.random.IntN(len(x.names))]
	_, id := controltest.Identity(host)
	x.done["events"]++
	switch what := x.random.IntN(40); {
	case what < 3:
		x.create(name)
	case what < 8:
		x.change(name)
	case what < 10:
		_, err := x.DeleteService(ctx, "default", name, x.random.IntN(2) == 0)
		x.refused("delete", err)
	case what < 12:
		x.stopRollout(name)
	case what < 14:
		if t := x.any(); t != nil {
			_, err := x.StopTask(ctx, "default", t.ID, "a person")
			x.refused("stop", err)
		}
	case what < 15:
		if t := x.any(); t != nil {
			t.ProtectedUntil = x.Clock.Now().Add(time.Duration(x.random.IntN(30)) * time.Minute)
			x.Put(t)
		}
	case what < 17:
		to := []control.InstanceStatus{control.Active, control.Active, control.Draining}[x.random.IntN(3)]
		setState(x.t, x.World, id, to)
	case what < 19:
		l := x.Ledger(id)
		l.Connected = !l.Connected
		x.Put(&l)
	case what < 20: // lost: reaped and closed
		l := x.Ledger(id)
		l.Epoch, l.Stale, l.Cause, l.Connected = l.Epoch+1, l.Open, control.ReapedCause, false
		x.Put(&l)
		if x.random.IntN(2) == 0 {
			x.Memory.CatchUp()
		}
		_ = x.CloseOlder(ctx, id)
	case what < 21:
		d := &control.Definition{Family: "app", Number: 1 + x.random.IntN(3)}
		_ = x.Memory.Load(ctx, d)
		d.Status = []string{"ACTIVE", "INACTIVE"}[x.random.IntN(2)]
		x.Put(d)
	case what < 27:
		k := control.Kick{Cluster: "default", Service: []string{"", name, name, "nope"}[x.random.IntN(4)]}
		if t := x.any(); t != nil {
			k.Tasks = []string{t.ID, strings.Repeat("f", 32)}
		}
		if x.random.IntN(3) == 0 {
			x.Memory.Calls.KillAt(1+x.random.IntN(25), x.random.IntN(2) == 0)
			x.done["killed"]++
		}
		_ = x.Serve(ctx, k)
		x.Memory.Calls.Reset()
	case what < 31:
		var ids []string
		for _, t := range x.open() {
			if t.LastStatus == task.Provisioning && len(ids) < 10 {
				ids = append(ids, t.ID)
			}
		}
		_ = x.Admit(ctx, control.Kick{Cluster: "default", Tasks: ids})
	case what < 36:
		if x.Ledger(id).Connected {
			x.reports(host)
		}
	case what < 37:
		x.Memory.CatchUp()
		_ = x.Sweep(ctx)
		if x.random.IntN(2) == 0 { // kicks are lost
			x.Sent.TakeServiceKicks()
			x.Sent.TakeKicks()
		}
	default:
		x.Clock.Move(time.Duration(x.random.IntN(300)) * time.Second)
	}
	if x.random.IntN(4) == 0 {
		x.Memory.CatchUp()
	}
}

func TestServe_AnyLifeOfServicesComesToRest(t *testing.T) {
	done := map[string]int{}
	for seed := range uint64(*sieges) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			x := &siege{yard: newYard(t, "i", "j", "k"), random: rand.New(rand.NewPCG(seed, 23)), done: done}
			for range 400 {
				x.event()
			}
			x.rest(seed%2 == 0)
		})
	}
	t.Logf("%v", done)
	for what, least := range map[string]int{"create": 10, "update": 20, "delete": 5, "stop deployment": 2, "killed": 5} {
		if n := done[what] - done[what+" refused"]; n < least**sieges/2 {
			t.Errorf("%q was done %d times only in %d lives", what, n, *sieges)
		}
	}
}

// rest heals all, and sees that each service comes to what was asked of it last, or
// then anew.
func (x *siege) rest(anew bool) {
	x.t.Helper()
	x.Clock.Move(time.Hour) // protection is over
	for _, name := range x.names {
		_, id := controltest.Identity(name)
		x.Memory.CatchUp()
		if err := x.CloseOlder(ctx, id); err != nil {
			x.t.Fatal(err)
		}
		l := x.Ledger(id)
		l.Connected = true
		x.Put(&l)
		setState(x.t, x.World, id, control.Active)
	}
	for n := 1; n <= 4; n++ {
		d := &control.Definition{Family: "app", Number: n}
		_ = x.Memory.Load(ctx, d)
		d.Status = "ACTIVE"
		x.Put(d)
	}
	for _, name := range []string{"web", "one", "daemon"} {
		r := control.ServiceUpdate{Cluster: "default", Name: name, Deployment: control.DeploymentRules{MinimumPercent: new(50)}}
		if name != "daemon" {
			r.Deployment.MaximumPercent = new(200)
		}
		if anew {
			r.Definition, r.Force = "app:4", true
		}
		_, err := x.UpdateService(ctx, r)
		x.refused("heal", err)
	}
	for range 400 {
		x.Clock.Move(10 * time.Second)
		x.Memory.CatchUp()
		if err := x.Sweep(ctx); err != nil {
			x.t.Fatal(err)
		}
		for _, k := range x.Sent.TakeServiceKicks() {
			if err := x.Serve(ctx, k); err != nil {
				x.t.Fatal(err)
			}
		}
		for _, k := range x.Sent.TakeKicks() {
			if err := x.Admit(ctx, k); err != nil {
				x.t.Fatal(err)
			}
		}
		for _, name := range x.names {
			x.reports(name)
		}
		if x.rests() == "" {
			return
		}
	}
	x.t.Errorf("never at rest: %s", x.rests())
}

// rests is what a service still lacks.
func (x *siege) rests() string {
	for _, name := range []string{"web", "one", "daemon"} {
		s, live := &control.Service{Cluster: "default", Name: name}, &control.Live{Cluster: "default", Service: name}
		if err := x.Memory.Load(ctx, s, live); err != nil {
			x.t.Fatal(err)
		}
		running, all := 0, 0
		for _, t := range x.open() {
			if t.Service != name {
				continue
			}
			all++
			if t.LastStatus == task.Running && t.DesiredStatus == task.DesiredRunning && t.Family == s.Family && t.Number == s.Number {
				running++
			}
		}
		want := s.Desired
		switch {
		case s.Status == control.ServiceActive && (s.Family == "bad" || s.Deployments[0].State == deployment.Failed):
			x.done["never to be well"]++
			continue // it tries on, or is left as it is
		case s.Status != control.ServiceActive:
			want = 0
		case name == "daemon":
			want = len(x.names)
		}
		if s.Status == control.ServiceDraining || running != want || all != want || live.Live != want ||
			s.Status == control.ServiceActive && (len(s.Deployments) != 1 || s.Deployments[0].State != deployment.Completed || s.Rollout != "") {
			return fmt.Sprintf("%s %s: %d run of %d, %d live, %d counted, deployments %+v rollout %q announced %+v", name, s.Status, running, want, all, live.Live, s.Deployments, s.Rollout, s.Announced)
		}
	}
	return ""
}
