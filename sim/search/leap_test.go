//go:build sim || soak

package search

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// quietOf are the quiet states that a search comes to. One that is not known is a
// fault, if some are, so that the way to it is told.
func quietOf(t *testing.T, w wanted, start string, follow func(*search, *state, emit), known map[string]bool) (map[string]bool, *Figures) {
	t.Helper()
	x, s := opened(t, start)
	if w.kinds != "" {
		if err := x.allow(w.kinds); err != nil {
			t.Fatal(err)
		}
	}
	s.left, x.noSettle = w.bound, true
	quiet := map[string]bool{}
	f, found := x.through(start, s, limit{states: atMost}, func(s *state, out emit) {
		follow(x, s, func(label string, n *state, broken string) {
			if len(n.runs) == 0 && !x.telling {
				w := x.world(n)
				if quiet[w] = true; known != nil && !known[w] && broken == "" {
					broken = "only this way leads to\n" + w
				}
			}
			out(label, n, broken)
		})
	}, false)
	if found != nil {
		t.Errorf("%s: %v", start, found)
	}
	return quiet, f
}

// world tells a quiet state by its documents, whatever their numbers.
func (x *search) world(s *state) string {
	var lines []string
	for _, id := range x.plain(s.items) {
		it := &x.book.items[id]
		lines = append(lines, fmt.Sprintf("%v %s", x.book.keys[it.key], it.doc))
	}
	for _, id := range s.letters {
		l := &x.book.letters[id]
		lines = append(lines, fmt.Sprintln(l.to, l.from, l.sent, nameOf(l.message)))
	}
	slices.Sort(lines)
	for _, id := range s.machines {
		lines = append(lines, fmt.Sprint(*x.book.machines[id]))
	}
	return strings.Join(append(lines, fmt.Sprintln(s.clock, len(s.ran), s.kicked, s.made, s.reaped, s.restored)), "\n")
}

// Leaps come to the very quiet states that steps come to: from every start among
// any two operations, and within small bounds with more that wait and every fault.
func TestLeap_ComesToTheQuietStatesThatStepsComeTo(t *testing.T) {
	all := []wanted{
		{bound: budget{Operations: 2, Preempt: 1, Crash: 1}},
		{starts: "given", kinds: "stop admit report", bound: budget{Operations: 2, Preempt: 2, Machine: 2, Refuse: 1, Lag: 1, Conflict: 1, Unsure: 1, Again: 1, Crash: 1}},
		{starts: "waiting", kinds: "stop admit submit", bound: budget{Operations: 3, Preempt: 2, Lag: 1, Conflict: 1}},
		{starts: "ended", kinds: "report heartbeat close redeliver", bound: budget{Operations: 3, Preempt: 2, Again: 1}},
		{starts: "lost", kinds: "close heartbeat confirmedoff", bound: budget{Operations: 3, Preempt: 2, Crash: 1, Unsure: 1}},
		{starts: "silent", kinds: "reap heartbeat", bound: budget{Operations: 3, Preempt: 2}},
		{starts: "unserved", kinds: "serve submit", bound: budget{Operations: 3, Preempt: 2, Lag: 1}},
	}
	for _, w := range all {
		for _, start := range startNames(t) {
			if !w.from(start) {
				continue
			}
			leaps, few := quietOf(t, w, start, (*search).leaps, nil)
			steps, many := quietOf(t, w, start, (*search).steps, leaps)
			t.Logf("%-9s %-32s %-80s: %d quiet states; %d states by leaps, %d step by step", start, w.kinds, w.bound, len(steps), few.States, many.States)
			if len(leaps) != len(steps) && !t.Failed() {
				t.Errorf("%s: leaps lead to %d quiet states, steps to %d", start, len(leaps), len(steps))
			}
		}
	}
}
