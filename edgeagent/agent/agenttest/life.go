package agenttest

import (
	"context"
	"sync"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/wire"
)

// Life is one process of an agent: everything outside that it was given ends
// for it when it is killed, while engine, queues and journal live on for the
// next one.
type Life struct {
	// OnCall is told of every call that has an effect, before it (done false)
	// and after it (done true). It may Kill.
	OnCall func(what string, done bool)

	mu   sync.Mutex
	dead bool
}

// Kill ends the life as SIGKILL does: a call under way has its effect or has
// not, its answer is lost, and nothing follows.
func (l *Life) Kill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead = true
}

// Dead says whether it was killed.
func (l *Life) Dead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead
}

var errDead = fault.New(fault.Unavailable, "this process was killed")

// do makes a call that has an effect.
func (l *Life) do(what string, call func() error) error {
	if l.Dead() {
		return errDead
	}
	if l.OnCall != nil {
		l.OnCall(what, false)
	}
	if l.Dead() {
		return errDead
	}
	err := call()
	if l.OnCall != nil {
		l.OnCall(what, true)
	}
	if l.Dead() {
		return errDead
	}
	return err
}

// Config gives everything outside of c to this life.
func (l *Life) Config(c agent.Config) agent.Config {
	c.Engine = lifeEngine{c.Engine, l}
	if c.Images != nil {
		c.Images.Pulled() // what the process before has not written down died with it
		c.Images = lifeImages{c.Images, l}
	}
	if c.Provider != nil {
		c.Provider = lifeProvider{c.Provider, l}
	}
	if c.Reserve != nil {
		c.Reserve = lifeReserve{c.Reserve, l}
	}
	c.Inbox = lifeInbox{c.Inbox, l}
	c.Outbox = lifeOutbox{c.Outbox, l}
	c.Journal = lifeJournal{c.Journal, l}
	return c
}

type lifeJournal struct {
	agent.Journal
	life *Life
}

func (j lifeJournal) Commit(c agent.Change) error {
	return j.life.do("commit", func() error { return j.Journal.Commit(c) })
}

type lifeOutbox struct {
	agent.Outbox
	life *Life
}

func (o lifeOutbox) SendReports(ctx context.Context, messages []wire.Message) []error {
	errs := make([]error, len(messages))
	if err := o.life.do("send reports", func() error { errs = o.Outbox.SendReports(ctx, messages); return nil }); err != nil {
		for i := range errs {
			errs[i] = err
		}
	}
	return errs
}

func (o lifeOutbox) SendHeartbeat(ctx context.Context, beat *wire.Heartbeat) error {
	return o.life.do("send heartbeat", func() error { return o.Outbox.SendHeartbeat(ctx, beat) })
}

type lifeInbox struct {
	agent.Inbox
	life *Life
}

func (q lifeInbox) Receive(ctx context.Context) (got []agent.Command, err error) {
	if q.life.Dead() {
		return nil, errDead
	}
	got, err = q.Inbox.Receive(ctx)
	if q.life.Dead() {
		return nil, errDead
	}
	return got, err
}

func (q lifeInbox) Delete(ctx context.Context, receipts []string) error {
	if len(receipts) == 0 {
		return nil
	}
	return q.life.do("delete commands", func() error { return q.Inbox.Delete(ctx, receipts) })
}

type lifeEngine struct {
	agent.Engine
	life *Life
}

func (e lifeEngine) Image(ctx context.Context, ref string, login agent.Login) (digest string, err error) {
	err = e.life.do("image", func() (err error) { digest, err = e.Engine.Image(ctx, ref, login); return err })
	return digest, err
}

func (e lifeEngine) Create(ctx context.Context, spec agent.Spec) (id string, err error) {
	err = e.life.do("create", func() (err error) { id, err = e.Engine.Create(ctx, spec); return err })
	return id, err
}

func (e lifeEngine) Start(ctx context.Context, id agent.ContainerID) error {
	return e.life.do("start", func() error { return e.Engine.Start(ctx, id) })
}

func (e lifeEngine) Restart(ctx context.Context, id agent.ContainerID, began time.Time) error {
	return e.life.do("restart", func() error { return e.Engine.Restart(ctx, id, began) })
}

func (e lifeEngine) Stop(ctx context.Context, id agent.ContainerID, timeout time.Duration) error {
	return e.life.do("stop", func() error { return e.Engine.Stop(ctx, id, timeout) })
}

func (e lifeEngine) Remove(ctx context.Context, id agent.ContainerID) error {
	return e.life.do("remove", func() error { return e.Engine.Remove(ctx, id) })
}

func (e lifeEngine) RemoveTask(ctx context.Context, taskID string, attempt int) error {
	return e.life.do("remove task", func() error { return e.Engine.RemoveTask(ctx, taskID, attempt) })
}
