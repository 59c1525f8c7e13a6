package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"

	"github.com/longshore-run/longshore/edgeagent/internal/supervise"
	"github.com/longshore-run/longshore/shared/logkey"
	"github.com/longshore-run/longshore/shared/setting"
	"github.com/longshore-run/longshore/shared/wire"
)

// Config is what an agent is made of.
type Config struct {
	Setting setting.Agent
	// Identity is the aws:userid that SQS sees as the sender.
	Identity string
	// Session is new with each start.
	Session string
	Version string // of this program
	Hash    string // of its source

	Engine  Engine
	Inbox   Inbox
	Outbox  Outbox
	Journal Journal
	// Images is the engine's store of images; nil: it is left alone.
	Images ImageStore
	// Reserve is the journal's; nil: it has none.
	Reserve Reserve
	Log     *slog.Logger

	// Taken says which of the host's ports something has; nil if that cannot be
	// known from here.
	Taken func(tcp, udp []int) (takenTCP, takenUDP []int)
	// Host says what is to come of the machine; nil where nobody knows.
	Host Host
	// Endpoint is where containers learn of their task; nil where there is none.
	Endpoint Endpoint
	// Provider reads secrets, environment files and logins to registries; nil where
	// nobody does.
	Provider Provider
	// FreeDisk is in MiB; nil if unknown.
	FreeDisk func() int64
	Now      func() time.Time
	Rand     func() float64
	// Turn, if set, is asked by each goroutine of the agent when it wakes, before it
	// looks at what they share, with its name: sim lets them go on one at a time, so
	// that what happened once can be made to happen again.
	Turn func(who string)
}

// Agent is one edge agent.
type Agent struct {
	Config
	instance string
	book     *book
	room     *room

	// Each loop sleeps on its signal.
	reports, beats, registers, cleanups, rooms signal

	asked    chan struct{} // closed when the host was asked for the first time
	leave    context.Context
	wg       sync.WaitGroup // goroutines of tasks and strays
	commands sync.Mutex     // one batch of commands at a time

	mu        sync.Mutex
	runners   map[string]*runner
	held      map[string]holding // commands that cannot be judged yet
	again     map[string]bool    // tasks whose end is to be said again
	repeat    bool               // every end is due
	recovered bool               // what the engine held at the start is known
	welcomed  bool               // in this session, and the queue is there
	confirmed time.Time          // when the control plane confirmed this epoch
	terminal  chan struct{}      // closed when all is over
	terminate func()             // closes it
	ending    bool               // deregistered
	impaired  string             // why the engine does not work, "" if it does
	unknown   int                // containers of ours with unreadable labels
	inbox     error              // what Receive answered last
	through   chan struct{}      // closed, and another, when a loop gets through that did not before
	unsent    error              // what SendHeartbeat answered last
	sent      time.Time          // the last heartbeat that was
	notice    *wire.Notice       // what is to come of the host, nil for nothing
	offered   map[string]string  // the attributes that were registered last
}

type runner struct {
	attempt int
	box     *supervise.Mailbox
}

// ErrTerminal is returned by Run when the instance was deregistered: the agent
// must not be started again by itself.
var ErrTerminal = errors.New("this container instance was deregistered")

// New makes an agent. It reads the journal and does nothing else.
func New(c Config) (*Agent, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Rand == nil {
		c.Rand = rand.Float64
	}
	b, err := openBook(c.Journal, c.Now)
	if err != nil {
		return nil, err
	}
	a := &Agent{
		Config: c, instance: wire.InstanceID(c.Identity), book: b, room: newRoom(c.Setting),
		reports: newSignal(), beats: newSignal(), registers: newSignal(), cleanups: newSignal(), rooms: newSignal(),
		runners: map[string]*runner{}, held: map[string]holding{}, again: map[string]bool{},
		terminal: make(chan struct{}), through: make(chan struct{}), asked: make(chan struct{}),
	}
	a.terminate = sync.OnceFunc(func() { close(a.terminal) })
	a.Log = c.Log.With(logkey.Instance, a.instance, logkey.Incarnation, b.meta.Incarnation)
	return a, nil
}

