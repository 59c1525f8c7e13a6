package control_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
)

// What users of other agents and schedulers have reported, played here. The list
// of all of them is docs/design/scenarios.md.

// ecs-agent#618: instances show as disconnected for hours, and people end them by cron.
func TestScenario_AGapOfOneFourAndElevenMinutesIsNothingSuspectAndLost(t *testing.T) {
	for _, c := range []struct {
		gap  int
		want control.Stage
	}{{1, control.StageConnected}, {4, control.StageSuspect}, {11, control.StageLost}} {
		w := controltest.NewWorld(t)
		e := host(t, w, "i")
		minutes(t, w, 3, e.id)
		minutes(t, w, c.gap)
		// One run more is what the edge may be missed by.
		if at := w.Lease(e.id).Stage; at != c.want {
			minute(t, w)
			if at := w.Lease(e.id).Stage; at != c.want {
				t.Errorf("%s after %d silent minutes, want %s", at, c.gap, c.want)
			}
		}
	}
}

// k8s#28832: a partition near the control plane made it evict everything.
func TestScenario_AHundredHostsGoSilentTogether(t *testing.T) {
	var far, near []string // 60 and 40, in two zones
	build := func() *controltest.World {
		w := controltest.NewWorld(t)
		far, near = nil, nil
		for n := range 100 {
			zone, list := "far", &far
			if n >= 60 {
				zone, list = "near", &near
			}
			*list = append(*list, w.AddInstance(fmt.Sprint(n), room, func(in *control.Instance, _ *control.Ledger, l *control.Lease) { in.Zone, l.Zone = zone, zone }))
		}
		minutes(t, w, 2, slices.Concat(far, near)...)
		return w
	}
	lost := func(w *controltest.World) (n int) {
		for _, id := range slices.Concat(far, near) {
			if w.Lease(id).Stage == control.StageLost {
				n++
			}
		}
		return n
	}
	w := build()
	minutes(t, w, 40, near...) // LOST is due after 10: half an hour at one in five minutes
	if n := lost(w); n > 7 {
		t.Errorf("a zone of 60 is silent: %d reaped in half an hour", n)
	}
	w = build()
	minutes(t, w, 40)
	if n := lost(w); n != 0 {
		t.Errorf("all are silent: %d reaped", n)
	}
	w = build()
	minutes(t, w, 12, append(far[1:], near...)...)
	if n := lost(w); n != 1 {
		t.Errorf("one is silent: %d reaped", n)
	}
}

// ecs-agent#300: an instance that was stopped in EC2 is still given work.
func TestScenario_AHostStopsBetweenPlacementAndDelivery(t *testing.T) {
	f := newYard(t, "a", "b")
	f.dead["a"], f.dead["b"] = true, true
	f.create(func(r *control.ServiceRequest) { r.Desired = new(1) })
	f.step()
	placed := f.living()
	if len(placed) != 1 || placed[0].LastStatus != task.Pending {
		t.Fatalf("%+v", placed)
	}
	gone, other := "a", "b"
	if _, id := controltest.Identity("b"); placed[0].Instance == id {
		gone, other = other, gone
	}
	f.dead[other] = false
	f.kill(gone)
	f.reap(gone)
	f.settle("its host is gone")
	if first := f.Task(placed[0].ID); first.LastStatus != task.Stopped || first.StopCause != task.LostCause {
		t.Errorf("the task on the stopped host is %s (%s)", first.LastStatus, first.StopCause)
	}
	living := f.living()
	if _, id := controltest.Identity(other); len(living) != 1 || living[0].Instance != id {
		t.Errorf("its replacements: %+v", living)
	}
	if n := len(f.Memory.Tasks()); n != 2 {
		t.Errorf("%d tasks were made for a service of one that lost one host", n)
	}
}

