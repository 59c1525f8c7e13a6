package whole

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing/synctest"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
)

// life is one process of an agent.
type life struct {
	process
	h     *host
	doom  doom
	agent *agent.Agent
}

// doom is a death that waits some calls away.
type doom struct {
	calls int // until then; 0: none
	after bool
}

// strikes says whether death comes now: before a call (done false) or after it.
func (d *doom) strikes(done bool) bool {
	if d.calls == 0 {
		return false
	}
	if !done && d.calls > 1 {
		d.calls--
		return false
	}
	if d.calls == 1 && d.after == done {
		d.calls = 0
		return true
	}
	return false
}

// rand is chance that depends on nothing but when it is asked, so that two who
// ask at once get the same in whichever order.
func (l *life) rand() float64 {
	x := l.h.w.seed*0x9e3779b97f4a7c15 ^ uint64(time.Now().UnixNano())*0xbf58476d1ce4e5b9 ^ uint64(len(l.name))
	for _, c := range []byte(l.name) {
		x = (x ^ uint64(c)) * 0x94d049bb133111eb
	}
	x ^= x >> 31
	return float64(x>>11) / (1 << 53)
}

// turn is where a goroutine of the agent waits until it may go on.
func (l *life) turn(who string) {
	w := l.h.w
	_ = l.wait(context.Background(), who, func(g *gate) {
		w.push(0, w.random.Int64(), who, func() { g.answer(nil) })
	})
}

// call is a call of the agent that takes a while and has an effect.
func (l *life) call(ctx context.Context, what string, takes func() time.Duration, do func() error) error {
	w := l.h.w
	return l.wait(ctx, what, func(g *gate) {
		w.push(takes(), 0, what, func() {
			if g.over() {
				return
			}
			if l.doom.strikes(false) {
				w.count("agent killed before a call")
				l.h.kill(w.respite())
				return
			}
			err := do()
			w.note(l.name, what, err)
			if l.doom.strikes(true) {
				w.count("agent killed after a call")
				l.h.kill(w.respite())
				return
			}
			g.answer(err)
		})
	})
}

type lifeJournal struct{ l *life }

func (j lifeJournal) Load() (agent.State, error) { return j.l.h.journal.Load() }

// Commit is made on the agent's goroutine: it holds locks.
func (j lifeJournal) Commit(c agent.Change) error {
	l, w := j.l, j.l.h.w
	switch {
	case l.dead.Load():
		return errDead
	case l.doom.strikes(false):
		w.count("agent killed before a journal commit")
		w.struck(l)
		return errDead
	case time.Now().Before(l.h.full):
		w.count("journal not written")
		return fault.New(fault.Unavailable, "no space left on device")
	}
	if err := l.h.journal.Commit(c); err != nil {
		return err
	}
	w.journalled(l.h, c)
	if l.doom.strikes(true) {
		w.count("agent killed after a journal commit")
		w.struck(l)
		return errDead
	}
	return nil
}

// struck notes a death in the middle of an agent's goroutine; the world buries it.
func (w *World) struck(l *life) {
	l.dead.Store(true)
	w.mu.Lock()
	w.died = append(w.died, l)
	w.mu.Unlock()
}

// bury has the killed die, and start again later. Whoever was let go on has come to
// its next gate first, or has died: when it is seen is not for the machine to say.
func (w *World) bury() {
	synctest.Wait()
	w.mu.Lock()
	died := w.died
	w.died = nil
	w.mu.Unlock()
	slices.SortFunc(died, func(a, b *life) int { return cmp.Compare(a.name, b.name) })
	for _, l := range died {
		l.dead.Store(false)
		if l.h.life == l {
			l.h.kill(w.respite())
		}
		l.kill()
	}
}

// The engine, as this life of the agent sees it.

func (l *life) engineCall(ctx context.Context, verb string, id agent.ContainerID, most time.Duration, do func() error, longer ...time.Duration) error {
	w, e := l.h.w, l.h.engine
	what := verb + " " + short(id.Task) + fmt.Sprint("/", id.Attempt) + id.Container
	return l.wait(ctx, what, func(g *gate) {
		takes := w.between(time.Millisecond, max(most, 2*time.Millisecond))
		for _, more := range longer {
			takes += more
		}
		after, down := e.down()
		if down != nil {
			takes = after
		}
		w.push(takes, 0, what, func() {
			switch {
			case g.over():
				return
			case l.doom.strikes(false):
				w.count("agent killed before a call")
				l.h.kill(w.respite())
				return
			}
			err := down
			if err == nil {
				if _, err = e.down(); err == nil && w.chance(w.plan.engineFails) && verb != "ping" {
					w.count("engine call failed")
					err = fault.New(fault.Unavailable, "the engine had a fit")
					if w.chance(0.5) {
						_ = do()
					}
				} else if err == nil {
					err = do()
				}
			}
			w.note(l.name, what, err)
			if l.doom.strikes(true) {
				w.count("agent killed after a call")
				l.h.kill(w.respite())
				return
			}
			g.answer(err)
		})
	})
}

