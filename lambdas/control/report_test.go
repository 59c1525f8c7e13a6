package control_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
)

func TestReport_StatusesOnlyRiseInAnyOrder(t *testing.T) {
	orders := [][]task.Status{
		{task.Pending, task.Running, task.Stopping, task.Stopped}, {task.Stopped, task.Stopping, task.Running, task.Pending},
		{task.Running, task.Stopped, task.Running, task.Stopped}, {task.Stopping, task.Pending, task.Running, task.Stopped},
	}
	for _, order := range orders {
		w := controltest.NewWorld(t)
		e := host(t, w, "i")
		id := e.given()
		reports := map[task.Status]*wire.Report{}
		for _, s := range []task.Status{task.Pending, task.Running, task.Stopping, task.Stopped} {
			reports[s] = e.report(id, 1, s)
		}
		high := 0
		for _, s := range order {
			w.Clock.Move(time.Second)
			if err := w.IngestReport(ctx, e.sender(), reports[s]); err != nil {
				t.Fatal(err)
			}
			got := w.Task(id).LastStatus.Rank()
			if got < high {
				t.Fatalf("%v: went back to %s at %s", order, w.Task(id).LastStatus, s)
			}
			high = got
		}
		if got := w.Task(id); got.LastStatus != task.Stopped || *got.Containers[0].ExitCode != 7 || w.Ledger(e.id).Open != 0 {
			t.Fatalf("%v: %+v", order, got)
		}
	}
}

