package control_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/schedule"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// due is a run of the schedule nightly that is due now.
func due(w *controltest.World, change ...func(*schedule.Run)) schedule.Due {
	d := schedule.Due{ScheduledTime: w.Clock.Now(), Run: schedule.Run{Schedule: "nightly", TaskDefinition: "app:1"}}
	for _, f := range change {
		f(&d.Run)
	}
	d.Run.Complete()
	return d
}

func overlap(o schedule.Overlap) func(*schedule.Run) {
	return func(r *schedule.Run) { r.Overlap = o }
}

func within(d time.Duration) func(*schedule.Run) {
	return func(r *schedule.Run) { r.StartingDeadline = int(d.Seconds()) }
}

func mustRun(t *testing.T, w *controltest.World, d schedule.Due) {
	t.Helper()
	if err := w.RunScheduled(ctx, d); err != nil {
		t.Fatal(err)
	}
}

func runsOf(t *testing.T, w *controltest.World) []control.ScheduledRun {
	t.Helper()
	s := &control.Schedule{Name: "nightly"}
	if err := w.Store.Load(ctx, s); err != nil {
		t.Fatal(err)
	}
	return s.Runs
}

// missed is what the bus was told of missed runs.
func missedTold(t *testing.T, w *controltest.World, bus *controltest.Bus) []string {
	t.Helper()
	w.Shape = func(n control.Notice) (control.Event, error) {
		e := control.Event{Type: "other", Resources: []string{"x"}, At: n.At}
		if n.Missed != nil {
			e.Type = fmt.Sprintf("%s %s %s", n.Missed.Schedule, n.Missed.Run.At.Format("15:04"), n.Missed.Run.Reason)
		}
		return e, nil
	}
	announce(t, w)
	var out []string
	for _, e := range bus.Take() {
		if e.Type != "other" {
			out = append(out, e.Type)
		}
	}
	return out
}

func TestRunScheduled_MakesWaitingTasksOnceAndWakesAdmission(t *testing.T) {
	w := controltest.NewWorld(t)
	d := due(w, func(r *schedule.Run) { r.Count, r.Tags = 2, map[string]string{"a": "b"} })
	for range 3 {
		mustRun(t, w, d)
	}
	if n := len(w.Memory.Tasks()); n != 2 {
		t.Fatalf("%d tasks", n)
	}
	for id, k := range w.Memory.Tasks() {
		if k.LastStatus != task.Provisioning || k.StartedBy != "events-rule/nightly" || k.Schedule != "nightly" || k.MaxWait != 0 || k.Group != "family:app" || k.Tags["a"] != "b" {
			t.Errorf("task %s: %+v", id, k)
		}
	}
	if kicks := w.Sent.TakeKicks(); len(kicks) != 3 || len(kicks[0].Tasks) != 2 {
		t.Errorf("kicks %v: each call wakes admission, the first one's may be lost", kicks)
	}
	if runs := runsOf(t, w); len(runs) != 1 || runs[0].Outcome != control.OutcomeStarted || !runs[0].At.Equal(d.ScheduledTime) {
		t.Errorf("runs %+v", runs)
	}
}

