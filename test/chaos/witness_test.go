package chaos

import (
	"strings"
	"testing"
)

func TestJudge_FindsEachKindOfDouble(t *testing.T) {
	of := func(action, id, attempt string) Told {
		return Told{Action: action, ID: id, Instance: "i-" + id, Task: "t", Attempt: attempt, Container: "main"}
	}
	for name, c := range map[string]struct {
		told     []Told
		restarts []string
		doubles  string // in each, "" for none
		left     int
	}{
		"once": {told: []Told{of("create", "a", "1"), of("start", "a", "1"), of("die", "a", "1"), of("destroy", "a", "1")}},
		"the same container again": {
			told:    []Told{of("create", "a", "1"), of("start", "a", "1"), of("die", "a", "1"), of("start", "a", "1"), of("destroy", "a", "1")},
			doubles: "t/main attempt 1 was started 2 times",
		},
		"the same by its restart policy": {
			told:     []Told{of("create", "a", "1"), of("start", "a", "1"), of("die", "a", "1"), of("start", "a", "1"), of("destroy", "a", "1")},
			restarts: []string{"main"},
		},
		"another container for the attempt": {
			told:    []Told{of("start", "a", "1"), of("die", "a", "1"), of("start", "b", "1"), of("die", "b", "1")},
			doubles: "attempt 1 was started 2 times, at last on i-b",
		},
		"the next attempt after the first has ended":      {told: []Told{of("start", "a", "1"), of("die", "a", "1"), of("start", "b", "2"), of("die", "b", "2")}},
		"the next attempt beside the first":               {told: []Told{of("start", "a", "1"), of("start", "b", "2")}, doubles: "t/main runs in 2 copies, the last on i-b"},
		"the next attempt beside the first, on one place": {told: []Told{of("start", "a", "1"), of("start", "a2", "2"), of("die", "a", "1")}, doubles: "runs in 2 copies"},
		"made and left": {told: []Told{of("create", "a", "1"), of("start", "a", "1"), of("die", "a", "1")}, left: 1},
	} {
		got := Judge(c.told, c.restarts...)
		if len(got.Left) != c.left || (len(got.Doubles) == 0) != (c.doubles == "") {
			t.Errorf("%s: %+v", name, got)
		}
		for _, d := range got.Doubles {
			if !strings.Contains(d, c.doubles) {
				t.Errorf("%s: says %q, want %q", name, d, c.doubles)
			}
		}
	}
}
