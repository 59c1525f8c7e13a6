package search

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

// search is one exploration: a start, a bound, and what was seen.
type search struct {
	book     *book
	program  *program
	base     []uint32 // what the indexes may still show
	backup   []uint32 // what a restore brings back; nil: there is no restore
	allowed  map[kind]bool
	checked  map[uint64]string
	memory   memory
	since    int64 // when the search begins
	noSettle bool
	telling  bool   // steps are to be named
	from     *state // that leaps are taken from
	buf      []byte
}

// emit takes a state that follows; broken says what the step broke.
type emit func(label string, next *state, broken string)

// steps are all that may happen next in a state.
func (x *search) steps(s *state, out emit) {
	cost := uint8(0) // of leaving what went last in its middle
	for _, r := range s.runs {
		cost += bit(r.now)
	}
	for i, r := range s.runs {
		need := cost - bit(r.now)
		if i > 0 && s.runs[i-1] == r || need > s.left.Preempt {
			continue
		}
		n := s.clone()
		n.left.Preempt -= need
		x.proceed(n, i, r.at.call.name, out)
		x.kill(n, i, out)
	}
	if cost > s.left.Preempt {
		return
	}
	free := s.clone()
	free.left.Preempt -= cost
	if cost > 0 {
		free.runs = slices.Clone(s.runs)
		for i := range free.runs {
			free.runs[i].now = false
		}
	}
	if s.left.Operations > 0 {
		for _, o := range x.begins(s) {
			x.begin(free, o, out)
		}
	}
	if s.left.Machine > 0 {
		x.machineSteps(free, out)
	}
}

// begun is the state in which an operation begins; nil: it may not.
func (x *search) begun(s *state, o begin) *state {
	n := s.clone()
	n.left.Operations--
	if o.needs != nil {
		left := o.needs(&n.left)
		if *left == 0 {
			return nil
		}
		*left--
	}
	if o.before != nil {
		o.before(n)
	}
	return n
}

// begin starts an operation and makes its first request.
func (x *search) begin(s *state, o begin, out emit) {
	n := x.begun(s, o)
	if n == nil {
		return
	}
	if o.call == nil {
		out(o.label, n, x.look(n))
		return
	}
	root := x.program.root(o.call)
	if root.ask == nil {
		out("+ "+o.label, n, running{at: root}.failed())
		return
	}
	n.runs = append(slices.Clone(n.runs), running{at: root, letter: o.letter, kept: o.again, now: true})
	x.proceed(n, len(n.runs)-1, "+ "+o.label, out)
}

// kill ends a use case where it stands: what it was to take in comes again.
func (x *search) kill(s *state, i int, out emit) {
	if s.left.Crash == 0 || s.left.Operations == 0 {
		return
	}
	n := s.clone()
	n.left.Crash--
	n.left.Operations--
	name := n.runs[i].at.call.name
	x.leave(n, i, true)
	out(x.told("crash of "+name), n, "")
}

// leave takes a use case out of those that run; failed: its letter comes again.
func (x *search) leave(s *state, i int, failed bool) {
	r := s.runs[i]
	s.runs = slices.Delete(slices.Clone(s.runs), i, i+1)
	if r.letter != 0 && failed && !r.kept {
		s.withLetter(r.letter)
	}
}

// proceed answers a use case's request in every way that the budget allows.
func (x *search) proceed(s *state, i int, name string, out emit) {
	q := s.runs[i].at.ask
	say := func(note string) string {
		if !x.telling {
			return ""
		}
		return name + ": " + x.book.named(q).short + note
	}
	x.answer(s, i, s.items, say(""), out, "")
	if q.verb == commit {
		if s.left.Conflict > 0 {
			n := s.clone()
			n.left.Conflict--
			x.answer(n, i, n.items, say(" [cancelled]"), out, fault.Conflict)
		}
		if s.left.Unsure > 0 {
			n := s.clone()
			n.left.Unsure--
			x.answer(n, i, n.items, say(" [written, answer lost]"), out, fault.Unavailable)
		}
	}
	if s.left.Lag > 0 && (q.verb == taskIDs || q.verb == instanceIDs) {
		for _, late := range x.lagged(s, q) {
			n := s.clone()
			n.left.Lag--
			x.answer(n, i, late.view, say(fmt.Sprintf(" [index shows %s]", shorts(late.ids))), out, "")
		}
	}
}

// late is what an index that misses some of the newest writes shows.
type late struct {
	view []uint32
	ids  []string
}

// lagged are all answers to a query but the newest.
func (x *search) lagged(s *state, q *request) (out []late) {
	now, _ := x.book.reply(s, q, s.items)
	seen := map[string]bool{now.key(): true}
	for _, view := range x.book.views(x.base, s.items)[1:] {
		old, _ := x.book.reply(s, q, view)
		if !seen[old.key()] {
			seen[old.key()] = true
			out = append(out, late{view, old.ids})
		}
	}
	return out
}

func shorts(ids []string) (out []string) {
	for _, id := range ids {
		out = append(out, short(id))
	}
	return out
}

