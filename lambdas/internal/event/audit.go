package event

import (
	"context"
	"log/slog"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/logkey"
)

// Audit runs the audit of the ledgers, whatever wakes it: the night's rule, or a
// person who wants to see its answer.
type Audit struct {
	Control interface {
		AuditLedgers(ctx context.Context) (*control.Audit, error)
	}
	Log *slog.Logger
}

// Handle runs one audit. An error makes Lambda try again, which is harmless: an
// audit only reads, and its repairs are conditional.
func (a *Audit) Handle(ctx context.Context) (*control.Audit, error) {
	out, err := a.Control.AuditLedgers(ctx)
	if err == nil {
		a.Log.InfoContext(ctx, "ledgers audited", "ledgers", out.Ledgers, "services", out.Services, "busy", out.Busy, logkey.Count, len(out.Differences))
	}
	return out, err
}
