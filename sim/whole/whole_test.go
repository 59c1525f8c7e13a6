package whole

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var (
	seedFlag = flag.Uint64("seed", 0, "run this seed as the simulation does, twice")
	lines    = flag.Int("lines", 300, "how much of its trace a run shows that fails")
)

// run is one run in a bubble of its own.
func run(t *testing.T, o Option) (r *Result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { r = Run(t.Context(), o) })
	return r
}

// ordinary is the size of a simulated run.
func ordinary(seed uint64) Option {
	return Option{Seed: seed, Hosts: 50, Chaos: 40 * time.Minute, Tasks: 120}
}

// small is a run for the lanes that have only seconds.
func small(seed uint64) Option {
	return Option{Seed: seed, Hosts: 8, Chaos: 15 * time.Minute, Tasks: 25}
}

// rerun shows what happened in a run: the same again, with its trace.
func rerun(t *testing.T, o Option, wrong string) {
	t.Helper()
	o.Trace = true
	r := run(t, o)
	t.Errorf("seed %d: %s\nagain (go test ./sim/whole -run TestSeed -seed %d), with the end of its trace: %s\n%s", o.Seed, wrong, o.Seed, r.Wrong, r.Tail(*lines))
}

// fork shows where two runs of a seed go different ways.
func fork(t *testing.T, o Option) string {
	o.Trace = true
	for range 10 {
		a, b := run(t, o).Trace, run(t, o).Trace
		for i := range min(len(a), len(b)) {
			if a[i] != b[i] {
				return fmt.Sprintf("\n%s\neither %s\nor     %s", strings.Join(a[max(0, i-30):i], "\n"), a[i], b[i])
			}
		}
	}
	return " (not again)"
}

func TestSeed_ItsRunIsTheSameTwice(t *testing.T) {
	seeds := []Option{small(1), small(2), small(3)}
	if *seedFlag != 0 {
		seeds = []Option{ordinary(*seedFlag)}
	}
	hashes := map[uint64]bool{}
	for _, o := range seeds {
		first, second := run(t, o), run(t, o)
		if first.Hash != second.Hash || first.Steps != second.Steps {
			t.Errorf("seed %d went two ways: hashes %x and %x, steps %d and %d%s", o.Seed, first.Hash, second.Hash, first.Steps, second.Steps, fork(t, o))
		}
		if first.Wrong != "" {
			rerun(t, o, first.Wrong)
		}
		if hashes[first.Hash] {
			t.Errorf("seed %d went the way of another", o.Seed)
		}
		hashes[first.Hash] = true
		t.Logf("seed %d: %s", o.Seed, first.String())
	}
}