// answer performs a request and all unseen ones that follow; injected is a fault
// in place of the store's own answer.
func (x *search) answer(s *state, i int, index []uint32, label string, out emit, injected fault.Kind) {
	n := s.clone()
	n.runs = slices.Clone(s.runs)
	for k := range n.runs {
		n.runs[k].now = k == i
	}
	bad := x.perform(n, i, index, injected)
	for bad == "" && n.runs[i].at.ask != nil && n.runs[i].at.ask.unseen() {
		x.kill(n, i, func(_ string, next *state, broken string) { out(label+", then crash", next, broken) })
		if x.telling {
			label += "; " + x.book.named(n.runs[i].at.ask).short
		}
		bad = x.perform(n, i, n.items, "")
	}
	if r := n.runs[i]; bad == "" && r.at.ask == nil {
		bad = x.ended(n, r)
		x.leave(n, i, r.at.err != nil)
	}
	n.withRuns(n.runs)
	out(label, n, bad)
}

// failed says what is wrong with how a use case ended.
func (r running) failed() string {
	switch err := r.at.err; {
	case r.at.panics != "":
		return "FAULT " + r.at.call.name + " panics: " + r.at.panics
	case fault.Is(err, fault.Internal):
		return "FAULT " + err.Error()
	}
	return ""
}

// ended says what is wrong with how a use case ended, or with what it left.
func (x *search) ended(s *state, r running) string {
	if bad := r.failed(); bad != "" || r.at.err != nil || r.at.call.kind != stop {
		return bad
	}
	name := strings.TrimPrefix(r.at.call.name, "stop ")
	if t := recordOf(x.book, s, &control.Task{ID: taskID(name)}); t != nil && t.DesiredStatus != task.DesiredStopped {
		return "I3 StopTask of " + name + " succeeded, and it is to run"
	}
	return ""
}

// perform makes a use case's request and moves it on.
func (x *search) perform(s *state, i int, index []uint32, injected fault.Kind) string {
	r := &s.runs[i]
	q := r.at.ask
	a, items := answer{clock: s.clock, fault: injected}, s.items
	if injected != fault.Conflict {
		a, items = x.book.reply(s, q, index)
		if injected != "" && a.fault == "" {
			a.fault = injected
		}
	}
	bad := ""
	if len(items) != len(s.items) || len(items) > 0 && &items[0] != &s.items[0] {
		before := s.items
		s.items = items
		bad = x.judge(before, s, r.at.call)
	}
	x.send(s, q)
	if bad == "" {
		bad = x.heard(s, q)
	}
	r.at = x.program.after(r.at, a)
	if p := r.at; bad == "" && p.panics != "" {
		bad = r.failed()
	}
	return bad
}

// send puts on their way what a request sends.
func (x *search) send(s *state, q *request) {
	switch q.verb {
	case commands:
		if q.sent == nil {
			q.sent = []uint32{}
			for _, m := range q.send {
				if to := x.machineOf(s, wire.HeaderOf(m).Instance); to >= 0 {
					q.sent = append(q.sent, x.book.letter(letter{to: to, from: -1, message: m}))
				}
			}
		}
		for _, id := range q.sent {
			s.withLetter(id)
		}
	case probe:
		s.withLetter(x.book.letter(letter{to: -1, from: -1, message: q.send[0], sent: s.clock}))
	case kickAdmission:
		s.kicked = true
	case load, commit, renew, taskIDs, instanceIDs, leases, clusters, catalog, kickServices, other:
	}
}

func (x *search) machineOf(s *state, id string) int {
	return slices.IndexFunc(s.machines, func(m uint32) bool { return x.book.machines[m].ID == id })
}

// machineSteps are what the machines may do of themselves.
func (x *search) machineSteps(s *state, out emit) {
	for i := range s.machines {
		last := uint32(0)
		for _, id := range s.letters {
			if x.book.letters[id].to == i && id != last {
				last = id
				x.take(s, i, id, out)
			}
		}
		x.work(s, i, out)
	}
}

// take lets a machine deal with a command, or refuse an assign.
func (x *search) take(s *state, i int, id uint32, out emit) {
	m, c := x.book.machines[s.machines[i]], x.book.letters[id].message
	if !m.Ready(c) {
		return
	}
	for _, refuses := range []bool{false, true} {
		if refuses && (s.left.Refuse == 0 || !m.Takes(c)) {
			return
		}
		n := s.clone()
		n.left.Machine--
		what := " takes "
		if refuses {
			n.left.Refuse--
			what = " refuses "
		}
		n.withoutLetter(id)
		bad := x.become(n, i, x.command(s, i, id, refuses))
		label := ""
		if x.telling {
			label = m.Name + what + nameOf(c)
		}
		out(label, n, bad)
	}
}

func now(s *state) time.Time { return time.Unix(s.clock, 0).UTC() }

// work is one step of a machine's engine, or the end of a container by itself.
func (x *search) work(s *state, i int, out emit) {
	m := x.book.machines[s.machines[i]]
	if done := x.worked(s, i); done.did {
		n := s.clone()
		n.left.Machine--
		bad := x.become(n, i, done)
		if x.telling {
			out(m.Name+" "+done.what+" "+short(done.task), n, bad)
		} else {
			out("", n, bad)
		}
	}
	if s.left.Exit == 0 || !m.Host {
		return
	}
	for _, id := range m.Tasks() {
		after := m.Clone()
		if !after.Exit(id) {
			continue
		}
		n := s.clone()
		n.left.Machine--
		n.left.Exit--
		bad := x.moved(n, i, after, nil)
		out(x.told(m.Name+": container of "+short(id)+" exits"), n, bad)
	}
}
