package search

import (
	"fmt"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/fault"
)

// A leap is as many steps as may be taken at once without losing anything: a use
// case goes on to its end, or to where it waits in its middle while others go on.
// What it may be left out of is argued in docs/design/proof.md, and compared with
// the search step by step in leap_test.go:
//
//   - Nobody sees what only reads. All places between two effects of a use case
//     are one state, in which it waits at any of them: which one is chosen when it
//     goes on.
//   - Going on at a place whose last read would have the same answer now is going
//     on from the place before it.
//   - One that dies while it waits died when it began to wait.
//   - While nothing is under way, versions tell nothing.

// leaps are all leaps from a state in which nobody but those who wait is in their
// middle.
func (x *search) leaps(s *state, out emit) {
	x.from = s
	if s.left.Operations > 0 {
		for _, o := range x.begins(s) {
			x.leap(s, o, out)
		}
	}
	if s.left.Machine > 0 {
		x.machineSteps(s, func(label string, n *state, broken string) {
			n.runs = slices.Clone(n.runs)
			x.arrive(n, -1, label, broken, out)
		})
	}
	for i := range s.runs {
		if !s.runs[i].fresh && (i == 0 || s.runs[i-1] != s.runs[i]) {
			x.resume(s, i, out)
		}
	}
}

// leap begins an operation and goes along.
func (x *search) leap(s *state, o begin, out emit) {
	n := x.begun(s, o)
	if n == nil {
		return
	}
	label := ""
	if x.telling {
		label = kindMark + string(o.kind) + "\n"
	}
	n.runs = slices.Clone(n.runs)
	if o.call == nil {
		x.arrive(n, -1, label+x.told(o.label), x.look(n), out)
		return
	}
	root := x.program.root(o.call)
	if root.ask == nil {
		x.arrive(n, -1, label+x.told("+ "+o.label), running{at: root}.failed(), out)
		return
	}
	n.runs = append(n.runs, running{at: root, letter: o.letter, kept: o.again})
	x.along(n, len(n.runs)-1, course{label: label + x.told("+ ")}, out)
}

// resume has one that waits go on, from each place where it may wait that tells
// something new.
func (x *search) resume(s *state, i int, out emit) {
	r := s.runs[i]
	for p := r.at; ; p = p.parent {
		if !p.ask.unseen() && !x.same(s, p) {
			n := s.clone()
			n.runs = slices.Clone(s.runs)
			n.runs[i] = running{at: p, letter: r.letter, kept: r.kept}
			label := ""
			if x.telling {
				label = fmt.Sprintf("%s%d-%d\n", backMark, p.id, r.at.id)
			}
			x.along(n, i, course{label: label, back: true}, out)
		}
		if p == r.since {
			return
		}
	}
}

// same says whether the call that led to a place would have the same answer now.
func (x *search) same(s *state, p *place) bool {
	before := p.parent
	if before.ask.verb > catalog || before.ask.verb == renew || before.parent == nil && !x.alike(s, before) {
		return false
	}
	now, items := x.book.reply(s, before.ask, s.items)
	return sameItems(items, s.items) && now.key() == p.answer.key() && (!p.timed || s.clock == p.answer.clock)
}

// alike says whether a use case that begins now would be the same: then it need not
// have begun before.
func (x *search) alike(s *state, root *place) bool {
	if root.timed && root.call.at != s.clock {
		return false
	}
	if root.call.kind == admit {
		return x.admission(s).name == root.call.name
	}
	return slices.Contains(constant, root.call.kind)
}

// constant are the kinds whose arguments are in their names, whatever the state.
var constant = []kind{stop, sweep, closeOlder, endKept, deregister, drain, off, report, refuse}

func sameItems(a, b []uint32) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// course is a use case on its way through a leap.
type course struct {
	label string
	back  bool   // it waited, and has had no effect since
	waits *place // the newest place it may wait at, since its last effect
	dies  *place // and to be killed at
}

