package search

import (
	"fmt"
	"hash/maphash"
	"math"
	"strings"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
)

// Figures are what a search came to.
type Figures struct {
	States      int
	Transitions int
	Merged      int // transitions that led to a state already seen
	Ends        int // states in which nothing more may happen
	Settled     int
	Code        int // places in use cases
	Replays     int // use cases run again from their beginning
	Depth       int
	Took        time.Duration
	Complete    bool
}

// Fault is what a search found: the steps that lead there, and what they break.
type Fault struct {
	Start  string
	Broken string
	Trace  []string
	Settle []string // what was done after the trace to see it wait for ever
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

type step struct {
	from  uint32
	label uint32
}

// limit ends a search early.
type limit struct {
	states int
	until  time.Time // zero: whatever it takes
}

// explore searches breadth first from a start, and ends at the first fault.
func (x *search) explore(name string, start *state, most limit) (f *Figures, found *Fault) {
	begun := time.Now()
	f = &Figures{}
	seen := &visited{map[uint64]uint64{}, map[uint64][]uint64{}}
	steps := []step{{}}
	settled := map[uint64]bool{}
	labels := []string{""}
	labelOf := map[string]uint32{}
	var buf []byte
	h, buf := start.hash(buf)
	seen.add(h, &start.left)
	level, numbers := []*state{start}, []uint32{0}
	trace := func(at uint32) (out []string) {
		for ; at != 0; at = steps[at].from {
			out = append([]string{labels[steps[at].label]}, out...)
		}
		return out
	}
	for len(level) > 0 && found == nil {
		var next []*state
		var nextNumbers []uint32
		f.Depth++
		for k, s := range level {
			at := numbers[k]
			level[k] = nil
			if len(s.runs) == 0 {
				if shape := x.shape(s); !settled[shape] {
					settled[shape] = true
					f.Settled++
					if bad := x.settle(s, nil); bad != "" {
						found = &Fault{Start: name, Broken: bad, Trace: trace(at)}
						x.settle(s, func(l string) { found.Settle = append(found.Settle, l) })
						break
					}
				}
			}
			ends := true
			x.steps(s, func(label string, n *state, broken string) {
				if found != nil {
					return
				}
				ends = false
				f.Transitions++
				word, ok := labelOf[label]
				if !ok {
					word = uint32(len(labels))
					labels, labelOf[label] = append(labels, label), word
				}
				if broken != "" {
					found = &Fault{Start: name, Broken: broken, Trace: append(trace(at), label)}
					return
				}
				var h uint64
				h, buf = n.hash(buf)
				if !seen.add(h, &n.left) {
					f.Merged++
					return
				}
				nextNumbers = append(nextNumbers, uint32(len(steps)))
				steps = append(steps, step{at, word})
				next = append(next, n)
			})
			if ends {
				f.Ends++
			}
			if found != nil || len(steps) > most.states || k&255 == 0 && !most.until.IsZero() && time.Now().After(most.until) {
				if found == nil {
					next, level = nil, nil
					goto over
				}
				break
			}
		}
		level, numbers = next, nextNumbers
	}
	f.Complete = found == nil
over:
	f.States, f.Code, f.Replays, f.Took = len(steps), int(x.program.places), x.program.replays, time.Since(begun)
	return f, found
}

// shape names a quiet state without what does not change how it settles: the
// versions of items, and times but for their order to the start.
func (x *search) shape(s *state) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, id := range s.items {
		if _, ok := x.book.items[id].record.(*control.Probe); ok {
			continue
		}
		_, _ = h.WriteString(x.shapeOf(id))
	}
	for _, id := range s.letters {
		_, _ = h.WriteString(nameOf(x.book.letters[id].message))
	}
	for _, id := range s.machines {
		maphash.WriteComparable(&h, id)
	}
	maphash.WriteComparable(&h, len(s.ran))
	maphash.WriteComparable(&h, s.kicked)
	return h.Sum64()
}

// shapeOf is an item's document without its version, its times made coarse.
func (x *search) shapeOf(id uint32) string {
	if was, ok := x.shapes[id]; ok {
		return was
	}
	doc := string(x.book.items[id].doc)
	doc = versions.ReplaceAllString(doc, "")
	doc = moments.ReplaceAllStringFunc(doc, func(m string) string {
		at, err := time.Parse(`"`+time.RFC3339Nano+`"`, m)
		if err != nil {
			return m
		}
		return fmt.Sprint(at.Unix() > x.since, math.Signbit(float64(at.Unix()-x.since)))
	})
	x.shapes[id] = doc
	return doc
}
