//go:build soak

package search

import (
	"flag"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

var soakFor = flag.Duration("soak-for", 10*time.Minute, "how long each half of the long form may take")

// Deeper: with every fault and two that wait, with four operations and what
// machines do meanwhile, and with five; each search has an equal share of the time.
func TestSearchSoak_Deeper(t *testing.T) {
	bounds := []wanted{
		{name: "faults", bound: budget{Operations: 2, Preempt: 2, Machine: 2, Refuse: 1, Exit: 1, Lag: 1, Conflict: 1, Unsure: 1, Again: 1, Crash: 1}},
		{name: "four", bound: budget{Operations: 4, Preempt: 1, Machine: 1}},
		{name: "five", bound: budget{Operations: 5, Preempt: 1}},
	}
	share := *soakFor / time.Duration(len(bounds)*len(startNames(t)))
	for _, w := range bounds {
		for _, name := range startNames(t) {
			w.starts = name
			searchAll(t, []wanted{w}, time.Now().Add(share))
		}
	}
}

// Wider: every combination of four kinds of operation, each kind up to four times,
// of which two wait in their middle; as many combinations as the time allows, in an
// order of the day.
func TestSearchSoak_FourAtOnce(t *testing.T) {
	seed := uint64(time.Now().Unix() / 86400)
	random := rand.New(rand.NewPCG(seed, 1))
	all := combinations()
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	names := startNames(t)
	until, done, states, cut := time.Now().Add(*soakFor), 0, 0, 0
	for i := 0; time.Now().Before(until); i++ {
		kinds, name := all[i/len(names)%len(all)], names[i%len(names)]
		x, s := opened(t, name)
		if err := x.allow(namesOf(kinds)); err != nil {
			t.Fatal(err)
		}
		s.left = budget{Operations: 4, Preempt: 2, Machine: 2, Again: bit(slices.Contains(kinds, redeliver)), Crash: bit(slices.Contains(kinds, crash))}
		f, found := x.explore(name, s, limit{states: 400_000, until: until})
		if found != nil {
			t.Errorf("among %v:\n%s", kinds, found)
		}
		states += f.States
		if done++; !f.Complete && found == nil {
			cut++
		}
	}
	t.Logf("seed %d: %d of %d combinations of four kinds and a start (%d of them in part), %d states", seed, done, len(all)*len(names), cut, states)
}

// combinations are all of four kinds.
func combinations() (all [][]kind) {
	for a := range kinds {
		for b := a + 1; b < len(kinds); b++ {
			for c := b + 1; c < len(kinds); c++ {
				for d := c + 1; d < len(kinds); d++ {
					all = append(all, []kind{kinds[a], kinds[b], kinds[c], kinds[d]})
				}
			}
		}
	}
	return all
}

func namesOf(kinds []kind) string {
	var out []string
	for _, k := range kinds {
		out = append(out, strings.ReplaceAll(string(k), " ", ""))
	}
	return strings.Join(out, " ")
}
