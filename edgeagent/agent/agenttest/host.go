package agenttest

import (
	"context"
	"sync"
	"time"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/wire"
)

// Host is agent.Host in memory.
type Host struct {
	mu     sync.Mutex
	notice *wire.Notice
	down   bool
	hang   bool
	asked  int
	slow   time.Duration
}

// Slow makes every answer take that long.
func (h *Host) Slow(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.slow = d
}

// Say makes the host say what is to come; nil: nothing.
func (h *Host) Say(n *wire.Notice) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.notice = n
}

// Down makes every question fail, at once or when its time is over.
func (h *Host) Down(down, hang bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.down, h.hang = down, hang
}

// Asked is how often it was asked.
func (h *Host) Asked() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.asked
}

// Notice implements agent.Host.
func (h *Host) Notice(ctx context.Context) (*wire.Notice, error) {
	h.mu.Lock()
	h.asked++
	n, down, hang, slow := h.notice, h.down, h.hang, h.slow
	h.mu.Unlock()
	select {
	case <-time.After(slow):
	case <-ctx.Done():
	}
	if hang {
		<-ctx.Done()
	}
	if down || hang {
		return nil, fault.New(fault.Unavailable, "no answer")
	}
	if n == nil {
		return nil, nil
	}
	said := *n
	return &said, nil
}
