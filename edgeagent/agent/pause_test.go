package agent_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/edgeagent/agent/agenttest"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
)

// sharing is an assign of a task whose containers share their process namespace.
func (r *rig) sharing(n, attempt int, containers ...taskdef.ContainerDefinition) *wire.Assign {
	m := r.assign(n, attempt, containers...)
	var def taskdef.TaskDefinition
	if err := json.Unmarshal(m.Definition, &def); err != nil {
		r.t.Fatal(err)
	}
	def.PidMode = taskdef.NamespaceTask
	m.Definition = taskdef.Canonical(def)
	return m
}

func pause(n, attempt int) agent.ContainerID {
	return agent.ContainerID{Task: id(n), Attempt: attempt, Container: agent.PauseContainer}
}

// lose is the machine's agent killed, its journal gone, and another started.
func (r *rig) lose() {
	r.t.Helper()
	r.kill()
	r.outbox.Forget()
	r.journal = agenttest.NewJournal("second", identity)
	r.set(func() { r.epoch = 200 })
	r.up()
	r.pass(time.Minute)
}

func TestPause_IsMadeKeptAndRemovedWithItsTaskAndNeverShown(t *testing.T) {
	bubble(t, func(r *rig) {
		r.up()
		r.put(r.sharing(1, 1))
		if c := r.engine.Containers()[pause(1, 1)]; !c.Running {
			t.Fatalf("the pause container is %+v", c)
		}
		r.starts(1, 1, 1)
		if look := r.agent.Look(); len(look.Tasks[0].Containers) != 1 || look.Tasks[0].Containers[0].Name != "app" {
			t.Errorf("people of the machine are shown %+v", look.Tasks[0].Containers)
		}
		r.put(r.stop(1, 1))
		r.pass(r.setting.CleanupWait + time.Hour)
		r.ended(1, "STOPPED 143") // that it stops may have been reported before, or not
		for _, m := range r.reports(1) {
			if text, err := wire.Encode(m); err != nil || strings.Contains(string(text), agent.PauseContainer) {
				t.Errorf("reported: %s (%v)", text, err)
			}
		}
		calls := r.engine.Calls()
		first := slices.Index(calls, "stop 0000/app")
		if last := slices.Index(calls, "stop 0000/"+agent.PauseContainer); first < 0 || last < first {
			t.Errorf("stopped in the order of %q", calls)
		}
		if left := r.engine.Containers(); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
		r.down()
	})
}

func TestPause_ItsDeathEndsTheTaskForThatReason(t *testing.T) {
	bubble(t, func(r *rig) {
		r.up()
		r.put(r.sharing(1, 1))
		r.engine.Exit(pause(1, 1), 137)
		r.pass(time.Minute)
		end := last[*wire.Report](r)
		if end.Status != task.Stopped || end.Cause != task.ExitedCause || !strings.Contains(end.Reason, "pause container") || r.engine.Containers()[app(1, 1)].Running {
			t.Errorf("%+v, its container %+v", end, r.engine.Containers()[app(1, 1)])
		}
		r.down()
	})
}

func TestPause_ARestartOfTheAgentLeavesItAlone(t *testing.T) {
	bubble(t, func(r *rig) {
		r.up()
		r.put(r.sharing(1, 1))
		before := r.engine.Containers()
		r.kill()
		r.up()
		r.pass(time.Hour)
		if after := r.engine.Containers(); len(after) != 2 || after[pause(1, 1)].RuntimeID != before[pause(1, 1)].RuntimeID || r.engine.Starts(pause(1, 1)) != 1 {
			t.Errorf("before %v, after %v", before, after)
		}
		r.starts(1, 1, 1)
		r.down()
	})
}

func TestLostJournal_APauseContainerIsAdoptedWithItsTaskAndStoppedLast(t *testing.T) {
	bubble(t, func(r *rig) {
		r.up()
		r.put(r.sharing(1, 1))
		r.lose()
		if r.story(1) != "RUNNING" || len(last[*wire.Report](r).Containers) != 1 {
			t.Errorf("adopted: %q, %+v", r.story(1), last[*wire.Report](r))
		}
		r.put(r.stop(1, 1))
		r.pass(time.Minute)
		r.ended(1, "STOPPED 143")
		calls := r.engine.Calls()
		if first, last := slices.Index(calls, "stop 0000/app"), slices.Index(calls, "stop 0000/"+agent.PauseContainer); first < 0 || last < first {
			t.Errorf("stopped in the order of %q", calls)
		}
		r.down()
	})
}

// A pause container by itself is no task: with the journal gone, nothing had run.
func TestLostJournal_ALonePauseContainerIsRemoved(t *testing.T) {
	bubble(t, func(r *rig) {
		r.up()
		r.put(r.sharing(1, 1))
		r.kill()
		r.engine.Exit(app(1, 1), 0)
		r.engine.Lose(app(1, 1))
		r.outbox.Forget()
		r.journal = agenttest.NewJournal("second", identity)
		r.up()
		r.pass(time.Hour)
		if left := r.engine.Containers(); len(left) != 0 || r.story(1) != "" {
			t.Errorf("left: %v, told: %q", left, r.story(1))
		}
		r.down()
	})
}

func TestLostJournal_APolicyStillRestartsAndTheOrderOfStopsStays(t *testing.T) {
	bubble(t, func(r *rig) {
		r.up()
		again := &taskdef.RestartPolicy{Enabled: new(true), IgnoredExitCodes: []int{0}, RestartAttemptPeriod: new(60)}
		r.put(r.assign(1, 1,
			taskdef.ContainerDefinition{Name: "app", Image: "busybox", RestartPolicy: again},
			taskdef.ContainerDefinition{Name: "db", Image: "busybox", StopTimeout: new(5)},
			taskdef.ContainerDefinition{Name: "web", Image: "busybox", DependsOn: []taskdef.Dependency{{ContainerName: "db", Condition: "START"}}},
		))
		r.lose()
		r.engine.Exit(app(1, 1), 9)
		r.pass(time.Minute)
		if c := r.engine.Containers()[app(1, 1)]; !c.Running || r.engine.Starts(app(1, 1)) != 2 {
			t.Fatalf("after its end it is %+v, started %d times", c, r.engine.Starts(app(1, 1)))
		}
		r.pass(time.Hour)
		r.put(r.stop(1, 1))
		r.pass(time.Minute)
		calls := r.engine.Calls()
		if web, db := slices.Index(calls, "stop 0000/web"), slices.Index(calls, "stop 0000/db"); web < 0 || db < web {
			t.Errorf("stopped in the order of %q", calls)
		}
		if r.engine.Starts(app(1, 1)) != 2 {
			t.Error("the stop was followed by a restart")
		}
		r.down()
	})
}
