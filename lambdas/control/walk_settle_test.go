package control_test

import (
	"slices"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest/machine"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

// settle runs everything fairly, and then nothing may be stuck.
func (w *walk) settle() {
	w.goOn()
	w.rounds(30)
	w.Clock.Move(keptAtMost)
	w.rounds(12) // also of our own outage, that a clock which jumps looks like
	for _, m := range w.machines {
		if m.Host {
			continue
		}
		for _, t := range w.Memory.Tasks() { // what no time ends waits for a word
			if t.LastStatus.Open() && t.Instance == m.ID && t.Tags["longshore:replaceAfter"] != "confirmed" {
				w.fail("QUIET task %s is open on %s, which is dead", short(t.ID), m.Name)
			}
		}
		if w.Lease(m.ID).Version == 0 {
			continue
		}
		if _, err := w.FenceContainerInstance(ctx, "default", m.ID); err != nil {
			w.fail("%v", err)
		}
		w.say("%s is confirmed off", m.Name)
	}
	w.rounds(6)
}

// rounds are minutes in which everybody does what there is to do.
func (w *walk) rounds(n int) {
	for round := range n {
		for _, m := range w.machines {
			switch {
			case m.Host && !m.Up:
				m.Restart()
			case m.Host && !m.Welcomed:
				m.register()
			case m.Host:
				m.repeat()
				m.beat()
			}
		}
		w.quiet()
		w.Memory.CatchUp()
		w.tick(false)
		w.quiet()
		w.Memory.CatchUp()
		w.serve(false)
		w.admit(false)
		w.quiet()
		w.say("round %d", round)
	}
}

// quiet delivers everything until nothing moves.
func (w *walk) quiet() {
	for moved := true; moved; {
		moved = false
		for len(w.out) > 0 {
			l := w.out[0]
			w.out = w.out[1:]
			if err := l.deliver(l.sender); err != nil {
				w.fail("deliver %s: %v", l.what, err)
			}
			w.say("deliver %s", l.what)
			w.check()
			moved = true
		}
		w.fetch()
		for _, m := range w.machines {
			if !m.Host {
				m.in = nil // past its retention
				continue
			}
			for at := 0; at < len(m.in); {
				c := m.in[at]
				if !m.Ready(c) {
					at++
					continue
				}
				m.in, at = slices.Delete(m.in, at, at+1), 0
				w.say("%s takes %s %v", m.Name, wire.TypeOf(c), c)
				m.command(c)
				moved = true
			}
			for m.work() {
				moved = true
			}
		}
		w.check()
	}
}

func (w *walk) settled() {
	tasks := w.Memory.Tasks()
	room := 0
	w.settledSingleton(tasks)
	for _, m := range w.machines {
		l, lease := w.Ledger(m.ID), w.Lease(m.ID)
		if m.Host && (!l.Connected || lease.Stage != control.StageConnected) {
			w.fail("QUIET %s lives and is %s: %s (connected %v, stale %d)", m.Name, lease.Stage, lease.StageReason, l.Connected, l.Stale)
		}
		if l.Connected != (lease.Stage == control.StageConnected) {
			w.fail("QUIET %s: stage %s, connected %v", m.Name, lease.Stage, l.Connected)
		}
		if m.Host {
			room += walkRoom - l.Held.MemoryMiB/walkMemory
		} else if l.Open > 0 {
			w.fail("QUIET %d tasks are open on %s, which is dead", l.Open, m.Name)
		}
		for id, j := range m.Journal {
			if m.Host && (j.Phase == machine.Ended || j.Phase == machine.Refused) {
				w.fail("QUIET the end of %s on %s is never acknowledged", short(id), m.Name)
			}
		}
		for id, c := range m.Containers {
			if m.Host && c.Runs && !w.open(tasks, m, id, c.Attempt) {
				w.fail("QUIET a container of %s runs on %s for ever", short(id), m.Name)
			}
		}
	}
	w.settledHosts()
	for id, t := range tasks {
		switch {
		case t.LastStatus == task.Provisioning && room > 0:
			w.fail("QUIET task %s waits though there is room: %s", short(id), t.WaitingReason)
		case t.LastStatus.Open() && t.DesiredStatus == task.DesiredStopped:
			w.fail("QUIET task %s is to stop and never does", short(id))
		case t.LastStatus == task.Pending:
			w.fail("QUIET task %s stays PENDING", short(id))
		case !t.Kept.IsZero():
			w.fail("QUIET task %s is kept for ever", short(id))
		case t.LastStatus == task.Running && w.starts[id] != 1:
			w.fail("QUIET task %s is RUNNING and was started %d times", short(id), w.starts[id])
		}
	}
}
