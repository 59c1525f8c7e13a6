package controltest

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/measure"
	"github.com/longshore-run/longshore/shared/setting"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
)

// World is a control plane in memory with a clock that tests move. Every commit
// is checked against the invariants.
type World struct {
	*control.Control
	Memory *Store
	Sent   *Queue
	Counts *Counts
	Clock  *Clock
	t      testing.TB
	ids    int
}

// Clock is a clock that stands until it is moved.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// Now is the clock's time.
func (c *Clock) Now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.now }

// Move moves the clock on.
func (c *Clock) Move(d time.Duration) { c.mu.Lock(); defer c.mu.Unlock(); c.now = c.now.Add(d) }

// Counts is control.Metrics that remembers the last value of each name, and knows
// which there are.
type Counts struct {
	mu   sync.Mutex
	last map[string]float64
	told map[string]bool // of what is not listed
	t    testing.TB
}

// Count implements control.Metrics. A metric that shared/measure does not list
// would be on no dashboard.
func (c *Counts) Count(name string, value float64, dimensions ...string) {
	var names []string
	for i := 0; i < len(dimensions); i += 2 {
		names = append(names, dimensions[i])
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !measure.Written(name, names...) && !c.told[name] {
		c.told[name] = true
		c.t.Errorf("shared/measure does not list the metric %s with the dimensions %v; list it there, and draw it in infra/stack/dashboard.go", name, names)
	}
	c.last[name] = value
}

// Last is the last value counted under a name.
func (c *Counts) Last(name string) (float64, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.last[name]
	return v, ok
}

// NewWorld makes a control plane with one ACTIVE cluster, "default".
func NewWorld(t testing.TB) *World {
	store := NewStore()
	w := &World{Memory: store, Sent: NewQueue(store.Calls), Counts: &Counts{last: map[string]float64{}, told: map[string]bool{}, t: t}, t: t,
		Clock: &Clock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}}
	store.Now = w.Clock.Now
	w.Control = &control.Control{
		Store: store, Queue: w.Sent, Metrics: w.Counts, Now: w.Clock.Now,
		Log:   slog.New(slog.DiscardHandler),
		Pause: func(context.Context, int) {},
	}
	var mu sync.Mutex
	w.NewID = func() string { mu.Lock(); defer mu.Unlock(); w.ids++; return fmt.Sprintf("%032x", w.ids) }
	w.Setting = Setting()
	store.OnCommit = func(s *Store) {
		for _, v := range s.violations() {
			t.Errorf("after commit %d: %s", s.commits, v)
		}
	}
	w.Put(&control.Cluster{Name: "default", Status: "ACTIVE", CreatedAt: w.Clock.Now()})
	w.Put(&control.Definition{Family: "app", Number: 1, Status: "ACTIVE", Definition: taskdef.Canonical(MinimalDefinition("app")), RegisteredAt: w.Clock.Now()})
	return w
}

// Setting is every setting's default, for a region and an account.
func Setting() (all setting.Control) {
	env := map[string]string{"LONGSHORE_REGION": "us-east-1", "LONGSHORE_ACCOUNT": "000000000000", "LONGSHORE_REGISTER_ROLES": "*"}
	for _, name := range setting.Names(setting.Control{}) {
		if _, ok := env[name]; !ok {
			env[name] = ""
		}
	}
	_ = setting.FromEnv(&all, func(n string) (string, bool) { v, ok := env[n]; return v, ok })
	return all
}

// MinimalDefinition is a definition with one container, "main".
func MinimalDefinition(family string) taskdef.TaskDefinition {
	memory := 16
	return taskdef.Echo(taskdef.Input{Spec: taskdef.Spec{Family: family, ContainerDefinitions: []taskdef.ContainerDefinition{
		{Name: "main", Image: "busybox", Memory: &memory},
	}}}, taskdef.Registration{Revision: 1})
}

// Put stores a record as it is, whatever was there, outside any count of calls.
func (w *World) Put(records ...control.Record) {
	w.t.Helper()
	for _, r := range records {
		w.Memory.mu.Lock()
		k := key{r.Kind(), r.Key()}
		*r.Revision() = w.Memory.items[k].version + 1
		w.Memory.write(k, encode(r))
		w.Memory.mu.Unlock()
	}
}

