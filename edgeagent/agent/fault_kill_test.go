package agent_test

import (
	"flag"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/edgeagent/agent/agenttest"
	"github.com/longshore-run/longshore/shared/taskdef"
)

var killSeed = flag.Uint64("kill-seed", 1, "by which kills at random are chosen")

// ecs-agent#2618: one long life of a machine on which the agent is killed 180 times
// (SIGKILL), at random: half of them at a call, before or after its effect, half at
// a moment, also while it starts. Meanwhile tasks of every kind come and go. At the
// end, and once everything was cleaned up, the journal, the engine and the control
// plane say the same; no container of an attempt was started twice, and each end was
// told once, with its code. Twenty more, of a process on a real engine: TestScenarios.
func TestFault_KilledAHundredAndEightyTimesAllAgree(t *testing.T) {
	t.Parallel()
	const kills = 180
	random := rand.New(rand.NewPCG(*killSeed, *killSeed))
	bubble(t, func(r *rig) {
		r.setting.CleanupWait = 2 * time.Minute
		p := r.planed()
		kinds := map[string]string{} // of tasks
		r.engine.OnStart = func(c agent.ContainerID) agenttest.Program {
			switch kinds[c.Task] {
			case "ends":
				return exits(len(kinds)%100, time.Duration(1+len(kinds)%20)*time.Second)(c)
			case "deaf":
				return agenttest.Program{Deaf: true}
			}
			return agenttest.Program{}
		}
		at := 0 // the call at which it is killed next
		hit := make(chan struct{}, 1)
		r.onCall = func(string, bool) {
			r.mu.Lock()
			now := at == 1
			at = max(0, at-1)
			life := r.life
			r.mu.Unlock()
			if now {
				life.Kill()
				hit <- struct{}{}
			}
		}
		policy := &taskdef.RestartPolicy{Enabled: new(true), RestartAttemptPeriod: new(60)}
		byCall := 0
		r.begin()
		for n := range kills {
			kind := []string{"ends", "deaf", "stays", "restarted"}[random.IntN(4)]
			kinds[id(n)] = kind
			c := taskdef.ContainerDefinition{Name: "app", Image: "busybox"}
			if kind == "restarted" {
				c.RestartPolicy = policy
			}
			p.Assign(r.assign(n, 1, c))
			if n >= 10 && random.IntN(2) == 0 {
				r.inbox.Put(r.stop(random.IntN(n), 1))
			}
			if n >= 10 && random.IntN(4) == 0 {
				r.engine.Exit(app(random.IntN(n), 1), 77)
			}
			if random.IntN(2) == 0 {
				r.set(func() { at = 1 + random.IntN(30) })
			}
			select {
			case <-time.After(time.Duration(random.IntN(20_000)) * time.Millisecond):
				r.set(func() { at = 0 })
				r.life.Kill()
			case <-hit:
				byCall++
			}
			r.leave()
			<-r.done
			select { // it may have been killed by both
			case <-hit:
			default:
			}
			<-time.After(time.Duration(random.IntN(3000)) * time.Millisecond)
			r.set(func() { at = 0 })
			r.begin()
		}
		t.Logf("seed %d: %d of %d kills were at a call", *killSeed, byCall, kills)
		if byCall < kills/5 {
			t.Errorf("only %d kills were at a call", byCall)
		}
		r.pass(2 * time.Minute)
		r.agree(p)
		told := p.Tasks()
		for n := range kills {
			one := told[id(n)]
			if kinds[id(n)] != "restarted" {
				if got := r.engine.Starts(app(n, 1)); got > 1 {
					t.Errorf("task %d was started %d times", n, got)
				}
			}
			if kinds[id(n)] == "ends" && (!one.Over() || one.Ends != 1) {
				t.Errorf("task %d is %+v", n, one)
			}
			for _, code := range one.Codes {
				if !slices.Contains([]int{77, 137, 143}, code) && kinds[id(n)] != "ends" {
					t.Errorf("task %d, which %s, ended with %d", n, kinds[id(n)], code)
				}
			}
			if !one.Over() {
				r.inbox.Put(r.stop(n, 1))
			}
		}
		r.pass(20 * time.Minute)
		r.agree(p)
		for n, one := range p.Tasks() {
			if !one.Over() || one.Ends != 1 {
				t.Errorf("task %s is %+v", n[28:], one)
			}
		}
		for id, rec := range r.state().Tasks {
			if !rec.Tomb || !rec.Acked {
				t.Errorf("task %s is not cleaned up: %s", id[28:], rec.State.Status)
			}
		}
		if left := len(r.engine.Containers()) + r.inbox.Len(); left != 0 {
			t.Errorf("%d containers and %d commands are left", len(r.engine.Containers()), r.inbox.Len())
		}
		r.down()
	})
}
