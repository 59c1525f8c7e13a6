package control_test

import (
	"fmt"
	"maps"
	"slices"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

// The other side of the walk: an agent in as few words as the protocol allows.
// Each method is one transaction of its journal or one call of its engine.

type phase int

const (
	pending phase = iota
	running_
	ended
	refused
	tomb
)

type entry struct {
	attempt int
	epoch   int64
	phase   phase
	stop    bool
	exit    *int
}

type container struct {
	attempt int
	epoch   int64
	runs    bool
}

type machine struct {
	w    *walk
	edge *edge

	host, up, welcomed bool
	incarnation        int
	session            int
	journal            map[string]*entry
	containers         map[string]*container
	in                 []wire.Message
	held               []wire.Message // assigns of a later epoch
}

func newMachine(w *walk, name string) *machine {
	m := &machine{w: w, edge: newEdge(w.t, w.World, name), host: true, up: true, journal: map[string]*entry{}, containers: map[string]*container{}}
	m.begin()
	return m
}

func (m *machine) begin() {
	m.incarnation++
	m.edge.incarnation, m.edge.n, m.edge.epoch, m.welcomed = fmt.Sprintf("inc-%d", m.incarnation), 0, 0, false
	m.restart()
}

func (m *machine) restart() {
	m.session++
	m.edge.session, m.welcomed, m.up = fmt.Sprintf("s-%d", m.session), false, true
}

func (m *machine) ids() []string { return slices.Sorted(maps.Keys(m.journal)) }

// say sends what the journal has of a task.
func (m *machine) say(id string) {
	j := m.journal[id]
	switch j.phase {
	case refused:
		r := m.edge.refusal(id, j.attempt)
		m.w.send(m, "refused "+short(id), func(s control.Sender) error { return m.w.IngestRefused(ctx, s, r) })
		return
	case pending, running_, ended, tomb:
	}
	status := map[phase]task.Status{pending: task.Pending, running_: task.Running, ended: task.Stopped, tomb: task.Stopped}[j.phase]
	r := m.edge.report(id, j.attempt, status)
	r.Epoch = j.epoch
	if status == task.Stopped {
		r.Containers[0].ExitCode = j.exit
	}
	m.w.send(m, fmt.Sprintf("report %s/%d %s", short(id), j.attempt, status), func(s control.Sender) error { return m.w.IngestReport(ctx, s, r) })
}

func (m *machine) wantStop(id string) {
	j := m.journal[id]
	switch {
	case j.phase == pending && m.containers[id] == nil:
		j.phase = ended
		m.say(id)
	case j.phase == pending || j.phase == running_:
		j.stop = true
	default:
		m.say(id)
	}
}

func (m *machine) beat() {
	var inventory []wire.Entry
	phases := map[phase]wire.Phase{pending: wire.PhasePending, running_: wire.PhaseRunning, ended: wire.PhaseEnded, refused: wire.PhaseEnded}
	for _, id := range m.ids() {
		if j := m.journal[id]; j.phase != tomb {
			inventory = append(inventory, wire.Entry{Task: id, Attempt: j.attempt, Epoch: j.epoch, Phase: phases[j.phase]})
		}
	}
	b := m.edge.beat(inventory...)
	m.w.send(m, fmt.Sprintf("beat %s e%d n%d %v", m.edge.name, b.Message.Epoch, b.Message.N, len(inventory)), func(s control.Sender) error {
		again := b
		again.Sender = s
		return m.w.Heartbeats(ctx, []control.Beat{again})[0]
	})
}

func (m *machine) register() {
	r := m.edge.register()
	r.CPU, r.MemoryMiB, r.GPUs, r.ReservedTCP = walkRoom, walkRoom, nil, nil
	m.w.send(m, "register "+m.edge.name+" "+m.edge.incarnation, func(s control.Sender) error { return m.w.IngestRegister(ctx, s, r) })
}

// command is one message out of the inbox; the command is dealt with unless it
// waits for a later epoch.
func (m *machine) command(c wire.Message) {
	switch c := c.(type) {
	case *wire.Assign:
		m.assign(c)
	case *wire.Stop:
		if j := m.journal[c.Task]; j == nil || j.attempt < c.Attempt {
			m.journal[c.Task] = &entry{attempt: c.Attempt, phase: ended}
			m.say(c.Task)
		} else if j.attempt == c.Attempt {
			m.wantStop(c.Task)
		}
	case *wire.Ack:
		if j := m.journal[c.Task]; j != nil && j.attempt == c.Attempt && (j.phase == ended || j.phase == refused) {
			j.phase = tomb
			delete(m.containers, c.Task)
		}
	case *wire.Welcome:
		if c.Incarnation == m.edge.incarnation {
			m.edge.epoch, m.edge.n, m.welcomed = max(m.edge.epoch, c.Epoch), max(m.edge.n, c.N), true
			m.confirmed()
		}
	case *wire.Fence:
		if c.Incarnation == m.edge.incarnation && c.Reason != wire.DuplicateIdentity && c.Epoch > m.edge.epoch {
			m.edge.epoch = c.Epoch
			for _, a := range c.Closed {
				if j := m.journal[a.Task]; j != nil && j.attempt == a.Attempt {
					m.wantStop(a.Task)
				}
			}
			m.confirmed()
		}
	case *wire.Resync:
		m.welcomed = m.welcomed && len(c.Tasks) > 0
		for _, id := range c.Tasks {
			if m.journal[id] != nil {
				m.say(id)
			}
		}
	}
}

func (m *machine) confirmed() {
	m.beat()
	m.in, m.held = append(m.in, m.held...), nil
}

func (m *machine) assign(c *wire.Assign) {
	j := m.journal[c.Task]
	switch {
	case c.Epoch > m.edge.epoch:
		m.held = append(m.held, c)
	case c.Epoch < m.edge.epoch: // fenced
	case j != nil && j.attempt == c.Attempt:
		if j.phase >= ended {
			m.say(c.Task)
		}
	case j != nil && j.attempt > c.Attempt:
	case m.w.chance(10):
		m.journal[c.Task] = &entry{attempt: c.Attempt, epoch: c.Epoch, phase: refused}
		m.say(c.Task)
	default:
		m.journal[c.Task] = &entry{attempt: c.Attempt, epoch: c.Epoch}
	}
}

// work is one step of the engine or of its being seen, or false.
func (m *machine) work() bool {
	if !m.host || !m.up {
		return false
	}
	for _, id := range m.ids() {
		j, c := m.journal[id], m.containers[id]
		switch {
		case j.phase == pending && c == nil && !j.stop:
			m.containers[id] = &container{attempt: j.attempt, epoch: j.epoch, runs: true}
			m.w.started(id)
		case c != nil && c.runs && j.stop:
			c.runs = false
		case c != nil && c.runs && j.phase == pending:
			j.phase = running_
			m.say(id)
		case c != nil && !c.runs && (j.phase == pending || j.phase == running_):
			j.phase, j.exit = ended, new(0)
			m.say(id)
		default:
			continue
		}
		return true
	}
	return false
}

// loseJournal: a new incarnation, rebuilt from the containers' labels.
func (m *machine) loseJournal() {
	m.journal, m.held = map[string]*entry{}, nil
	for id, c := range m.containers {
		m.journal[id] = &entry{attempt: c.attempt, epoch: c.epoch}
	}
	m.begin()
}

func (m *machine) die() {
	m.host, m.up, m.welcomed = false, false, false
	for _, c := range m.containers {
		c.runs = false
	}
}

// repeat sends the ends that are not acknowledged again.
func (m *machine) repeat() {
	for _, id := range m.ids() {
		if p := m.journal[id].phase; p == ended || p == refused {
			m.say(id)
		}
	}
}
