package main

import (
	"context"
	"encoding/json"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/wire"
)

// tally is control.Queue that counts what is sent, as the adapter sends it, and
// throws it away; the last probe is kept.
type tally struct {
	requests, messages int
	bytes              int64
	last               wire.Probe
}

const perBatch = 10 // messages of one request to one queue

func (q *tally) sent(requests, messages, bytes int) {
	q.requests += requests
	q.messages += messages
	q.bytes += int64(bytes)
}

func (q *tally) Commands(_ context.Context, commands ...wire.Message) error {
	inboxes := map[string]int{}
	for _, m := range commands {
		b, err := wire.Encode(m)
		if err != nil {
			return err
		}
		inboxes[wire.HeaderOf(m).Instance]++
		q.sent(0, 1, len(b))
	}
	for _, n := range inboxes {
		q.sent((n+perBatch-1)/perBatch, 0, 0)
	}
	return nil
}

func (q *tally) kick(k control.Kick) error {
	b, err := json.Marshal(k)
	q.sent(1, 1, len(b))
	return err
}

func (q *tally) KickAdmission(_ context.Context, k control.Kick) error { return q.kick(k) }
func (q *tally) KickServices(_ context.Context, k control.Kick) error  { return q.kick(k) }

func (q *tally) Probe(_ context.Context, p wire.Probe) error {
	b, err := wire.Encode(&p)
	q.sent(1, 1, len(b))
	q.last = p
	return err
}

// The rest are requests that carry nothing.
func (q *tally) EnsureInbox(context.Context, string, string) error { q.sent(1, 0, 0); return nil }
func (q *tally) RemoveInbox(context.Context, string) error         { q.sent(1, 0, 0); return nil }
func (q *tally) Backlog(context.Context) (int, error)              { q.sent(1, 0, 0); return 0, nil }
