package search

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/fault"
)

// standing is what answers in a search as a store that stands by itself. There
// nothing runs at once and no call is cut off, which is added here.
type standing struct {
	control.Store
	mu sync.Mutex
}

func (s *standing) Load(ctx context.Context, records ...control.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return fault.Wrap(fault.Unavailable, err, "load")
	}
	return s.Store.Load(ctx, records...)
}

func (s *standing) Commit(ctx context.Context, writes ...control.Write) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return fault.Wrap(fault.Unavailable, err, "commit")
	}
	return s.Store.Commit(ctx, writes...)
}

func (s *standing) Renew(ctx context.Context, r control.Renewal) (*control.Lease, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, false, fault.Wrap(fault.Unavailable, err, "renew")
	}
	return s.Store.Renew(ctx, r)
}

// What answers in a search is a store like every other.
func TestStorage_PassesTheSuiteOfStores(t *testing.T) {
	controltest.StoreSuite(t, func(*testing.T) control.Store {
		b, s := newBook(), &state{}
		return &standing{Store: &runner{b: b, reply: func(q *request) (a answer) {
			s.clock = time.Now().Unix()
			a, s.items = b.reply(s, q, s.items)
			return a
		}}}
	})
}
