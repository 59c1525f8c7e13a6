package machine

import (
	"time"

	"github.com/longshore-run/longshore/shared/wire"
)

// Ready says whether the agent can deal with a command now: an assign of a
// higher epoch waits for the welcome or fence that brings it.
func (m *Machine) Ready(c wire.Message) bool {
	a, ok := c.(*wire.Assign)
	return m.Host && m.Up && (!ok || a.Epoch <= m.Epoch)
}

// Takes says whether an assign would be accepted, so that it might be refused.
func (m *Machine) Takes(c wire.Message) bool {
	a, ok := c.(*wire.Assign)
	if !ok || a.Epoch != m.Epoch {
		return false
	}
	j, known := m.Journal[a.Task]
	return !known || j.Attempt < a.Attempt
}

// Command deals with one command; refuse makes an assign that would be accepted
// a refusal.
func (m *Machine) Command(c wire.Message, refuse bool, now time.Time) []wire.Message {
	switch c := c.(type) {
	case *wire.Assign:
		return m.assign(c, refuse, now)
	case *wire.Stop:
		return m.stop(c, now)
	case *wire.Ack:
		if j, ok := m.Journal[c.Task]; ok && j.Attempt == c.Attempt && (j.Phase == Ended || j.Phase == Refused) {
			j.Phase = Tomb
			m.set(c.Task, j)
			delete(m.Containers, c.Task)
		}
	case *wire.Welcome:
		if c.Incarnation != m.IncarnationName() {
			return nil
		}
		m.Epoch, m.N, m.Welcomed = max(m.Epoch, c.Epoch), max(m.N, c.N), true
		return []wire.Message{m.Beat()}
	case *wire.Fence:
		return m.fence(c, now)
	case *wire.Resync:
		m.Welcomed = m.Welcomed && len(c.Tasks) > 0
		var out []wire.Message
		for _, id := range c.Tasks {
			if _, ok := m.Journal[id]; ok {
				out = append(out, m.say(id, now))
			}
		}
		return out
	}
	return nil
}

func (m *Machine) assign(c *wire.Assign, refuse bool, now time.Time) []wire.Message {
	j, known := m.Journal[c.Task]
	switch {
	case c.Epoch < m.Epoch: // fenced
	case known && j.Attempt == c.Attempt: // R6
		if j.Phase >= Ended {
			return []wire.Message{m.say(c.Task, now)}
		}
	case known && j.Attempt > c.Attempt:
	case refuse:
		m.set(c.Task, Entry{Attempt: c.Attempt, Epoch: c.Epoch, Phase: Refused})
		return []wire.Message{m.say(c.Task, now)}
	default:
		m.set(c.Task, Entry{Attempt: c.Attempt, Epoch: c.Epoch})
	}
	return nil
}

// stop of something unknown leaves a tombstone, for its assign may come later.
func (m *Machine) stop(c *wire.Stop, now time.Time) []wire.Message {
	j, known := m.Journal[c.Task]
	switch {
	case !known || j.Attempt < c.Attempt:
		m.set(c.Task, Entry{Attempt: c.Attempt, Phase: Ended})
		return []wire.Message{m.say(c.Task, now)}
	case j.Attempt == c.Attempt:
		return m.wantStop(c.Task, now)
	}
	return nil
}

func (m *Machine) wantStop(id string, now time.Time) []wire.Message {
	j := m.Journal[id]
	_, made := m.Containers[id]
	switch {
	case j.Phase == Pending && !made: // straight to stopped: it never ran
		j.Phase = Ended
	case j.Phase == Pending || j.Phase == Running:
		j.Stop = true
		m.set(id, j)
		return nil
	}
	m.set(id, j)
	return []wire.Message{m.say(id, now)}
}

func (m *Machine) fence(c *wire.Fence, now time.Time) (out []wire.Message) {
	if c.Incarnation != m.IncarnationName() || c.Reason == wire.DuplicateIdentity || c.Epoch < m.Epoch || c.Epoch == m.Epoch && !c.Terminal || c.Terminal && c.Epoch <= m.EndedEpoch {
		return nil
	}
	m.Epoch = c.Epoch
	for _, a := range c.Closed {
		if j, ok := m.Journal[a.Task]; ok && j.Attempt == a.Attempt {
			out = append(out, m.wantStop(a.Task, now)...)
		}
	}
	if c.Terminal {
		m.Up, m.Welcomed, m.Ended, m.EndedEpoch = false, false, true, m.Epoch
		return out
	}
	return append(out, m.Beat())
}

// Work is one step of the engine, or of the agent's seeing it. ran names the
// task whose container was started; what says what was done, "" if nothing was
// to be done.
func (m *Machine) Work(now time.Time) (what, ran string, out []wire.Message) {
	if !m.Host || !m.Up || m.Impaired {
		return "", "", nil
	}
	for _, id := range m.Tasks() {
		j := m.Journal[id]
		c, made := m.Containers[id]
		switch {
		case j.Phase == Pending && !made && !j.Stop:
			m.Containers[id] = Container{Attempt: j.Attempt, Epoch: j.Epoch, Runs: true}
			return "starts", id, nil
		case made && c.Runs && j.Stop:
			c.Runs = false
			m.Containers[id] = c
			return "stops", id, nil
		case made && c.Runs && j.Phase == Pending:
			j.Phase = Running
			m.set(id, j)
			return "sees running", id, []wire.Message{m.say(id, now)}
		case made && !c.Runs && (j.Phase == Pending || j.Phase == Running):
			j.Phase, j.Exited = Ended, true
			m.set(id, j)
			return "sees ended", id, []wire.Message{m.say(id, now)}
		}
	}
	return "", "", nil
}

// Exit ends a container that runs, by itself.
func (m *Machine) Exit(id string) bool {
	c, ok := m.Containers[id]
	if !ok || !c.Runs {
		return false
	}
	c.Runs = false
	m.Containers[id] = c
	return true
}
