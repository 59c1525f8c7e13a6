package whole

import (
	"context"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/wire"
)

// This file is what wakes the functions, and how they hand messages to the use
// cases: as lambdas/internal/event does, which a simulation cannot import.

// again says whether a message with this error is delivered again.
func again(err error) error {
	if fault.Is(err, fault.Invalid) {
		return nil
	}
	return err
}

// gathered is what of a batch goes to a use case together, and where it stood.
type gathered[T any] struct {
	all []T
	at  []int
}

func (g *gathered[T]) add(one T, at int) { g.all, g.at = append(g.all, one), append(g.at, at) }

// each decodes a batch and hands its messages on, one by one.
func each(batch []*letter, take func(i int, l *letter, m wire.Message) error) []error {
	errs := make([]error, len(batch))
	for i, l := range batch {
		m, err := wire.Decode(l.body)
		if err == nil {
			err = take(i, l, m)
		}
		errs[i] = again(err)
	}
	return errs
}

// together hands on what was gathered, if there is any.
func together[T any](errs []error, g gathered[T], take func([]T) []error) []error {
	if len(g.all) > 0 {
		for k, err := range take(g.all) {
			errs[g.at[k]] = again(err)
		}
	}
	return errs
}

func (w *World) takeReports(batch []*letter) (string, func(context.Context, *control.Control) []error) {
	return "statechange", func(ctx context.Context, c *control.Control) []error {
		var told gathered[control.Told]
		errs := each(batch, func(i int, l *letter, m wire.Message) error {
			switch m := m.(type) {
			case *wire.Register:
				return c.IngestRegister(ctx, l.sender, m)
			case *wire.Report:
				told.add(control.Told{Sender: l.sender, Report: m}, i)
			case *wire.Refused:
				told.add(control.Told{Sender: l.sender, Refused: m}, i)
			}
			return nil
		})
		return together(errs, told, func(all []control.Told) []error { return c.IngestReports(ctx, all) })
	}
}

func (w *World) takeHeartbeats(batch []*letter) (string, func(context.Context, *control.Control) []error) {
	return "heartbeats", func(ctx context.Context, c *control.Control) []error {
		var beats gathered[control.Beat]
		errs := each(batch, func(i int, l *letter, m wire.Message) error {
			switch m := m.(type) {
			case *wire.Heartbeat:
				beats.add(control.Beat{Sender: l.sender, Instance: m.Instance, Message: m}, i)
			case *wire.Probe:
				return c.IngestProbe(ctx, l.sender, m)
			}
			return nil
		})
		return together(errs, beats, func(all []control.Beat) []error { return c.Heartbeats(ctx, all) })
	}
}

// takeKicks runs one pass for all kicks of its cluster, and never fails.
func (w *World) takeKicks(batch []*letter) (string, func(context.Context, *control.Control) []error) {
	return "admission", func(ctx context.Context, c *control.Control) []error {
		k := *batch[0].kick
		for _, l := range batch[1:] {
			k.Tasks = append(k.Tasks, l.kick.Tasks...)
			switch {
			case k.Instance == "":
				k.Instance = l.kick.Instance
			case l.kick.Instance != "" && l.kick.Instance != k.Instance:
				k.Others = append(k.Others, l.kick.Instance)
			}
		}
		w.unexpected(c.Admit(ctx, k))
		return make([]error, len(batch))
	}
}

func (w *World) takeServices(batch []*letter) (string, func(context.Context, *control.Control) []error) {
	return "services", func(ctx context.Context, c *control.Control) []error {
		errs := make([]error, len(batch))
		for i, l := range batch {
			errs[i] = again(c.Serve(ctx, *l.kick))
			w.unexpected(errs[i])
		}
		return errs
	}
}

// unexpected notes an error that no fault explains.
func (w *World) unexpected(err error) {
	if err != nil && fault.Of(err) == fault.Internal {
		w.mu.Lock()
		w.internal = append(w.internal, err)
		w.mu.Unlock()
	}
}

// reaper calls the reaper each minute, as EventBridge does: now and then not, or
// twice.
func (w *World) reaper() {
	calls := 1
	switch {
	case w.chance(w.plan.tickLost):
		w.count("reaper not called")
		calls = 0
	case w.chance(w.plan.tickLost):
		w.count("reaper called twice")
		calls = 2
	}
	for range calls {
		w.push(w.between(0, 2*time.Second), 0, "reaper", func() {
			w.invoke("reaper", 55*time.Second, func(ctx context.Context, c *control.Control) { w.unexpected(c.Tick(ctx)) }, nil)
		})
	}
	w.push(time.Minute, 0, "minute", w.reaper)
}
