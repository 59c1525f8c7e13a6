package control_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/task"
)

// keptAtMost is the longest that a task of a walk is kept by time.
const keptAtMost = time.Hour

// walked counts what the walks met of kept tasks, so that nothing holds for want of
// what could break it.
var walked = map[string]int{}

func once(b bool) int {
	if b {
		return 1
	}
	return 0
}

// policy is what becomes of a task of a walk when its instance is lost.
func (w *walk) policy() map[string]string {
	switch n := w.random.IntN(10); {
	case n < 3:
		keepFor := []string{"1m", "6m", "30m", keptAtMost.String()}[w.random.IntN(4)]
		return map[string]string{"longshore:onDisconnect": "keep", "longshore:keepFor": keepFor}
	case n < 4:
		return map[string]string{"longshore:replaceAfter": "confirmed"}
	}
	return nil
}

// singleton is a service of one copy that is replaced only when its end is confirmed.
func (w *walk) singleton() {
	_, err := w.CreateService(ctx, control.ServiceRequest{Cluster: "default", Name: "one", Definition: "app:1", Desired: new(1),
		Tags: map[string]string{"longshore:replaceAfter": "confirmed", "longshore:priority": "100"}})
	if err != nil {
		w.fail("%v", err)
	}
}

func (w *walk) serve(harm bool) {
	if harm {
		w.harm()
	}
	kicks := append(w.Sent.TakeServiceKicks(), control.Kick{Cluster: "default", Service: "one"})
	for _, k := range kicks {
		err := w.Serve(ctx, k)
		w.say("serve %q: %v", k.Service, err)
	}
	w.Memory.Calls.Reset()
}

// rollOut has the singleton replaced by a new one.
func (w *walk) rollOut() {
	w.harm()
	_, err := w.UpdateService(ctx, control.ServiceUpdate{Cluster: "default", Name: "one", Force: true})
	w.Memory.Calls.Reset()
	w.say("roll out: %v", err)
}

func (w *walk) endKept(m *peer) {
	w.harm()
	err := w.EndKept(ctx, m.ID)
	w.Memory.Calls.Reset()
	w.say("end kept on %s: %v", m.Name, err)
}

// checkKept holds what became of a task that was k to its being kept.
func (w *walk) checkKept(id string, k, t control.Task) {
	if t.Version != k.Version {
		walked["kept"] += once(k.Kept.IsZero() && !t.Kept.IsZero())
		walked["back"] += once(!k.Kept.IsZero() && t.Kept.IsZero() && t.LastStatus.Open())
		walked["ended by time"] += once(k.LastStatus.Open() && t.StopCause == task.KeptOutCause)
		walked["ended by word"] += once(k.LastStatus.Open() && t.StopCause == task.ConfirmedOff)
		walked["singleton kept"] += once(t.Service == "one" && k.Kept.IsZero() && !t.Kept.IsZero())
	}
	switch {
	case t.StopCause == task.KeptOutCause && k.LastStatus.Open():
		keepFor, err := time.ParseDuration(k.Tags["longshore:keepFor"])
		if kept := w.Clock.Now().Sub(k.Kept); err != nil || k.Kept.IsZero() || kept < keepFor {
			w.fail("KEPT task %s was ended after %s of %s", short(id), kept, keepFor)
		}
	case !t.Kept.IsZero() && !k.Kept.IsZero() && !t.Kept.Equal(k.Kept):
		w.fail("KEPT task %s is kept anew", short(id))
	case !t.Kept.IsZero() && t.Tags["longshore:onDisconnect"] != "keep" && t.Tags["longshore:replaceAfter"] != "confirmed":
		w.fail("KEPT task %s is kept, and nobody asked for it", short(id))
	}
}

// checkSingleton: of service one never two containers run.
func (w *walk) checkSingleton(tasks map[string]control.Task) {
	var runs []string
	for _, m := range w.machines {
		for id, c := range m.Containers {
			if t, ok := tasks[id]; ok && c.Runs && t.Service == "one" {
				runs = append(runs, fmt.Sprintf("%s on %s", short(id), m.Name))
			}
		}
	}
	if slices.Sort(runs); len(runs) > 1 {
		w.fail("SINGLETON two run at once: %v", runs)
	}
}

// settledSingleton: it runs, if any machine lives and has room.
func (w *walk) settledSingleton(tasks map[string]control.Task) {
	n, running := 0, 0
	for _, t := range tasks {
		if t.Service == "one" && t.LastStatus != task.Stopped {
			n++
			running += map[bool]int{true: 1}[t.LastStatus == task.Running]
		}
	}
	if n != 1 {
		w.fail("QUIET service one has %d tasks", n)
	}
	if running == 0 && slices.ContainsFunc(w.machines, func(m *peer) bool { return m.Host && walkRoom > w.Ledger(m.ID).Held.MemoryMiB/walkMemory }) {
		w.fail("QUIET service one does not run, though there is room")
	}
}
