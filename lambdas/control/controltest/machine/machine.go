// Package machine is the other side of the protocol in as few words as it
// allows: an instance with its agent, its journal and its engine, as a value.
// Each method is one transaction of the journal or one call of the engine, and
// returns what the agent sends. It runs nothing and knows no time; only tests
// and sim import it.
package machine

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

// Phase is how a task stands in the journal.
type Phase uint8

const (
	Pending Phase = iota // accepted, nothing started as far as the journal knows
	Running
	Ended   // the end is not acknowledged
	Refused // the refusal is not acknowledged
	Tomb    // acknowledged: a tombstone
)

// Entry is one task in the journal.
type Entry struct {
	Attempt int
	Epoch   int64 // of its assign
	Phase   Phase
	Stop    bool // it is to stop
	Exited  bool // it ended by itself or was stopped, and its exit code is known
}

// Container is one task's container in the engine.
type Container struct {
	Attempt int
	Epoch   int64
	Runs    bool
}

// Machine is an instance as it really is. Copy one with Clone.
type Machine struct {
	Name, Identity, ID string
	// Memory is what it registers, in MiB.
	Memory int
	// Skew is how far its clock is off.
	Skew time.Duration

	Host, Up, Welcomed bool
	Ended              bool // told to end: its agent does not start again by itself
	Impaired           bool
	Incarnation        int
	Session            int
	N, Epoch           int64
	EndedEpoch         int64 // in which it was told to end: copies of that end no later agent
	Journal            map[string]Entry
	Containers         map[string]Container
}

// New is a machine that has just been switched on for the first time.
func New(name string, memory int) *Machine {
	identity := "AROATEST:" + name
	m := &Machine{Name: name, Identity: identity, ID: wire.InstanceID(identity), Memory: memory, Host: true,
		Journal: map[string]Entry{}, Containers: map[string]Container{}}
	m.begin()
	return m
}

// Clone is a copy that shares nothing.
func (m *Machine) Clone() *Machine {
	c := *m
	c.Journal, c.Containers = maps.Clone(m.Journal), maps.Clone(m.Containers)
	return &c
}

func (m *Machine) begin() {
	m.Incarnation++
	m.N, m.Epoch = 0, 0
	m.Restart()
}

// IncarnationName is the incarnation as the wire has it.
func (m *Machine) IncarnationName() string { return fmt.Sprintf("inc-%s-%d", m.Name, m.Incarnation) }

// Restart starts the agent again: a new session of the same journal.
func (m *Machine) Restart() {
	m.Session++
	m.Welcomed, m.Up, m.Ended = false, true, false
}

// LoseJournal makes a new incarnation, rebuilt from the containers' labels.
func (m *Machine) LoseJournal() {
	m.Journal = map[string]Entry{}
	for id, c := range m.Containers {
		m.Journal[id] = Entry{Attempt: c.Attempt, Epoch: c.Epoch}
	}
	m.begin()
}

// LoseDisk loses the containers too.
func (m *Machine) LoseDisk() {
	m.Containers = map[string]Container{}
	m.LoseJournal()
}

// Die cuts the power: nothing runs any more.
func (m *Machine) Die() {
	m.Host, m.Up, m.Welcomed = false, false, false
	for id, c := range m.Containers {
		c.Runs = false
		m.Containers[id] = c
	}
}

// Return switches a dead machine on again.
func (m *Machine) Return() {
	m.Host = true
	m.Restart()
}

// RevertN sets the counter back, as a journal written late would be.
func (m *Machine) RevertN() { m.N = 0 }

// Tasks are the journal's tasks in order.
func (m *Machine) Tasks() []string { return slices.Sorted(maps.Keys(m.Journal)) }

func (m *Machine) header() wire.Header { return wire.Header{Instance: m.ID} }

func (m *Machine) origin() wire.Origin {
	m.N++
	return wire.Origin{Incarnation: m.IncarnationName(), N: m.N}
}

// Register is the agent's register.
func (m *Machine) Register() wire.Message {
	return &wire.Register{Header: m.header(), Origin: m.origin(), Identity: m.Identity, Session: m.session(), Cluster: "default", Epoch: m.Epoch,
		WireVersions: wire.Versions(), AgentVersion: "1", Zone: "local-a", CPU: 1024, MemoryMiB: m.Memory, EC2InstanceID: m.Name}
}

func (m *Machine) session() string { return fmt.Sprintf("s-%d", m.Session) }

// Beat is a heartbeat with the whole inventory.
func (m *Machine) Beat() wire.Message {
	b := &wire.Heartbeat{Header: m.header(), Origin: m.origin(), Session: m.session(), Epoch: m.Epoch, Docker: wire.DockerOK, Inventory: []wire.Entry{}}
	if m.Impaired {
		b.Docker, b.DockerReason = wire.DockerImpaired, "no answer"
	}
	phases := map[Phase]wire.Phase{Pending: wire.PhasePending, Running: wire.PhaseRunning, Ended: wire.PhaseEnded, Refused: wire.PhaseEnded}
	for _, id := range m.Tasks() {
		if j := m.Journal[id]; j.Phase != Tomb {
			b.Inventory = append(b.Inventory, wire.Entry{Task: id, Attempt: j.Attempt, Epoch: j.Epoch, Phase: phases[j.Phase]})
		}
	}
	return b
}

// say is what the journal has of a task, as a message.
func (m *Machine) say(id string, now time.Time) wire.Message {
	j := m.Journal[id]
	if j.Phase == Refused {
		return &wire.Refused{Header: m.header(), Origin: m.origin(), Task: id, Attempt: j.Attempt, Epoch: j.Epoch, Code: wire.RefusedMemory, Reason: "not enough"}
	}
	at := now.Add(m.Skew)
	r := &wire.Report{Header: m.header(), Origin: m.origin(), Snapshot: wire.Snapshot{Task: id, Attempt: j.Attempt, Epoch: j.Epoch}}
	switch j.Phase {
	case Pending:
		r.Status = task.Pending
	case Running:
		r.Status, r.StartedAt = task.Running, at
		r.Containers = []task.Container{{Name: "main", Status: task.ContainerRunning, RuntimeID: "c-" + id, StartedAt: at}}
	case Ended, Refused, Tomb:
		r.Status, r.Cause, r.StoppedAt = task.Stopped, task.ExitedCause, at
		k := task.Container{Name: "main", Status: task.ContainerStopped, RuntimeID: "c-" + id, StoppedAt: at}
		if j.Exited {
			k.ExitCode = new(7)
		}
		r.Containers = []task.Container{k}
	}
	return r
}

func (m *Machine) set(id string, j Entry) { m.Journal[id] = j }

// Repeat sends the ends that are not acknowledged again.
func (m *Machine) Repeat(now time.Time) (out []wire.Message) {
	for _, id := range m.Tasks() {
		if p := m.Journal[id].Phase; p == Ended || p == Refused {
			out = append(out, m.say(id, now))
		}
	}
	return out
}
