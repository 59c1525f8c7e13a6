package control_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
)

var (
	walks    = flag.Int("walks", 4, "how many random walks TestWalk makes")
	walkFrom = flag.Uint64("walk-seed", 1, "the first walk's seed")
)

const (
	walkRoom  = 2 // each host has room for two tasks
	walkTasks = 24
	walkSteps = 700
)

// walk is the real control plane against machines that lose, repeat, reorder,
// crash and die; its own handlers are killed between any two calls.
type walk struct {
	*controltest.World
	t        *testing.T
	random   *rand.Rand
	machines []*machine
	out      []letter // on their way to the control plane
	ran      int
	starts   map[string]int
	known    map[string]control.Task
	trace    []string
}

type letter struct {
	what    string
	sender  control.Sender
	deliver func(control.Sender) error
}

func short(id string) string { return strings.TrimLeft(id, "0") }

func (w *walk) chance(percent int) bool { return w.random.IntN(100) < percent }

func (w *walk) say(format string, args ...any) {
	w.trace = append(w.trace, w.Clock.Now().Format("15:04:05 ")+fmt.Sprintf(format, args...))
}

func (w *walk) send(m *machine, what string, deliver func(control.Sender) error) {
	w.out = append(w.out, letter{what, m.edge.sender(), deliver})
}

func (w *walk) started(id string) {
	if w.starts[id]++; w.starts[id] > 1 {
		w.fail("RUNS-TWICE a second container of task %s was started", short(id))
	}
}

func (w *walk) fail(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("%s\n%s", fmt.Sprintf(format, args...), strings.Join(w.trace[max(0, len(w.trace)-60):], "\n"))
}

func newWalk(t *testing.T, seed uint64) *walk {
	w := &walk{World: controltest.NewWorld(t), t: t, random: rand.New(rand.NewPCG(seed, 7)), starts: map[string]int{}, known: map[string]control.Task{}}
	w.Put(&control.Live{Cluster: "default", Service: "web"})
	for _, name := range []string{"i", "j"} {
		w.machines = append(w.machines, newMachine(w, name))
	}
	return w
}

// harm makes the next use case die at one of its calls, now and then.
func (w *walk) harm() {
	w.Memory.Calls.Reset()
	if w.chance(15) {
		w.Memory.Calls.KillAt(1+w.random.IntN(6), w.chance(50))
	}
}

// fetch moves what was sent to the machines into their inboxes.
func (w *walk) fetch() {
	for _, m := range w.machines {
		m.in = append(m.in, w.Sent.TakeCommands(m.edge.id)...)
	}
}

// deliver hands one message to the control plane: in any order, killed or not,
// and once more.
func (w *walk) deliver() {
	if len(w.out) == 0 {
		return
	}
	at := w.random.IntN(len(w.out))
	l := w.out[at]
	w.harm()
	err := l.deliver(l.sender)
	w.Memory.Calls.Reset()
	w.say("deliver %s: %v", l.what, err)
	if err == nil && !w.chance(10) {
		w.out = slices.Delete(w.out, at, at+1)
	}
}

// tick lets a minute pass and the reaper run, with the probes that came through.
func (w *walk) tick(harm bool) {
	w.Clock.Move(time.Minute)
	for _, p := range w.Sent.TakeProbes() {
		if err := w.IngestProbe(ctx, control.Sender{SentAt: w.Clock.Now().Add(-time.Second)}, &p); err != nil {
			w.fail("probe: %v", err)
		}
	}
	if harm {
		w.harm()
	}
	err := w.Tick(ctx)
	w.Memory.Calls.Reset()
	w.say("tick: %v", err)
}

func (w *walk) admit(harm bool) {
	if harm {
		w.harm()
	}
	kicks := append(w.Sent.TakeKicks(), control.Kick{Cluster: "default"})
	for _, k := range kicks {
		_ = w.Admit(ctx, k)
	}
	w.Memory.Calls.Reset()
}

func (w *walk) runTask() {
	if w.ran == walkTasks {
		return
	}
	w.ran++
	live := &control.Live{Cluster: "default", Service: "web"}
	if err := w.Store.Load(ctx, live); err != nil {
		w.fail("%v", err)
	}
	t := w.AddTask(taskdef.Resources{CPU: 1, MemoryMiB: 1}, func(t *control.Task) {
		if w.chance(40) {
			t.Service = "web"
		}
	})
	if t.Service != "" {
		live.Live++
		w.Put(live)
	}
	w.say("run %s service %q", short(t.ID), t.Service)
}

func (w *walk) stopTask() {
	ids := taskIDs(w.World)
	if len(ids) == 0 {
		return
	}
	id := ids[w.random.IntN(len(ids))]
	w.harm()
	_, err := w.StopTask(ctx, "default", id, "enough")
	w.Memory.Calls.Reset()
	w.say("stop %s: %v", short(id), err)
}