var none agent.ContainerID

func (l *life) Image(ctx context.Context, ref string, _ agent.Login) (digest string, err error) {
	err = l.engineCall(ctx, "image", agent.ContainerID{Container: ref}, 3*time.Second, func() error {
		if l.h.w.chance(l.h.w.plan.pullFails) {
			l.h.w.count("pull failed")
			return fault.New(fault.Unavailable, "registry does not answer")
		}
		return nil
	})
	return "sha256:" + ref, err
}

func (l *life) Create(ctx context.Context, spec agent.Spec) (id string, err error) {
	err = l.engineCall(ctx, "create", spec.ContainerID, time.Second, func() (err error) { id, err = l.h.engine.create(spec); return err })
	return id, err
}

func (l *life) Start(ctx context.Context, id agent.ContainerID) error {
	return l.engineCall(ctx, "start", id, time.Second, func() error { return l.h.engine.start(id) })
}

func (l *life) Restart(ctx context.Context, id agent.ContainerID, began time.Time) error {
	return l.engineCall(ctx, "restart", id, time.Second, func() error { return l.h.engine.restart(id, began) })
}

// Stop has its effect some time after it is asked, whether or not anybody still
// waits for it.
func (l *life) Stop(ctx context.Context, id agent.ContainerID, timeout time.Duration) error {
	var takes time.Duration
	var run int
	err := l.engineCall(ctx, "stop", id, 50*time.Millisecond, func() error {
		e := l.h.engine
		wait, code := e.stopTakes(id, timeout)
		if b := e.boxes[id]; b != nil {
			run, takes = b.runs, wait+time.Millisecond
			l.h.w.push(wait, 0, "stopped", func() {
				if b.runs == run {
					e.exit(b, code)
				}
			})
		}
		return nil
	})
	if err != nil || takes == 0 {
		return err
	}
	return l.engineCall(ctx, "stopping", id, 0, func() error { return nil }, takes)
}

func (l *life) Remove(ctx context.Context, id agent.ContainerID) error {
	return l.engineCall(ctx, "remove", id, 500*time.Millisecond, func() error { return l.h.engine.remove(id) })
}

func (l *life) RemoveTask(ctx context.Context, task string, attempt int) error {
	return l.engineCall(ctx, "removetask", agent.ContainerID{Task: task, Attempt: attempt}, 100*time.Millisecond, func() error { return nil })
}

func (l *life) Observe(ctx context.Context, id agent.ContainerID) (seen agent.Seen, err error) {
	err = l.engineCall(ctx, "observe", id, 20*time.Millisecond, func() (err error) { seen, err = l.h.engine.observe(id); return err })
	return seen, err
}

func (l *life) List(ctx context.Context) (all []agent.Seen, err error) {
	err = l.engineCall(ctx, "list", none, 200*time.Millisecond, func() error { all = l.h.engine.list(); return nil })
	return all, err
}

func (l *life) Watch(ctx context.Context) (events <-chan agent.Seen, err error) {
	err = l.engineCall(ctx, "watch", none, 20*time.Millisecond, func() error { events = l.h.engine.watch(l, ctx); return nil })
	return events, err
}

func (l *life) Ping(ctx context.Context) error {
	return l.engineCall(ctx, "ping", none, 5*time.Millisecond, func() error { return nil })
}

func (l *life) Info(ctx context.Context) (info agent.EngineInfo, err error) {
	err = l.engineCall(ctx, "info", none, 20*time.Millisecond, func() error { return nil })
	return agent.EngineInfo{Version: "99.0", CPUs: 4, MemoryMiB: 8192, Arch: "x86_64", OSType: "linux", HardwareID: l.h.name}, err
}

func (l *life) taken(tcp, _ []int) (taken, none []int) {
	_ = l.call(context.Background(), fmt.Sprint("ports ", tcp), func() time.Duration { return time.Millisecond }, func() error {
		taken = slices.DeleteFunc(slices.Clone(tcp), func(p int) bool { return l.h.engine.taken([]int{p}) == 0 })
		return nil
	})
	return taken, nil
}

func (w *World) logger(name string) *slog.Logger {
	if w.log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(w.log.of(name))
}
