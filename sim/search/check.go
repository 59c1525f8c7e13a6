package search

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/lambdas/control/controltest/machine"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

// judge says what a commit broke: s is the state after it, before the items from
// before.
func (x *search) judge(before []uint32, s *state, by *call) string {
	was := &state{items: before, machines: s.machines, clock: s.clock, restored: s.restored}
	for _, id := range s.items {
		if slices.Contains(before, id) {
			continue
		}
		bad := ""
		switch n := x.book.items[id].record.(type) {
		case *control.Task:
			bad = x.judgeTask(was, recordOf(x.book, was, n), n)
		case *control.Ledger:
			bad = x.judgeLedger(was, s, recordOf(x.book, was, n), n, by)
		case *control.Lease:
			switch k := recordOf(x.book, was, n); {
			case k == nil:
			case n.Sent.Before(k.Sent):
				bad = "I8 a lease was set back"
			case n.RegisterSent.Before(k.RegisterSent):
				bad = "I8 a register was accepted that is older than the last"
			}
		}
		if bad != "" {
			return bad
		}
	}
	for _, id := range before {
		if t, ok := x.book.items[id].record.(*control.Task); ok && t.LastStatus != task.Stopped && recordOf(x.book, s, t) == nil {
			return "I12 task " + short(t.ID) + " was removed while " + string(t.LastStatus)
		}
	}
	return x.look(s)
}

func (x *search) judgeTask(was *state, k, n *control.Task) string {
	name := short(n.ID)
	if n.LastStatus == task.Provisioning && n.DesiredStatus == task.DesiredStopped {
		return "I3 task " + name + " is to stop and still waits"
	}
	if t := n.StartedAt; !t.IsZero() && (t.Before(n.AdmittedAt) || t.After(now(was))) {
		return "U1 task " + name + " started when a host's clock says"
	}
	opened := n.LastStatus.Open() && (k == nil || !k.LastStatus.Open())
	if opened {
		if bad := x.judgeAdmission(was, k, n); bad != "" {
			return bad
		}
	}
	if k == nil {
		return ""
	}
	switch {
	case n.Attempt < k.Attempt || n.Attempt == k.Attempt && n.LastStatus.Rank() < k.LastStatus.Rank() || k.DesiredStatus == task.DesiredStopped && n.DesiredStatus != k.DesiredStatus:
		return fmt.Sprintf("I5 task %s went back from %s/%d to %s/%d", name, k.LastStatus, k.Attempt, n.LastStatus, n.Attempt)
	case n.Attempt == k.Attempt && n.Incarnation == k.Incarnation && n.N < k.N:
		return fmt.Sprintf("I5 task %s took n %d after n %d", name, n.N, k.N)
	case k.Held != nil && n.Held != nil && fmt.Sprint(*k.Held) != fmt.Sprint(*n.Held):
		return "I4 what task " + name + " holds was changed"
	case k.LastStatus.Open() && n.LastStatus == task.Stopped && n.StopCause == task.LostCause:
		if l := recordOf(x.book, was, &control.Ledger{ID: k.Instance}); l == nil || l.Cause != control.ReapedCause || k.Epoch >= l.Epoch {
			return "I8 task " + name + " was closed, which no reaping covers"
		}
	}
	return x.judgeKeeping(was, k, n)
}

// judgeKeeping is what a task's being kept, and the end of that by time, rest on.
func (x *search) judgeKeeping(was *state, k, n *control.Task) string {
	name := short(n.ID)
	l, lease := recordOf(x.book, was, &control.Ledger{ID: k.Instance}), recordOf(x.book, was, &control.Lease{ID: k.Instance})
	switch {
	case k.Kept.IsZero() && !n.Kept.IsZero():
		if l.Cause != control.ReapedCause || k.Epoch >= l.Epoch || n.Epoch != l.Epoch || l.EndCause != "" {
			return "I8 task " + name + " was kept, which no reaping covers"
		}
		if n.Incarnation != k.Incarnation || n.N != k.N || n.Attempt != k.Attempt {
			return "I5 task " + name + " was kept as another than it was"
		}
	case !k.Kept.IsZero() && !n.Kept.IsZero() && !n.Kept.Equal(k.Kept):
		return "I10 task " + name + " is kept anew"
	case n.LastStatus == task.Stopped && n.StopCause == task.KeptOutCause && k.LastStatus.Open():
		keepFor, err := time.ParseDuration(k.Tags["longshore:keepFor"])
		if k.Kept.IsZero() || err != nil || now(was).Sub(k.Kept) < keepFor || k.Epoch != l.Epoch || lease.Stage != control.StageLost {
			return "I8 kept task " + name + " was ended before its time, or though its instance is back"
		}
	}
	return ""
}

