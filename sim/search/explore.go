package search

import (
	"fmt"
	"strings"
	"time"
)

// Figures are what a search came to.
type Figures struct {
	States      int
	Transitions int
	Merged      int // transitions that led to a state already seen
	Settled     int
	Code        int // places in use cases
	Replays     int // use cases run again from their beginning
	Depth       int
	Took        time.Duration
	Complete    bool
	Cut         bool // the limit was reached
}

// Fault is what a search found: the steps that lead there, and what they break.
type Fault struct {
	Start  string
	Broken string
	Trace  []string
	Settle []string // what was done after the trace to see it wait for ever
	begun  []string // the kinds of operation begun, if it was come to by leaps
}

func (f *Fault) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "# %s\nstart %s\n", f.Broken, f.Start)
	for _, l := range f.Trace {
		fmt.Fprintln(&s, l)
	}
	for _, l := range f.Settle {
		fmt.Fprintln(&s, "#   settling: "+l)
	}
	return s.String()
}

// way is how a state was come to: the which-th of what may follow in another.
type way struct{ from, which uint32 }

// limit ends a search early.
type limit struct {
	states int
	until  time.Time // zero: whatever it takes
}

// explore searches breadth first from a start, by leaps, and ends at the first
// fault; that is then told step by step, in as few as may be.
func (x *search) explore(name string, start *state, most limit) (*Figures, *Fault) {
	f, found := x.through(name, start, most, x.leaps, false)
	if found != nil {
		x.shorten(name, start, found)
	}
	return f, found
}

// shorten looks for a trace of fewest steps among the kinds of one that was found.
func (x *search) shorten(name string, start *state, found *Fault) {
	was := x.allowed
	x.allowed = map[kind]bool{}
	for _, k := range found.begun {
		x.allowed[kind(k)] = true
	}
	most := limit{states: 400_000} // and no time: what is told is not to depend on the machine
	if _, short := x.through(name, start, most, x.steps, true); short != nil {
		*found = *short
	}
	x.allowed = was
}

// through searches breadth first; follow says what may follow in a state. With
// nothing left that may begin, what is under way is followed to its end at once.
func (x *search) through(name string, start *state, most limit, follow func(*state, emit), flat bool) (*Figures, *Fault) {
	begun := time.Now()
	w := &walk{search: x, follow: follow, seen: &visited{map[uint64]uint64{}, map[uint64][]uint64{}}, ways: []way{{}}, flat: flat}
	w.isNew(start)
	level := []node{{start, 0}}
	f := &w.figures
	for len(level) > 0 && w.broken == "" {
		f.Depth++
		for k, n := range level {
			level[k].state = nil
			if w.expand(n.state, n.number); w.broken != "" {
				break
			}
			if len(w.ways) > most.states || k&63 == 0 && !most.until.IsZero() && time.Now().After(most.until) {
				w.next, f.Cut = nil, true
				break
			}
		}
		level, w.next = w.next, nil
	}
	f.Complete = w.broken == "" && !f.Cut
	f.Code, f.Replays, f.Took = int(x.program.places), x.program.replays, time.Since(begun)
	if w.broken == "" {
		return f, nil
	}
	labels, at := w.retrace(start)
	lines, kinds := retell(labels)
	found := &Fault{Start: name, Broken: w.broken, Trace: lines, begun: kinds}
	if w.settles {
		x.settle(at, func(l string) { found.Settle = append(found.Settle, l) })
	}
	return f, found
}

type node struct {
	state  *state
	number uint32 // its way
}

// walk is one search under way.
type walk struct {
	*search
	follow  func(*state, emit)
	seen    *visited
	ways    []way
	next    []node
	figures Figures
	buf     []byte
	broken  string
	settles bool // it broke while settling
	lastAt  uint32
	last    []uint32 // the way from there to where it broke
	flat    bool     // nothing is followed to its end at once
}

// isNew says whether a state was not seen yet with as much left to do.
func (w *walk) isNew(s *state) bool {
	var h uint64
	h, w.buf = s.hash(w.buf)
	if !w.seen.add(h, &s.left) {
		w.figures.Merged++
		return false
	}
	w.figures.States++
	return true
}

// expand looks at a state and at what may follow; at is its number, or that of
// the last before it that has one.
func (w *walk) expand(s *state, at uint32) {
	if w.quiet(s); w.broken != "" {
		w.lastAt = at
		return
	}
	which := uint32(0)
	w.follow(s, func(_ string, n *state, broken string) {
		which++
		if w.broken != "" {
			return
		}
		w.figures.Transitions++
		switch {
		case broken != "":
			w.broken = broken
		case w.flat || n.left.Operations > 0 || n.left.Machine > 0:
			if w.isNew(n) {
				w.next = append(w.next, node{n, uint32(len(w.ways))})
				w.ways = append(w.ways, way{at, which})
			}
			return
		case len(n.runs) == 0:
			w.quiet(n)
		case w.isNew(n):
			from := w.from
			w.expand(n, at)
			w.from = from
		}
		if w.broken != "" {
			if len(w.last) == 0 {
				w.lastAt = at
			}
			w.last = append([]uint32{which}, w.last...)
		}
	})
}

// quiet lets a quiet state settle, if none like it has.
func (w *walk) quiet(s *state) {
	if len(s.runs) > 0 || w.noSettle {
		return
	}
	shape := w.shape(s)
	if w.memory.settled[shape] {
		return
	}
	w.figures.Settled++
	if bad := w.settle(s, nil); bad != "" {
		w.broken, w.settles = bad, true
	}
	w.memory.settled[shape] = true // not before: what it comes to may look like it
}

// retrace goes the way again to where it broke, and names what happens on it.
func (w *walk) retrace(start *state) (labels []string, at *state) {
	path := w.last
	for n := w.lastAt; n != 0; n = w.ways[n].from {
		path = append([]uint32{w.ways[n].which}, path...)
	}
	w.telling = true
	defer func() { w.telling = false }()
	at = start
	for _, want := range path {
		which := uint32(0)
		var next *state
		w.follow(at, func(label string, n *state, _ string) {
			if which++; which == want {
				labels, next = append(labels, label), n
			}
		})
		at = next
	}
	return labels, at
}