// ecs-agent#5138: room was freed, and the task that waited for it was not woken for twenty minutes.
func TestScenario_AWakeUpThatIsLostIsMadeUpForByOneSweep(t *testing.T) {
	w := controltest.NewWorld(t)
	w.AddInstance("full", control.Held{CPU: 100, MemoryMiB: 10})
	e := newEdge(t, w, "full")
	first := e.given()
	waits := w.AddTask(small).ID
	w.MustAdmit(waits)
	e.reports(first, 1, task.Stopped)
	w.Sent.TakeKicks() // all lost
	w.Memory.CatchUp()
	w.Clock.Move(time.Minute)
	if err := w.Sweep(ctx); err != nil {
		t.Fatal(err)
	}
	for _, k := range w.Sent.TakeKicks() {
		if err := w.Admit(ctx, k); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.Task(waits); got.LastStatus != task.Pending {
		t.Errorf("%s (%s) after a sweep", got.LastStatus, got.WaitingReason)
	}
}

// ecs-agent#1667, #2255: a task that is slow to stop holds up all others of its host.
func TestScenario_ASlowStopHoldsUpOnlyWhatNeedsItsRoom(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i") // CPU 1000
	sized := func(cpu int) string { return w.AddTask(taskdef.Resources{CPU: cpu, MemoryMiB: 10}).ID }
	slow := sized(500)
	w.MustAdmit(slow)
	e.reports(slow, 1, task.Running)
	stopTask(t, w, slow)
	w.Clock.Move(10 * time.Minute) // it ignores SIGTERM
	beside, after := sized(400), sized(500)
	w.MustAdmit(beside, after)
	if got := w.Task(beside); got.LastStatus != task.Pending {
		t.Errorf("what fits beside it is %s (%s)", got.LastStatus, got.WaitingReason)
	}
	if got := w.Task(after); got.LastStatus != task.Provisioning || got.WaitingReason != "RESOURCE:CPU" {
		t.Errorf("what needs its room is %s (%s)", got.LastStatus, got.WaitingReason)
	}
	e.reports(slow, 1, task.Stopped)
	w.MustAdmit(after)
	if got := w.Task(after); got.LastStatus != task.Pending {
		t.Errorf("it has ended, and what waited for it is %s (%s)", got.LastStatus, got.WaitingReason)
	}
}

// ecs-agent#319: after many tasks that came and went, something of them is still held.
func TestScenario_FiveHundredTasksComeAndGoAndLeaveNothing(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	w.Memory.OnCommit = nil // it looks at every task there has been; the end is looked at below
	for n := range 500 {
		id := e.given()
		if n%5 != 0 { // each fifth is stopped before it was ever seen to run
			e.reports(id, 1, task.Running)
		}
		if n%2 == 0 {
			stopTask(t, w, id)
		}
		e.reports(id, 1, task.Stopped)
		if acks := inbox[*wire.Ack](e); len(acks) != 1 || acks[0].Task != id {
			t.Fatalf("round %d: acknowledged %+v", n, acks)
		}
	}
	nothingHeld(t, w, e.id)
	all := w.AddTask(taskdef.Resources{CPU: 1000, MemoryMiB: 100, GPUs: 2}).ID
	w.MustAdmit(all)
	if got := w.Task(all); got.LastStatus != task.Pending {
		t.Errorf("a task as large as the host is %s (%s)", got.LastStatus, got.WaitingReason)
	}
}

// k8s#105523: after a restart of the agent finished work is counted, and new work refused.
func TestScenario_AHostFullOfFinishedTasksTakesAFullSizeOne(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	var ended []wire.Entry
	for range 10 { // as many as fill it
		id := e.running()
		e.reports(id, 1, task.Stopped)
		ended = append(ended, e.lists(id, 1, wire.PhaseEnded))
	}
	e.session = "session-2" // the agent comes back and still has them all
	e.registers()
	e.welcomed()
	e.looked(ended...)
	all := w.AddTask(taskdef.Resources{CPU: 1000, MemoryMiB: 100}).ID
	w.MustAdmit(all)
	if got := w.Task(all); got.LastStatus != task.Pending || got.Instance != e.id {
		t.Errorf("%s (%s)", got.LastStatus, got.WaitingReason)
	}
}

// ecs-agent#3852: devices were counted, and one was given to two tasks.
func TestScenario_AGPUOfATaskThatStopsIsNobodyElses(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i") // gpu0 and gpu1
	one := func() string { return w.AddTask(taskdef.Resources{CPU: 10, MemoryMiB: 1, GPUs: 1}).ID }
	first, second, third := one(), one(), one()
	w.MustAdmit(first)
	w.MustAdmit(second)
	has := func(id string) string { return w.Task(id).Held.GPUs[0] }
	if has(first) == has(second) {
		t.Fatalf("both have %s", has(first))
	}
	e.reports(second, 1, task.Running)
	stopTask(t, w, second)
	w.MustAdmit(third)
	if got := w.Task(third); got.LastStatus != task.Provisioning {
		t.Fatalf("the third has %v while %s stops", got.Held, has(second))
	}
	taken := has(second)
	e.reports(first, 1, task.Stopped)
	w.MustAdmit(third)
	if got := w.Task(third); got.LastStatus != task.Pending || got.Held.GPUs[0] == taken {
		t.Errorf("the third is %s with %+v, and %s still stops", got.LastStatus, got.Held, taken)
	}
}

// nomad#12792, #4746: a large task starves behind a stream of small ones.
func TestScenario_ALargeTaskGetsItsTurnInAStreamOfSmallOnes(t *testing.T) {
	w := controltest.NewWorld(t)
	w.AddInstance("i", control.Held{CPU: 1000, MemoryMiB: 10})
	e := newEdge(t, w, "i")
	ends := map[string]time.Time{}
	little := func() { // fills what is free, for 15 seconds
		w.AddTask(taskdef.Resources{CPU: 10, MemoryMiB: 1})
	}
	second := func() {
		w.Clock.Move(time.Second)
		for id, at := range ends {
			if !w.Clock.Now().Before(at) {
				end(t, w, e.id, id)
				delete(ends, id)
			}
		}
		w.MustAdmit()
		for id, got := range w.Memory.Tasks() {
			if _, known := ends[id]; got.LastStatus == task.Pending && !known && got.Needs.MemoryMiB == 1 {
				ends[id] = w.Clock.Now().Add(15 * time.Second)
			}
		}
		w.Sent.TakeCommands(e.id)
	}
	for range 30 {
		little()
		second()
	}
	big := w.AddTask(taskdef.Resources{CPU: 10, MemoryMiB: 8}).ID
	since := w.Clock.Now()
	for w.Task(big).LastStatus == task.Provisioning {
		little()
		second()
		if w.Clock.Now().Sub(since) > w.Setting.StarvationAge+time.Minute {
			t.Fatalf("still waits after %s: %s", w.Clock.Now().Sub(since), w.Task(big).WaitingReason)
		}
	}
	t.Log("it got its room after", w.Clock.Now().Sub(since))
}
