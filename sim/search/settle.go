package search

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest/machine"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

// rounds is for how many minutes a state is let settle before what waits is taken
// to wait for ever: the reaping of a dead host and a refusal's memory take longest.
const rounds = 30

// fair runs the system fairly and without further faults.
type fair struct {
	x     *search
	s     *state
	trace func(label string)
	only  []int // the machines that are there; nil: all
	dies  bool  // the reaper's run ends once it has reaped
}

func (f *fair) say(format string, args ...any) {
	if f.trace != nil {
		f.trace(fmt.Sprintf(format, args...))
	}
}

// settle says what stays stuck, or is broken on the way, once everything runs
// fairly; trace, if set, is told each step.
func (x *search) settle(s *state, trace func(string)) string {
	f := &fair{x: x, s: s.clone(), trace: trace}
	f.s.reaped, f.s.left = 0, budget{}
	stuck := ""
	var on []uint64
	for round := range rounds {
		if bad := f.operator(round); bad != "" {
			return "(while settling) " + bad
		}
		for i := range f.s.machines {
			if bad := f.tend(i); bad != "" {
				return "(while settling) " + bad
			}
		}
		on = append(on, x.shape(f.s))
		known := f.known(on, round)
		if !known {
			if bad := f.minute(); bad != "" {
				return "(while settling) " + bad
			}
			stuck = x.stuck(f.s)
		}
		if known || stuck == "" {
			for _, shape := range on {
				x.memory.settles[shape] = true
			}
			return ""
		}
	}
	return "QUIET " + stuck
}

// known says whether it is known that the newest of some shapes settles: it is one
// of a state in which the machines have just said all they have to say. From when
// on an operator may have spoken, nothing is taken for known.
func (f *fair) known(on []uint64, round int) bool {
	return f.trace == nil && round < rounds/2 && f.x.memory.settles[on[len(on)-1]]
}

// operator says, half-way, that the dead machines are off which hold tasks that
// only such a word ends.
func (f *fair) operator(round int) string {
	if round != rounds/2 {
		return ""
	}
	for _, id := range f.s.machines {
		m := f.x.book.machines[id]
		if m.Host && !m.Ended || !f.x.keepsOn(f.s, m.ID) {
			continue
		}
		word := f.x.call(f.s, off, m.Name+" confirmed off", func(ctx context.Context, c *control.Control) error {
			_, err := c.FenceContainerInstance(ctx, cluster, m.ID)
			return err
		})
		if bad := f.run(word, 0); bad != "" {
			return bad
		}
	}
	return ""
}

// tend has a machine say all it has to say.
func (f *fair) tend(i int) string {
	x, m := f.x, f.x.book.machines[f.s.machines[i]]
	if !m.Host {
		return ""
	}
	after := m.Clone()
	after.Impaired = false
	var said []wire.Message
	switch {
	case !m.Up && m.Ended:
		return ""
	case !m.Up:
		after.Restart()
		said = append(said, after.Register())
	case !m.Welcomed:
		said = append(said, after.Register())
	default:
		said = append(after.Repeat(now(f.s)), after.Beat())
	}
	f.s.clock++
	for _, msg := range said {
		if f.trace != nil {
			f.say("%s sends %s", m.Name, nameOf(msg))
		}
	}
	if bad := x.moved(f.s, i, after, said); bad != "" {
		return bad
	}
	return f.deliver()
}

// minute lets a minute pass, the reaper run, and admission if it was woken.
func (f *fair) minute() string {
	f.s.clock += 60
	f.s.reaped = 0
	x := f.x
	if bad := f.run(x.call(f.s, reap, "reap", func(ctx context.Context, c *control.Control) error { return c.Tick(ctx) }), 0); bad != "" {
		return bad
	}
	if bad := f.deliver(); bad != "" {
		return bad
	}
	for _, r := range recordsOf[*control.Service](x.book, f.s.items) {
		run := x.service(f.s, r.Name)
		f.s.made++
		if bad := f.run(run, 0); bad != "" {
			return bad
		}
	}
	for f.s.kicked {
		f.s.kicked = false
		if bad := f.run(x.admission(f.s), 0); bad != "" {
			return bad
		}
		if bad := f.deliver(); bad != "" {
			return bad
		}
	}
	return ""
}

// run runs a use case to its end, alone and unharmed.
func (f *fair) run(c *call, letter uint32) string {
	f.say("%s", c.name)
	s := f.s
	s.runs = append(slices.Clone(s.runs), running{at: f.x.program.root(c), letter: letter})
	i := len(s.runs) - 1
	for s.runs[i].at.ask != nil {
		if bad := f.x.perform(s, i, s.items, ""); bad != "" {
			return bad
		}
		if f.dies && s.reaped > 0 {
			f.x.leave(s, i, true)
			return ""
		}
	}
	r := s.runs[i]
	f.x.leave(s, i, false)
	if bad := f.x.ended(s, r); bad != "" {
		return bad
	}
	if r.at.err != nil {
		return fmt.Sprintf("FAULT %s, alone: %v", c.name, r.at.err)
	}
	return ""
}