func TestReport_OlderEqualAndOfAnotherIncarnationChangeNothing(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	id := e.given()
	pending, running := e.report(id, 1, task.Pending), e.report(id, 1, task.Running)
	if err := w.IngestReport(ctx, e.sender(), running); err != nil {
		t.Fatal(err)
	}
	before := w.Task(id)
	for _, m := range []*wire.Report{pending, running} {
		if err := w.IngestReport(ctx, e.sender(), m); err != nil {
			t.Fatal(err)
		}
	}
	if before.LastStatus != task.Running || before.N != running.N {
		t.Fatalf("task %+v", before)
	}
	other := e.report(id, 1, task.Stopping)
	other.Incarnation = "inc-other"
	if err := w.IngestReport(ctx, e.sender(), other); err != nil {
		t.Fatal(err)
	}
	for _, m := range []*wire.Report{e.report(id, 2, task.Stopped), e.report(id, 2, task.Stopping)} { // no such attempt
		if err := w.IngestReport(ctx, e.sender(), m); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.Task(id); !reflect.DeepEqual(got, before) {
		t.Fatalf("task %+v, was %+v", got, before)
	}
}

// Health goes up and down: the newest report has it, also of a container, and an
// older one or one of nobody does not.
func TestReport_HealthIsTheNewestReportsAndWakesTheService(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	id := e.running()
	record := w.Task(id)
	record.Service = "web"
	w.Put(&record, &control.Live{Cluster: record.Cluster, Service: "web", Live: 1})
	sick := func(h task.Health) func(*wire.Report) {
		return func(r *wire.Report) { r.Health, r.Containers[0].Health = h, h }
	}
	late := e.report(id, 1, task.Running, sick(task.Healthy))
	w.Sent.TakeServiceKicks()
	for _, c := range []struct {
		told  *wire.Report
		want  task.Health
		wakes bool
	}{
		{e.report(id, 1, task.Running, sick(task.HealthUnknown)), task.HealthUnknown, true},
		{e.report(id, 1, task.Running, sick(task.Unhealthy)), task.Unhealthy, true},
		{late, task.Unhealthy, false},
		{e.report(id, 1, task.Running, sick(task.Unhealthy)), task.Unhealthy, false},
		{e.report(id, 1, task.Running), task.Unhealthy, false}, // nothing is said of it
		{e.report(id, 1, task.Running, sick(task.Healthy)), task.Healthy, true},
		{e.report(id, 1, task.Stopped, sick(task.Unhealthy)), task.Unhealthy, true}, // woken by the end
	} {
		if err := w.IngestReport(ctx, e.sender(), c.told); err != nil {
			t.Fatal(err)
		}
		got := w.Task(id)
		if got.Health != c.want || got.Containers[0].Health != c.want {
			t.Errorf("after %q it is %q, its container %q; want %q", c.told.Health, got.Health, got.Containers[0].Health, c.want)
		}
		if kicks := w.Sent.TakeServiceKicks(); len(kicks) > 0 != c.wakes {
			t.Errorf("after %q the service got %d kicks", c.told.Health, len(kicks))
		}
	}
}

func TestReport_AnEndAppliesWhateverItsIncarnationEpochOrN(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	id := e.running()
	end := e.report(id, 1, task.Stopped)
	end.Incarnation, end.N, end.Epoch = "inc-old", 0, 1
	if err := w.IngestReport(ctx, e.sender(), end); err != nil || w.Task(id).LastStatus != task.Stopped {
		t.Fatalf("%v %s", err, w.Task(id).LastStatus)
	}
}

func TestReport_OnlyOfTheTasksOwnInstance(t *testing.T) {
	w := controltest.NewWorld(t)
	e, other := host(t, w, "i"), host(t, w, "j")
	id := e.running()
	before := w.Task(id)
	other.reports(id, 1, task.Stopped)
	if !reflect.DeepEqual(w.Task(id), before) {
		t.Fatal("another instance ended it")
	}
	if acks := inbox[*wire.Ack](other); len(acks) != 1 {
		t.Fatal("its end was not acknowledged")
	}
	forged := other.report(id, 1, task.Stopped)
	forged.Instance = e.id
	if err := w.IngestReport(ctx, other.sender(), forged); err != nil || !reflect.DeepEqual(w.Task(id), before) {
		t.Fatalf("another spoke for it: %v", err)
	}
	if n, _ := w.Counts.Last("RefusedSenders"); n != 1 || len(w.Sent.TakeCommands(e.id)) != 0 {
		t.Fatal("not counted, or answered")
	}
}

func TestReport_EveryEndIsAcknowledged(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	id := e.running()
	for name, say := range map[string]func(){
		"once":    func() { e.reports(id, 1, task.Stopped) },
		"again":   func() { e.reports(id, 1, task.Stopped) },
		"unknown": func() { e.reports(w.NewID(), 1, task.Stopped) },
		"refused": func() { e.refuses(w.NewID(), 3) },
	} {
		say()
		if acks := inbox[*wire.Ack](e); len(acks) != 1 {
			t.Errorf("%s: acks %+v", name, acks)
		}
	}
	e.reports(e.given(), 1, task.Running)
	if acks := inbox[*wire.Ack](e); len(acks) != 0 {
		t.Error("a report of no end was acknowledged")
	}
}

func TestReport_ALateEndFillsInWhatIsMissing(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	id := e.running()
	ended := w.Clock.Now()
	end := e.report(id, 1, task.Stopped)
	e.lost()
	before := w.Task(id)
	if before.LastStatus != task.Stopped || before.StopCause != task.LostCause || before.Containers[0].ExitCode != nil {
		t.Fatalf("closed task %+v", before)
	}
	for range 2 {
		if err := w.IngestReport(ctx, e.sender(), end); err != nil {
			t.Fatal(err)
		}
	}
	got := w.Task(id)
	if got.StopCause != task.LostCause || got.StoppedReason != before.StoppedReason || !got.StoppedAt.Equal(before.StoppedAt) ||
		*got.Containers[0].ExitCode != 7 || !got.ExecStoppedAt.Equal(ended) || got.Version != before.Version+1 {
		t.Fatalf("task %+v", got)
	}
	if acks := inbox[*wire.Ack](e); len(acks) != 2 {
		t.Fatalf("acks %+v", acks)
	}
}

func TestReport_OneTransactionForABatchOfAnInstance(t *testing.T) {
	w := controltest.NewWorld(t)
	e, other := host(t, w, "i"), host(t, w, "j")
	ids, live := e.service(2)
	a, b, c, d := ids[0], ids[1], e.running(), other.running()
	w.AddTask(taskdef.Resources{MemoryMiB: 1 << 20}) // waits, so that who waits is woken
	w.Memory.CatchUp()
	commits := w.Memory.Commits()
	w.Memory.Calls.Reset()
	batch := []control.Told{
		{Sender: e.sender(), Report: e.report(a, 1, task.Stopped)}, {Sender: e.sender(), Report: e.report(b, 1, task.Stopping)},
		{Sender: other.sender(), Report: other.report(d, 1, task.Stopped)}, {Sender: e.sender(), Report: e.report(b, 1, task.Stopped)},
		{Sender: e.sender(), Report: e.report(c, 1, task.Stopped)},
	}
	for i, err := range w.IngestReports(ctx, batch) {
		if err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
	if got := w.Memory.Commits() - commits; got != 2 {
		t.Errorf("%d transactions for two instances", got)
	}
	for _, id := range []string{a, b, c, d} {
		if got := w.Task(id).LastStatus; got != task.Stopped {
			t.Errorf("task %s", got)
		}
	}
	if err := w.Store.Load(ctx, live); err != nil || live.Live != 0 {
		t.Errorf("live %+v", live)
	}
	if kicks := w.Sent.TakeKicks(); len(kicks) != 2 || kicks[0].Instance != e.id || kicks[1].Instance != other.id {
		t.Errorf("kicks %+v", kicks)
	}
	last := w.Sent.TakeServiceKicks()
	if k := last[len(last)-1]; k.Service != "web" || len(k.Tasks) != 2 {
		t.Errorf("service kicks %+v", last)
	}
}

func TestReport_MoreThanOneTransactionHolds(t *testing.T) {
	w := controltest.NewWorld(t)
	e := bigHost(t, w)
	var batch []control.Told
	for range 95 {
		batch = append(batch, control.Told{Report: e.report(e.given(), 1, task.Stopped)})
	}
	for i := range batch {
		batch[i].Sender = e.sender()
	}
	for _, err := range w.IngestReports(ctx, batch) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if l := w.Ledger(e.id); l.Open != 0 {
		t.Fatalf("ledger %+v", l)
	}
}

func TestReport_AStopThatWasNeverSentIsSentWhenTheTaskShows(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	id := e.given()
	w.Memory.Calls.FailAt(3, fault.Unavailable) // Load, Commit, Commands
	if _, err := w.StopTask(ctx, "default", id, ""); err != nil {
		t.Fatal(err)
	}
	w.Memory.Calls.Reset()
	if len(w.Sent.TakeCommands(e.id)) != 0 {
		t.Fatal("the stop was sent")
	}
	e.reports(id, 1, task.Running)
	if stops := inbox[*wire.Stop](e); len(stops) != 1 || stops[0].Task != id || stops[0].Attempt != 1 {
		t.Fatalf("stops %+v", stops)
	}
	e.reports(id, 1, task.Stopping)
	if stops := inbox[*wire.Stop](e); len(stops) != 0 {
		t.Fatalf("a task that stops was told again: %+v", stops)
	}
	e.reports(id, 1, task.Stopped)
	if got := w.Task(id); got.StopCause != task.UserCause || got.StoppedReason != task.EndOf(task.UserCause).Reason {
		t.Fatalf("task %+v", got)
	}
}

func TestReport_AnAssignAfterItsStopIsReleasedOnceAndKeepsTheAskersReason(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	id := e.given()
	if _, err := w.StopTask(ctx, "default", id, "not needed"); err != nil {
		t.Fatal(err)
	}
	// The agent knows no such task: it leaves a tombstone and answers STOPPED;
	// its assign comes then, and is answered with the same end.
	tombstone := func(r *wire.Report) { r.Containers, r.Cause, r.Epoch = nil, "", 0 }
	for range 2 {
		e.reports(id, 1, task.Stopped, tombstone)
	}
	if got := w.Task(id); got.LastStatus != task.Stopped || got.StopCause != task.UserCause || got.StoppedReason != "not needed" || got.Held != nil {
		t.Fatalf("task %+v", got)
	}
	if l := w.Ledger(e.id); l.Open != 0 || l.Held.CPU != 0 {
		t.Fatalf("ledger %+v", l)
	}
}

func TestReport_WhyATaskEnded(t *testing.T) {
	never := func(r *wire.Report) {
		r.Containers = []task.Container{{Name: "main", Status: task.ContainerStopped, Reason: "CannotPullContainerError"}}
	}
	for name, c := range map[string]struct {
		change []func(*wire.Report)
		cause  task.Cause
		reason string
	}{
		"exited":                 {nil, task.ExitedCause, "Essential container in task exited"},
		"failed":                 {[]func(*wire.Report){never, func(r *wire.Report) { r.Cause, r.Reason = task.FailedCause, "no image" }}, task.FailedCause, "no image"},
		"never ran, no cause":    {[]func(*wire.Report){never, func(r *wire.Report) { r.Cause = "" }}, task.FailedCause, "Task failed to start"},
		"ran, no cause":          {[]func(*wire.Report){func(r *wire.Report) { r.Cause = "" }}, task.ExitedCause, "Essential container in task exited"},
		"a cause not its to say": {[]func(*wire.Report){func(r *wire.Report) { r.Cause = task.ServiceCause }}, task.ExitedCause, "Essential container in task exited"},
		"dead-lock":              {[]func(*wire.Report){func(r *wire.Report) { r.Cause = task.DeadlockCause }}, task.DeadlockCause, task.EndOf(task.DeadlockCause).Reason},
		"a long reason":          {[]func(*wire.Report){func(r *wire.Report) { r.Reason = strings.Repeat("ä", 2000) }}, task.ExitedCause, strings.Repeat("ä", 512)},
	} {
		t.Run(name, func(t *testing.T) {
			w := controltest.NewWorld(t)
			e := host(t, w, "i")
			id := e.given()
			e.reports(id, 1, task.Stopped, c.change...)
			if got := w.Task(id); got.StopCause != c.cause || got.StoppedReason != c.reason {
				t.Errorf("%s %q", got.StopCause, got.StoppedReason)
			}
		})
	}
}

func TestReport_AHostsClockDecidesNothing(t *testing.T) {
	for name, off := range map[string]time.Duration{"ahead": 72 * time.Hour, "behind": -72 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			w := controltest.NewWorld(t)
			e := host(t, w, "i")
			id := e.given()
			e.reports(id, 1, task.Running, func(r *wire.Report) {
				r.StartedAt, r.PullStartedAt = w.Clock.Now().Add(off), w.Clock.Now().Add(off)
			})
			e.reports(id, 1, task.Stopped, func(r *wire.Report) {
				r.StoppedAt, r.Containers[0].StoppedAt = w.Clock.Now().Add(off), w.Clock.Now().Add(off)
			})
			got, now := w.Task(id), w.Clock.Now()
			for what, at := range map[string]time.Time{"pull": got.PullStartedAt, "start": got.StartedAt, "end": got.ExecStoppedAt, "stop": got.StoppedAt, "container": got.Containers[0].StoppedAt} {
				if at.Before(got.AdmittedAt) || at.After(now) {
					t.Errorf("%s at %s, admitted %s, now %s", what, at, got.AdmittedAt, now)
				}
			}
		})
	}
}

