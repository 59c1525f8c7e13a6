package controltest

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/fault"
)

// Groups is control.Groups in memory: one Auto Scaling group and the terminations
// it holds.
type Groups struct {
	calls *Calls

	mu        sync.Mutex
	members   []string
	waiting   map[string]control.Hook // by token
	unhealthy []string
	continued []string
	extended  int
	down      bool
}

// NewGroups makes a group of EC2 instances; its calls are counted by calls.
func NewGroups(calls *Calls, members ...string) *Groups {
	return &Groups{calls: calls, members: members, waiting: map[string]control.Hook{}}
}

// Hold begins a termination. An instance is terminated once at a time.
func (g *Groups) Hold(h control.Hook) {
	g.mu.Lock()
	defer g.mu.Unlock()
	maps.DeleteFunc(g.waiting, func(_ string, other control.Hook) bool { return other.EC2 == h.EC2 })
	g.waiting[h.Token] = h
}

// TimeOut ends a termination without an answer, as a hook's time-out does.
func (g *Groups) TimeOut(token string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.waiting, token)
}

// Down makes every call fail, or no longer.
func (g *Groups) Down(down bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.down = down
}

// Unhealthy lists what was told to be unhealthy, each time it was.
func (g *Groups) Unhealthy() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.unhealthy)
}

// Waiting lists the tokens that wait for an answer.
func (g *Groups) Waiting() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Sorted(maps.Keys(g.waiting))
}

// Continued lists the tokens that were answered, each time one was waiting.
func (g *Groups) Continued() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.continued)
}

// Extended is how often a termination that waits was extended.
func (g *Groups) Extended() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.extended
}

// SetUnhealthy implements control.Groups.
func (g *Groups) SetUnhealthy(ctx context.Context, ec2 string) (found bool, err error) {
	err = g.do(ctx, "SetUnhealthy", func() {
		if found = slices.Contains(g.members, ec2); found {
			g.unhealthy = append(g.unhealthy, ec2)
		}
	})
	return found, err
}

// Continue implements control.Groups.
func (g *Groups) Continue(ctx context.Context, h control.Hook) (found bool, err error) {
	err = g.do(ctx, "Continue", func() {
		if _, found = g.waiting[h.Token]; found {
			g.continued = append(g.continued, h.Token)
			delete(g.waiting, h.Token)
		}
	})
	return found, err
}

// Extend implements control.Groups.
func (g *Groups) Extend(ctx context.Context, h control.Hook) (found bool, err error) {
	err = g.do(ctx, "Extend", func() {
		if _, found = g.waiting[h.Token]; found {
			g.extended++
		}
	})
	return found, err
}

func (g *Groups) do(ctx context.Context, name string, call func()) error {
	return g.calls.do(ctx, name, func() error {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.down {
			return fault.New(fault.Unavailable, "%s: Auto Scaling is down", name)
		}
		call()
		return nil
	})
}