// judgeAdmission is I2 and I7, and that nothing unknown runs where the task goes.
func (x *search) judgeAdmission(was *state, k, n *control.Task) string {
	name := short(n.ID)
	if k != nil && (k.LastStatus != task.Provisioning || k.DesiredStatus != task.DesiredRunning) {
		return "I2 task " + name + " was admitted while " + string(k.LastStatus) + ", desired " + string(k.DesiredStatus)
	}
	l := recordOf(x.book, was, &control.Ledger{ID: n.Instance})
	if was.restored && n.Shown { // it was given before the tables went back, and is taken in
		return x.judgeTaken(was, l, n)
	}
	switch {
	case l == nil || l.Status != control.Active || !l.Connected:
		return "I2 task " + name + " was given to an instance that takes no work"
	case l.Stale != 0:
		return "I7 task " + name + " was given to an instance with stale tasks"
	case n.Epoch != l.Epoch:
		return "I2 task " + name + " was given under another epoch than the instance's"
	}
	i := x.machineOf(was, n.Instance)
	m := x.book.machines[was.machines[i]]
	in := recordOf(x.book, was, &control.Instance{ID: n.Instance})
	if in.Incarnation == m.IncarnationName() && m.Epoch != l.Epoch {
		return "I7 task " + name + " was given before the epoch was echoed"
	}
	if bad := x.elsewhere(was, n); bad != "" {
		return bad
	}
	running := 0
	for id, c := range m.Containers {
		if c.Runs && !x.open(was, m, id, c.Attempt) {
			running += n.Held.MemoryMiB
		}
	}
	if in.Incarnation == m.IncarnationName() && l.Held.MemoryMiB+n.Held.MemoryMiB+running > m.Memory {
		return "PHYS task " + name + " was given beside containers that the ledger does not know"
	}
	return ""
}

// elsewhere is that nothing is given away, after the tables went back, that runs on
// an instance which is not LOST.
func (x *search) elsewhere(was *state, n *control.Task) string {
	for _, id := range was.machines {
		m := x.book.machines[id]
		lease := recordOf(x.book, was, &control.Lease{ID: m.ID})
		if m.EndedEpoch > 0 {
			continue // it was deregistered by force: somebody gave his word that it has ended
		}
		if c := m.Containers[n.ID]; was.restored && c.Runs && c.Attempt == n.Attempt && lease != nil && lease.Stage != control.StageLost {
			return "I7 task " + short(n.ID) + " was given away while it runs on " + m.Name
		}
	}
	return ""
}

// judgeTaken is that what is taken in is there, or was, and in the epoch that its
// machine has echoed.
func (x *search) judgeTaken(was *state, l *control.Ledger, n *control.Task) string {
	m := x.book.machines[was.machines[x.machineOf(was, n.Instance)]]
	if n.Incarnation != m.IncarnationName() {
		return "" // it was there when it was listed; the machine has lost it since
	}
	switch j, has := m.Journal[n.ID]; {
	case !has || j.Attempt != n.Attempt:
		return "I12 task " + short(n.ID) + " was taken in where it never was"
	case l == nil || n.Epoch != l.Epoch || m.Epoch < l.Epoch:
		return "I2 task " + short(n.ID) + " was taken in under another epoch than the instance's"
	}
	return ""
}

func (x *search) judgeLedger(was, s *state, k, n *control.Ledger, by *call) string {
	if k == nil {
		return ""
	}
	if n.Epoch < k.Epoch {
		return "I8 an epoch went back"
	}
	if n.Epoch == k.Epoch || by.kind != reap {
		return ""
	}
	lease := recordOf(x.book, was, &control.Lease{ID: n.ID})
	late := func(since time.Time) bool { return x.watermark(was).Sub(since) > settings.ReapAfter }
	if lease == nil || !late(lease.Sent) && (lease.Impaired.IsZero() || !late(lease.Impaired)) {
		return "I8 an instance was reaped that is not late by what came through the queue"
	}
	if s.reaped++; s.reaped > 1 { // both are of one small zone
		return "I9 more instances were reaped than the brake lets"
	}
	return ""
}

// watermark is when the newest probe that came through was sent.
func (x *search) watermark(s *state) (newest time.Time) {
	for _, p := range recordsOf[*control.Probe](x.book, s.items) {
		if p.SeenSent.After(newest) {
			newest = p.SeenSent
		}
	}
	return newest
}

// open says whether an attempt is open on a machine.
func (x *search) open(s *state, m *machine.Machine, id string, attempt int) bool {
	t := recordOf(x.book, s, &control.Task{ID: id})
	return t != nil && t.LastStatus.Open() && t.Instance == m.ID && t.Attempt == attempt
}

// look is what one state of tables and machines can show to be broken.
func (x *search) look(s *state) string {
	h, buf := (&state{items: s.items, machines: s.machines, restored: s.restored}).hash(x.buf)
	x.buf = buf
	bad, ok := x.checked[h]
	if !ok {
		bad = x.lookAt(s)
		x.checked[h] = bad
	}
	return bad
}

