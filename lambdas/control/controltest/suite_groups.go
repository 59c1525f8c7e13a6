package controltest

import (
	"testing"

	"github.com/longshore-run/longshore/lambdas/control"
)

// GroupsSuite is what every control.Groups must do. member is an EC2 instance of a
// group; hold begins a termination.
func GroupsSuite(t *testing.T, member string, open func(t *testing.T) (groups control.Groups, hold func(control.Hook))) {
	hook := control.Hook{Group: "web-1", Name: "longshore", Token: "token-1", EC2: member}
	other := control.Hook{Group: "web-1", Name: "longshore", Token: "token-2", EC2: member}
	step := func(t *testing.T, what string, want bool, call func() (bool, error)) {
		t.Helper()
		if found, err := call(); err != nil || found != want {
			t.Errorf("%s: found %v, %v; want %v", what, found, err, want)
		}
	}
	t.Run("AMemberIsUnhealthyAnyNumberOfTimes", func(t *testing.T) {
		g, _ := open(t)
		for range 2 {
			step(t, "a member", true, func() (bool, error) { return g.SetUnhealthy(t.Context(), member) })
		}
		step(t, "a stranger", false, func() (bool, error) { return g.SetUnhealthy(t.Context(), "i-stranger") })
	})
	t.Run("ATerminationWaitsUntilItIsAnsweredAndNoLonger", func(t *testing.T) {
		g, hold := open(t)
		step(t, "before it waits", false, func() (bool, error) { return g.Extend(t.Context(), hook) })
		hold(hook)
		for range 2 {
			step(t, "while it waits", true, func() (bool, error) { return g.Extend(t.Context(), hook) })
		}
		step(t, "another one", false, func() (bool, error) { return g.Continue(t.Context(), other) })
		step(t, "answered", true, func() (bool, error) { return g.Continue(t.Context(), hook) })
		step(t, "answered again", false, func() (bool, error) { return g.Continue(t.Context(), hook) })
		step(t, "extended when it is over", false, func() (bool, error) { return g.Extend(t.Context(), hook) })
	})
}
