package agenttest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/wire"
)

// Visibility is how long the Inbox hides a message that was received.
const Visibility = 30 * time.Second

const longPoll = 20 * time.Second

// Inbox is a command queue in memory: at least once, in no order that anybody
// may rely on.
type Inbox struct {
	mu       sync.Mutex
	fault    error
	messages []*letter
	next     int
	changed  chan struct{}
}

type letter struct {
	body    []byte
	receipt string
	hidden  time.Time
}

// NewInbox is a queue that is there and empty.
func NewInbox() *Inbox { return &Inbox{changed: make(chan struct{})} }

// Put sends a command, as its bytes.
func (q *Inbox) Put(messages ...wire.Message) {
	for _, m := range messages {
		body, err := wire.Encode(m)
		if err != nil {
			panic(fmt.Sprintf("agenttest: %v", err))
		}
		q.PutRaw(body)
	}
}

// PutRaw sends any bytes.
func (q *Inbox) PutRaw(body []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.messages = append(q.messages, &letter{body: body})
	q.wake()
}

func (q *Inbox) wake() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// Fail has every call fail until it is given nil.
func (q *Inbox) Fail(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.fault = err
	q.wake()
}

// Return ends a message's invisibility.
func (q *Inbox) Return(receipt string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range q.messages {
		if l.receipt == receipt {
			l.hidden = time.Time{}
		}
	}
	q.wake()
}

// Purge drops every command, as the end of their retention does.
func (q *Inbox) Purge() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.messages = nil
}

// Len is how many commands are there, hidden ones included.
func (q *Inbox) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.messages)
}

// Receive is agent.Inbox's.
func (q *Inbox) Receive(ctx context.Context) ([]agent.Command, error) {
	deadline := time.Now().Add(longPoll)
	for {
		got, wake, changed, err := q.poll(deadline)
		if err != nil || len(got) > 0 {
			return got, err
		}
		if !time.Now().Before(deadline) {
			return nil, nil
		}
		timer := time.NewTimer(time.Until(wake))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
	}
}

func (q *Inbox) poll(wake time.Time) (got []agent.Command, _ time.Time, changed chan struct{}, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.fault != nil {
		return nil, wake, nil, q.fault
	}
	now := time.Now()
	for _, l := range q.messages {
		if l.hidden.After(now) {
			if l.hidden.Before(wake) {
				wake = l.hidden
			}
			continue
		}
		if len(got) == agent.MaxBatch {
			break
		}
		q.next++
		l.hidden, l.receipt = now.Add(Visibility), fmt.Sprintf("r%d", q.next)
		c := agent.Command{Receipt: l.receipt}
		if m, err := wire.Decode(l.body); err != nil {
			c.Fault = err
		} else {
			c.Message = m
		}
		got = append(got, c)
	}
	return got, wake, q.changed, nil
}

// Delete is agent.Inbox's; an old receipt deletes nothing.
func (q *Inbox) Delete(_ context.Context, receipts []string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.fault != nil {
		return q.fault
	}
	q.messages = slices.DeleteFunc(q.messages, func(l *letter) bool { return l.receipt != "" && slices.Contains(receipts, l.receipt) })
	return nil
}

// Outbox keeps what an agent sends.
type Outbox struct {
	// OnSend is called with each message that is sent, outside of any lock.
	OnSend func(wire.Message)

	mu    sync.Mutex
	fault error
	sent  []wire.Message
}

// NewOutbox is an empty one.
func NewOutbox() *Outbox { return &Outbox{} }

// Fail has every call fail until it is given nil.
func (o *Outbox) Fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fault = err
}

// SendReports is agent.Outbox's.
func (o *Outbox) SendReports(_ context.Context, messages []wire.Message) []error {
	if len(messages) > agent.MaxBatch {
		panic(fmt.Sprintf("agenttest: a batch of %d", len(messages)))
	}
	errs := make([]error, len(messages))
	for i, m := range messages {
		errs[i] = o.send(m)
	}
	return errs
}

// SendHeartbeat is agent.Outbox's.
func (o *Outbox) SendHeartbeat(_ context.Context, beat *wire.Heartbeat) error { return o.send(beat) }

func (o *Outbox) send(m wire.Message) error {
	body, err := wire.Encode(m)
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "send")
	}
	again, err := wire.Decode(body) // what the other side would read
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "send")
	}
	o.mu.Lock()
	err = o.fault
	if err == nil {
		o.sent = append(o.sent, again)
	}
	o.mu.Unlock()
	if err == nil && o.OnSend != nil {
		o.OnSend(again)
	}
	return err
}

// Sent are all messages that were sent.
func (o *Outbox) Sent() []wire.Message {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.sent)
}

// Forget drops what was sent so far.
func (o *Outbox) Forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sent = nil
}