// containers-roadmap#1705: the cluster is full at the scheduled minute.
func TestRunScheduled_AFullClusterDelaysARunAndNeverLosesItInSilence(t *testing.T) {
	for name, c := range map[string]struct {
		full time.Duration
		runs bool
	}{
		"free after three minutes":  {3 * time.Minute, true},
		"full for eleven minutes":   {11 * time.Minute, false},
		"free in the last of these": {9 * time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			w, bus := subscribed(t)
			i := w.AddInstance("i", control.Held{CPU: 1024, MemoryMiB: 16})
			front := w.AddTask(taskdef.Resources{MemoryMiB: 16})
			w.MustAdmit(front.ID)
			d := due(w, within(10*time.Minute))
			mustRun(t, w, d)
			id := runsOf(t, w)[0].Tasks[0]
			w.MustAdmit(id)
			for passed := time.Minute; passed <= 12*time.Minute; passed += time.Minute {
				minute(t, w, i)
				if passed == c.full { // the one in front ends
					l, k := &control.Ledger{ID: i}, &control.Task{ID: front.ID}
					if err := w.Store.Load(ctx, l, k); err != nil {
						t.Fatal(err)
					}
					l.Held, l.Open, k.Held, k.LastStatus, k.DesiredStatus = control.Held{}, 0, nil, task.Stopped, task.DesiredStopped
					if err := w.Store.Commit(ctx, control.Put(l), control.Put(k)); err != nil {
						t.Fatal(err)
					}
				}
				for range w.Sent.TakeKicks() {
					w.MustAdmit(id)
				}
			}
			told := missedTold(t, w, bus)
			run := runsOf(t, w)[0]
			if k := w.Task(id); c.runs && (k.LastStatus != task.Pending || len(told) != 0 || run.Outcome != control.OutcomeStarted) {
				t.Errorf("task %s %s, run %+v, told %v", k.LastStatus, k.StopCause, run, told)
			} else if !c.runs && (k.LastStatus != task.Stopped || k.StopCause != task.MaxWaitCause || run.Reason != control.MissedNoRoom ||
				!strings.HasSuffix(run.Detail, ": RESOURCE:MEMORY") || !slices.Equal(told, []string{"nightly 03:04 NO_ROOM"})) {
				t.Errorf("task %s %s, run %+v, told %v", k.LastStatus, k.StopCause, run, told)
			}
			if n, counted := w.Counts.Last("MissedScheduledRuns"); counted == c.runs || n != 0 == c.runs {
				t.Errorf("counted %v %v", n, counted)
			}
		})
	}
}

func TestRunScheduled_TheDeadlineCountsFromTheScheduledTime(t *testing.T) {
	w, bus := subscribed(t)
	d := due(w, within(10*time.Minute))
	w.Clock.Move(4 * time.Minute)
	mustRun(t, w, d)
	if k := w.Task(runsOf(t, w)[0].Tasks[0]); k.MaxWait != 6*time.Minute {
		t.Errorf("it may wait for %s more", k.MaxWait)
	}
	late := due(w, within(10*time.Minute))
	w.Clock.Move(10 * time.Minute)
	mustRun(t, w, late)
	mustRun(t, w, late)
	if run := runsOf(t, w)[0]; run.Outcome != control.OutcomeMissed || run.Reason != control.MissedLate || len(w.Memory.Tasks()) != 1 {
		t.Errorf("run %+v", run)
	}
	if got := missedTold(t, w, bus); !slices.Equal(got, []string{"nightly 03:08 LATE"}) {
		t.Errorf("told %v", got)
	}
}

func TestRunScheduled_AShorterMaxWaitOfItsTagsHolds(t *testing.T) {
	w := controltest.NewWorld(t)
	mustRun(t, w, due(w, within(10*time.Minute), func(r *schedule.Run) { r.Tags = map[string]string{"longshore:maxWait": "90s"} }))
	if k := w.Task(runsOf(t, w)[0].Tasks[0]); k.MaxWait != 90*time.Second {
		t.Errorf("it may wait for %s", k.MaxWait)
	}
}

func TestRunScheduled_Overlap(t *testing.T) {
	for policy, want := range map[schedule.Overlap]struct {
		tasks  int
		last   control.Outcome
		reason control.MissedReason
		first  task.Desired
	}{
		schedule.Allow:   {2, control.OutcomeStarted, "", task.DesiredRunning},
		schedule.Forbid:  {1, control.OutcomeMissed, control.MissedOverlap, task.DesiredRunning},
		schedule.Replace: {2, control.OutcomeStarted, "", task.DesiredStopped},
	} {
		t.Run(string(policy), func(t *testing.T) {
			w, bus := subscribed(t)
			w.AddInstance("i", room)
			mustRun(t, w, due(w, overlap(policy)))
			first := runsOf(t, w)[0].Tasks[0]
			w.MustAdmit(first)
			w.Clock.Move(time.Minute)
			mustRun(t, w, due(w, overlap(policy)))
			run := runsOf(t, w)[0]
			if len(w.Memory.Tasks()) != want.tasks || run.Outcome != want.last || run.Reason != want.reason || w.Task(first).DesiredStatus != want.first {
				t.Errorf("%d tasks, run %+v, the first is to be %s", len(w.Memory.Tasks()), run, w.Task(first).DesiredStatus)
			}
			if got := missedTold(t, w, bus); len(got) != 0 == (want.last == control.OutcomeStarted) {
				t.Errorf("told %v", got)
			}
			// Once it has ended nothing stands in the way.
			if policy == schedule.Forbid {
				stopRunning(t, w, first)
				w.Clock.Move(time.Minute)
				mustRun(t, w, due(w, overlap(policy)))
				if run := runsOf(t, w)[0]; run.Outcome != control.OutcomeStarted {
					t.Errorf("after the end: %+v", run)
				}
			}
		})
	}
}

