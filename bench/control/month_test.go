package main

import (
	"sync"
	"testing"
)

// The arithmetic of docs/design/cost.md, held against what the use cases do: a call
// more in a beat or in a reaper run is a line here.
func TestMonth_OfAnIdleInstanceIsWhatTheCountsComeTo(t *testing.T) {
	few, many := counted(t)
	for what, want := range map[string]struct{ requests, sends, write, read float64 }{
		lineBeat:   {requests: 1, write: 1},
		lineReaper: {requests: 17, sends: 2, write: 6, read: -1},
		lineProbe:  {requests: 2, write: 1, read: 1},
	} {
		for _, r := range []result{few, many} {
			got := lineOf(r.Lines, what)
			if got.Requests > want.requests || got.Sends > want.sends || got.Write > want.write || want.read >= 0 && got.Read > want.read {
				t.Errorf("%s, %s: %+v, want at most %+v", r.size, what, got, want)
			}
		}
	}
	if tenth := lineOf(few.Lines, lineTenth); tenth.Requests > 6 || tenth.Write > 2 || tenth.Read > 20 {
		t.Errorf("a tenth beat with ten tasks: %+v", tenth)
	}
	// Ten times the instances: the same requests but for the pages of the scan, a
	// quarter of a read unit each.
	a, b := lineOf(few.Lines, lineReaper), lineOf(many.Lines, lineReaper)
	if b.Requests > a.Requests+3 || b.Read-a.Read > 0.25*2700 {
		t.Errorf("a reaper run of 300 instances %+v, of 3000 %+v", a, b)
	}
	for _, c := range []struct {
		what        string
		costs       []cost
		least, most float64
	}{
		{"an instance of many", instanceMonth(few, many, 10), 0.08, 0.13},
		{"an instance whose beats each make a call", instanceMonth(few, many, 1), 0.10, 0.17},
		{"an installation beside its instances", installationMonth(few, many), 0.5, 2.5},
	} {
		if got := sum(c.costs); got < c.least || got > c.most {
			t.Errorf("%s: $%.3f a month, want $%.2f to $%.2f: %+v", c.what, got, c.least, c.most, c.costs)
		}
	}
}

var measured = sync.OnceValues(func() (all [2]result, err error) {
	for i, s := range []size{{300, 3000}, {3000, 3000}} {
		lines, err := measure(s)
		if err != nil {
			return all, err
		}
		all[i] = result{s, lines}
	}
	return all, nil
})

// counted is what was measured of a fleet, and of one ten times as large.
func counted(t *testing.T) (few, many result) {
	t.Helper()
	all, err := measured()
	if err != nil {
		t.Fatal(err)
	}
	return all[0], all[1]
}

// What does not grow with the fleet, and what may.
func TestGrowth_ATaskThatFitsCostsNoMoreInAFleetTenTimesAsLarge(t *testing.T) {
	few, many := counted(t)
	for _, what := range []string{"admission pass: one task, fits", "admission pass: ten tasks, fit", "report of an end (10 of 10 instances)", lineBeat, "sweep: nothing waits"} {
		a, b := lineOf(few.Lines, what), lineOf(many.Lines, what)
		// Which instances are looked at is chance, and each that gets a task is a
		// transaction of its own: some more, but nowhere near ten times as many.
		if b.Requests > 3*a.Requests || b.Read > 1.2*a.Read || b.Write > 1.5*a.Write+2 {
			t.Errorf("%s: %+v and %+v", what, a, b)
		}
	}
	all := lineOf(many.Lines, "admission pass: one task, first that fits nowhere")
	if all.Read < 6000 {
		t.Errorf("a task of a new size that fits nowhere was looked for in a part alone: %+v", all)
	}
}
