//go:build sim || soak

package search

import (
	"runtime/debug"
	"testing"
	"time"
)

// A search makes millions of small things that live as long as it.
func init() { debug.SetGCPercent(400) }

// ordinary is how far every start is searched in the unit lane: any two operations,
// one of which waits in its middle for the other, or is killed there; and any two in
// turn, with a query that lags, a commit whose answer is lost, a refusal and a letter
// that comes twice.
var ordinary = []budget{
	{Operations: 2, Preempt: 1, Machine: 1, Crash: 1},
	{Operations: 2, Machine: 1, Refuse: 1, Lag: 1, Unsure: 1, Again: 1},
}

// atMost ends a search that has outgrown its lane.
const atMost = 6_000_000

// No interleaving of the real use cases within the bounds breaks an invariant, and
// from every quiet state between everything comes to rest.
func TestSearch_NothingBreaksAndEverythingSettles(t *testing.T) {
	searchAll(t, ordinary, time.Time{})
}

// searchAll searches from every start within each bound, until a time if one is set.
func searchAll(t *testing.T, bounds []budget, until time.Time) {
	if testing.Verbose() {
		t.Log("figures: start, bound, states, transitions, merged, quiet states settled, places in the code, depth, time")
	}
	var sum Figures
	for _, bound := range bounds {
		for _, name := range startNames(t) {
			x, s := opened(t, name)
			s.left = bound
			f, found := x.explore(name, s, limit{states: atMost, until: until})
			if found != nil {
				t.Errorf("%s", found)
			}
			part := ""
			if !f.Complete && found == nil {
				part = " (in part)"
				if until.IsZero() {
					t.Errorf("start %s is not searched to the end within %s", name, bound)
				}
			}
			t.Logf("%-9s %-66s %8d %8d %8d %5d %6d %3d %s%s", name, bound, f.States, f.Transitions, f.Merged, f.Settled, f.Code, f.Depth, f.Took.Round(10*time.Millisecond), part)
			sum.States, sum.Transitions, sum.Merged, sum.Settled, sum.Took = sum.States+f.States, sum.Transitions+f.Transitions, sum.Merged+f.Merged, sum.Settled+f.Settled, sum.Took+f.Took
		}
	}
	t.Logf("together: %d searches, %d states, %d transitions, %d merged, %d settled, %s", len(bounds)*len(startNames(t)), sum.States, sum.Transitions, sum.Merged, sum.Settled, sum.Took.Round(time.Second))
}
