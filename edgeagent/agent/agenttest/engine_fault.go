package agenttest

import (
	"maps"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
)

// SetClock gives the engine a clock of its own, which may be set. nil: the right one.
func (e *Engine) SetClock(now func() time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.clock = now
}

// now is what the engine's clock says.
func (e *Engine) now() time.Time {
	if e.clock != nil {
		return e.clock()
	}
	return time.Now()
}

// Twist has streams show something else in place of what happened: nothing,
// the same twice, what they kept back before. nil: what happened.
func (e *Engine) Twist(twist func(agent.Seen) []agent.Seen) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.twist = twist
}

// RestartEngine is a restart of the engine: it is silent until Revive, and what ran has
// ended, unless its containers outlive it.
func (e *Engine) RestartEngine(live bool) {
	e.Die()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, b := range e.containers {
		if b.seen.Running && !live {
			e.end(b, 137)
		}
	}
}

// Copy is another engine with the same containers, none of which does anything by
// itself.
func (e *Engine) Copy() *Engine {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := NewEngine()
	c.Facts, c.next, c.starts = e.Facts, e.next, maps.Clone(e.starts)
	for id, b := range e.containers {
		c.containers[id] = &box{seen: b.seen, checked: b.checked, program: Program{Deaf: b.program.Deaf, Code: b.program.Code}}
	}
	return c
}
