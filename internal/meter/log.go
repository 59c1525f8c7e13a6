package meter

import (
	"context"
	"log/slog"

	"github.com/aws/smithy-go/middleware"

	"github.com/longshore-run/longshore/shared/logkey"
)

// Message is what the line of a call says.
const Message = "AWS call"

// Log is what watches clients into a log at level debug: nothing, if nothing of that
// level is logged.
func Log(log *slog.Logger) []func(*middleware.Stack) error {
	if !log.Enabled(context.Background(), slog.LevelDebug) {
		return nil
	}
	return []func(*middleware.Stack) error{Observe(func(ctx context.Context, c Call) {
		log.DebugContext(ctx, Message, logkey.Operation, c.Name(), logkey.Count, c.Requests, logkey.ReadUnits, c.Read, logkey.WriteUnits, c.Write)
	})}
}