// expire deletes a stopped task's item, as TTL does.
func (w *walk) expire() {
	for _, id := range taskIDs(w.World) {
		if t := w.Task(id); t.LastStatus == task.Stopped && w.chance(30) {
			if err := w.Store.Commit(ctx, control.Delete(&t)); err != nil {
				w.fail("%v", err)
			}
			delete(w.known, id)
			w.say("expire %s", short(id))
			return
		}
	}
}

func (w *walk) step() {
	m := w.machines[w.random.IntN(len(w.machines))]
	switch n := w.random.IntN(1000); {
	case n < 50:
		w.runTask()
	case n < 60:
		w.stopTask()
	case n < 120:
		w.admit(true)
	case n < 420:
		w.deliver()
	case n < 580:
		w.take(m)
	case n < 750:
		m.work()
	case n < 800:
		w.exit(m)
	case n < 890 && m.up:
		w.Clock.Move(time.Duration(1+w.random.IntN(40)) * time.Second)
		if m.welcomed {
			m.beat()
		} else {
			m.register()
		}
	case n < 910 && m.up:
		m.repeat()
	case n < 940:
		w.tick(true)
	case n < 950:
		w.expire()
	case n < 975 || !m.host:
		w.disaster(m)
	}
}

// take is one command that a machine takes: in any order, once more, or lost.
func (w *walk) take(m *machine) {
	w.fetch()
	if !m.host || !m.up || len(m.in) == 0 {
		return
	}
	at := w.random.IntN(len(m.in))
	c := m.in[at]
	if !w.chance(10) {
		m.in = slices.Delete(m.in, at, at+1)
	}
	if w.chance(5) {
		w.say("%s loses %s", m.edge.name, wire.TypeOf(c))
		return
	}
	w.say("%s takes %s %v", m.edge.name, wire.TypeOf(c), c)
	m.command(c)
}

func (w *walk) exit(m *machine) {
	for _, id := range slices.Sorted(maps.Keys(m.containers)) {
		if c := m.containers[id]; c.runs && w.chance(50) {
			c.runs = false
			w.say("%s: container of %s exits", m.edge.name, short(id))
			return
		}
	}
}

func (w *walk) disaster(m *machine) {
	switch n := w.random.IntN(10); {
	case !m.host:
		m.host = true
		m.restart()
		w.say("%s returns", m.edge.name)
	case n < 4:
		m.restart()
		w.say("%s: agent restarts", m.edge.name)
	case n < 5:
		m.loseJournal()
		w.say("%s loses its journal, is %s", m.edge.name, m.edge.incarnation)
	case n < 6:
		m.containers = map[string]*container{}
		m.loseJournal()
		w.say("%s loses its disk, is %s", m.edge.name, m.edge.incarnation)
	case n < 7:
		m.die()
		w.say("%s dies", m.edge.name)
	case n < 9: // silence: ten minutes and more without a message from anybody
		w.say("silence")
		for range 11 + w.random.IntN(6) {
			w.tick(true)
		}
	}
}

// open says whether an attempt is open on a machine.
func (w *walk) open(tasks map[string]control.Task, m *machine, id string, attempt int) bool {
	t, ok := tasks[id]
	return ok && t.LastStatus.Open() && t.Instance == m.edge.id && t.Attempt == attempt
}

// check is what must hold after every step (§3); what a state of the tables can
// show is checked after every commit.
func (w *walk) check() {
	tasks := w.Memory.Tasks()
	for id, t := range tasks {
		if k, ok := w.known[id]; ok && (t.Attempt < k.Attempt || t.Attempt == k.Attempt && t.LastStatus.Rank() < k.LastStatus.Rank() ||
			k.DesiredStatus == task.DesiredStopped && t.DesiredStatus != task.DesiredStopped) {
			w.fail("I5 task %s went back from %s/%d to %s/%d", short(id), k.LastStatus, k.Attempt, t.LastStatus, t.Attempt)
		}
	}
	w.known = tasks
	for _, m := range w.machines {
		l := w.Ledger(m.edge.id)
		runs := 0
		for id, c := range m.containers {
			if !c.runs {
				continue
			}
			runs++
			if !w.open(tasks, m, id, c.attempt) && c.epoch >= l.Epoch {
				w.fail("PHYS a container of %s runs on %s, its attempt is not open and its epoch not fenced", short(id), m.edge.name)
			}
		}
		if runs > walkRoom {
			w.fail("PHYS %d containers run on %s", runs, m.edge.name)
		}
		for id, j := range m.journal {
			if j.phase == tomb && w.open(tasks, m, id, j.attempt) {
				w.fail("I6 %s forgot the end of %s, which is not known here", m.edge.name, short(id))
			}
		}
	}
}

func TestWalk_NothingBreaksAndEverythingSettles(t *testing.T) {
	for n := range uint64(*walks) {
		seed := *walkFrom + n
		ok := t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			w := newWalk(t, seed)
			for range walkSteps {
				w.step()
				w.check()
				if t.Failed() { // a commit broke an invariant
					w.fail("walk of seed %d", seed)
				}
			}
			w.say("settle")
			w.settle()
			w.settled()
		})
		if !ok {
			break
		}
	}
}
