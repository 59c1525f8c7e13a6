package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
)

const (
	cluster = "default"
	zones   = 3
)

// plant is an installation in memory: its instances connected, its tasks RUNNING.
type plant struct {
	*control.Control
	store *controltest.Store
	queue *tally
	size
	now    time.Time
	ids    int
	agents []*host
}

// host is an instance as its agent sees it.
type host struct {
	id, identity string
	epoch, n     int64
	inventory    []wire.Entry
}

// silent is control.Metrics that tells nobody.
type silent struct{}

func (silent) Count(string, float64, ...string) {}

func newPlant(s size) (*plant, error) {
	p := &plant{size: s, store: controltest.NewStore(), queue: &tally{}, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	p.store.Bill, p.store.Now = &controltest.Bill{}, func() time.Time { return p.now }
	settings := controltest.Setting()
	settings.HeartbeatEvery = time.Minute
	p.Control = &control.Control{
		Store: p.store, Queue: p.queue, Metrics: silent{}, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return p.now },
		Setting: settings, Fleet: &control.Fleet{}, Pause: func(context.Context, int) {},
	}
	var mu sync.Mutex
	p.NewID = func() string { mu.Lock(); defer mu.Unlock(); p.ids++; return fmt.Sprintf("%032x", p.ids) }
	err := p.put(
		&control.Cluster{Name: cluster, Status: "ACTIVE", CreatedAt: p.now},
		&control.Family{Name: "app", Latest: 1, Active: 1},
		&control.Definition{Family: "app", Number: 1, Status: "ACTIVE", Definition: taskdef.Canonical(controltest.MinimalDefinition("app")), RegisteredAt: p.now},
	)
	for n := 0; n < s.Instances && err == nil; n++ {
		err = p.addInstance(n)
	}
	for n := 0; n < s.Tasks/50 && err == nil; n++ { // they fit nowhere
		t := p.newTask(1<<20, "of a size that nobody has")
		t.WaitingReason = "RESOURCE:MEMORY"
		err = p.put(t)
	}
	p.store.CatchUp()
	return p, err
}

func (p *plant) put(records ...control.Record) error {
	for _, r := range records {
		if err := p.Store.Commit(context.Background(), control.Put(r)); err != nil {
			return err
		}
	}
	p.store.TakeChanges()
	return nil
}

// addInstance puts an instance with its share of the tasks, as beats and reports
// would have left it.
func (p *plant) addInstance(n int) error {
	identity := fmt.Sprintf("AROAEXAMPLEEXAMPLE123:i-%017x", n)
	id, zone := wire.InstanceID(identity), string(rune('a'+n%zones))
	in := &control.Instance{ID: id, Cluster: cluster, Identity: identity, Incarnation: p.NewID(), EC2InstanceID: identity[22:], Zone: "us-east-1" + zone,
		Attributes:   map[string]string{"ecs.instance-type": "m7g.4xlarge", "ecs.os-type": "linux", "ecs.cpu-architecture": "arm64", "ecs.ami-id": "ami-0123456789abcdef0"},
		WireVersions: wire.Versions(), AgentVersion: "1.0.0", AgentHash: "0123abcd", DockerVersion: "28.5.2", RegisteredAt: p.now}
	ledger := &control.Ledger{ID: id, Cluster: cluster, Status: control.Active, Connected: true, Epoch: p.now.Unix(), SinceEpoch: p.now.Unix(),
		Registered: control.Held{CPU: 16 * 1024, MemoryMiB: 64 * 1024, TCP: []int{22, 2375, 2376, 51678}}}
	lease := &control.Lease{ID: id, Cluster: cluster, Zone: in.Zone, EC2: in.EC2InstanceID, Sent: p.now, RegisterSent: p.now, Epoch: ledger.Epoch,
		Incarnation: in.Incarnation, Session: in.Incarnation[:26], Every: time.Minute, Stage: control.StageConnected, StageSince: p.now}
	h := &host{id: id, identity: identity, epoch: ledger.Epoch}
	p.agents = append(p.agents, h)
	for range p.Tasks / p.Instances {
		t := p.newTask(64, "")
		h.n++
		t.LastStatus, t.Instance, t.Epoch, t.Incarnation, t.N, t.Shown = task.Running, id, ledger.Epoch, in.Incarnation, h.n, true
		t.Held = &control.Held{CPU: t.Needs.CPU, MemoryMiB: t.Needs.MemoryMiB}
		t.AdmittedAt, t.PullStartedAt, t.PullStoppedAt, t.StartedAt, t.Dispatched = p.now, p.now, p.now, p.now, 1
		t.Containers = []task.Container{{Name: "main", Status: task.ContainerRunning, RuntimeID: strings.Repeat("a", 64),
			Image: "registry.example.com/shop/web:2026-03-01", ImageDigest: "sha256:" + strings.Repeat("b", 64), StartedAt: p.now}}
		ledger.Held.CPU, ledger.Held.MemoryMiB, ledger.Open = ledger.Held.CPU+t.Held.CPU, ledger.Held.MemoryMiB+t.Held.MemoryMiB, ledger.Open+1
		h.inventory = append(h.inventory, wire.Entry{Task: t.ID, Attempt: 1, Epoch: ledger.Epoch, Phase: wire.PhaseRunning})
		if err := p.put(t); err != nil {
			return err
		}
	}
	return p.put(in, ledger, lease)
}

