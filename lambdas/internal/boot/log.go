package boot

import (
	"context"
	"io"
	"log/slog"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/longshore-run/longshore/shared/logkey"
)

// newLog is a log of JSON lines. Each line of a call that Lambda made carries
// Lambda's id of it.
func newLog(out io.Writer, level string) *slog.Logger {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		l = slog.LevelInfo // the settings allow nothing else
	}
	return slog.New(requestLog{slog.NewJSONHandler(out, &slog.HandlerOptions{Level: l})})
}

type requestLog struct{ slog.Handler }

func (h requestLog) Handle(ctx context.Context, r slog.Record) error {
	if call, ok := lambdacontext.FromContext(ctx); ok {
		r = r.Clone()
		r.AddAttrs(slog.String(logkey.RequestID, call.AwsRequestID))
	}
	return h.Handler.Handle(ctx, r)
}

func (h requestLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return requestLog{h.Handler.WithAttrs(attrs)}
}

func (h requestLog) WithGroup(name string) slog.Handler {
	return requestLog{h.Handler.WithGroup(name)}
}
