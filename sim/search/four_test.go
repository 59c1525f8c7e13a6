//go:build soak

package search

import (
	"testing"
	"time"
)

// four is every start, whatever the kinds: any four operations, of which one waits
// in its middle for the three others, or for some of them. Machines do nothing of
// themselves here: what they say is what a start has on its way, and beats and
// registers.
var four = []wanted{{name: "four", bound: budget{Operations: 4, Preempt: 1}}}

// Nothing breaks among any four operations either: `make sim-four`.
func TestFour_NothingBreaksAmongAnyFourOperations(t *testing.T) {
	searchAll(t, four, time.Time{})
}

// Nor among four of kinds that belong together, of which two wait, from all starts
// that concern them.
func TestFour_NothingBreaksAmongKindsThatBelongTogether(t *testing.T) {
	searchAll(t, groups, time.Time{})
}
