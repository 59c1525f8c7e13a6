package control_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

var races = flag.Int("races", 10, "how many random races TestServe_RacesKeepTheBounds makes")

const raceSteps = 400

// race is two runs of Serve at once, each of which goes on by one call at a time,
// or dies there, while the rest of the control plane, the machines and people do
// what they do. What a run's commit may not do is checked after each.
type race struct {
	*yard
	random  *rand.Rand
	runners [2]*runner
	steps   int
	// well is when a task was last seen to serve: what falls ill between a run's
	// read and its commit is not the run's doing.
	well   map[string]int
	last   *wire.Report
	from   control.Sender
	trace  []string
	broken string
	done   map[string]int
}

// runner is one run: a goroutine that waits before each of its calls.
type runner struct {
	race     *race
	name     string
	running  bool
	arrived  chan string
	proceed  chan fate
	finished chan error
	at       string
	dead     bool
	read     int // when it last read the live count
}

type fate int

const (
	goOn fate = iota
	dieBefore
	dieAfter
)

var errDead = fault.New(fault.Unavailable, "the run is gone")

// pass waits for the race to say what becomes of a call.
func (r *runner) pass(call string, do func() error) error {
	if r.dead {
		return errDead
	}
	r.arrived <- call
	switch <-r.proceed {
	case goOn:
		return do()
	case dieAfter:
		_ = do()
	}
	r.dead = true
	return errDead
}

// gate is the store of a runner, gatepost its queue.
type gate struct {
	control.Store
	r *runner
}

type gatepost struct {
	control.Queue
	r *runner
}

func (g *gate) Load(ctx context.Context, records ...control.Record) error {
	return g.r.pass("Load", func() error {
		if slices.ContainsFunc(records, func(x control.Record) bool { return x.Kind() == control.LiveKind }) {
			g.r.read = g.r.race.steps
		}
		return g.Store.Load(ctx, records...)
	})
}

func (g *gate) Commit(ctx context.Context, writes ...control.Write) error {
	return g.r.pass("Commit", func() error {
		before := g.r.race.Memory.Tasks()
		err := g.Store.Commit(ctx, writes...)
		if err == nil {
			g.r.race.judge(g.r, before)
		} else if fault.Is(err, fault.Conflict) {
			g.r.race.done["conflict"]++
		}
		return err
	})
}

func (g *gate) TaskIDs(ctx context.Context, q control.TaskQuery, p control.Page) (ids []string, next string, err error) {
	err = g.r.pass("TaskIDs", func() error { ids, next, err = g.Store.TaskIDs(ctx, q, p); return err })
	return ids, next, err
}

func (g *gatepost) Commands(ctx context.Context, all ...wire.Message) error {
	return g.r.pass("Commands", func() error { return g.Queue.Commands(ctx, all...) })
}

func (g *gatepost) KickAdmission(ctx context.Context, k control.Kick) error {
	return g.r.pass("KickAdmission", func() error { return g.Queue.KickAdmission(ctx, k) })
}

// advance begins the run, or lets it make its next call.
func (r *runner) advance(with fate) {
	if !r.running {
		r.running, r.dead = true, false
		r.arrived, r.proceed, r.finished = make(chan string), make(chan fate), make(chan error, 1)
		c := *r.race.Control
		c.Store, c.Queue = &gate{c.Store, r}, &gatepost{c.Queue, r}
		k := control.Kick{Cluster: "default", Service: "web"}
		if r.race.random.IntN(2) == 0 { // an end or a health was reported
			for _, t := range r.race.living() {
				k.Tasks = append(k.Tasks, t.ID)
			}
			k.Tasks = k.Tasks[:min(len(k.Tasks), 10)]
		}
		go func() { r.finished <- c.Serve(context.Background(), k) }()
	} else {
		r.race.say("%s: %s %d", r.name, r.at, with)
		r.proceed <- with
	}
	select {
	case r.at = <-r.arrived:
	case err := <-r.finished:
		r.running = false
		if err != nil && !r.dead {
			r.race.fail("%s: %v", r.name, err)
		}
	}
	if r.race.broken != "" {
		r.race.fail("%s", r.race.broken)
	}
}