// Instance is the container instance's id.
func (a *Agent) Instance() string { return a.instance }

// Run is the agent until ctx ends (nil: it left, and no container was touched)
// or the instance is deregistered (ErrTerminal).
func (a *Agent) Run(ctx context.Context) error {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	a.leave = ctx
	var loops sync.WaitGroup
	late := a.lateness()
	for _, loop := range []func(context.Context){a.watch, a.clean, a.heed, a.tend} {
		loops.Go(func() { loop(ctx) })
	}
	for _, loop := range []func(context.Context){a.receive, a.register, a.report, a.beat} {
		loops.Go(func() {
			if late == 0 || sleep(ctx, late, nil) {
				loop(ctx)
			}
		})
	}
	var err error
	select {
	case <-ctx.Done():
	case <-a.terminal:
		a.turn("end")
		a.lastWords(ctx)
		a.obeyed()
		err = ErrTerminal
	}
	leave()
	loops.Wait()
	a.wg.Wait()
	return err
}

// lateness is how much later than it could an agent that comes back turns to AWS: a
// part of its heartbeat's interval that is its own, so that the machines of a site
// which has its power back do not come all in one second.
func (a *Agent) lateness() time.Duration {
	var meta Meta
	a.book.view(func(p *page) { meta = p.meta })
	if meta.Epoch == 0 {
		return 0
	}
	return time.Duration(a.Rand() * float64(a.every(meta)) / 10)
}

// obeyed notes that the agent ended for good in this epoch: copies of the fence
// that said so must not end the one that somebody starts to register again.
func (a *Agent) obeyed() {
	err := a.book.update(func(p *page) error {
		p.edit().EndedEpoch = p.meta.Epoch
		return nil
	})
	if err != nil {
		a.Log.Error("the journal cannot be written", logkey.Error, err)
	}
}

// turn waits for this goroutine's turn.
func (a *Agent) turn(who string) {
	if a.Turn != nil {
		a.Turn(who)
	}
}

// signal wakes a loop; several before it looks are one.
type signal chan struct{}

func newSignal() signal { return make(signal, 1) }

// hush forgets what rang so far: what is done next is done for it, too.
func (s signal) hush() {
	select {
	case <-s:
	default:
	}
}

func (s signal) ring() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// sleep waits for d, for wake to ring, or for ctx to end; it says whether ctx
// goes on.
func sleep(ctx context.Context, d time.Duration, wake signal) bool {
	return sleepUntil(ctx, d, wake, nil)
}

// sleepUntil is sleep that over ends, too.
func sleepUntil(ctx context.Context, d time.Duration, wake signal, over <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-wake:
	case <-over:
	}
	return ctx.Err() == nil
}

// retry is the sleep of a loop that did not get through to AWS: it ends at once
// when another loop does, so that after a long outage all go on together, and not
// each when its own pause is over.
func (a *Agent) retry(ctx context.Context, d time.Duration, wake signal) bool {
	a.mu.Lock()
	through := a.through
	a.mu.Unlock()
	return sleepUntil(ctx, d, wake, through)
}

// gotThrough tells the loops that wait to try again that one of them succeeded.
func (a *Agent) gotThrough() {
	a.mu.Lock()
	defer a.mu.Unlock()
	close(a.through)
	a.through = make(chan struct{})
}

// backoff doubles from first to most, with up to a fifth of jitter off.
func (a *Agent) backoff(tries int, first, most time.Duration) time.Duration {
	d := min(first<<min(tries, 20), most)
	return d - time.Duration(a.Rand()*float64(d)/5)
}

