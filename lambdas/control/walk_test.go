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
	"github.com/longshore-run/longshore/lambdas/control/controltest/machine"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
)

var (
	walks    = flag.Int("walks", 4, "how many random walks TestWalk makes")
	walkFrom = flag.Uint64("walk-seed", 1, "the first walk's seed")
)

const (
	walkRoom   = 2 // each host has room for two tasks
	walkMemory = 16
	walkTasks  = 24
	walkSteps  = 700
)

// walk is the real control plane against machines that lose, repeat, reorder,
// crash and die; its own handlers are killed between any two calls.
type walk struct {
	*controltest.World
	t        *testing.T
	random   *rand.Rand
	machines []*peer
	out      []letter // on their way to the control plane
	ran      int
	starts   map[string]int
	known    map[string]control.Task
	trace    []string
	group    *controltest.Groups // nil: nothing takes hosts away
	held     []control.Hook      // terminations that the group held
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
	w.singleton()
	for _, name := range []string{"i", "j"} {
		w.machines = append(w.machines, &peer{Machine: machine.New(name, walkRoom*walkMemory), w: w})
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
		m.in = append(m.in, w.Sent.TakeCommands(m.ID)...)
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
	t := w.AddTask(taskdef.Resources{CPU: 1, MemoryMiB: walkMemory}, func(t *control.Task) {
		if w.chance(40) {
			t.Service = "web"
		}
		t.Tags = w.policy()
	})
	if t.Service != "" {
		live.Live++
		w.Put(live)
	}
	w.say("run %s service %q %v", short(t.ID), t.Service, t.Tags)
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
	if w.group != nil && w.chance(3) {
		w.host(m)
		return
	}
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
	case n < 890 && m.Up:
		w.Clock.Move(time.Duration(1+w.random.IntN(40)) * time.Second)
		if m.Welcomed {
			m.beat()
		} else {
			m.register()
		}
	case n < 910 && m.Up:
		m.repeat()
	case n < 940:
		w.tick(true)
	case n < 950:
		w.expire()
	case n < 965:
		w.serve(true)
	case n < 967:
		w.rollOut()
	case n < 972:
		w.endKept(m)
	case n < 987 || !m.Host:
		w.disaster(m)
	}
}

// take is one command that a machine takes: in any order, once more, or lost.
func (w *walk) take(m *peer) {
	w.fetch()
	if !m.Host || !m.Up || len(m.in) == 0 {
		return
	}
	at := w.random.IntN(len(m.in))
	c := m.in[at]
	if !m.Ready(c) { // it waits for what brings its epoch
		return
	}
	if !w.chance(10) {
		m.in = slices.Delete(m.in, at, at+1)
	}
	if w.chance(5) {
		w.say("%s loses %s", m.Name, wire.TypeOf(c))
		return
	}
	w.say("%s takes %s %v", m.Name, wire.TypeOf(c), c)
	m.command(c)
}

func (w *walk) exit(m *peer) {
	for _, id := range slices.Sorted(maps.Keys(m.Containers)) {
		if c := m.Containers[id]; c.Runs && w.chance(50) {
			m.Exit(id)
			w.say("%s: container of %s exits", m.Name, short(id))
			return
		}
	}
}

func (w *walk) disaster(m *peer) {
	switch n := w.random.IntN(10); {
	case !m.Host:
		m.Return()
		w.say("%s returns", m.Name)
	case n < 4:
		m.Restart()
		w.say("%s: agent restarts", m.Name)
	case n < 5:
		m.LoseJournal()
		w.say("%s loses its journal, is %s", m.Name, m.IncarnationName())
	case n < 6:
		m.LoseDisk()
		w.say("%s loses its disk, is %s", m.Name, m.IncarnationName())
	case n < 7:
		m.Die()
		w.say("%s dies", m.Name)
	case n < 9: // silence: ten minutes and more without a message from anybody
		w.say("silence")
		for range 11 + w.random.IntN(6) {
			w.tick(true)
			w.check()
		}
	}
}

// open says whether an attempt is open on a machine.
func (w *walk) open(tasks map[string]control.Task, m *peer, id string, attempt int) bool {
	t, ok := tasks[id]
	return ok && t.LastStatus.Open() && t.Instance == m.ID && t.Attempt == attempt
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
		w.checkKept(id, w.known[id], t)
	}
	w.known = tasks
	w.checkSingleton(tasks)
	for _, m := range w.machines {
		l := w.Ledger(m.ID)
		runs := 0
		for id, c := range m.Containers {
			if !c.Runs {
				continue
			}
			runs++
			if !w.open(tasks, m, id, c.Attempt) && c.Epoch >= l.Epoch {
				w.fail("PHYS a container of %s runs on %s, its attempt is not open and its epoch not fenced", short(id), m.Name)
			}
		}
		if runs > walkRoom {
			w.fail("PHYS %d containers run on %s", runs, m.Name)
		}
		for id, j := range m.Journal {
			if j.Phase == machine.Tomb && w.open(tasks, m, id, j.Attempt) {
				w.fail("I6 %s forgot the end of %s, which is not known here", m.Name, short(id))
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
			return
		}
	}
	t.Logf("met of kept tasks: %v", walked)
	for _, what := range []string{"kept", "back", "ended by time", "singleton kept"} {
		if *walks >= 4 && *walkFrom == 1 && walked[what] == 0 {
			t.Errorf("no walk met what is called %q", what)
		}
	}
}