// stopRunning ends an open task as its agent's report would.
func stopRunning(t *testing.T, w *controltest.World, id string) {
	t.Helper()
	k := &control.Task{ID: id}
	if err := w.Store.Load(ctx, k); err != nil {
		t.Fatal(err)
	}
	l := &control.Ledger{ID: k.Instance}
	if err := w.Store.Load(ctx, l); err != nil {
		t.Fatal(err)
	}
	l.Held, l.Open, k.Held, k.LastStatus, k.DesiredStatus = control.Held{}, 0, nil, task.Stopped, task.DesiredStopped
	if err := w.Store.Commit(ctx, control.Put(l), control.Put(k)); err != nil {
		t.Fatal(err)
	}
}

func TestRunScheduled_WhatIsReplacedWhileItWaitsIsMissed(t *testing.T) {
	w, bus := subscribed(t)
	mustRun(t, w, due(w, overlap(schedule.Replace)))
	w.Clock.Move(time.Minute)
	mustRun(t, w, due(w, overlap(schedule.Replace)))
	runs := runsOf(t, w)
	if runs[1].Reason != control.MissedReplaced || runs[0].Outcome != control.OutcomeStarted || w.Task(runs[1].Tasks[0]).LastStatus != task.Stopped {
		t.Errorf("runs %+v", runs)
	}
	if got := missedTold(t, w, bus); !slices.Equal(got, []string{"nightly 03:04 REPLACED"}) {
		t.Errorf("told %v", got)
	}
}

// EventBridge tries again for up to a day what could not be delivered: a run may
// be asked for after later ones.
func TestRunScheduled_ARunThatComesLateReplacesNoLaterOne(t *testing.T) {
	w, bus := subscribed(t)
	w.AddInstance("i", room)
	late := due(w, overlap(schedule.Replace))
	w.Clock.Move(time.Minute)
	mustRun(t, w, due(w, overlap(schedule.Replace)))
	later := runsOf(t, w)[0].Tasks[0]
	w.MustAdmit(later)
	for range 2 {
		mustRun(t, w, late)
	}
	runs := runsOf(t, w)
	if w.Task(later).DesiredStatus != task.DesiredRunning || len(w.Memory.Tasks()) != 1 {
		t.Errorf("the later run is to be %s; %d tasks", w.Task(later).DesiredStatus, len(w.Memory.Tasks()))
	}
	if len(runs) != 2 || runs[0].Outcome != control.OutcomeStarted || runs[1].Reason != control.MissedReplaced || runs[1].Detail == "" {
		t.Errorf("runs %+v", runs)
	}
	if got := missedTold(t, w, bus); len(got) != 1 || got[0] != "nightly 03:04 REPLACED" {
		t.Errorf("told %v", got)
	}
}

func TestRunScheduled_WhatCanNotBeRunIsMissedAndStopsNothing(t *testing.T) {
	for name, change := range map[string]func(*schedule.Run){
		"no such definition": func(r *schedule.Run) { r.TaskDefinition = "none" },
		"no such cluster":    func(r *schedule.Run) { r.Cluster = "none" },
		"bad overrides":      func(r *schedule.Run) { r.Overrides = []byte(`{"nonsense":1}`) },
		"a tag for others":   func(r *schedule.Run) { r.Tags = map[string]string{"longshore:onNoCapacity": "fail"} },
		"a service's group":  func(r *schedule.Run) { r.Group = "service:web" },
	} {
		t.Run(name, func(t *testing.T) {
			w, bus := subscribed(t)
			mustRun(t, w, due(w))
			w.Clock.Move(time.Minute)
			mustRun(t, w, due(w, overlap(schedule.Replace), change))
			runs := runsOf(t, w)
			if runs[0].Reason != control.MissedRefused || runs[0].Detail == "" || w.Task(runs[1].Tasks[0]).DesiredStatus != task.DesiredRunning {
				t.Errorf("runs %+v", runs)
			}
			if got := missedTold(t, w, bus); !slices.Equal(got, []string{"nightly 03:05 REFUSED"}) {
				t.Errorf("told %v", got)
			}
		})
	}
}

