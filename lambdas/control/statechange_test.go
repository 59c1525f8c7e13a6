package control_test

import (
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
)

// edge is the other side as a test speaks for it: what an agent would say, with
// its counter, and what lies in its inbox.
type edge struct {
	t           *testing.T
	w           *controltest.World
	name        string
	identity    string
	id          string
	incarnation string
	session     string
	cluster     string
	docker      string
	epoch       int64
	n           int64
}

func newEdge(t *testing.T, w *controltest.World, name string) *edge {
	identity, id := controltest.Identity(name)
	return &edge{t: t, w: w, name: name, identity: identity, id: id, incarnation: "inc-" + name, session: "session-1", cluster: "default", docker: wire.DockerOK}
}

// bigHost is a connected edge with room for thousands.
func bigHost(t *testing.T, w *controltest.World) *edge {
	t.Helper()
	w.AddInstance("big", control.Held{CPU: 1_000_000, MemoryMiB: 1_000_000})
	e := newEdge(t, w, "big")
	e.epoch = w.Ledger(e.id).Epoch
	return e
}

// host is an edge that is registered and connected.
func host(t *testing.T, w *controltest.World, name string) *edge {
	t.Helper()
	e := newEdge(t, w, name)
	e.join()
	return e
}

func (e *edge) sender() control.Sender {
	return control.Sender{Identity: e.identity, SentAt: e.w.Clock.Now(), MessageID: e.w.NewID()}
}

func (e *edge) next() int64 { e.n++; return e.n }

func (e *edge) origin() wire.Origin { return wire.Origin{Incarnation: e.incarnation, N: e.next()} }

func (e *edge) header() wire.Header { return wire.Header{Instance: e.id} }

func (e *edge) register() *wire.Register {
	return &wire.Register{Header: e.header(), Origin: e.origin(), Identity: e.identity, Session: e.session, Cluster: e.cluster, Epoch: e.epoch,
		WireVersions: wire.Versions(), AgentVersion: "1", Zone: "local-a", CPU: 1000, MemoryMiB: 100, GPUs: []string{"gpu1", "gpu0"}, ReservedTCP: []int{22}}
}

func (e *edge) registers() {
	e.t.Helper()
	if err := e.w.IngestRegister(ctx, e.sender(), e.register()); err != nil {
		e.t.Fatal(err)
	}
}

// welcomed takes the newest welcome out of the inbox, with all that lay there.
func (e *edge) welcomed() *wire.Welcome {
	e.t.Helper()
	var last *wire.Welcome
	for _, m := range e.w.Sent.TakeCommands(e.id) {
		if w, ok := m.(*wire.Welcome); ok && w.Incarnation == e.incarnation {
			last = w
		}
	}
	if last == nil {
		e.t.Fatalf("%s was not welcomed", e.name)
	}
	e.epoch, e.n = last.Epoch, max(e.n, last.N)
	return last
}

func (e *edge) join() {
	e.t.Helper()
	e.registers()
	e.welcomed()
	e.beats()
	if l := e.w.Lease(e.id); l.Stage != control.StageConnected {
		e.t.Fatalf("%s is %s (%s) after it joined", e.name, l.Stage, l.StageReason)
	}
	e.w.Sent.TakeKicks()
	e.w.Clock.Move(time.Second)
}

func (e *edge) beat(inventory ...wire.Entry) control.Beat {
	return control.Beat{Sender: e.sender(), Instance: e.id, Message: &wire.Heartbeat{Header: e.header(), Origin: e.origin(), Session: e.session, Epoch: e.epoch,
		Docker: e.docker, Inventory: inventory}}
}

func (e *edge) beats(inventory ...wire.Entry) {
	e.t.Helper()
	e.w.Clock.Move(time.Second)
	e.heard(e.beat(inventory...))
}

// looked is a beat that is looked at as every tenth is, also if it shows nothing
// new.
func (e *edge) looked(inventory ...wire.Entry) {
	e.t.Helper()
	e.forget()
	e.beats(inventory...)
}

// forget makes the next beat one that is looked at.
func (e *edge) forget() {
	lease := e.w.Lease(e.id)
	lease.Inventory = ""
	e.w.Put(&lease)
}

func (e *edge) heard(b control.Beat) {
	e.t.Helper()
	e.w.Memory.CatchUp()
	if err := e.w.Heartbeats(ctx, []control.Beat{b})[0]; err != nil {
		e.t.Fatal(err)
	}
}

func (e *edge) report(id string, attempt int, status task.Status, change ...func(*wire.Report)) *wire.Report {
	r := &wire.Report{Header: e.header(), Origin: e.origin(), Snapshot: wire.Snapshot{Task: id, Attempt: attempt, Epoch: e.epoch, Status: status}}
	switch status {
	case task.Running, task.Stopping:
		r.Containers = []task.Container{{Name: "main", Status: task.ContainerRunning, RuntimeID: "c1", StartedAt: e.w.Clock.Now()}}
		r.StartedAt = e.w.Clock.Now()
	case task.Stopped:
		r.Containers = []task.Container{{Name: "main", Status: task.ContainerStopped, RuntimeID: "c1", ExitCode: new(7), StoppedAt: e.w.Clock.Now()}}
		r.Cause, r.StoppedAt = task.ExitedCause, e.w.Clock.Now()
	}
	for _, f := range change {
		f(r)
	}
	return r
}

