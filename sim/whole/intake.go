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

func (w *World) takeReports(batch []*letter) (string, func(context.Context, *control.Control) []error) {
	return "statechange", func(ctx context.Context, c *control.Control) []error {
		errs := make([]error, len(batch))
		var told []control.Told
		var at []int
		for i, l := range batch {
			m, err := wire.Decode(l.body)
			if err != nil {
				errs[i] = again(err)
				continue
			}
			switch m := m.(type) {
			case *wire.Register:
				errs[i] = again(c.IngestRegister(ctx, l.sender, m))
			case *wire.Report:
				told, at = append(told, control.Told{Sender: l.sender, Report: m}), append(at, i)
			case *wire.Refused:
				told, at = append(told, control.Told{Sender: l.sender, Refused: m}), append(at, i)
			}
		}
		if len(told) > 0 {
			for k, err := range c.IngestReports(ctx, told) {
				errs[at[k]] = again(err)
			}
		}
		return errs
	}
}

func (w *World) takeHeartbeats(batch []*letter) (string, func(context.Context, *control.Control) []error) {
	return "heartbeats", func(ctx context.Context, c *control.Control) []error {
		errs := make([]error, len(batch))
		var beats []control.Beat
		var at []int
		for i, l := range batch {
			m, err := wire.Decode(l.body)
			if err != nil {
				errs[i] = again(err)
				continue
			}
			switch m := m.(type) {
			case *wire.Heartbeat:
				beats, at = append(beats, control.Beat{Sender: l.sender, Instance: m.Instance, Message: m}), append(at, i)
			case *wire.Probe:
				errs[i] = again(c.IngestProbe(ctx, l.sender, m))
			}
		}
		if len(beats) > 0 {
			for k, err := range c.Heartbeats(ctx, beats) {
				errs[at[k]] = again(err)
			}
		}
		return errs
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
