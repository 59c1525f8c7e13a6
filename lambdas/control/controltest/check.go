package controltest

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/task"
)

// Violations checks the invariants that a single state can show (I1, I4, I8,
// I11, and who is kept) over the base items, and says each one broken. Call it after any commit.
func (s *Store) Violations() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.violations()
}

// violations is Violations with the lock held.
func (s *Store) violations() []string {
	var tasks []*control.Task
	var ledgers []*control.Ledger
	var lives []*control.Live
	all(s.items, control.TaskKind, func(t *control.Task) { tasks = append(tasks, t) })
	all(s.items, control.LedgerKind, func(l *control.Ledger) { ledgers = append(ledgers, l) })
	all(s.items, control.LiveKind, func(l *control.Live) { lives = append(lives, l) })
	return Broken(tasks, ledgers, lives)
}

// Broken says which of the invariants that one state can show (I1, I4, I8, I11, and
// who is kept) do not hold of all the base items given.
func Broken(tasks []*control.Task, ledgers []*control.Ledger, lives []*control.Live) []string {
	x := &tally{ledgers: map[string]*control.Ledger{}, sums: map[string]*sum{}, live: map[string]int{}}
	for _, l := range ledgers {
		x.ledgers[l.ID], x.sums[l.ID] = l, &sum{}
	}
	for _, t := range tasks {
		x.task(t)
	}
	for _, l := range ledgers {
		x.ledger(l)
	}
	for _, l := range lives {
		if l.Live != x.live[l.Key()] {
			x.say("I11 service %s: live is %d, its tasks are %d", l.Key(), l.Live, x.live[l.Key()])
		}
	}
	return x.out
}

// sum is what the tasks of an instance come to.
type sum struct {
	held        control.Held
	open, stale int
}

type tally struct {
	out     []string
	ledgers map[string]*control.Ledger
	sums    map[string]*sum
	live    map[string]int
}

func (x *tally) say(format string, args ...any) { x.out = append(x.out, fmt.Sprintf(format, args...)) }

func (x *tally) task(t *control.Task) {
	if t.Service != "" && t.LastStatus != task.Stopped {
		x.live[t.Cluster+"/"+t.Service]++
	}
	if bad := keptWrongly(t); bad != "" {
		x.say("task %s %s", t.ID, bad)
	}
	if t.LastStatus.Open() != (t.Held != nil) {
		x.say("I1 task %s is %s and holds %v", t.ID, t.LastStatus, t.Held)
		return
	}
	for _, k := range t.Containers {
		if t.LastStatus == task.Stopped && k.Status != task.ContainerStopped {
			x.say("task %s is STOPPED and its container %s is %s", t.ID, k.Name, k.Status)
		}
	}
	if t.Held == nil {
		return
	}
	s := x.sums[t.Instance]
	if s == nil {
		x.say("I1 task %s holds on instance %q, which has no ledger", t.ID, t.Instance)
		return
	}
	s.open++
	if t.Epoch < x.ledgers[t.Instance].Epoch {
		s.stale++
	}
	s.held.CPU += t.Held.CPU
	s.held.MemoryMiB += t.Held.MemoryMiB
	s.held.TCP = append(s.held.TCP, t.Held.TCP...)
	s.held.UDP = append(s.held.UDP, t.Held.UDP...)
	s.held.GPUs = append(s.held.GPUs, t.Held.GPUs...)
	s.held.Distinct = append(s.held.Distinct, t.Held.Distinct...)
}

// keptWrongly says what one task shows to be wrong with its being kept.
func keptWrongly(t *control.Task) string {
	end := ""
	if t.LastStatus == task.Stopped {
		end = string(t.StopCause)
	}
	atOnce := end == string(task.LostCause) || end == string(task.HostStoppedCause)
	timed := atOnce || end == string(task.KeptOutCause)
	switch {
	case !t.Kept.IsZero() && !t.LastStatus.Open():
		return "is kept and " + string(t.LastStatus)
	case timed && t.Tags["longshore:replaceAfter"] == "confirmed":
		return "was ended by time (" + end + ") before its end was confirmed"
	case atOnce && t.Tags["longshore:onDisconnect"] == "keep":
		return "was to be kept, and was closed at once"
	}
	return ""
}

func (x *tally) ledger(l *control.Ledger) {
	s := x.sums[l.ID]
	slices.Sort(s.held.TCP)
	slices.Sort(s.held.UDP)
	slices.Sort(s.held.GPUs)
	slices.Sort(s.held.Distinct)
	if !reflect.DeepEqual(s.held, l.Held) {
		x.say("I1 instance %s: ledger holds %+v, its tasks %+v", l.ID, l.Held, s.held)
	}
	if l.Held.CPU > l.Registered.CPU || l.Held.MemoryMiB > l.Registered.MemoryMiB {
		x.say("I1 instance %s holds %+v of %+v", l.ID, l.Held, l.Registered)
	}
	if twice(s.held.TCP) || twice(s.held.UDP) || twice(s.held.GPUs) || twice(s.held.Distinct) {
		x.say("I1 instance %s gave a port, GPU or group twice: %+v", l.ID, s.held)
	}
	if l.EndCause != "" && l.Stale != l.Open {
		x.say("I8 instance %s: the end of its host is confirmed (%s), and %d of its tasks go on", l.ID, l.EndCause, l.Open-l.Stale)
	}
	if l.Open != s.open || l.Stale != s.stale {
		x.say("I8 instance %s: open %d stale %d, its tasks open %d stale %d", l.ID, l.Open, l.Stale, s.open, s.stale)
	}
}

// twice says whether a sorted slice holds something twice.
func twice[T comparable](sorted []T) bool {
	return len(slices.Compact(slices.Clone(sorted))) != len(sorted)
}

// Tasks are copies of every task, by id.
func (s *Store) Tasks() map[string]control.Task {
	out := map[string]control.Task{}
	each(s, control.TaskKind, func(t *control.Task) { out[t.ID] = *t })
	return out
}

// Ledgers are copies of every ledger, by instance.
func (s *Store) Ledgers() map[string]control.Ledger {
	out := map[string]control.Ledger{}
	each(s, control.LedgerKind, func(l *control.Ledger) { out[l.ID] = *l })
	return out
}