// Identity is the IAM identity of a test's instance, and its id.
func Identity(name string) (identity, id string) {
	identity = "AROATEST:" + name
	return identity, wire.InstanceID(identity)
}

// AddInstance stores a connected instance, as registering and echoing would
// have left it.
func (w *World) AddInstance(name string, registered control.Held, change ...func(*control.Instance, *control.Ledger, *control.Lease)) string {
	w.t.Helper()
	identity, id := Identity(name)
	now := w.Clock.Now()
	in := &control.Instance{ID: id, Cluster: "default", Identity: identity, Incarnation: "inc-" + name, Zone: "local-a",
		WireVersions: wire.Versions(), RegisteredAt: now}
	l := &control.Ledger{ID: id, Cluster: "default", Status: control.Active, Connected: true, Epoch: now.Unix(), SinceEpoch: now.Unix(), Registered: registered}
	lease := &control.Lease{ID: id, Cluster: "default", Zone: in.Zone, Sent: now, RegisterSent: now, Epoch: l.Epoch, Incarnation: in.Incarnation,
		Session: "session-1", Every: time.Minute, Stage: control.StageConnected, StageSince: now}
	for _, f := range change {
		f(in, l, lease)
	}
	w.Put(in, l, lease)
	_ = w.Sent.EnsureInbox(context.Background(), id, identity)
	return id
}

// AddTask stores a waiting task of definition app:1.
func (w *World) AddTask(needs taskdef.Resources, change ...func(*control.Task)) *control.Task {
	w.t.Helper()
	t := &control.Task{ID: w.NewID(), Cluster: "default", LastStatus: task.Provisioning, DesiredStatus: task.DesiredRunning, Attempt: 1,
		Family: "app", Number: 1, Group: "family:app", Needs: needs, Priority: 50, Launch: "EC2", CreatedAt: w.Clock.Now()}
	for _, f := range change {
		f(t)
	}
	w.Put(t)
	return t
}

// Task is a copy of a stored task.
func (w *World) Task(id string) control.Task {
	w.t.Helper()
	t, ok := w.Memory.Tasks()[id]
	if !ok {
		w.t.Fatalf("task %s is not stored", id)
	}
	return t
}

// Ledger is a copy of a stored ledger.
func (w *World) Ledger(id string) control.Ledger { return w.Memory.Ledgers()[id] }

// Lease is a copy of a stored lease; version 0 if there is none.
func (w *World) Lease(id string) control.Lease {
	l := &control.Lease{ID: id}
	w.Memory.mu.Lock()
	defer w.Memory.mu.Unlock()
	w.Memory.load(l)
	return *l
}

// MustAdmit runs one admission pass with fresh indexes.
func (w *World) MustAdmit(tasks ...string) {
	w.t.Helper()
	w.Memory.CatchUp()
	if err := w.Admit(context.Background(), control.Kick{Cluster: "default", Tasks: tasks}); err != nil {
		w.t.Fatalf("admit: %v", err)
	}
}

// KillEverywhere runs a use case again and again on copies of the world that
// build makes, killed at its first, second … call, with and without that call's
// effect, then runs it once more unharmed and lets check judge.
func KillEverywhere(t *testing.T, build func(t *testing.T) *World, run func(w *World) error, check func(t *testing.T, w *World)) {
	t.Helper()
	w := build(t)
	w.Memory.Calls.Reset()
	if err := run(w); err != nil {
		t.Fatalf("unharmed: %v", err)
	}
	calls, names := w.Memory.Calls.Made()
	check(t, w)
	for at := 1; at <= calls; at++ {
		for _, effect := range []bool{false, true} {
			w := build(t)
			w.Memory.Calls.KillAt(at, effect)
			_ = run(w) // the handler is gone; its error is nobody's
			w.Memory.Calls.Reset()
			if err := run(w); err != nil {
				t.Errorf("run again after a kill at call %d (%s, effect %v): %v", at, names[at-1], effect, err)
			}
			t.Run(fmt.Sprintf("killed at %d %s effect %v", at, names[at-1], effect), func(t *testing.T) { check(t, w) })
		}
	}
}
