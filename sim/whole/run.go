package whole

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Figures are what a run, or several together, came to.
type Figures struct {
	Runs     int
	Virtual  time.Duration
	Steps    int64
	Calls    int // of functions
	Commits  int
	Checks   int
	Tasks    int
	Faults   map[string]int
	Hash     uint64 // of the last run
	Longest  time.Duration
	Settling time.Duration
}

// Add takes in the figures of another run.
func (f *Figures) Add(o Figures) {
	if f.Faults == nil {
		f.Faults = map[string]int{}
	}
	f.Runs, f.Virtual, f.Steps, f.Calls = f.Runs+o.Runs, f.Virtual+o.Virtual, f.Steps+o.Steps, f.Calls+o.Calls
	f.Commits, f.Checks, f.Tasks = f.Commits+o.Commits, f.Checks+o.Checks, f.Tasks+o.Tasks
	f.Settling, f.Longest = f.Settling+o.Settling, max(f.Longest, o.Longest)
	for k, n := range o.Faults {
		f.Faults[k] += n
	}
}

func (f *Figures) String() string {
	var b strings.Builder
	n := max(1, f.Runs)
	fmt.Fprintf(&b, "%d runs, %s of virtual time, %d steps, %d calls of functions, %d commits, %d checks, %d tasks; rest after %s on average, %s at most",
		f.Runs, f.Virtual.Round(time.Minute), f.Steps, f.Calls, f.Commits, f.Checks, f.Tasks,
		(f.Settling / time.Duration(n)).Round(time.Minute), f.Longest.Round(time.Minute))
	for _, k := range slices.Sorted(maps.Keys(f.Faults)) {
		fmt.Fprintf(&b, "\n%8d %s", f.Faults[k], k)
	}
	return b.String()
}

// Result is how a run went.
type Result struct {
	Figures
	Wrong string   // "" if nothing was
	Trace []string // if it was asked for
}

// Tail is the end of the trace.
func (r *Result) Tail(lines int) string {
	return strings.Join(r.Trace[max(0, len(r.Trace)-lines):], "\n")
}

// Run is one run, inside a bubble.
func Run(ctx context.Context, o Option) *Result {
	w := newWorld(ctx, o)
	w.choose()
	w.define()
	for n := range o.Hosts {
		cluster := clusterDefault
		if n%5 == 4 {
			cluster = clusterEdge
		}
		w.add(w.newHost(n, cluster))
	}
	w.push(0, 0, "minute", w.reaper)
	w.load()
	w.chaos()
	w.until(w.begun.Add(o.Chaos))
	w.heal()
	healed := time.Now()
	w.settle()
	if w.broken == "" {
		w.audit()
	}
	r := &Result{Figures: w.figures(), Wrong: w.broken}
	r.Settling = time.Since(healed)
	r.Longest = r.Settling
	w.end()
	if w.log != nil {
		r.Trace = w.log.lines
	}
	return r
}

// add switches a host on for the first time.
func (w *World) add(h *host) {
	w.hosts = append(w.hosts, h)
	w.byID[h.id] = h
	h.on = true
	h.again(w.between(0, 30*time.Second))
}

func (w *World) figures() Figures {
	return Figures{Runs: 1, Virtual: time.Since(w.begun), Steps: w.steps, Calls: w.calls, Commits: w.check.commits, Checks: w.check.made, Tasks: len(w.check.order), Faults: w.counts, Hash: w.hash}
}