// deliver delivers everything, until nothing moves.
func (f *fair) deliver() string {
	for moved := true; moved; {
		moved = false
		for at := 0; at < len(f.s.letters); {
			id := f.s.letters[at]
			l := &f.x.book.letters[id]
			if !f.there(max(l.to, l.from)) {
				at++
				continue
			}
			if l.to >= 0 {
				if bad, took := f.take(l.to, id); bad != "" {
					return bad
				} else if took {
					moved, at = true, 0
					continue
				}
				at++
				continue
			}
			f.s.withoutLetter(id)
			if bad := f.run(f.x.deliver(f.s, id), id); bad != "" {
				return bad
			}
			moved, at = true, 0
		}
		for i := range f.s.machines {
			for f.there(i) {
				done := f.x.worked(f.s, i)
				if !done.did {
					break
				}
				f.say("%s %s %s", f.x.book.machines[done.after].Name, done.what, short(done.task))
				if bad := f.x.become(f.s, i, done); bad != "" {
					return bad
				}
				moved = true
			}
		}
	}
	return ""
}

// there says whether a machine can be reached; our own probes always can.
func (f *fair) there(i int) bool { return f.only == nil || i < 0 || slices.Contains(f.only, i) }

// take has a machine deal with a command; those for a dead host run out of time.
func (f *fair) take(i int, id uint32) (bad string, took bool) {
	m, c := f.x.book.machines[f.s.machines[i]], f.x.book.letters[id].message
	switch {
	case !m.Host || !m.Up && m.Ended:
		f.s.withoutLetter(id)
		return "", true
	case !m.Ready(c):
		return "", false
	}
	if f.trace != nil {
		f.say("%s takes %s", m.Name, nameOf(c))
	}
	f.s.withoutLetter(id)
	return f.x.become(f.s, i, f.x.command(f.s, i, id, false)), true
}

// stuck says what waits in a state in which nothing should.
func (x *search) stuck(s *state) string {
	room := false
	for _, id := range s.machines {
		m := x.book.machines[id]
		l, lease := recordOf(x.book, s, &control.Ledger{ID: m.ID}), recordOf(x.book, s, &control.Lease{ID: m.ID})
		if l == nil || lease == nil {
			continue
		}
		lives := m.Host && !m.Ended
		switch {
		case lives && s.restored && strings.HasPrefix(lease.StageReason, "UNKNOWN_CONTAINERS"):
			// what runs there has no item: an operator clears it (I12)
		case lives && (!l.Connected || lease.Stage != control.StageConnected):
			return fmt.Sprintf("%s lives and is %s: %s (connected %v, stale %d)", m.Name, lease.Stage, lease.StageReason, l.Connected, l.Stale)
		case l.Connected != (lease.Stage == control.StageConnected):
			return fmt.Sprintf("%s: stage %s, connected %v", m.Name, lease.Stage, l.Connected)
		case !lives && l.Open > 0:
			return fmt.Sprintf("%d tasks are open on %s, which is gone", l.Open, m.Name)
		case m.Ended && l.Status != control.Inactive && lease.Stage != control.StageLost: // registered again just before: it is lost like any that is silent
			return m.Name + " was told to end and is " + string(lease.Stage)
		}
		room = room || lives && l.Connected && l.Status == control.Active && l.Registered.MemoryMiB-l.Held.MemoryMiB >= taskMemory
		if bad := x.unfinished(s, m); bad != "" {
			return bad
		}
	}
	for _, t := range recordsOf[*control.Task](x.book, s.items) {
		switch name := short(t.ID); {
		case t.LastStatus == task.Provisioning && room:
			return "task " + name + " waits though there is room: " + t.WaitingReason
		case t.LastStatus == task.Provisioning && t.WaitingReason == "":
			return "task " + name + " waits and does not say why"
		case t.LastStatus.Open() && t.DesiredStatus == task.DesiredStopped:
			return "task " + name + " is to stop and never does"
		case t.LastStatus == task.Pending:
			return "task " + name + " stays PENDING"
		case !t.Kept.IsZero() && recordOf(x.book, s, &control.Ledger{ID: t.Instance}).Connected:
			return "task " + name + " is kept though its instance is back"
		case t.LastStatus == task.Running && !x.runs(s, t):
			return "task " + name + " is RUNNING and has no container"
		}
	}
	return ""
}

func (x *search) runs(s *state, t *control.Task) bool {
	i := x.machineOf(s, t.Instance)
	c, ok := x.book.machines[s.machines[i]].Containers[t.ID]
	return ok && c.Runs && c.Attempt == t.Attempt
}

// unfinished says what a machine still has to bring to an end.
func (x *search) unfinished(s *state, m *machine.Machine) string {
	if !m.Host || m.Ended {
		return ""
	}
	for _, id := range m.Tasks() {
		j := m.Journal[id]
		if j.Phase == machine.Ended || j.Phase == machine.Refused {
			return fmt.Sprintf("the end of %s on %s is never acknowledged", short(id), m.Name)
		}
		if c := m.Containers[id]; c.Runs && !x.open(s, m, id, c.Attempt) && !(s.restored && recordOf(x.book, s, &control.Task{ID: id}) == nil) {
			return fmt.Sprintf("a container of %s runs on %s for ever", short(id), m.Name)
		}
		t := recordOf(x.book, s, &control.Task{ID: id})
		if !s.restored && j.Phase == machine.Tomb && j.Exited && t != nil && t.LastStatus == task.Stopped && t.Instance == m.ID && t.Attempt == j.Attempt &&
			(len(t.Containers) == 0 || t.Containers[0].ExitCode == nil) {
			return "the exit code of " + short(id) + " is lost"
		}
	}
	return ""
}
