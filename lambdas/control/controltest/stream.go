package controltest

import (
	"context"
	"reflect"
	"sync"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/fault"
)

// streamed notes what a commit does to one record, as the tables' streams do.
func (s *Store) streamed(w control.Write, before item) {
	c := control.Change{}
	if s.Now != nil {
		c.At = s.Now()
	}
	if before.version != 0 {
		c.Old = copyOf(w.Record, before)
	}
	if w.Op == control.PutOp {
		c.New = copyOf(w.Record, s.items[key{w.Record.Kind(), w.Record.Key()}])
	}
	s.stream = append(s.stream, c)
}

// copyOf is a stored record as one of its own, with r's key.
func copyOf(r control.Record, it item) control.Record {
	out := reflect.New(reflect.TypeOf(r).Elem())
	out.Elem().Set(reflect.ValueOf(r).Elem())
	c := out.Interface().(control.Record)
	decode(it, c)
	return c
}

// TakeChanges is what was committed since it was asked last, in order.
func (s *Store) TakeChanges() []control.Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.stream
	s.stream = nil
	return all
}

// Bus is control.Bus in memory.
type Bus struct {
	// Fail, if set, says what becomes of an event.
	Fail func(e control.Event) error

	mu     sync.Mutex
	events []control.Event
}

var _ control.Bus = (*Bus)(nil)

// Publish implements control.Bus.
func (b *Bus) Publish(_ context.Context, events []control.Event) []error {
	b.mu.Lock()
	defer b.mu.Unlock()
	errs := make([]error, len(events))
	blocked := map[string]error{}
	for i, e := range events {
		if errs[i] = blocked[e.Resources[0]]; errs[i] == nil && b.Fail != nil {
			errs[i] = b.Fail(e)
		}
		if errs[i] == nil {
			b.events = append(b.events, e)
		} else if !fault.Is(errs[i], fault.Invalid) {
			blocked[e.Resources[0]] = errs[i]
		}
	}
	return errs
}

// Take is what was published since it was asked last.
func (b *Bus) Take() []control.Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.events
	b.events = nil
	return all
}