func (x *search) lookAt(s *state) string {
	b := x.book
	if bad := controltest.Broken(recordsOf[*control.Task](b, s.items), recordsOf[*control.Ledger](b, s.items), recordsOf[*control.Live](b, s.items)); len(bad) > 0 {
		return strings.Join(bad, "; ")
	}
	for _, r := range recordsOf[*control.Service](b, s.items) {
		copies := 0
		for _, t := range recordsOf[*control.Task](b, s.items) {
			copies += int(bit(t.Service == r.Name && t.LastStatus != task.Stopped))
		}
		if r.Status == control.ServiceActive && copies > r.Desired*r.MaximumPercent/100 {
			return fmt.Sprintf("I11 service %s has %d copies of %d", r.Name, copies, r.Desired)
		}
	}
	if bad := x.singletons(s); bad != "" {
		return bad
	}
	for _, id := range s.machines {
		m := b.machines[id]
		l := recordOf(b, s, &control.Ledger{ID: m.ID})
		if l == nil {
			continue
		}
		if lease := recordOf(b, s, &control.Lease{ID: m.ID}); lease != nil && lease.Stage == control.StageLost {
			for _, t := range recordsOf[*control.Task](b, s.items) {
				if t.LastStatus.Open() && t.Instance == m.ID && t.Epoch == l.Epoch && t.Kept.IsZero() {
					return fmt.Sprintf("I10 task %s goes on on %s, which is LOST, and nothing ends it", short(t.ID), m.Name)
				}
			}
		}
		memory := 0
		for id, c := range m.Containers {
			if !c.Runs {
				continue
			}
			memory += taskMemory
			if c.Epoch >= l.Epoch && !x.open(s, m, id, c.Attempt) {
				return fmt.Sprintf("PHYS a container of %s runs on %s, its attempt is not open and its epoch not fenced", short(id), m.Name)
			}
		}
		if memory > m.Memory {
			return "PHYS containers run beyond the room of " + m.Name
		}
		for id, j := range m.Journal {
			if j.Phase == machine.Tomb && !s.restored && x.open(s, m, id, j.Attempt) {
				return fmt.Sprintf("I6 %s forgot the end of %s, which is not known upstream", m.Name, short(id))
			}
		}
	}
	return ""
}

// words are the ends for which somebody gives his word: Longshore takes it.
var words = []task.Cause{task.ForcedDrainCause, task.ConfirmedOff, task.HostGoneCause}

// singletons says of which services, whose tasks are replaced only when their end is
// confirmed, more containers run than are desired.
func (x *search) singletons(s *state) string {
	for _, r := range recordsOf[*control.Service](x.book, s.items) {
		if r.Tags["longshore:replaceAfter"] != "confirmed" {
			continue
		}
		runs := 0
		for _, id := range s.machines {
			for of, c := range x.book.machines[id].Containers {
				t := recordOf(x.book, s, &control.Task{ID: of})
				runs += int(bit(c.Runs && t != nil && t.Service == r.Name && !slices.Contains(words, t.StopCause)))
			}
		}
		if runs > r.Desired {
			return fmt.Sprintf("SINGLETON %d containers of service %s run at once", runs, r.Name)
		}
	}
	return ""
}

// taskMemory is what every task here needs.
const taskMemory = 16

// heard says what is wrong with what is being sent.
func (x *search) heard(s *state, q *request) string {
	if q.verb != commands {
		return ""
	}
	for _, msg := range q.send {
		i := x.machineOf(s, wire.HeaderOf(msg).Instance)
		if i < 0 {
			continue
		}
		m := x.book.machines[s.machines[i]]
		l := recordOf(x.book, s, &control.Ledger{ID: m.ID})
		wanted := func(id string, attempt int) bool {
			if !x.open(s, m, id, attempt) {
				return false
			}
			t := recordOf(x.book, s, &control.Task{ID: id})
			gone := t.Epoch < l.Epoch && l.EndCause != "" // to be closed, whatever the policy
			return t.DesiredStatus == task.DesiredRunning && !gone
		}
		// Open items never expire: one that is missing was closed only if this
		// ledger saw its epoch end.
		nobodys := func(id string, attempt int) bool {
			if l.Status == control.Inactive { // deregistered by force: all that was there is closed
				return false
			}
			c, made := m.Containers[id]
			t := recordOf(x.book, s, &control.Task{ID: id})
			older := t == nil || t.LastStatus == task.Provisioning && t.Attempt <= attempt // the tables know less than the machine
			return made && c.Runs && c.Attempt == attempt && older && (c.Epoch < l.SinceEpoch || c.Epoch >= l.Epoch)
		}
		switch c := msg.(type) {
		case *wire.Stop:
			if nobodys(c.Task, c.Attempt) {
				return "I12 a stop is sent of task " + short(c.Task) + ", which nobody here knows"
			}
			if wanted(c.Task, c.Attempt) {
				return "I12 a stop is sent of task " + short(c.Task) + ", which is to run there"
			}
		case *wire.Ack:
			if x.open(s, m, c.Task, c.Attempt) {
				return "I6 an end of task " + short(c.Task) + " is acknowledged that is not known here"
			}
		case *wire.Fence:
			for _, a := range c.Closed {
				if nobodys(a.Task, a.Attempt) {
					return "I12 a fence closes task " + short(a.Task) + ", which nobody here knows"
				}
				if wanted(a.Task, a.Attempt) && c.Incarnation == m.IncarnationName() {
					return "I12 a fence closes task " + short(a.Task) + ", which is to run there"
				}
			}
		}
	}
	return ""
}
