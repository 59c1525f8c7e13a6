package task_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/longshore-run/longshore/shared/task"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/matrix.txt anew; the difference is to be reviewed")

func events() []task.Event {
	return []task.Event{task.Admitted, task.Refused, task.Shown, task.SeenRunning, task.SeenStopping, task.Ended,
		task.StopRequested, task.Withdrawn, task.Vanished, task.Closed, task.DispatchRepeated}
}

// TestNext_EveryStatusAndEvent is the whole machine: a file with a line for each
// pair, also for those that do not happen.
func TestNext_EveryStatusAndEvent(t *testing.T) {
	by := map[string][]task.Role{}
	for _, row := range task.Table() {
		by[fmt.Sprint(row.From, row.On)] = row.By
	}
	var b strings.Builder
	for _, from := range task.Statuses() {
		for _, on := range events() {
			to, ok := task.Next(from, on)
			switch {
			case ok:
				fmt.Fprintf(&b, "%-12s %-17s -> %-12s %v\n", from, on, to, by[fmt.Sprint(from, on)])
			case to != from:
				t.Errorf("%s on %s goes to %s and is no transition", from, on, to)
			default:
				fmt.Fprintf(&b, "%-12s %-17s -- does not happen\n", from, on)
			}
		}
	}
	const file = "testdata/matrix.txt"
	if *rewrite {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != b.String() {
		t.Fatalf("the machine is\n%s\nand was\n%s", b.String(), want)
	}
}

func TestTable_EachPairOnceByKnownStatusesEventsAndRoles(t *testing.T) {
	roles := []task.Role{task.API, task.Admission, task.StateChange, task.Reaper}
	seen := map[string]bool{}
	used := map[task.Event]bool{}
	for _, row := range task.Table() {
		pair := fmt.Sprint(row.From, row.On)
		if seen[pair] || !row.From.Known() || !row.To.Known() || !slices.Contains(events(), row.On) || len(row.By) == 0 {
			t.Errorf("row %+v", row)
		}
		seen[pair], used[row.On] = true, true
		for _, r := range row.By {
			if !slices.Contains(roles, r) {
				t.Errorf("row %+v by %s", row, r)
			}
		}
	}
	for _, e := range events() {
		if !used[e] {
			t.Errorf("event %s moves nothing", e)
		}
	}
	rows := task.Table()
	rows[0].To = "BROKEN"
	if task.Table()[0].To == "BROKEN" {
		t.Error("the table can be changed from outside")
	}
}

func TestTable_OnlyARefusalGoesBackAndNothingFollowsStopped(t *testing.T) {
	for _, row := range task.Table() {
		if row.To.Rank() < row.From.Rank() && row.On != task.Refused {
			t.Errorf("%s on %s goes back to %s", row.From, row.On, row.To)
		}
		if row.From.Terminal() {
			t.Errorf("%s follows %s", row.To, row.From)
		}
	}
}

// Every status but STOPPED is left by somebody else than the task's own agent:
// by an operator, by time or by a fence (I10).
func TestTable_EveryStatusHasAnExitWithoutItsAgent(t *testing.T) {
	for _, from := range task.Statuses() {
		exit := slices.ContainsFunc(task.Table(), func(r task.Transition) bool {
			return r.From == from && r.To == task.Stopped && (slices.Contains(r.By, task.Reaper) || slices.Contains(r.By, task.API))
		})
		if exit == from.Terminal() {
			t.Errorf("%s: exit %v", from, exit)
		}
	}
}

func TestStatus_RanksOpenAndTerminal(t *testing.T) {
	for i, s := range task.Statuses() {
		if i > 0 && s.Rank() <= task.Statuses()[i-1].Rank() {
			t.Errorf("%s does not rank above %s", s, task.Statuses()[i-1])
		}
		if open := s != task.Provisioning && s != task.Stopped; s.Open() != open || s.Terminal() != (s == task.Stopped) || !s.Known() {
			t.Errorf("%s", s)
		}
	}
	if unknown := task.Status("DEPROVISIONING"); unknown.Known() || unknown.Open() || unknown.Terminal() || unknown.Rank() != 0 {
		t.Error("an unknown status is known")
	}
}

// A report moves the status where Merge says: the table and the merge are one.
func TestSeenAs_TheTableAgreesWithMerge(t *testing.T) {
	for _, known := range task.Statuses() {
		if !known.Open() {
			continue
		}
		for _, reported := range task.Statuses() {
			on, ok := task.SeenAs(reported)
			if ok != (reported != task.Provisioning) {
				t.Errorf("%s is seen as %s, %v", reported, on, ok)
			}
			if !ok || reported.Rank() <= known.Rank() {
				continue
			}
			to, ok := task.Next(known, on)
			if !ok || to != task.Merge(known, reported) {
				t.Errorf("%s on a report of %s: %s, merged %s", known, reported, to, task.Merge(known, reported))
			}
		}
	}
	if _, ok := task.SeenAs("DEPROVISIONING"); ok {
		t.Error("an unknown status is seen as something")
	}
}

func TestMerge_IsCommutativeAssociativeIdempotentAndMonotone(t *testing.T) {
	status := rapid.SampledFrom(task.Statuses())
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := status.Draw(t, "a"), status.Draw(t, "b"), status.Draw(t, "c")
		switch m := task.Merge(a, b); {
		case m != task.Merge(b, a):
			t.Fatal("not commutative")
		case task.Merge(m, c) != task.Merge(a, task.Merge(b, c)):
			t.Fatal("not associative")
		case task.Merge(a, a) != a || task.Merge(m, b) != m:
			t.Fatal("not idempotent")
		case m.Rank() < a.Rank() || m.Rank() < b.Rank():
			t.Fatal("not monotone")
		}
	})
}

func TestMerge_AnUnknownStatusChangesNothing(t *testing.T) {
	for _, s := range task.Statuses() {
		if task.Merge(s, "DEPROVISIONING") != s {
			t.Errorf("%s was changed", s)
		}
	}
}

func TestEnds_EachCauseHasOneReasonAndACodeOfECS(t *testing.T) {
	codes := []task.StopCode{task.TaskFailedToStart, task.EssentialContainerExited, task.UserInitiated, task.ServiceSchedulerInitiated,
		task.SpotInterruption, task.TerminationNotice, task.InfrastructureHealth}
	seen := map[task.Cause]bool{}
	for _, e := range task.Ends() {
		if seen[e.Cause] || e.Reason == "" || !slices.Contains(codes, e.Code) || task.EndOf(e.Cause) != e {
			t.Errorf("end %+v", e)
		}
		seen[e.Cause] = true
	}
	if got := task.EndOf("made up"); got.Code != task.NoCode || got.Reason != "" || got.Cause != "made up" {
		t.Errorf("an unknown cause is %+v", got)
	}
	// Workflow engines match this text.
	if got := fmt.Sprintf(task.EndOf(task.HostGoneCause).Reason, "i-1"); got != "Host EC2 (instance i-1) terminated." {
		t.Error(got)
	}
}