func TestReport_OneThatCanNotBeJudgedHoldsUpNoOther(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	good, bad := e.running(), e.running()
	broken := w.Task(bad)
	broken.Held = nil // no use case leaves a task so
	w.Memory.OnCommit = nil
	w.Put(&broken)
	errs := w.IngestReports(ctx, []control.Told{
		{Sender: e.sender(), Report: e.report(bad, 1, task.Stopped)}, {Sender: e.sender(), Report: e.report(good, 1, task.Stopped)},
	})
	if !fault.Is(errs[0], fault.Internal) || errs[1] != nil || w.Task(good).LastStatus != task.Stopped {
		t.Fatalf("errors %v, task %s", errs, w.Task(good).LastStatus)
	}
}

func TestReport_ContainersOfATaskAreBounded(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	id := e.given()
	e.reports(id, 1, task.Running, func(r *wire.Report) {
		r.Containers = nil
		for range 3 { // the same name thrice
			k := task.Container{Name: "main", Status: task.ContainerRunning, Reason: strings.Repeat("x", 4000), Image: strings.Repeat("i", 2000)}
			for p := range 200 {
				k.Bindings = append(k.Bindings, task.Binding{HostPort: p})
			}
			r.Containers = append(r.Containers, k)
		}
	})
	got := w.Task(id).Containers
	if len(got) != 1 || len(got[0].Reason) > 1024 || len(got[0].Image) != 512 || len(got[0].Bindings) != 200 {
		t.Fatalf("%d containers", len(got))
	}
}

