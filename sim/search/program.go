package search

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/fault"
)

// call is one use case with its arguments.
type call struct {
	kind     kind
	name     string
	at       int64  // the clock when it begins
	ids      string // what its new ids begin with
	letter   uint32 // what it takes in
	argument string // what else it is called with that its name does not tell
	run      func(ctx context.Context, c *control.Control) error
}

// place is where a call stands: after certain answers, before its next request.
type place struct {
	id     uint32
	call   *call
	parent *place
	answer answer   // that led here from parent
	ask    *request // nil: it has ended
	err    error
	panics string
	timed  bool              // between the answer and what it asks next it looks at the clock
	next   map[string]*place // by answer, and by answer and clock those that are timed
	parked *runner           // that waits here for its answer, if one does
}

// program grows the trees of places.
type program struct {
	b       *book
	roots   map[string]*place
	places  uint32
	replays int
	parked  []*place
}

// maxParked bounds how many calls wait with their goroutine for a next answer;
// others are run again from their beginning when one comes.
const maxParked = 6000

func newProgram(b *book) *program {
	return &program{b: b, roots: map[string]*place{}}
}

// root is the place where a call begins.
func (p *program) root(c *call) *place {
	name := fmt.Sprintf("%s#%s#%d#%s", c.name, c.ids, c.letter, c.argument)
	return p.next(p.roots, name, c.at, func() *place { return p.grow(&place{call: c}, p.begin(c, nil)) })
}

// next is what follows under a name, at a time if it looks at the clock; if it is
// not known yet it is made.
func (p *program) next(known map[string]*place, name string, clock int64, unknown func() *place) *place {
	at := known[name]
	if at != nil && !at.timed {
		return at
	}
	timely := name + "@" + strconv.FormatInt(clock, 36)
	if at != nil {
		if at = known[timely]; at != nil {
			return at
		}
	}
	at = unknown()
	known[name] = at
	if at.timed {
		known[timely] = at
	}
	return at
}

// after is the place that an answer leads to.
func (p *program) after(at *place, a answer) *place {
	if at.next == nil {
		at.next = map[string]*place{}
	}
	return p.next(at.next, a.key(), a.clock, func() *place { return p.learn(at, a) })
}

// learn runs the code that an answer leads to.
func (p *program) learn(at *place, a answer) *place {
	run := at.parked
	at.parked = nil
	if run == nil {
		p.replays++
		run = p.begin(at.call, history(at))
		if e := <-run.events; e.ask == nil || p.b.named(e.ask).text != p.b.named(at.ask).text {
			panic(fmt.Sprintf("search: %s is no function of its answers: it asked %s, and then %s", at.call.name, at.ask.text, e.text()))
		}
	}
	run.answers <- a
	return p.grow(&place{call: at.call, parent: at, answer: a}, run)
}

// grow makes a new place of what the runner comes to next.
func (p *program) grow(at *place, run *runner) *place {
	e := <-run.events
	p.places++
	at.id, at.ask, at.err, at.panics, at.timed = p.places, e.ask, e.err, e.panics, e.timed
	if e.ask != nil {
		at.parked = run
		p.parked = append(p.parked, at)
	}
	if len(p.parked) > 2*maxParked {
		p.release(maxParked)
	}
	return at
}

// release ends the goroutines of all places but the newest.
func (p *program) release(keep int) {
	var live []*place
	for _, at := range p.parked {
		if at.parked != nil {
			live = append(live, at)
		}
	}
	n := max(0, len(live)-keep)
	for _, at := range live[:n] {
		close(at.parked.answers)
		at.parked = nil
	}
	p.parked = append([]*place(nil), live[n:]...)
}

func history(at *place) (out []*place) {
	for ; at.parent != nil; at = at.parent {
		out = append(out, at)
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out
}

type event struct {
	ask    *request
	err    error
	panics string
	timed  bool
}

func (e event) text() string {
	if e.ask != nil {
		return e.ask.text // a replay has named it
	}
	return fmt.Sprintf("nothing (%v %s)", e.err, e.panics)
}

// runner is one run of a call on a goroutine of its own, which stops at each
// request until it is answered. It is the call's store and queue; what those have
// beyond what is asked here is not modelled.
type runner struct {
	control.Store
	control.Queue
	b       *book
	call    *call
	known   []*place // answers from an earlier run
	clock   int64
	timed   bool // it looked at the clock since the last answer
	made    int
	reply   func(*request) answer // answers at once, where nothing is searched
	events  chan event
	answers chan answer
}

func (p *program) begin(c *call, known []*place) *runner {
	r := &runner{b: p.b, call: c, known: known, clock: c.at, events: make(chan event), answers: make(chan answer)}
	use := &control.Control{
		Store: r, Queue: r, Metrics: noMetrics{}, Log: quiet, Setting: settings,
		Now:   func() time.Time { r.timed = true; return time.Unix(r.clock, 0).UTC() },
		NewID: func() string { r.made++; return fmt.Sprintf("%s%0*x", c.ids, 32-len(c.ids), r.made) },
		Pause: func(context.Context, int) {},
	}
	go func() {
		over := false
		defer func() {
			if p := recover(); p != nil {
				r.events <- event{panics: fmt.Sprint(p), timed: r.timed}
			} else if over {
				return
			}
		}()
		err := c.run(context.Background(), use)
		over = true
		r.events <- event{err: err, timed: r.timed}
	}()
	return r
}

var (
	quiet    = slog.New(slog.DiscardHandler)
	settings = controltest.Setting()
)

type noMetrics struct{}

func (noMetrics) Count(string, float64, ...string) {}

// ask stops until the request is answered.
func (r *runner) ask(q *request) answer {
	if r.reply != nil {
		return r.reply(q)
	}
	var a answer
	if len(r.known) > 0 {
		if was := r.b.named(r.known[0].parent.ask); was.text != r.b.named(q).text {
			panic(fmt.Sprintf("search: %s is no function of its answers: %s was %s", r.call.name, q.text, was.text))
		}
		a, r.known = r.known[0].answer, r.known[1:]
	} else {
		r.events <- event{ask: q, timed: r.timed}
		var ok bool
		if a, ok = <-r.answers; !ok {
			runtime.Goexit()
		}
	}
	r.clock, r.timed = a.clock, false
	return a
}

// failure is the answer's fault as an error.
func (a answer) failure(what string) error {
	if a.fault == "" {
		return nil
	}
	return fault.New(a.fault, "%s: %s", what, a.fault)
}

// answer is what a store or queue says to a request.
type answer struct {
	fault   fault.Kind
	clock   int64
	items   []uint32
	ids     []string
	next    string
	renewed bool
}

func (a answer) key() string {
	var s strings.Builder
	s.Grow(16 + 4*len(a.items))
	s.WriteString(string(a.fault))
	for _, i := range a.items {
		s.Write([]byte{byte(i), byte(i >> 8), byte(i >> 16), byte(i >> 24)})
	}
	for _, id := range a.ids {
		s.WriteString(id)
		s.WriteByte(',')
	}
	s.WriteString(a.next)
	if a.renewed {
		s.WriteByte('r')
	}
	return s.String()
}
