//go:build sim || soak

package whole

import (
	"flag"
	"fmt"
	"runtime/debug"
	"sync"
	"testing"
)

var (
	seeds    = flag.Uint64("seeds", 200, "how many seeds are run")
	seedFrom = flag.Uint64("seed-from", 1, "the first of them")
	dense    = flag.Bool("dense", false, "few hosts, and as many faults")
	first    = flag.Bool("first", false, "end with the first that goes wrong, and do not show it again")
)

// sized is the run of a seed.
func sized(seed uint64) Option {
	if *dense {
		return small(seed)
	}
	return ordinary(seed)
}

func init() { debug.SetGCPercent(400) }

// Whatever a seed does to it, no invariant of the whole system breaks, and once the
// faults end all comes to rest.
func TestSeeds_NothingBreaksAndEverythingComesToRest(t *testing.T) {
	var mu sync.Mutex
	var sum Figures
	bad := 0
	t.Run("seed", func(t *testing.T) {
		for n := range *seeds {
			seed := *seedFrom + n
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				mu.Lock()
				enough := bad >= 3 || *first && bad > 0
				mu.Unlock()
				if enough { // each shows its trace
					return
				}
				r := run(t, sized(seed))
				mu.Lock()
				sum.Add(r.Figures)
				mu.Unlock()
				if seed%50 == 0 {
					if again := run(t, sized(seed)); again.Hash != r.Hash {
						t.Errorf("seed %d went two ways%s", seed, fork(t, sized(seed)))
					}
				}
				if r.Wrong != "" {
					mu.Lock()
					bad++
					mu.Unlock()
					if *first {
						t.Errorf("seed %d: %s", seed, r.Wrong)
						return
					}
					rerun(t, sized(seed), r.Wrong)
				}
			})
		}
	})
	t.Log(sum.String())
}
