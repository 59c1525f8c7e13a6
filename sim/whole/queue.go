package whole

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/wire"
)

const (
	visibility = 30 * time.Second
	longPoll   = 20 * time.Second
	retention  = time.Hour // of commands
)

// inbox is a host's command queue.
type inbox struct {
	h       *host
	there   bool
	letters []*command
	assigns map[string][]byte // the last one of each task
	next    int
	poll    *poll
}

type command struct {
	body    []byte
	what    string
	sent    time.Time
	hidden  time.Time // until then
	receipt string
}

type poll struct {
	g   *gate
	got []agent.Command
}

// put takes in a command: now, later, twice, or not at all.
func (q *inbox) put(body []byte, what string) {
	w := q.h.w
	if w.chance(w.plan.commandLost) {
		w.count("command lost")
		w.say("lost: %s to %s", what, q.h.name)
		return
	}
	copies := 1
	if w.chance(w.plan.commandTwice) {
		w.count("command delivered twice")
		copies = 2
	}
	for range copies {
		c := &command{body: body, what: what, sent: time.Now(), hidden: time.Now().Add(w.travel(w.plan.commandLate, "command delayed"))}
		q.letters = append(q.letters, c)
		q.wakeAt(c.hidden)
	}
}

func (q *inbox) wakeAt(at time.Time) {
	q.h.w.push(time.Until(at), 0, "command visible", func() { q.deliver(q.poll) })
}

// deliver gives what is visible to the one who waits for it.
func (q *inbox) deliver(p *poll) {
	w, now := q.h.w, time.Now()
	if p == nil || p != q.poll || p.g.over() || now.Before(q.h.cut) {
		return
	}
	if !q.there {
		q.poll = nil
		p.g.answer(fault.New(fault.NotFound, "no such queue"))
		return
	}
	q.letters = slices.DeleteFunc(q.letters, func(c *command) bool { return now.Sub(c.sent) >= retention })
	visible := slices.DeleteFunc(slices.Clone(q.letters), func(c *command) bool { return c.hidden.After(now) })
	if len(visible) == 0 {
		return
	}
	w.random.Shuffle(len(visible), func(i, j int) { visible[i], visible[j] = visible[j], visible[i] })
	visible = visible[:min(len(visible), 1+w.random.IntN(agent.MaxBatch))]
	for _, c := range visible {
		q.next++
		c.hidden, c.receipt = now.Add(visibility), fmt.Sprint("r", q.next)
		q.wakeAt(c.hidden)
		m, err := wire.Decode(c.body)
		p.got = append(p.got, agent.Command{Message: m, Fault: err, Receipt: c.receipt})
		w.say("%s takes %s", q.h.name, c.what)
	}
	q.poll = nil
	if w.answerLost(q.h) {
		p.got = nil
		p.g.answer(fault.New(fault.Unavailable, "the answer was lost"))
		return
	}
	p.g.answer(nil)
}

// Receive is agent.Inbox's.
func (l *life) Receive(ctx context.Context) ([]agent.Command, error) {
	p := &poll{}
	err := l.wait(ctx, "receive", func(g *gate) {
		w, q := l.h.w, l.h.inbox
		p.g, q.poll = g, p
		if w.cut(l.h) {
			w.push(w.between(time.Second, 10*time.Second), 0, "no network", func() {
				if !g.over() {
					g.answer(fault.New(fault.Unavailable, "no route to host"))
				}
			})
			return
		}
		w.push(w.between(2*time.Millisecond, 30*time.Millisecond), 0, "poll", func() { q.deliver(p) })
		w.push(longPoll, 0, "poll ends", func() {
			if g.over() {
				return
			}
			if q.poll == p {
				q.poll = nil
			}
			g.answer(nil)
		})
	})
	return p.got, err
}

// Delete is agent.Inbox's.
func (l *life) Delete(ctx context.Context, receipts []string) error {
	if len(receipts) == 0 {
		return nil
	}
	return l.sqs(ctx, "delete "+receipts[0], func() error {
		q := l.h.inbox
		if !q.there {
			return fault.New(fault.NotFound, "no such queue")
		}
		q.letters = slices.DeleteFunc(q.letters, func(c *command) bool { return slices.Contains(receipts, c.receipt) })
		return nil
	})
}

// SendReports is agent.Outbox's.
func (l *life) SendReports(ctx context.Context, messages []wire.Message) []error {
	errs := make([]error, len(messages))
	what := "reports"
	if _, ok := messages[0].(*wire.Register); ok {
		what = "register"
	}
	err := l.sqs(ctx, what, func() error {
		w := l.h.w
		for i, m := range messages {
			if w.chance(w.plan.sendFails) {
				w.count("report throttled")
				errs[i] = fault.New(fault.Unavailable, "throttled")
				continue
			}
			errs[i] = w.mail(w.reports, l.h, m)
		}
		return nil
	})
	if err != nil {
		for i := range errs {
			errs[i] = err
		}
	}
	return errs
}

// SendHeartbeat is agent.Outbox's.
func (l *life) SendHeartbeat(ctx context.Context, beat *wire.Heartbeat) error {
	return l.sqs(ctx, "heartbeat", func() error { return l.h.w.mail(l.h.w.heartbeats, l.h, beat) })
}

