package agent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/logkey"
	"github.com/longshore-run/longshore/shared/wire"
)

// mostUnheard is how rarely a queue that does not answer is tried: less often than
// one that does is polled, and often enough to notice soon that it does again.
const mostUnheard = 20 * time.Second

// receive is the loop that takes commands. A command is in the journal before
// it is deleted from the queue; one that cannot be judged yet stays in both
// the queue and memory.
func (a *Agent) receive(ctx context.Context) {
	for tries := 0; ; {
		commands, err := a.Inbox.Receive(ctx)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			a.heard()
			tries = 0
			a.handle(ctx, commands)
			continue
		}
		a.unheard(err)
		most := mostUnheard
		if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Denied) {
			most = 10 * time.Second // it is being made
		}
		if !a.retry(ctx, a.backoff(tries, 250*time.Millisecond, most), nil) {
			return
		}
		tries++
	}
}

// heard notes that the control plane's queue answers.
func (a *Agent) heard() {
	a.mu.Lock()
	was := a.inbox
	a.inbox = nil
	if was != nil {
		a.repeat = true
	}
	a.mu.Unlock()
	if was != nil {
		a.Log.Info("command queue answers")
		a.reports.ring()
		a.gotThrough()
	}
}

// unheard notes that it does not. A queue that vanished means: register again.
func (a *Agent) unheard(err error) {
	a.mu.Lock()
	was := a.inbox
	a.inbox = err
	lost := a.welcomed && (fault.Is(err, fault.NotFound) || fault.Is(err, fault.Denied))
	if lost {
		a.welcomed = false
	}
	a.mu.Unlock()
	switch {
	case lost:
		a.Log.Warn("command queue is gone: register again", logkey.Error, err)
		a.registers.ring()
	case was == nil || fault.Of(was) != fault.Of(err):
		a.Log.Warn("no commands", logkey.Error, err)
	}
}

// handle journals and begins commands, and deletes what is dealt with.
func (a *Agent) handle(ctx context.Context, commands []Command) {
	a.commands.Lock()
	var done []string
	for _, c := range commands {
		if a.command(c) {
			done = append(done, c.Receipt)
		}
	}
	a.commands.Unlock()
	a.drop(ctx, done)
}

func (a *Agent) drop(ctx context.Context, receipts []string) {
	for part := range slices.Chunk(receipts, MaxBatch) {
		if err := a.Inbox.Delete(ctx, part); err != nil && ctx.Err() == nil {
			a.Log.Warn("delete commands: they will come again", logkey.Error, err, logkey.Count, len(part))
		}
	}
}

// retryHeld looks again at the commands that could not be judged.
func (a *Agent) retryHeld() {
	a.mu.Lock()
	held := make([]Command, 0, len(a.held))
	for _, key := range slices.Sorted(maps.Keys(a.held)) {
		if h := a.held[key]; a.Now().Sub(h.since) < mostHeld {
			held = append(held, h.Command)
		}
	}
	clear(a.held)
	a.mu.Unlock()
	if len(held) > 0 && a.leave.Err() == nil {
		a.handle(a.leave, held)
	}
}

// holding is a command in memory. The queue has it too and brings it again; a
// copy that has not come again for long is forgotten: its tombstone may be too.
type holding struct {
	Command
	since time.Time
}

const mostHeld = 5 * time.Minute

// hold keeps a command until it can be judged; the queue keeps it too.
func (a *Agent) hold(c Command, key string, why string) bool {
	a.mu.Lock()
	_, known := a.held[key]
	a.held[key] = holding{c, a.Now()} // with the newest receipt
	a.mu.Unlock()
	if !known {
		a.Log.Info("command waits", logkey.Message, key, logkey.Reason, why)
	}
	return false
}

// command deals with one command; false means that it is to come again.
func (a *Agent) command(c Command) bool {
	if c.Message == nil {
		a.Log.Error("command cannot be read and is dropped", logkey.Error, c.Fault)
		return true
	}
	if h := wire.HeaderOf(c.Message); h.Instance != a.instance {
		a.Log.Error("command for another instance is dropped", logkey.Sender, h.Instance)
		return true
	}
	var err error
	done := true
	switch m := c.Message.(type) {
	case *wire.Welcome:
		done, err = a.welcome(m)
	case *wire.Fence:
		done, err = a.fence(m)
	default:
		if known := a.known(); !known {
			// Two machines with one identity share a queue: what is in it is
			// for the one that was welcomed.
			return a.hold(c, key(c.Message), "this incarnation was not welcomed yet")
		}
		done, err = a.order(c)
	}
	if err != nil {
		a.Log.Error("command waits: the journal cannot be written", logkey.Error, err)
		return false
	}
	return done
}

// known says whether the control plane has ever welcomed this incarnation.
func (a *Agent) known() (yes bool) {
	a.book.view(func(p *page) { yes = p.meta.Epoch > 0 })
	return yes
}

func key(m wire.Message) string {
	switch m := m.(type) {
	case *wire.Assign:
		return fmt.Sprintf("assign %s %d", m.Task, m.Attempt)
	case *wire.Stop:
		return fmt.Sprintf("stop %s %d", m.Task, m.Attempt)
	case *wire.Ack:
		return fmt.Sprintf("ack %s %d", m.Task, m.Attempt)
	case *wire.Resync:
		return fmt.Sprintf("resync %v", m.Tasks)
	}
	return fmt.Sprintf("%T", m)
}

func (a *Agent) order(c Command) (bool, error) {
	switch m := c.Message.(type) {
	case *wire.Assign:
		return a.assign(c, m)
	case *wire.Stop:
		return a.stop(c, m)
	case *wire.Ack:
		return true, a.acknowledge(m)
	case *wire.Resync:
		return true, a.resync(m)
	}
	a.Log.Error("message is not a command and is dropped", logkey.Message, string(wire.TypeOf(c.Message)))
	return true, nil
}

// stopRunning tells the goroutine of a task to end it; the order is in the
// journal already.
func (a *Agent) stopRunning(r *Record) {
	a.launch(r.ID(), r.Attempt())
	a.mu.Lock()
	defer a.mu.Unlock()
	if run := a.runners[r.ID()]; run != nil && run.attempt == r.Attempt() {
		run.box.Stop(*r.Stop)
	}
}
