package event

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/logkey"
	"github.com/longshore-run/longshore/shared/schedule"
)

// Scheduled makes the runs of schedules that are due.
type Scheduled struct {
	Control interface {
		RunScheduled(ctx context.Context, d schedule.Due) error
	}
	Metrics control.Metrics
	Log     *slog.Logger
}

// Handle takes one message of a rule. An error makes Lambda try again, and then put
// the message aside: also one that can not be read, for its run is missed and nobody
// else knows of it.
func (s *Scheduled) Handle(ctx context.Context, message json.RawMessage) error {
	d, err := schedule.Decode(message)
	if err != nil {
		s.Metrics.Count(countUndecodable, 1)
		s.Log.ErrorContext(ctx, "message of a schedule can not be read", logkey.Error, err)
		return err
	}
	err = guarded("run schedule "+d.Run.Schedule, func() error { return s.Control.RunScheduled(ctx, d) })
	if fault.Is(err, fault.Invalid) {
		s.Log.ErrorContext(ctx, "run can never be made", logkey.Schedule, d.Run.Schedule, logkey.Error, err)
	}
	return err
}