func TestRunScheduled_RemembersTwentyRunsAndNeverMakesAnOlderOneAgain(t *testing.T) {
	w := controltest.NewWorld(t)
	first := due(w)
	mustRun(t, w, first)
	for range 20 {
		w.Clock.Move(time.Minute)
		mustRun(t, w, due(w))
	}
	mustRun(t, w, first)
	if runs := runsOf(t, w); len(runs) != 20 || len(w.Memory.Tasks()) != 21 || !slices.IsSortedFunc(runs, func(a, b control.ScheduledRun) int { return b.At.Compare(a.At) }) {
		t.Errorf("%d runs, %d tasks", len(runs), len(w.Memory.Tasks()))
	}
}

// The runs that a long task keeps from starting are remembered too: they must not
// push out the one that still goes on.
func TestRunScheduled_ARunThatGoesOnIsNeverForgotten(t *testing.T) {
	for _, policy := range []schedule.Overlap{schedule.Forbid, schedule.Replace} {
		t.Run(string(policy), func(t *testing.T) {
			w := controltest.NewWorld(t)
			w.AddInstance("i", room)
			mustRun(t, w, due(w, overlap(policy)))
			first := runsOf(t, w)[0].Tasks[0]
			w.MustAdmit(first)
			var missed schedule.Due
			for range 50 {
				w.Clock.Move(time.Minute)
				d := due(w, overlap(policy))
				if mustRun(t, w, d); missed.ScheduledTime.IsZero() {
					missed = d
				}
			}
			runs, tasks := runsOf(t, w), len(w.Memory.Tasks())
			if len(runs) != 20 || !slices.Equal(runs[19].Tasks, []string{first}) || policy == schedule.Forbid && tasks != 1 {
				t.Errorf("%d runs, the oldest %+v, %d tasks", len(runs), runs[len(runs)-1], tasks)
			}
			mustRun(t, w, missed) // delivered again long after it was decided on
			if n := len(w.Memory.Tasks()); n != tasks || runsOf(t, w)[0].At != runs[0].At {
				t.Errorf("a run that is forgotten was made again: %d tasks, runs %+v", n, runsOf(t, w))
			}
			stopRunning(t, w, first)
			w.Clock.Move(time.Minute)
			mustRun(t, w, due(w, overlap(policy)))
			if runs := runsOf(t, w); runs[0].Outcome != control.OutcomeStarted || slices.Contains(runs[19].Tasks, first) {
				t.Errorf("after its end: %+v", runs)
			}
		})
	}
}

func TestRunScheduled_KilledAnywhereItRunsOnce(t *testing.T) {
	for _, policy := range []schedule.Overlap{schedule.Allow, schedule.Forbid, schedule.Replace} {
		t.Run(string(policy), func(t *testing.T) {
			var d schedule.Due
			controltest.KillEverywhere(t, func(t *testing.T) *controltest.World {
				w := controltest.NewWorld(t)
				if policy == schedule.Replace {
					mustRun(t, w, due(w, overlap(policy)))
					w.Clock.Move(time.Minute)
				}
				d = due(w, overlap(policy), within(time.Minute), func(r *schedule.Run) { r.Count = 3 })
				return w
			}, func(w *controltest.World) error { return w.RunScheduled(ctx, d) }, func(t *testing.T, w *controltest.World) {
				waiting := 0
				for _, k := range w.Memory.Tasks() {
					if k.LastStatus == task.Provisioning {
						waiting++
					}
				}
				if policy == schedule.Replace && runsOf(t, w)[1].Reason != control.MissedReplaced {
					t.Errorf("what was replaced is %+v", runsOf(t, w)[1])
				}
				if run := runsOf(t, w)[0]; waiting != 3 || run.Outcome != control.OutcomeStarted || len(run.Tasks) != 3 {
					t.Errorf("%d tasks wait, run %+v", waiting, run)
				}
			})
		})
	}
}