// newTask is a task that waits.
func (p *plant) newTask(memory int, startedBy string) *control.Task {
	return &control.Task{ID: p.NewID(), Cluster: cluster, LastStatus: task.Provisioning, DesiredStatus: task.DesiredRunning, Attempt: 1,
		Family: "app", Number: 1, Group: "family:app", StartedBy: startedBy, Needs: taskdef.Resources{CPU: 64, MemoryMiB: memory}, Priority: 50,
		Launch: "EC2", Tags: map[string]string{"team": "payments"}, CreatedAt: p.now}
}

// wait puts tasks that wait and returns their ids.
func (p *plant) wait(n, memory int) (ids []string, err error) {
	for range n {
		t := p.newTask(memory, "")
		ids = append(ids, t.ID)
		if err := p.put(t); err != nil {
			return nil, err
		}
	}
	p.store.CatchUp()
	return ids, nil
}

func (p *plant) sender(h *host) control.Sender {
	return control.Sender{Identity: h.identity, SentAt: p.now, MessageID: "m"}
}

// incarnation is what the host's lease says.
func (p *plant) incarnation(h *host) (*control.Lease, error) {
	l := &control.Lease{ID: h.id}
	return l, p.Store.Load(context.Background(), l)
}

// beat is a heartbeat of each host with its whole inventory.
func (p *plant) beats(hosts []*host) (batch []control.Beat, err error) {
	p.now = p.now.Add(time.Minute)
	for _, h := range hosts {
		lease, err := p.incarnation(h)
		if err != nil {
			return nil, err
		}
		h.n++
		batch = append(batch, control.Beat{Sender: p.sender(h), Instance: h.id, Message: &wire.Heartbeat{
			Header: wire.Header{Instance: h.id}, Origin: wire.Origin{Incarnation: lease.Incarnation, N: h.n}, Session: lease.Session, Epoch: h.epoch,
			Docker: wire.DockerOK, FreeDiskMiB: 1 << 30, Inventory: h.inventory,
		}})
	}
	return batch, nil
}

// ends are reports of the end of one task of each host given.
func (p *plant) ends(hosts []*host) (batch []control.Told, err error) {
	for _, h := range hosts {
		lease, err := p.incarnation(h)
		if err != nil {
			return nil, err
		}
		e := h.inventory[0]
		h.inventory = h.inventory[1:]
		h.n++
		code := 0
		batch = append(batch, control.Told{Sender: p.sender(h), Report: &wire.Report{
			Header: wire.Header{Instance: h.id}, Origin: wire.Origin{Incarnation: lease.Incarnation, N: h.n},
			Snapshot: wire.Snapshot{Task: e.Task, Attempt: 1, Epoch: h.epoch, Status: task.Stopped, Cause: task.ExitedCause, StoppedAt: p.now, StoppingAt: p.now,
				Containers: []task.Container{{Name: "main", Status: task.ContainerStopped, ExitCode: &code, StoppedAt: p.now}}},
		}})
	}
	return batch, nil
}
