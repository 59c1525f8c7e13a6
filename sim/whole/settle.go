package whole

import (
	"context"
	"fmt"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/task"
)

// mostSettling is for how long after the last fault something may wait before it
// is taken to wait for ever. What takes longest is a hold of the reaper (an hour)
// with many hosts to be lost one by one after it.
const mostSettling = 8 * time.Hour

// settle lets things happen until all is at rest; it says what never is.
func (w *World) settle() {
	until := time.Now().Add(mostSettling)
	for w.broken == "" {
		w.until(time.Now().Add(time.Minute))
		if w.broken != "" {
			return
		}
		stuck := w.stuck()
		if stuck == "" {
			return
		}
		if time.Now().After(until) {
			w.fail("QUIET after %s: %s", mostSettling, stuck)
		}
	}
}

// lasts says whether a host is to be connected in the end.
func (h *host) lasts() bool { return h.on && !h.broken && !h.ending }

// stuck says what waits, or is not as it should be.
func (w *World) stuck() string {
	room := map[string]bool{}
	for _, h := range w.hosts {
		if bad := w.stuckHost(h, room); bad != "" {
			return bad
		}
	}
	for _, id := range w.check.order {
		t := w.check.tasks[id]
		if t == nil {
			continue
		}
		name := short(t.ID)
		switch {
		case t.LastStatus == task.Provisioning && room[t.Cluster] && t.Pinned == "" && t.Needs.MemoryMiB <= 16 && len(t.Needs.TCP) == 0 && !w.reserved(t):
			return fmt.Sprintf("task %s waits though there is room: %s", name, t.WaitingReason)
		case t.LastStatus == task.Provisioning && t.WaitingReason == "":
			return "task " + name + " waits and does not say why"
		case t.LastStatus.Open() && t.DesiredStatus == task.DesiredStopped:
			return "task " + name + " is to stop and never does"
		case t.LastStatus == task.Pending:
			return fmt.Sprintf("task %s stays PENDING on %s", name, w.hostName(t.Instance))
		case t.LastStatus == task.Running && !w.runs(t):
			return fmt.Sprintf("task %s is RUNNING and has no container on %s", name, w.hostName(t.Instance))
		}
	}
	for key, s := range w.check.services {
		l := w.check.lives[key]
		if s.Status == control.ServiceActive && s.Strategy != "DAEMON" && l != nil && l.Live != s.Desired {
			return fmt.Sprintf("service %s has %d of %d", key, l.Live, s.Desired)
		}
	}
	return w.daemons()
}

// reserved says whether a task waits behind one that has waited long for more room
// than there is: that one has what there is.
func (w *World) reserved(t *control.Task) bool {
	if t.WaitingReason != "RESERVED" {
		return false
	}
	for _, o := range w.check.tasks {
		if o.LastStatus == task.Provisioning && o.Cluster == t.Cluster && o.WaitingReason != "RESERVED" {
			return true
		}
	}
	return false
}

func (w *World) stuckHost(h *host, room map[string]bool) string {
	l := w.check.ledgers[h.id]
	lease := &control.Lease{ID: h.id}
	must(w.store.Load(context.Background(), lease))
	if l == nil {
		return h.name + " never registered"
	}
	switch {
	case h.lasts() && (!l.Connected || lease.Stage != control.StageConnected):
		return fmt.Sprintf("%s lives and is %s: %s (connected %v, stale %d)", h.name, lease.Stage, lease.StageReason, l.Connected, l.Stale)
	case lease.Version > 0 && l.Connected != (lease.Stage == control.StageConnected):
		return fmt.Sprintf("%s: stage %s, connected %v", h.name, lease.Stage, l.Connected)
	case !h.lasts() && l.Open > 0:
		return fmt.Sprintf("%d tasks are open on %s, which is gone", l.Open, h.name)
	}
	if !h.lasts() {
		return ""
	}
	if l.Status == control.Active && l.Registered.MemoryMiB-l.Held.MemoryMiB >= 16 {
		room[h.cluster] = true
	}
	for id, r := range h.state().Tasks {
		if r.State.Ended() && !r.Acked {
			return fmt.Sprintf("the end of task %s on %s is never acknowledged", short(id), h.name)
		}
	}
	for _, b := range h.engine.running() {
		if t := w.check.on[h.id][b.seen.Task]; t == nil || t.Attempt != b.seen.Attempt {
			return fmt.Sprintf("a container of task %s/%d runs on %s for ever", short(b.seen.Task), b.seen.Attempt, h.name)
		}
	}
	return ""
}

func (w *World) runs(t *control.Task) bool {
	h := w.byID[t.Instance]
	for _, b := range h.engine.boxes {
		if b.seen.Task == t.ID && b.seen.Attempt == t.Attempt && (b.seen.Running || b.program.ends > 0) {
			return true
		}
	}
	return false
}

// codes wants every exit code known that a host which lives could tell: also of a
// task that was closed meanwhile, for its report comes late.
func (w *World) codes() {
	for _, id := range w.check.order {
		t := w.check.tasks[id]
		if t == nil || t.LastStatus != task.Stopped || t.Instance == "" || !w.byID[t.Instance].lasts() || w.byID[t.Instance].incarnation > 1 {
			continue
		}
		for _, name := range []string{"main", "side"} {
			code, ended := w.check.exits[exitOf(agent.ContainerID{Task: t.ID, Attempt: t.Attempt, Container: name})]
			var known *int
			for _, k := range t.Containers {
				if k.Name == name {
					known = k.ExitCode
				}
			}
			if ended && (known == nil || *known != code) {
				w.fail("EXIT the code %d of %s of task %s/%d on %s is lost: %v, %s", code, name, short(id), t.Attempt, w.hostName(t.Instance), known, t.StoppedReason)
			}
			w.check.made++
		}
	}
}

// daemons wants one task of a DAEMON service on every host that takes work.
func (w *World) daemons() string {
	for key, s := range w.check.services {
		if s.Status != control.ServiceActive || s.Strategy != "DAEMON" {
			continue
		}
		on := map[string]int{}
		for _, t := range w.check.tasks {
			if t.Service == s.Name && t.Cluster == s.Cluster && t.LastStatus != task.Stopped {
				on[t.Pinned]++
			}
		}
		for _, h := range w.hosts {
			if l := w.check.ledgers[h.id]; h.lasts() && l.Cluster == s.Cluster && l.Status == control.Active && on[h.id] != 1 {
				return fmt.Sprintf("service %s has %d tasks for %s", key, on[h.id], h.name)
			}
		}
	}
	return ""
}

// audit is the last word: the books, all of them, add up.
func (w *World) audit() {
	w.codes()
	for _, v := range w.store.Violations() {
		w.fail("%s", v)
	}
	a, err := w.direct().AuditLedgers(w.ctx)
	switch {
	case err != nil:
		w.fail("AUDIT %v", err)
	case len(a.Differences) > 0 || a.Busy > 0:
		w.fail("AUDIT %d differences, %d busy: %+v", len(a.Differences), a.Busy, a.Differences)
	case a.Ledgers == 0:
		w.fail("AUDIT looked at nothing")
	}
	for _, err := range w.internal {
		w.fail("INTERNAL %v", err)
	}
}
