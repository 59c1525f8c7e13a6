package search

import (
	"slices"

	"github.com/longshore-run/longshore/lambdas/control/controltest/machine"
	"github.com/longshore-run/longshore/shared/wire"
)

// memory keeps what was worked out once, by the numbers of the book.
type memory struct {
	moves  map[moving]*move
	firsts map[uint32]uint32 // items in their first version
	// what things bring into the shape of a state, by their numbers
	items, letters, machines map[uint32]*form
	// states that are known to settle, by their shapes
	settled map[uint64]bool
	// and those that are known to once their machines have said all they had to
	settles map[uint64]bool
}

func newMemory() memory {
	return memory{map[moving]*move{}, map[uint32]uint32{}, map[uint32]*form{}, map[uint32]*form{}, map[uint32]*form{}, map[uint64]bool{}, map[uint64]bool{}}
}

// moving is one thing that a machine may do.
type moving struct {
	machine uint32
	what    string
	letter  uint32
	clock   int64
}

// move is what it has become by that and what it said; after is 0 where it did
// nothing.
type move struct {
	did   bool
	after uint32
	said  []uint32
	what  string
	task  string
}

// move has a machine do something, once: do says what, "" if there was nothing to
// be done.
func (x *search) move(s *state, i int, what string, letterID uint32, do func(m *machine.Machine) (did, task string, said []wire.Message)) *move {
	key := moving{s.machines[i], what, letterID, s.clock}
	if was, ok := x.memory.moves[key]; ok {
		return was
	}
	m := x.book.machines[s.machines[i]].Clone()
	did, task, said := do(m)
	out := &move{did: did != "", what: did, task: task}
	if out.did {
		out.after = x.book.machine(m)
		for _, msg := range said {
			out.said = append(out.said, x.book.letter(letter{to: -1, from: i, message: msg, sent: s.clock, identity: m.Identity}))
		}
	}
	x.memory.moves[key] = out
	return out
}

// command has a machine deal with a command, or refuse it.
func (x *search) command(s *state, i int, id uint32, refuses bool) *move {
	what := "takes"
	if refuses {
		what = "refuses"
	}
	return x.move(s, i, what, id, func(m *machine.Machine) (string, string, []wire.Message) {
		return what, "", m.Command(x.book.letters[id].message, refuses, now(s))
	})
}

// worked has a machine's engine do one thing.
func (x *search) worked(s *state, i int) *move {
	return x.move(s, i, "works", 0, func(m *machine.Machine) (string, string, []wire.Message) { return m.Work(now(s)) })
}

// moved stores what a machine has become and what it said.
func (x *search) moved(s *state, i int, m *machine.Machine, said []wire.Message) string {
	out := &move{after: x.book.machine(m)}
	for _, msg := range said {
		out.said = append(out.said, x.book.letter(letter{to: -1, from: i, message: msg, sent: s.clock, identity: m.Identity}))
	}
	return x.become(s, i, out)
}

// become stores what a machine has done.
func (x *search) become(s *state, i int, by *move) string {
	s.withMachine(i, by.after)
	for _, id := range by.said {
		s.withLetter(id)
	}
	if by.what == "starts" {
		word := x.book.word(by.task)
		if slices.Contains(s.ran, word) && !s.restored {
			return "RUNS-TWICE a second container of task " + short(by.task) + " was started"
		}
		s.ran = append(slices.Clone(s.ran), word)
		slices.Sort(s.ran)
	}
	return x.look(s)
}