// sqs is a call of the agent to SQS, over a network that may be cut.
func (l *life) sqs(ctx context.Context, what string, do func() error) error {
	w := l.h.w
	silent := fault.New(fault.Unavailable, "no route to host")
	takes := func() time.Duration {
		if w.cut(l.h) {
			return w.between(time.Second, 10*time.Second)
		}
		return w.between(5*time.Millisecond, 80*time.Millisecond)
	}
	return l.call(ctx, what, takes, func() error {
		if w.cut(l.h) {
			return silent
		}
		if err := do(); err != nil {
			return err
		}
		if w.answerLost(l.h) {
			return fault.New(fault.Unavailable, "the answer was lost")
		}
		return nil
	})
}

// letter is a message on its way to a function.
type letter struct {
	what     string
	body     []byte
	kick     *control.Kick
	sender   control.Sender
	from     *host // nil: from a function
	receives int
}

// queue is a queue that wakes a function.
type queue struct {
	w       *World
	name    string
	batch   int
	window  time.Duration
	most    int // calls at once
	tries   int // then it is put aside
	busy    int
	ready   []*letter
	due     bool
	stalled time.Time // until when nothing of it is delivered
	handle  func(batch []*letter) (kind string, run func(ctx context.Context, c *control.Control) []error)
}

// mail sends a message of a host.
func (w *World) mail(q *queue, from *host, m wire.Message) error {
	body, err := wire.Encode(m)
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "send")
	}
	w.ids++
	l := letter{what: describe(m), body: body, from: from,
		sender: control.Sender{Identity: from.identity, SentAt: time.Now().Truncate(time.Millisecond), MessageID: fmt.Sprint("m", w.ids)}}
	w.say("%s sends %s", from.name, l.what)
	if second := time.Now().Unix(); second != w.second {
		w.second, w.sent = second, 0
	}
	w.sent++
	w.busiest = max(w.busiest, w.sent)
	q.send(l)
	return nil
}

func (q *queue) send(l letter) {
	w := q.w
	if w.chance(w.plan.messageLost) {
		w.count(q.name + " message lost")
		w.say("lost: %s", l.what)
		return
	}
	copies := 1
	if w.chance(w.plan.messageTwice) {
		w.count(q.name + " message delivered twice")
		copies = 2
	}
	for range copies {
		c := l
		w.push(w.travel(w.plan.messageLate, q.name+" message delayed"), 0, "message", func() { q.arrive(&c) })
	}
}

func (q *queue) arrive(l *letter) {
	q.ready = append(q.ready, l)
	q.wake(q.w.between(0, q.window))
}

func (q *queue) wake(after time.Duration) {
	if q.due || len(q.ready) == 0 {
		return
	}
	q.due = true
	q.w.push(max(after, time.Until(q.stalled)), 0, q.name, q.deliver)
}

// deliver wakes a function with some of what is there, in any order.
func (q *queue) deliver() {
	q.due = false
	w := q.w
	if time.Now().Before(q.stalled) {
		q.wake(0)
		return
	}
	for q.busy < q.most && len(q.ready) > 0 {
		w.random.Shuffle(len(q.ready), func(i, j int) { q.ready[i], q.ready[j] = q.ready[j], q.ready[i] })
		n := min(len(q.ready), q.batch)
		batch := slices.Clone(q.ready[:n])
		q.ready = slices.Delete(q.ready, 0, n)
		q.busy++
		kind, run := q.handle(batch)
		var errs []error
		w.invoke(kind, 55*time.Second, func(ctx context.Context, c *control.Control) { errs = run(ctx, c) }, func(died bool) {
			q.busy--
			for i, l := range batch {
				if !died && (errs == nil || errs[i] == nil) {
					continue
				}
				if l.receives++; l.receives >= q.tries {
					w.count(q.name + " message put aside")
					w.say("put aside: %s", l.what)
					continue
				}
				w.push(w.between(visibility, 2*visibility), 0, "message again", func() { q.arrive(l) })
			}
			q.wake(time.Millisecond)
		})
	}
}

func describe(m wire.Message) string {
	switch m := m.(type) {
	case *wire.Report:
		return fmt.Sprintf("report %s/%d %s n%d", short(m.Task), m.Attempt, m.Status, m.N)
	case *wire.Refused:
		return fmt.Sprintf("refused %s/%d %s", short(m.Task), m.Attempt, m.Code)
	case *wire.Heartbeat:
		return fmt.Sprintf("beat e%d n%d %s of %d", m.Epoch, m.N, m.Docker, len(m.Inventory))
	case *wire.Register:
		return fmt.Sprintf("register %s e%d n%d", m.Incarnation, m.Epoch, m.N)
	case *wire.Assign:
		return fmt.Sprintf("assign %s/%d e%d", short(m.Task), m.Attempt, m.Epoch)
	case *wire.Stop:
		return fmt.Sprintf("stop %s/%d", short(m.Task), m.Attempt)
	case *wire.Ack:
		return fmt.Sprintf("ack %s/%d", short(m.Task), m.Attempt)
	case *wire.Welcome:
		return fmt.Sprintf("welcome %s e%d n%d", m.Incarnation, m.Epoch, m.N)
	case *wire.Fence:
		return fmt.Sprintf("fence %s e%d closed %d terminal %v %s", m.Incarnation, m.Epoch, len(m.Closed), m.Terminal, m.Reason)
	case *wire.Resync:
		return fmt.Sprintf("resync of %d", len(m.Tasks))
	}
	return fmt.Sprintf("%T", m)
}
