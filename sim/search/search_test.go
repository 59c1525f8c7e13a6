//go:build sim || soak

package search

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A search makes millions of small things that live as long as it.
func init() { debug.SetGCPercent(400) }

// wanted is a search that is to be made: of some kinds of operation ("" is all),
// from some starts ("" is all), within a bound.
type wanted struct {
	name   string
	kinds  string
	starts string
	bound  budget
}

func (w wanted) from(start string) bool {
	return w.starts == "" || slices.Contains(strings.Fields(w.starts), start)
}

// ordinary is how far every start is searched in the ordinary lane, whatever the
// kinds: any three operations, one of which waits in its middle for the others; and
// any two with every fault that stores and queues have, one of each.
var ordinary = []wanted{
	{name: "three", bound: budget{Operations: 3, Preempt: 1, Machine: 1}},
	{name: "faults", bound: budget{Operations: 2, Preempt: 1, Machine: 1, Refuse: 1, Lag: 1, Conflict: 1, Unsure: 1, Again: 1, Crash: 1}},
}

// atMost ends a search that has outgrown its lane.
const atMost = 12_000_000

// No interleaving of the real use cases within the bounds breaks an invariant, and
// from every quiet state between everything comes to rest.
func TestSearch_NothingBreaksAndEverythingSettles(t *testing.T) {
	searchAll(t, ordinary, time.Time{})
}

// searchAll makes each search from each of its starts, as many at once as there
// are processors, until a time if one is set: those not at their end then are in
// part.
func searchAll(t *testing.T, all []wanted, until time.Time) (sum Figures) {
	t.Helper()
	type job struct {
		wanted
		start string
	}
	jobs := make(chan job)
	var lock sync.Mutex
	var workers sync.WaitGroup
	searches, parts := 0, 0
	if testing.Verbose() {
		t.Log("figures: what, start, bound, states, transitions, merged, quiet states settled, places in the code, time, exhausted")
	}
	begun, busy := time.Now(), processorTime()
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for j := range jobs {
				f, found := searchOnce(t, j.wanted, j.start, until)
				lock.Lock()
				if searches++; found != nil {
					t.Errorf("%s: %s", j.name, found)
				}
				exhausted := "yes"
				if !f.Complete {
					exhausted, parts = "no", parts+1
					if until.IsZero() && found == nil {
						t.Errorf("%s from %s is not searched to the end within %s", j.name, j.start, j.bound)
					}
				}
				t.Logf("%-9s %-9s %-66s %8d %8d %8d %6d %6d %8s %s", j.name, j.start, j.bound, f.States, f.Transitions, f.Merged, f.Settled, f.Code, f.Took.Round(10*time.Millisecond), exhausted)
				sum.States, sum.Transitions, sum.Merged, sum.Settled = sum.States+f.States, sum.Transitions+f.Transitions, sum.Merged+f.Merged, sum.Settled+f.Settled
				lock.Unlock()
			}
		})
	}
	for _, w := range all {
		for _, name := range startNames(t) {
			if w.from(name) {
				jobs <- job{w, name}
			}
		}
	}
	close(jobs)
	workers.Wait()
	t.Logf("together: %d searches, %d of them in part, %d states, %d transitions, %d merged, %d settled, %s, of processors %s",
		searches, parts, sum.States, sum.Transitions, sum.Merged, sum.Settled, time.Since(begun).Round(time.Second), (processorTime() - busy).Round(time.Second))
	return sum
}

func searchOnce(t *testing.T, w wanted, start string, until time.Time) (*Figures, *Fault) {
	x, s, err := openStart(start)
	if err == nil && w.kinds != "" {
		err = x.allow(w.kinds)
	}
	if err != nil {
		t.Error(err)
		return &Figures{}, nil
	}
	s.left = w.bound
	f, found := x.explore(start, s, limit{states: atMost, until: until})
	x.program.release(0)
	return f, found
}

// processorTime is what this process has used of all processors.
func processorTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(fmt.Sprintf("getrusage: %v", err))
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