func (x *race) say(format string, args ...any) {
	x.trace = append(x.trace, fmt.Sprintf(format, args...))
}

func (x *race) fail(format string, args ...any) {
	x.t.Helper()
	x.t.Fatalf("%s\n%s", fmt.Sprintf(format, args...), strings.Join(x.trace[max(0, len(x.trace)-40):], "\n"))
}

// breaks notes what a run did wrong: its goroutine is not the test's to end.
func (x *race) breaks(format string, args ...any) {
	if x.broken == "" {
		x.broken = fmt.Sprintf(format, args...)
	}
}

func (x *race) serves(t control.Task) bool {
	return t.LastStatus == task.Running && t.DesiredStatus == task.DesiredRunning && t.Health != task.Unhealthy && x.Ledger(t.Instance).Connected
}

// look notes what serves now.
func (x *race) look() {
	for _, t := range x.living() {
		if x.serves(t) {
			x.well[t.ID] = x.steps
		}
	}
}

func (x *race) service() control.Service {
	s := &control.Service{Cluster: "default", Name: "web"}
	if err := x.Memory.Load(ctx, s); err != nil {
		x.t.Fatal(err)
	}
	return *s
}

// judge holds a commit of a run against the service as it is at that moment.
func (x *race) judge(r *runner, before map[string]control.Task) {
	s := x.service()
	least := (s.Desired*s.MinimumPercent + 99) / 100
	after := x.Memory.Tasks()
	var created, stopped, left, live int
	for id, t := range after {
		if t.Service != "web" {
			continue
		}
		was, known := before[id]
		wanted := t.LastStatus != task.Stopped
		if wanted {
			live++
		}
		if !known {
			created++
		}
		served := known && x.serves(was) || x.well[id] > 0 && x.well[id] >= r.read
		switch {
		case known && was.DesiredStatus == task.DesiredRunning && t.DesiredStatus == task.DesiredStopped:
			if x.serves(was) {
				stopped++
			}
			if was.ProtectedUntil.After(x.Clock.Now()) {
				x.breaks("%s stops %s, which is protected", r.name, short(id))
			}
		case wanted && t.DesiredStatus == task.DesiredRunning && served:
			left++
		}
	}
	x.done["commits"]++
	x.done["created"] += created
	x.done["stopped"] += stopped
	x.say("%s commits: %d created, %d that served stopped, %d left, %d live", r.name, created, stopped, left, live)
	switch {
	case created > 0 && live > s.Desired*s.MaximumPercent/100:
		x.breaks("I11: %s brings %d to live, of %d at %d %%", r.name, live, s.Desired, s.MaximumPercent)
	case stopped > 0 && left < least:
		x.breaks("%s leaves %d that serve, fewer than %d", r.name, left, least)
	}
}

// world lets something else happen.
func (x *race) world() {
	living := x.living()
	pick := func() *control.Task { return &living[x.random.IntN(len(living))] }
	host := x.names[x.random.IntN(len(x.names))]
	_, id := controltest.Identity(host)
	switch what := x.random.IntN(60); {
	case what < 30 && len(living) > 0:
		x.report(*pick())
	case what < 38:
		var ids []string
		for _, t := range living {
			if t.LastStatus == task.Provisioning {
				ids = append(ids, t.ID)
			}
		}
		x.done["waited"] += len(ids)
		_ = x.Admit(ctx, control.Kick{Cluster: "default", Tasks: ids[:min(len(ids), 10)]})
	case what < 39 && len(living) > 0:
		if t := pick(); t.LastStatus == task.Running {
			t.Health = map[task.Health]task.Health{task.Unhealthy: task.Healthy}[t.Health]
			if t.Health == "" {
				t.Health = task.Unhealthy
			}
			x.say("%s is %s", short(t.ID), t.Health)
			x.Put(t)
		}
	case what < 42:
		if l := x.Ledger(id); l.Version > 0 {
			l.Connected = !l.Connected || x.random.IntN(4) > 0
			x.say("%s connected %v", host, l.Connected)
			x.Put(&l)
		}
	case what < 43:
		x.lose(id)
	case what < 45:
		to := control.Active
		if x.Ledger(id).Status == control.Active && x.random.IntN(3) == 0 {
			to = control.Draining
		}
		x.say("%s %s", host, to)
		setState(x.t, x.World, id, to)
	case what < 47:
		x.person()
	case what < 48 && len(living) > 0:
		t := pick()
		t.ProtectedUntil = x.Clock.Now().Add(time.Duration(x.random.IntN(2)) * time.Hour)
		x.Put(t)
	case what < 52 && x.last != nil: // delivered again
		_ = x.IngestReport(ctx, x.from, x.last)
	default:
		x.Clock.Move(time.Duration(1+x.random.IntN(200)) * time.Second)
	}
}

