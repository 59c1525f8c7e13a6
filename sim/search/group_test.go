//go:build sim || soak

package search

import (
	"strings"
	"testing"
	"time"
)

// groups are kinds that belong together, searched four at once and deeper than
// all kinds are: two of the operations may wait in their middle, or one twice, and
// machines take two steps. The ordinary lane searches them from the first of their
// starts, `make sim-four` from all.
var groups = []wanted{
	{name: "task", kinds: "submit stop admit refuse report", starts: "waiting ended stopping given"},
	{name: "silence", kinds: "heartbeat reap close return confirmedoff hostdies drain", starts: "silent alone late lost returned"},
	{name: "journal", kinds: "register newjournal heartbeat report stop", starts: "oldbeat journal disk"},
	{name: "counter", kinds: "nreverted heartbeat report stop restore", starts: "restored ended given"},
	{name: "service", kinds: "serve submit report reap stop", starts: "unserved served"},
	{name: "ends", kinds: "itemexpires heartbeat report close reap", starts: "ended lost stopping"},
	{name: "keep", kinds: "reap close endkept heartbeat confirmedoff stop", starts: "kept keeping keptback keptout singleton"},
}

func init() {
	for i := range groups {
		groups[i].bound = budget{Operations: 4, Preempt: 2, Machine: 2}
	}
}

// Nothing breaks among four operations of kinds that belong together.
func TestSearch_FourAtOnceOfKindsThatBelongTogether(t *testing.T) {
	var few []wanted
	for _, g := range groups {
		g.starts, _, _ = strings.Cut(g.starts, " ")
		few = append(few, g)
	}
	searchAll(t, few, time.Time{})
}

// Every group names kinds and starts that there are.
func TestSearch_GroupsNameWhatThereIs(t *testing.T) {
	for _, g := range groups {
		x, _ := newSearch()
		if err := x.allow(g.kinds); err != nil {
			t.Errorf("%s: %v", g.name, err)
		}
		for start := range strings.FieldsSeq(g.starts) {
			if _, _, err := openStart(start); err != nil {
				t.Errorf("%s: %v", g.name, err)
			}
		}
	}
}
