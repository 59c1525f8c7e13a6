package whole

import (
	"fmt"
	"log/slog"
	"sync"
)

// trace is what happened, in words: what the world did, and what programs logged.
type trace struct {
	w     *World
	mu    sync.Mutex
	lines []string
}

func (t *trace) line(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, t.w.clock()+" "+fmt.Sprintf(format, args...))
}

// of is where a program logs to.
func (t *trace) of(name string) slog.Handler {
	return slog.NewTextHandler(logged{t, name}, &slog.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == "instance" || a.Key == "incarnation") {
			return slog.Attr{}
		}
		return a
	}})
}

type logged struct {
	t    *trace
	name string
}

func (l logged) Write(b []byte) (int, error) {
	l.t.line("    %s logs %s", l.name, b[:max(0, len(b)-1)])
	return len(b), nil
}
