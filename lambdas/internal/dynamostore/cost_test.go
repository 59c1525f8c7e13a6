//go:build emulator

package dynamostore_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/longshore-run/longshore/internal/meter"
	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/lambdas/internal/dynamostore"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
	"github.com/longshore-run/longshore/test/emulator"
)

// Bounds for one task that ends by itself, warm and alone: of write units as the
// design has it; of the functions' calls what its 20 leave beside the agent's six
// (test/e2e counts those, too).
const (
	mostUnits = 35
	mostCalls = 14
)

// bill adds up DynamoDB's calls and what it says they cost.
type bill struct {
	mu          sync.Mutex
	calls       int
	read, write float64
}

func (b *bill) add(_ context.Context, c meter.Call) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls += c.Requests
	b.read += c.Read
	b.write += c.Write
}

// plane is the control plane over DynamoDB, with an agent's words.
type plane struct {
	*controltest.World
	t        *testing.T
	m        *bill
	identity string
	id       string
	epoch    int64
	n        int64
}

func newPlane(t *testing.T) *plane {
	config := emulator.Shared(t).AWSConfig()
	names := makeTables(t, dynamodb.NewFromConfig(config))
	p := &plane{World: controltest.NewWorld(t), t: t, m: &bill{}}
	p.identity, p.id = controltest.Identity("i")
	config.APIOptions = append(config.APIOptions, meter.Observe(p.m.add), strict(t))
	p.Store = dynamostore.New(config, names, p.Clock.Now)
	p.must("prepare", p.Store.Commit(t.Context(),
		control.Put(&control.Cluster{Name: "default", Status: "ACTIVE", CreatedAt: p.Clock.Now()}),
		control.Put(&control.Family{Name: "app", Latest: 1, Active: 1}),
		control.Put(&control.Definition{Family: "app", Number: 1, Status: "ACTIVE", Definition: taskdef.Canonical(controltest.MinimalDefinition("app")), RegisteredAt: p.Clock.Now()})))
	return p
}

// must fails the test on an error and tells what a step cost.
func (p *plane) must(what string, err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatalf("%s: %v", what, err)
	}
	sent, _ := p.Memory.Calls.Made()
	p.t.Logf("%-9s %2d calls of DynamoDB and %d of SQS so far, %.1f read units, %.0f write units", what, p.m.calls, sent, p.m.read, p.m.write)
	p.Clock.Move(time.Second)
}

func (p *plane) origin() wire.Origin { p.n++; return wire.Origin{Incarnation: "inc", N: p.n} }

func (p *plane) sender() control.Sender {
	return control.Sender{Identity: p.identity, SentAt: p.Clock.Now(), MessageID: p.NewID()}
}

// join registers an instance and echoes its epoch.
func (p *plane) join() {
	p.t.Helper()
	p.must("register", p.IngestRegister(p.t.Context(), p.sender(), &wire.Register{
		Header: wire.Header{Instance: p.id}, Origin: p.origin(), Identity: p.identity, Session: "s", Cluster: "default", WireVersions: wire.Versions(), CPU: 4096, MemoryMiB: 8192,
	}))
	for _, m := range p.Sent.TakeCommands(p.id) {
		if welcome, ok := m.(*wire.Welcome); ok {
			p.epoch, p.n = welcome.Epoch, max(p.n, welcome.N)
		}
	}
	p.must("beat", p.Heartbeats(p.t.Context(), []control.Beat{{Sender: p.sender(), Instance: p.id, Message: &wire.Heartbeat{
		Header: wire.Header{Instance: p.id}, Origin: p.origin(), Session: "s", Epoch: p.epoch, Docker: wire.DockerOK,
	}}})[0])
}

func (p *plane) report(id string, status task.Status, container task.Container) error {
	r := &wire.Report{Header: wire.Header{Instance: p.id}, Origin: p.origin(), Snapshot: wire.Snapshot{
		Task: id, Attempt: 1, Epoch: p.epoch, Status: status, Containers: []task.Container{container}, PullStartedAt: p.Clock.Now(), PullStoppedAt: p.Clock.Now(), StartedAt: p.Clock.Now(),
	}}
	if status == task.Stopped {
		r.Cause, r.StoppedAt, r.StoppingAt = task.ExitedCause, p.Clock.Now(), p.Clock.Now()
	}
	return p.IngestReport(p.t.Context(), p.sender(), r)
}

// live runs a task to its end.
func (p *plane) live() (id string) {
	p.t.Helper()
	run, err := p.RunTask(p.t.Context(), control.RunTaskRequest{Count: 1, Token: p.NewID(), TaskRequest: control.TaskRequest{
		Cluster: "default", Definition: "app:1", StartedBy: "ci", Tags: map[string]string{"team": "payments"},
	}})
	p.must("run", err)
	id = run.Tasks[0].ID
	p.admit()
	main := task.Container{
		Name: "main", Status: task.ContainerRunning, RuntimeID: strings.Repeat("a", 64), Image: "registry.example.com/shop/web:2026-03-01",
		ImageDigest: "sha256:" + strings.Repeat("b", 64), StartedAt: p.Clock.Now(), Bindings: []task.Binding{{BindIP: "0.0.0.0", ContainerPort: 80, HostPort: 32768, Protocol: "tcp"}},
	}
	p.must("running", p.report(id, task.Running, main))
	main.Status, main.ExitCode, main.StoppedAt = task.ContainerStopped, new(7), p.Clock.Now()
	p.must("ended", p.report(id, task.Stopped, main))
	p.admit()
	return id
}

// admit does what the kicks so far ask for.
func (p *plane) admit() {
	p.t.Helper()
	for _, k := range p.Sent.TakeKicks() {
		p.must("admit", p.Admit(p.t.Context(), k))
	}
}

func TestControl_OverDynamoDBATasksLifeStaysWithinItsCost(t *testing.T) {
	p := newPlane(t)
	p.Fleet = &control.Fleet{}
	p.join()
	p.live() // warms up
	p.m.calls, p.m.read, p.m.write = 0, 0, 0
	// Sends are counted where the queue is; the store in memory is not called.
	p.Memory.Calls.Reset()
	id := p.live()
	sent, _ := p.Memory.Calls.Made()
	if p.m.write == 0 || p.m.write > mostUnits {
		t.Errorf("a task's life costs %.0f write units; the design allows %d", p.m.write, mostUnits)
	}
	if sent == 0 || p.m.calls+sent > mostCalls {
		t.Errorf("a task's life takes %d calls of the functions; %d are allowed", p.m.calls+sent, mostCalls)
	}

	found, _, err := p.DescribeTasks(t.Context(), "default", []string{id})
	if err != nil || len(found) != 1 || found[0].LastStatus != task.Stopped || found[0].Containers[0].ExitCode == nil || *found[0].Containers[0].ExitCode != 7 {
		t.Fatalf("the task is %+v, %v", found, err)
	}
	ledger := &control.Ledger{ID: p.id}
	if err := p.Store.Load(t.Context(), ledger); err != nil || ledger.Open != 0 || ledger.Held.MemoryMiB != 0 {
		t.Fatalf("the ledger is %+v, %v", ledger, err)
	}
}
