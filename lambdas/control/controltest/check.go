package controltest

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/task"
)

// Violations checks the invariants that a single state can show (I1, I4, I8,
// I11) over the base items, and says each one broken. Call it after any commit.
func (s *Store) Violations() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.violations()
}

// violations is Violations with the lock held.
func (s *Store) violations() []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	type sum struct {
		held        control.Held
		open, stale int
	}
	sums := map[string]*sum{}
	ledgers := map[string]*control.Ledger{}
	all(s.items, control.LedgerKind, func(l *control.Ledger) { ledgers[l.ID], sums[l.ID] = l, &sum{} })
	live := map[string]int{}
	all(s.items, control.TaskKind, func(t *control.Task) {
		if t.Service != "" && t.LastStatus != task.Stopped {
			live[t.Cluster+"/"+t.Service]++
		}
		if t.LastStatus.Open() != (t.Held != nil) {
			say("I1 task %s is %s and holds %v", t.ID, t.LastStatus, t.Held)
			return
		}
		for _, k := range t.Containers {
			if t.LastStatus == task.Stopped && k.Status != task.ContainerStopped {
				say("task %s is STOPPED and its container %s is %s", t.ID, k.Name, k.Status)
			}
		}
		if t.Held == nil {
			return
		}
		x := sums[t.Instance]
		if x == nil {
			say("I1 task %s holds on instance %q, which has no ledger", t.ID, t.Instance)
			return
		}
		x.open++
		if t.Epoch < ledgers[t.Instance].Epoch {
			x.stale++
		}
		x.held.CPU += t.Held.CPU
		x.held.MemoryMiB += t.Held.MemoryMiB
		x.held.TCP = append(x.held.TCP, t.Held.TCP...)
		x.held.UDP = append(x.held.UDP, t.Held.UDP...)
		x.held.GPUs = append(x.held.GPUs, t.Held.GPUs...)
		x.held.Distinct = append(x.held.Distinct, t.Held.Distinct...)
	})
	for id, l := range ledgers {
		x := sums[id]
		slices.Sort(x.held.TCP)
		slices.Sort(x.held.UDP)
		slices.Sort(x.held.GPUs)
		slices.Sort(x.held.Distinct)
		if !reflect.DeepEqual(x.held, l.Held) {
			say("I1 instance %s: ledger holds %+v, its tasks %+v", id, l.Held, x.held)
		}
		if l.Held.CPU > l.Registered.CPU || l.Held.MemoryMiB > l.Registered.MemoryMiB {
			say("I1 instance %s holds %+v of %+v", id, l.Held, l.Registered)
		}
		if twice(x.held.TCP) || twice(x.held.UDP) || twice(x.held.GPUs) || twice(x.held.Distinct) {
			say("I1 instance %s gave a port, GPU or group twice: %+v", id, x.held)
		}
		if l.Open != x.open || l.Stale != x.stale {
			say("I8 instance %s: open %d stale %d, its tasks open %d stale %d", id, l.Open, l.Stale, x.open, x.stale)
		}
	}
	all(s.items, control.LiveKind, func(l *control.Live) {
		if l.Live != live[l.Key()] {
			say("I11 service %s: live is %d, its tasks are %d", l.Key(), l.Live, live[l.Key()])
		}
	})
	return out
}

// twice says whether a sorted slice holds something twice.
func twice[T comparable](sorted []T) bool {
	return len(slices.Compact(slices.Clone(sorted))) != len(sorted)
}

// Tasks are copies of every task, by id.
func (s *Store) Tasks() map[string]control.Task {
	out := map[string]control.Task{}
	each(s, control.TaskKind, false, func(t *control.Task) { out[t.ID] = *t })
	return out
}

// Ledgers are copies of every ledger, by instance.
func (s *Store) Ledgers() map[string]control.Ledger {
	out := map[string]control.Ledger{}
	each(s, control.LedgerKind, false, func(l *control.Ledger) { out[l.ID] = *l })
	return out
}