// came notes where a use case has come to.
func (c *course) came(r *running) {
	if r.at.ask == nil {
		return
	}
	c.dies = r.at
	if r.at.ask.unseen() {
		return
	}
	c.waits = r.at
	if r.since == nil {
		r.since = r.at
	}
}

// along runs one use case on, and tells of each state in which it may be left: in
// its middle while others go on, killed there, at its end. s and its runs are the
// caller's to give.
func (x *search) along(s *state, i int, c course, out emit) {
	for s.runs[i].at.ask != nil {
		x.otherAnswers(s, i, c, out)
		before, stood := *s, s.runs[i].at
		before.runs = slices.Clone(s.runs)
		bad := x.perform(s, i, s.items, "")
		r := &s.runs[i]
		if x.differs(&before, s) {
			x.rest(&before, i, c, out)
			c = course{label: c.label}
			r.since = nil
		}
		c.label = x.line(c.label, stood, "", r.at)
		if bad != "" {
			x.arrive(s, i, c.label, bad, out)
			return
		}
		c.came(r)
	}
	x.rest(s, i, c, out)
	r := s.runs[i]
	bad := x.ended(s, r)
	x.leave(s, i, r.at.err != nil)
	x.arrive(s, -1, c.label, bad, out)
}

// otherAnswers goes along with the answers that the budget allows a call beside
// the store's own.
func (x *search) otherAnswers(s *state, i int, c course, out emit) {
	q := s.runs[i].at.ask
	other := func(n *state, index []uint32, injected fault.Kind, note string) {
		n.runs = slices.Clone(s.runs)
		r := &n.runs[i]
		stood := r.at
		bad := x.perform(n, i, index, injected)
		r.since = nil
		c := course{label: x.line(c.label, stood, note, r.at), back: c.back && !x.differs(s, n)}
		if bad != "" {
			x.arrive(n, i, c.label, bad, out)
			return
		}
		c.came(r)
		x.along(n, i, c, out)
	}
	if q.verb == commit && s.left.Conflict > 0 {
		n := s.clone()
		n.left.Conflict--
		other(n, s.items, fault.Conflict, " [cancelled]")
	}
	if q.verb == commit && s.left.Unsure > 0 {
		n := s.clone()
		n.left.Unsure--
		other(n, s.items, fault.Unavailable, " [written, answer lost]")
	}
	if s.left.Lag > 0 && (q.verb == taskIDs || q.verb == instanceIDs) {
		for _, late := range x.lagged(s, q) {
			n := s.clone()
			n.left.Lag--
			other(n, late.view, "", x.told(fmt.Sprintf(" [index shows %s]", shorts(late.ids))))
		}
	}
}

// rest leaves a use case where it may wait for others, or be killed.
func (x *search) rest(s *state, i int, c course, out emit) {
	others := s.left.Operations > 0 || s.left.Machine > 0 || len(s.runs) > 1 // that might go on meanwhile
	if c.waits != nil && s.left.Preempt > 0 && others {
		n := s.clone()
		n.left.Preempt--
		n.runs = slices.Clone(s.runs)
		n.runs[i].at = c.waits
		x.arrive(n, i, c.label, "", out)
	}
	if c.dies != nil && !c.back {
		n := s.clone()
		n.runs = slices.Clone(s.runs)
		n.runs[i].at = c.dies
		x.kill(n, i, func(note string, n *state, broken string) {
			n.runs = slices.Clone(n.runs)
			x.arrive(n, -1, c.label+x.told(note), broken, out)
		})
	}
}

// differs says whether something changed that another could see.
func (x *search) differs(a, b *state) bool {
	return !sameItems(a.items, b.items) || !sameItems(a.letters, b.letters) || !sameItems(a.machines, b.machines) || !sameItems(a.ran, b.ran) ||
		a.clock != b.clock || a.kicked != b.kicked || a.made != b.made || a.reaped != b.reaped || a.restored != b.restored
}