// person changes the service.
func (x *race) person() {
	x.update(func(r *control.ServiceUpdate) {
		switch x.random.IntN(3) {
		case 0:
			r.Desired = new(1 + x.random.IntN(5))
		case 1:
			bounds := [][2]int{{100, 200}, {50, 100}, {50, 150}, {0, 100}, {67, 134}}[x.random.IntN(5)]
			r.Deployment = control.DeploymentRules{MinimumPercent: new(bounds[0]), MaximumPercent: new(bounds[1])}
		case 2:
			if len(x.service().Deployments) < 6 {
				r.Definition = []string{"app:1", "app:2", "app:3", "app:1", "app:2", "bad:1"}[x.random.IntN(6)]
			}
		}
	})
	s := x.service()
	x.say("a person: %s:%d desired %d, %d to %d %%", s.Family, s.Number, s.Desired, s.MinimumPercent, s.MaximumPercent)
}

// report is what an agent says next of a task.
func (x *race) report(t control.Task) {
	if !t.LastStatus.Open() || !x.Ledger(t.Instance).Connected {
		return
	}
	name := x.names[slices.IndexFunc(x.names, func(n string) bool { _, id := controltest.Identity(n); return id == t.Instance })]
	identity, id := controltest.Identity(name)
	x.n++
	r := &wire.Report{Header: wire.Header{Instance: id}, Origin: wire.Origin{Incarnation: "inc-" + name, N: x.n},
		Snapshot: wire.Snapshot{Task: t.ID, Attempt: t.Attempt, Status: task.Running, StartedAt: x.Clock.Now()}}
	switch {
	case t.DesiredStatus == task.DesiredStopped, t.LastStatus == task.Running && x.random.IntN(12) == 0:
		r.Status, r.Cause, r.StartedAt = task.Stopped, task.ExitedCause, t.StartedAt
	case x.bad[t.Family]:
		r.Status, r.Cause, r.StartedAt = task.Stopped, task.FailedCause, time.Time{}
	case t.LastStatus == task.Running:
		return
	}
	x.say("%s is %s", short(t.ID), r.Status)
	x.done["reported "+string(r.Status)]++
	x.last, x.from = r, control.Sender{Identity: identity, SentAt: x.Clock.Now()}
	if err := x.IngestReport(ctx, x.from, r); err != nil {
		x.fail("report: %v", err)
	}
}

// lose ends all that a machine has, as the reaper does, and lets it come back empty.
func (x *race) lose(id string) {
	l := x.Ledger(id)
	l.Epoch, l.Stale, l.Cause, l.Connected = l.Epoch+1, l.Open, control.ReapedCause, false
	x.Put(&l)
	x.Memory.CatchUp()
	if err := x.CloseOlder(ctx, id); err != nil {
		x.fail("close: %v", err)
	}
	l = x.Ledger(id)
	l.Connected = true
	x.Put(&l)
	x.say("%s was lost and is back", short(id))
}