// launch has a goroutine own an attempt of a task, and shows it what the engine
// has of it.
func (a *Agent) launch(id string, attempt int, seen ...supervise.Seen) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.runners[id]
	switch {
	case a.leave.Err() != nil:
		return
	case r != nil:
		if r.attempt == attempt && len(seen) > 0 {
			r.box.Show(seen...)
		}
		return
	}
	r = &runner{attempt: attempt, box: supervise.NewMailbox()}
	r.box.Show(seen...)
	a.runners[id] = r
	a.wg.Go(func() { a.own(id, r) })
}

// own runs a task until nothing is left to do for it.
func (a *Agent) own(id string, r *runner) {
	a.turn("task " + id)
	for {
		rec, ok := a.record(id)
		if ok = ok && rec.Attempt() == r.attempt; ok {
			if rec.Stop != nil {
				r.box.Stop(*rec.Stop)
			}
			ok = a.supervise(rec, r)
		}
		a.mu.Lock()
		if !ok || r.box.Empty() || a.leave.Err() != nil {
			delete(a.runners, id)
			a.mu.Unlock()
			break
		}
		a.mu.Unlock()
	}
	a.unpinTask(id)
	a.cleanups.ring()
	a.retryHeld() // a newer attempt may wait for this one
	a.checkEnd()
}

// supervise runs a task under recover: one that cannot be handled must not take
// the others down, and is tried again at the next look. It says whether all is
// well.
func (a *Agent) supervise(rec Record, r *runner) (well bool) {
	defer func() {
		if p := recover(); p != nil {
			a.Log.Error("the goroutine of a task failed", logkey.Task, rec.ID(), logkey.Error, fmt.Sprint(p), "stack", string(debug.Stack()))
		}
	}()
	now := func() time.Time {
		a.turn("task " + rec.ID())
		return a.Now()
	}
	supervise.Run(a.leave, supervise.Resume(rec.State), newShell(a, rec), r.box, now)
	return true
}

func (a *Agent) record(id string) (rec Record, ok bool) {
	a.book.view(func(p *page) { rec, ok = p.task(id) })
	return rec, ok
}

// launchWaiting starts the goroutines of all tasks that have none, wait for
// nothing and are not over.
func (a *Agent) launchWaiting() {
	a.mu.Lock()
	recovered := a.recovered
	a.mu.Unlock()
	if !recovered {
		return
	}
	ready := map[string]int{}
	a.book.view(func(p *page) {
		for r := range p.all {
			if !r.ended() && a.mayRun(r, p.meta) {
				ready[r.ID()] = r.Attempt()
			}
		}
	})
	for id, attempt := range ready {
		a.launch(id, attempt)
	}
}

// mayRun says whether a task may have its goroutine. One of which nothing was
// ever started is not started before the control plane has confirmed the epoch
// in this session, and one of an older epoch not before it has had the time to
// answer the inventory with a stop: a host that was given up and returns must
// not run what was replaced.
func (a *Agent) mayRun(r *Record, m Meta) bool {
	if r.State.Started() || r.Stop != nil || r.State.Adopted {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.confirmed.IsZero() || a.ending {
		return false
	}
	return r.Epoch >= m.Epoch || a.Now().Sub(a.confirmed) >= 2*a.every(m)
}

// checkEnd ends the agent of a deregistered instance once what was closed has
// ended.
func (a *Agent) checkEnd() {
	left := 0
	a.book.view(func(p *page) {
		for r := range p.all {
			if !r.ended() && r.Stop != nil {
				left++
			}
		}
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ending && left == 0 {
		a.terminate()
	}
}

// lastWords sends the ends nobody has acknowledged, before the agent ends for
// good.
func (a *Agent) lastWords(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	sent := map[string]*sending{}
	for ctx.Err() == nil {
		due, _ := a.dueReports(sent, a.Now())
		if len(due) == 0 || !a.sendReports(ctx, due, sent) {
			return
		}
	}
}