// arrive tells of a state that a leap leads to; resting is who waits in it from
// now on, -1 nobody. The state's runs are the caller's to give.
func (x *search) arrive(n *state, resting int, label, broken string, out emit) {
	if len(n.runs) > 0 && broken == "" {
		if len(x.from.runs) == 0 || x.differs(x.from, n) && !x.equal(x.from, n) {
			for k := range n.runs {
				n.runs[k].fresh = false
			}
		}
		if resting >= 0 {
			n.runs[resting].fresh = true
		}
		n.withRuns(n.runs)
	}
	if len(n.runs) == 0 {
		n.items = x.plain(n.items)
	}
	out(label, n, broken)
}

func (x *search) equal(a, b *state) bool {
	return slices.Equal(a.items, b.items) && slices.Equal(a.letters, b.letters) && slices.Equal(a.machines, b.machines) && slices.Equal(a.ran, b.ran) &&
		a.clock == b.clock && a.kicked == b.kicked && a.made == b.made && a.reaped == b.reaped && a.restored == b.restored
}

// plain are the same items, each in its first version: nobody remembers another
// while nothing is under way.
func (x *search) plain(items []uint32) []uint32 {
	var out []uint32
	for i, id := range items {
		first, ok := x.memory.firsts[id]
		if !ok {
			r := control.Record(nil)
			if it := &x.book.items[id]; it.version == 1 {
				first = id
			} else {
				r = x.book.copyOf(id)
				*r.Revision() = 1
				first = x.book.item(r)
			}
			x.memory.firsts[id] = first
		}
		if first != id && out == nil {
			out = slices.Clone(items)
		}
		if out != nil {
			out[i] = first
		}
	}
	if out == nil {
		return items
	}
	return out
}

// What a leap's label has beside what is told: which kind it begins, that one goes
// on from an earlier place than it was told to have come to, and the place that a
// line leads to.
const (
	kindMark  = "\x01"
	backMark  = "\x02"
	placeMark = "\x03"
)

func (x *search) told(line string) string {
	if !x.telling {
		return ""
	}
	return line
}

// line adds a call and the place it leads to to a label: to the line of the call
// before it, if nobody sees it.
func (x *search) line(label string, from *place, note string, to *place) string {
	if !x.telling {
		return ""
	}
	if at := strings.LastIndex(label, placeMark); at >= 0 && from.ask.unseen() {
		return fmt.Sprintf("%s; %s%s%d\n", label[:at], x.book.named(from.ask).short, placeMark, to.id)
	}
	return fmt.Sprintf("%s%s: %s%s%s%d\n", label, from.call.name, x.book.named(from.ask).short, note, placeMark, to.id)
}

// retell makes the lines of a trace of the labels of leaps, and says which kinds
// were begun.
func retell(labels []string) (lines, begun []string) {
	type told struct{ text, place, call string }
	var all []told
	for _, label := range labels {
		for line := range strings.Lines(label) {
			line = strings.TrimSuffix(line, "\n")
			if kind, ok := strings.CutPrefix(line, kindMark); ok {
				begun = append(begun, kind)
				continue
			}
			if span, ok := strings.CutPrefix(line, backMark); ok {
				to, from, _ := strings.Cut(span, "-")
				all = withdrawn(all, from, to, func(t told) string { return t.place }, func(t told) string { return t.call })
				continue
			}
			text, place, _ := strings.Cut(line, placeMark)
			call, _, _ := strings.Cut(strings.TrimPrefix(text, "+ "), ": ")
			all = append(all, told{text, place, call})
		}
	}
	for _, t := range all {
		lines = append(lines, t.text)
	}
	return lines, begun
}

// withdrawn are the lines without those of one call after it came to the place to,
// up to the one to the place from: it had not come so far yet.
func withdrawn[T any](all []T, from, to string, place, call func(T) string) []T {
	if from == to {
		return all
	}
	for i := len(all) - 1; i >= 0; i-- {
		if place(all[i]) != from {
			continue
		}
		who := call(all[i])
		for i >= 0 && place(all[i]) != to {
			if call(all[i]) == who {
				all = slices.Delete(all, i, i+1)
			}
			i--
		}
		return all
	}
	return all
}
