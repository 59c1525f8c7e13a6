package whole

import (
	"cmp"
	"container/heap"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/longshore-run/longshore/shared/fault"
)

// stage lets goroutines go on one at a time. Every call that leaves an agent or a
// use case waits at a gate; when all wait, the one goroutine that runs the world
// lets one of them go on, in an order that only the seed decides.
type stage struct {
	events eventHeap
	seq    int64
	steps  int64

	touched []*process // went on since the last look

	mu      sync.Mutex
	arrived []*gate
	bell    chan struct{}
}

// process is something that can be killed: one life of an agent, or one call of a
// function.
type process struct {
	stage   *stage
	name    string
	dead    atomic.Bool
	cancel  context.CancelFunc
	pending []*gate // touched by the world's goroutine alone
}

// gate is a call that waits to be let go on.
type gate struct {
	p    *process
	what string
	ctx  context.Context // of who waits
	plan func(*gate)     // says when and how the call goes on
	err  error
	open bool
	left bool // its caller has given up
	done chan struct{}
}

var errDead = fault.New(fault.Unavailable, "this process was killed")

// wait is where a goroutine of a process waits; plan is called by the world once
// every goroutine waits.
func (p *process) wait(ctx context.Context, what string, plan func(*gate)) error {
	if p.dead.Load() {
		return errDead
	}
	g := &gate{p: p, what: what, ctx: ctx, plan: plan, done: make(chan struct{})}
	s := p.stage
	s.mu.Lock()
	s.arrived = append(s.arrived, g)
	s.mu.Unlock()
	select {
	case s.bell <- struct{}{}:
	default:
	}
	<-g.done
	return g.err
}

// answer lets the goroutine at a gate go on.
func (g *gate) answer(err error) {
	if g.open {
		return
	}
	g.open, g.err = true, err
	g.p.touch()
	g.p.pending = slices.DeleteFunc(g.p.pending, func(o *gate) bool { return o == g })
	close(g.done)
}

func (p *process) touch() { p.stage.touched = append(p.stage.touched, p) }

// over says whether nobody waits there any more, or the caller has given up: then
// it is told so.
func (g *gate) over() bool {
	if !g.open && g.ctx.Err() != nil {
		g.answer(fault.Wrap(fault.Unavailable, g.ctx.Err(), "%s", g.what))
	}
	return g.open
}

// kill ends a process as SIGKILL does: nothing it does from here on has an effect.
func (p *process) kill() {
	if p.dead.Swap(true) {
		return
	}
	if p.cancel != nil {
		p.cancel()
	}
	for _, g := range slices.Clone(p.pending) {
		g.answer(errDead)
	}
}

// leave has the process told to end; calls under way are given up.
func (p *process) leave() {
	if p.cancel != nil {
		p.cancel()
	}
	p.touch()
}

// giveUp answers the calls, one by one, whose callers no longer wait for them.
func (s *stage) giveUp() {
	touched := s.touched
	s.touched = nil
	for _, p := range touched {
		for _, g := range p.pending {
			if !g.left && g.ctx.Err() != nil {
				g.left = true
				s.push(0, 0, "given up", func() { g.over() })
			}
		}
	}
}

type event struct {
	at   time.Time
	tie  int64
	seq  int64
	what string
	run  func()
}

type eventHeap []*event

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	a, b := h[i], h[j]
	return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.tie, b.tie), cmp.Compare(a.seq, b.seq)) < 0
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(x any)   { *h = append(*h, x.(*event)) }
func (h *eventHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return e
}

// push has something happen after a while; tie orders what happens at one time.
func (s *stage) push(after time.Duration, tie int64, what string, run func()) {
	s.seq++
	heap.Push(&s.events, &event{at: time.Now().Add(after), tie: tie, seq: s.seq, what: what, run: run})
}

// collect takes those who have come to their gates, in the order of their names.
func (s *stage) collect() {
	synctest.Wait()
	s.mu.Lock()
	arrived := s.arrived
	s.arrived = nil
	s.mu.Unlock()
	if len(arrived) > 1 {
		slices.SortStableFunc(arrived, func(a, b *gate) int {
			return cmp.Or(cmp.Compare(a.p.name, b.p.name), cmp.Compare(a.what, b.what))
		})
	}
	for _, g := range arrived {
		if g.p.dead.Load() {
			g.answer(errDead)
			continue
		}
		g.p.pending = append(g.p.pending, g)
		if at, ok := g.ctx.Deadline(); ok {
			s.push(time.Until(at), 0, "deadline", func() { g.over() })
		}
		g.plan(g)
	}
	s.giveUp()
}

// step lets one thing happen, or time pass until something does.
func (s *stage) step() (what string) {
	s.collect()
	if len(s.events) == 0 {
		<-s.bell
		return ""
	}
	e := s.events[0]
	if wait := time.Until(e.at); wait > 0 {
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-s.bell:
			timer.Stop()
		}
		return ""
	}
	heap.Pop(&s.events)
	s.steps++
	e.run()
	return e.what
}
