package controltest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/wire"
)

// Queue is control.Queue in memory: what was sent lies there until taken.
type Queue struct {
	Calls *Calls
	// Waiting is what Backlog answers.
	Waiting int

	mu       sync.Mutex
	commands map[string][]wire.Message
	kicks    []control.Kick
	services []control.Kick
	probes   []wire.Probe
	inboxes  map[string]string
}

// NewQueue is an empty queue that shares calls with a store.
func NewQueue(calls *Calls) *Queue {
	return &Queue{Calls: calls, commands: map[string][]wire.Message{}, inboxes: map[string]string{}}
}

// Commands implements control.Queue. Messages go through the wire encoding, so
// that one which an agent could not read fails here.
func (q *Queue) Commands(ctx context.Context, commands ...wire.Message) error {
	return q.Calls.do(ctx, "Commands", func() error {
		q.mu.Lock()
		defer q.mu.Unlock()
		var errs []error
		missing := map[string]bool{}
		for _, m := range commands {
			to := wire.HeaderOf(m).Instance
			b, err := wire.Encode(m)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			if _, ok := q.inboxes[to]; !ok {
				if !missing[to] {
					missing[to] = true
					errs = append(errs, fault.New(fault.NotFound, "instance %s has no command queue", to))
				}
				continue
			}
			back, err := wire.Decode(b)
			if err != nil {
				return err
			}
			q.commands[to] = append(q.commands[to], back)
		}
		return errors.Join(errs...)
	})
}

// KickAdmission implements control.Queue.
func (q *Queue) KickAdmission(ctx context.Context, k control.Kick) error {
	return q.Calls.do(ctx, "KickAdmission", func() error { return q.kick(&q.kicks, k) })
}

// KickServices implements control.Queue.
func (q *Queue) KickServices(ctx context.Context, k control.Kick) error {
	return q.Calls.do(ctx, "KickServices", func() error { return q.kick(&q.services, k) })
}

func (q *Queue) kick(into *[]control.Kick, k control.Kick) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if k.Cluster == "" {
		return fault.Field("cluster", "a kick must name its cluster")
	}
	if len(k.Tasks) > 10 {
		panic("controltest: a kick carries at most 10 task ids")
	}
	b, _ := json.Marshal(k)
	var c control.Kick
	_ = json.Unmarshal(b, &c)
	*into = append(*into, c)
	return nil
}

// Probe implements control.Queue.
func (q *Queue) Probe(ctx context.Context, p wire.Probe) error {
	return q.Calls.do(ctx, "Probe", func() error {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.probes = append(q.probes, p)
		return nil
	})
}

// EnsureInbox implements control.Queue.
func (q *Queue) EnsureInbox(ctx context.Context, instance, identity string) error {
	return q.Calls.do(ctx, "EnsureInbox", func() error {
		q.mu.Lock()
		defer q.mu.Unlock()
		if identity == "" {
			return fault.Field("identity", "a command queue must have an owner")
		}
		q.inboxes[instance] = identity
		return nil
	})
}

// RemoveInbox implements control.Queue.
func (q *Queue) RemoveInbox(ctx context.Context, instance string) error {
	return q.Calls.do(ctx, "RemoveInbox", func() error {
		q.mu.Lock()
		defer q.mu.Unlock()
		delete(q.inboxes, instance)
		delete(q.commands, instance)
		return nil
	})
}

// Backlog implements control.Queue.
func (q *Queue) Backlog(ctx context.Context) (n int, err error) {
	err = q.Calls.do(ctx, "Backlog", func() error { n = q.Waiting; return nil })
	return n, err
}

// TakeCommands empties an instance's inbox.
func (q *Queue) TakeCommands(instance string) []wire.Message {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := q.commands[instance]
	delete(q.commands, instance)
	return out
}

// TakeKicks empties the admission queue.
func (q *Queue) TakeKicks() []control.Kick {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := q.kicks
	q.kicks = nil
	return out
}

// TakeServiceKicks empties the services queue.
func (q *Queue) TakeServiceKicks() []control.Kick {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := q.services
	q.services = nil
	return out
}

// TakeProbes empties the probes sent.
func (q *Queue) TakeProbes() []wire.Probe {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := q.probes
	q.probes = nil
	return out
}

// Inboxes are the instances that have a command queue, sorted.
func (q *Queue) Inboxes() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	var out []string
	for id := range q.inboxes {
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}