func (e *edge) reports(id string, attempt int, status task.Status, change ...func(*wire.Report)) {
	e.t.Helper()
	e.w.Clock.Move(time.Second)
	if err := e.w.IngestReport(ctx, e.sender(), e.report(id, attempt, status, change...)); err != nil {
		e.t.Fatal(err)
	}
}

func (e *edge) refusal(id string, attempt int, change ...func(*wire.Refused)) *wire.Refused {
	m := &wire.Refused{Header: e.header(), Origin: e.origin(), Task: id, Attempt: attempt, Epoch: e.epoch, Code: wire.RefusedMemory, Reason: "not enough"}
	for _, f := range change {
		f(m)
	}
	return m
}

func (e *edge) refuses(id string, attempt int, change ...func(*wire.Refused)) {
	e.t.Helper()
	if err := e.w.IngestRefused(ctx, e.sender(), e.refusal(id, attempt, change...)); err != nil {
		e.t.Fatal(err)
	}
}

// given admits a new task, which must go to e, and empties the inbox.
func (e *edge) given(change ...func(*control.Task)) string {
	e.t.Helper()
	id := e.w.AddTask(small, append(change, func(t *control.Task) { t.Pinned = e.id })...).ID
	e.w.MustAdmit(id)
	if got := e.w.Task(id); got.LastStatus != task.Pending {
		e.t.Fatalf("task is %s: %s", got.LastStatus, got.WaitingReason)
	}
	e.w.Sent.TakeCommands(e.id)
	return id
}

// service admits n tasks of the service web, and says what its live item is.
func (e *edge) service(n int) (ids []string, live *control.Live) {
	e.t.Helper()
	for range n {
		ids = append(ids, e.w.AddTask(small, func(t *control.Task) { t.Service, t.Pinned = "web", e.id }).ID)
	}
	live = &control.Live{Cluster: "default", Service: "web", Live: n}
	e.w.Put(live)
	e.w.MustAdmit(ids...)
	e.w.Sent.TakeCommands(e.id)
	return ids, live
}

// running is a task that was given and reported as running.
func (e *edge) running(change ...func(*control.Task)) string {
	e.t.Helper()
	id := e.given(change...)
	e.reports(id, 1, task.Running)
	return id
}

func (e *edge) lists(id string, attempt int, phase wire.Phase) wire.Entry {
	return wire.Entry{Task: id, Attempt: attempt, Epoch: e.epoch, Phase: phase}
}

// inbox takes the messages of one kind out of the inbox; the others are dropped.
func inbox[M wire.Message](e *edge) []M {
	var out []M
	for _, m := range e.w.Sent.TakeCommands(e.id) {
		if x, ok := m.(M); ok {
			out = append(out, x)
		}
	}
	return out
}

// lost raises the host's epoch as the reaper does, without waiting for it.
func (e *edge) lost() {
	e.t.Helper()
	minutes(e.t, e.w, 20)
	if s := e.w.Lease(e.id).Stage; s != control.StageLost {
		e.t.Fatalf("%s is %s after 20 silent minutes", e.name, s)
	}
	e.w.Sent.TakeCommands(e.id)
}

func TestStatechange_ATaskFromItsAssignToItsAcknowledgedEnd(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	id := w.AddTask(small).ID
	w.MustAdmit(id)
	sent := inbox[*wire.Assign](e)
	if len(sent) != 1 || sent[0].Task != id || sent[0].Epoch != e.epoch {
		t.Fatalf("assigned %+v", sent)
	}
	e.reports(id, 1, task.Pending)
	if got := w.Task(id); !got.Shown || got.LastStatus != task.Pending {
		t.Fatalf("after a PENDING report: %+v", got)
	}
	e.reports(id, 1, task.Running)
	if got := w.Task(id); got.LastStatus != task.Running || got.StartedAt.IsZero() || got.Containers[0].Status != task.ContainerRunning {
		t.Fatalf("after a RUNNING report: %+v", got)
	}
	w.AddTask(taskdef.Resources{MemoryMiB: 1 << 20}) // waits, so that who waits is woken
	w.Memory.CatchUp()
	w.Sent.TakeKicks()
	e.reports(id, 1, task.Stopped)
	got := w.Task(id)
	if got.LastStatus != task.Stopped || *got.Containers[0].ExitCode != 7 || got.StopCause != task.ExitedCause || got.Held != nil || got.ExecStoppedAt.IsZero() {
		t.Fatalf("after a STOPPED report: %+v", got)
	}
	if l := w.Ledger(e.id); l.Open != 0 || l.Held.CPU != 0 {
		t.Fatalf("ledger %+v", l)
	}
	if acks := inbox[*wire.Ack](e); len(acks) != 1 || acks[0].Task != id || acks[0].Attempt != 1 {
		t.Fatalf("acks %+v", acks)
	}
	if kicks := w.Sent.TakeKicks(); len(kicks) != 1 || kicks[0].Instance != e.id {
		t.Fatalf("kicks %+v", kicks)
	}
}