// heal ends what troubles the machines, and asks for a service that can be had.
func (x *race) heal() {
	for _, r := range x.runners {
		for r.running {
			r.advance(goOn)
		}
	}
	for _, name := range x.names {
		_, id := controltest.Identity(name)
		l := x.Ledger(id)
		l.Connected = true
		x.Put(&l)
		setState(x.t, x.World, id, control.Active)
	}
	for _, t := range x.living() {
		t.ProtectedUntil, t.Health = time.Time{}, ""
		x.Put(&t)
	}
	x.update(func(r *control.ServiceUpdate) {
		r.Definition, r.Desired, r.Force = "app:4", new(3), true
		r.Deployment = control.DeploymentRules{MinimumPercent: new(50), MaximumPercent: new(200)}
	})
}

func TestServe_RacesKeepTheBounds(t *testing.T) {
	done, steps := map[string]int{}, 0
	for seed := range uint64(*races) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			x := &race{yard: newYard(t, "i", "j", "k"), random: rand.New(rand.NewPCG(seed, 11)), well: map[string]int{}, done: done}
			for n := range x.runners {
				x.runners[n] = &runner{race: x, name: fmt.Sprint("run ", n)}
			}
			yes := seed%2 == 0
			x.create(func(r *control.ServiceRequest) { r.Deployment = control.DeploymentRules{Breaker: &yes, Rollback: &yes} })
			for x.steps = 1; x.steps <= raceSteps; x.steps++ {
				if x.random.IntN(100) < 55 {
					with := goOn
					if x.random.IntN(100) < 4 {
						with = dieBefore + fate(x.random.IntN(2))
						done["killed"]++
					}
					r := x.runners[x.random.IntN(2)]
					for range x.random.IntN(8) {
						r.advance(goOn)
					}
					r.advance(with)
				} else {
					x.world()
				}
				x.look()
				if x.random.IntN(3) == 0 { // else every run is blind
					x.Memory.CatchUp()
				}
			}
			steps += raceSteps
			x.heal()
			x.settle("after the race")
			if n := len(x.living()); n != 3 {
				t.Errorf("%d tasks live, want 3", n)
			}
		})
	}
	t.Logf("%d steps: %v", steps, done)
	for what, each := range map[string]int{"created": 8, "stopped": 1, "conflict": 3, "killed": 5} {
		if done[what] < each**races {
			t.Errorf("%q happened %d times only in %d races", what, done[what], *races)
		}
	}
}

func TestServe_ADecisionHoldsOnlyForTheServiceItWasMadeFor(t *testing.T) {
	rules := control.DeploymentRules{MinimumPercent: new(0), MaximumPercent: new(100)}
	for name, c := range map[string]struct {
		settled bool
		change  func(*control.ServiceUpdate)
		want    int
	}{
		"scaled down before its first tasks are made": {false, func(r *control.ServiceUpdate) { r.Desired = new(1) }, 1},
		"its minimum raised before tasks are stopped": {true, func(r *control.ServiceUpdate) {
			r.Deployment = control.DeploymentRules{MinimumPercent: new(100), MaximumPercent: new(200)}
		}, 3},
	} {
		f := newYard(t, "i", "j")
		f.create(func(r *control.ServiceRequest) { r.Deployment = rules })
		if c.settled {
			f.settle("at first")
			f.update(func(r *control.ServiceUpdate) { r.Definition = "app:2" })
			f.Sent.TakeServiceKicks()
		}
		store := f.Store
		f.Store = &between{Store: store, call: "Commit", nth: 1, do: func() {
			f.Store = store
			f.update(c.change)
			f.Store = &between{Store: store}
		}}
		if err := f.Serve(ctx, control.Kick{Cluster: "default", Service: "web"}); err != nil {
			t.Fatal(err)
		}
		f.Store = store
		n := 0 // that were made; of those that there were, that were not asked to stop
		for _, one := range f.Memory.Tasks() {
			if one.Service == "web" && one.Number == 1 && (!c.settled || one.DesiredStatus == task.DesiredRunning) {
				n++
			}
		}
		if n != c.want {
			t.Errorf("%s: %d tasks, want %d", name, n, c.want)
		}
	}
}