func TestReport_ATaskCostsFewCalls(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	id := e.given()
	for _, step := range []struct {
		status task.Status
		calls  string
	}{
		{task.Pending, "[Load Commit]"}, {task.Running, "[Load Commit]"}, {task.Stopped, "[Load Commit Commands TaskIDs]"},
	} {
		w.Memory.Calls.Reset()
		e.reports(id, 1, step.status)
		if _, names := w.Memory.Calls.Made(); fmt.Sprint(names) != step.calls {
			t.Errorf("%s made %v", step.status, names)
		}
	}
}

func TestReport_AnEndWakesAdmissionIfAnythingWaitsOrMayWait(t *testing.T) {
	for name, c := range map[string]struct {
		waits, unasked bool
		kicks          int
	}{
		"nothing waits":       {false, false, 0},
		"a task waits":        {true, false, 1},
		"it can not be asked": {false, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := controltest.NewWorld(t)
			e := host(t, w, "i")
			id := e.running()
			if c.waits {
				w.AddTask(taskdef.Resources{MemoryMiB: 1 << 20})
			}
			w.Memory.CatchUp()
			w.Sent.TakeKicks()
			if w.Memory.Calls.Reset(); c.unasked {
				w.Memory.Calls.FailAt(4, fault.Unavailable) // after load, commit and acknowledgement
			}
			e.reports(id, 1, task.Stopped)
			kicks := w.Sent.TakeKicks()
			if len(kicks) != c.kicks || c.kicks > 0 && kicks[0].Instance != e.id {
				t.Errorf("kicks %+v", kicks)
			}
			if w.Task(id).LastStatus != task.Stopped {
				t.Error("its end is not written")
			}
		})
	}
}

func TestReport_WithoutTimeLeftComesAgain(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	id := e.running()
	told := []control.Told{{Sender: e.sender(), Report: e.report(id, 1, task.Stopped)}}
	if err := w.IngestReports(hurried, told)[0]; !fault.Is(err, fault.Unavailable) || w.Task(id).LastStatus != task.Running {
		t.Fatalf("%v", err)
	}
	if err := w.IngestReports(ctx, told)[0]; err != nil || w.Task(id).LastStatus != task.Stopped {
		t.Fatalf("%v", err)
	}
}
