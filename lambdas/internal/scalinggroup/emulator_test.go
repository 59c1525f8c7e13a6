//go:build emulator

package scalinggroup_test

import (
	"testing"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/internal/scalinggroup"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/test/emulator"
)

func TestMain(m *testing.M) { emulator.Main(m) }

// The emulator takes every lifecycle action for one that waits, and does not know
// SetInstanceHealth: what it can show is that it understands what we send, and that
// what it can not do is no success.
func TestGroups_OnTheEmulatorAreUnderstood(t *testing.T) {
	g := scalinggroup.New(emulator.Shared(t).AWSConfig())
	h := control.Hook{Group: "web-1", Name: "longshore", Token: "5b7d0b4e-0f3c-4b8e-9d7c-6f2f3c1d2e3f", EC2: "i-0123456789abcdef0"}
	if found, err := g.Extend(t.Context(), h); err != nil || !found {
		t.Errorf("extend: %v %v", found, err)
	}
	if found, err := g.Continue(t.Context(), h); err != nil || !found {
		t.Errorf("continue: %v %v", found, err)
	}
	if found, err := g.SetUnhealthy(t.Context(), h.EC2); found || !fault.Is(err, fault.Internal) {
		t.Errorf("set unhealthy: %v %v; if the emulator can do it now, let it pass controltest.GroupsSuite", found, err)
	}
}
