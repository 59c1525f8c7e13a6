package agent_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
)

// A removal that the engine does not come to the end of lasts until its deadline.
// What else is to be cleaned up does not wait for it, and goes before it the next
// time; no more than a few removals are under way at once.
func TestClean_RemovalsThatHangHoldUpNoOther(t *testing.T) {
	const tasks, atOnce, deadline = 40, 4, 5 * time.Minute
	for hang, most := range map[int]time.Duration{
		1:          10 * time.Second,
		atOnce - 1: 15 * time.Second,
		atOnce + 2: 2 * deadline, // all there is room for; the next are others first
	} {
		t.Run(fmt.Sprint(hang), func(t *testing.T) {
			bubble(t, func(r *rig) {
				var under, peak atomic.Int64
				var well atomic.Bool
				hangs := map[string]bool{}
				for n := range hang {
					hangs[id(n)] = true
				}
				r.setting.CleanupWait = time.Second
				r.engine.OnStart = exits(0, time.Second)
				r.engine.Script = func(ctx context.Context, verb string, of agent.ContainerID) error {
					if verb != "remove" {
						return nil
					}
					for n, was := under.Add(1), peak.Load(); n > was && !peak.CompareAndSwap(was, n); was = peak.Load() {
					}
					defer under.Add(-1)
					takes, hung := 100*time.Millisecond, hangs[of.Task] && !well.Load()
					if hung {
						takes = deadline
					}
					select {
					case <-time.After(takes):
					case <-ctx.Done():
					}
					if hung {
						return fault.New(fault.Unavailable, "removal in progress")
					}
					return nil
				}
				r.up()
				for n := range tasks {
					r.put(r.assign(n, 1))
				}
				r.pass(2*time.Second + most)
				for n := range tasks {
					if rec := r.state().Tasks[id(n)]; rec.Tomb == hangs[id(n)] {
						t.Errorf("task %d, whose removal hangs: %v, is cleaned up: %v", n, hangs[id(n)], rec.Tomb)
					}
				}
				if n := peak.Load(); n > atOnce || n < 2 {
					t.Errorf("%d removals were under way at once, want at most %d", n, atOnce)
				}
				well.Store(true)
				r.pass(2*deadline + 2*time.Minute)
				if n := len(r.engine.Containers()); n != 0 {
					t.Errorf("%d containers are left when nothing hangs any more", n)
				}
			})
		})
	}
}
