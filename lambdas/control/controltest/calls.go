package controltest

import (
	"context"
	"sync"

	"github.com/longshore-run/longshore/shared/fault"
)

// Calls counts the calls a use case makes of its store and queue, and can fail
// one of them or kill the handler there: from the killed call on every call
// fails, as none is made by a process that is gone.
type Calls struct {
	mu     sync.Mutex
	n      int
	names  []string
	at     int // the nth call; 0: none
	effect bool
	kill   bool
	kind   fault.Kind
}

// Reset forgets the count and the plan.
func (c *Calls) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n, c.names, c.at, c.effect, c.kill, c.kind = 0, nil, 0, false, false, ""
}

// KillAt kills the handler at its nth call from now, which takes effect before
// or not.
func (c *Calls) KillAt(n int, effect bool) {
	c.Reset()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.effect, c.kill, c.kind = n, effect, true, fault.Unavailable
}

// FailAt fails the nth call from now, alone, without effect.
func (c *Calls) FailAt(n int, kind fault.Kind) {
	c.Reset()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.kind = n, kind
}

// Made is how many calls were made since the last reset, and which.
func (c *Calls) Made() (int, []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n, append([]string(nil), c.names...)
}

func (c *Calls) do(ctx context.Context, name string, call func() error) error {
	if err := ctx.Err(); err != nil {
		return fault.Wrap(fault.Unavailable, err, "%s", name)
	}
	c.mu.Lock()
	c.n++
	c.names = append(c.names, name)
	hit := c.at != 0 && (c.n == c.at || c.kill && c.n > c.at)
	effect := c.effect && c.n == c.at
	kind := c.kind
	c.mu.Unlock()
	if !hit {
		return call()
	}
	if effect {
		if err := call(); err != nil {
			return err
		}
	}
	return fault.New(kind, "%s: injected fault at call %d", name, c.n)
}
