package agent_test

import (
	"testing"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/edgeagent/agent/agenttest"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

// exits has every container end by itself.
func exits(code int, after time.Duration) func(agent.ContainerID) agenttest.Program {
	return func(agent.ContainerID) agenttest.Program { return agenttest.Program{Exit: &code, After: after} }
}

func TestTask_RunsIsReportedAcknowledgedAndCleanedUp(t *testing.T) {
	bubble(t, func(r *rig) {
		r.engine.OnStart = exits(7, time.Minute)
		r.up()
		r.put(r.assign(1, 1))
		r.expect(1, "RUNNING")
		r.pass(2 * time.Minute)
		r.expect(1, "RUNNING, STOPPED 7")
		end := r.reports(1)[1]
		if end.Cause != task.ExitedCause || end.Reason != "Essential container in task exited" || end.StartedAt.IsZero() ||
			end.StoppedAt.Sub(end.StartedAt) != time.Minute || end.Epoch != 100 || end.PullStoppedAt.IsZero() {
			t.Errorf("the end is %+v", end)
		}
		c := end.Containers[0]
		if c.RuntimeID == "" || c.ImageDigest != "sha256:busybox" || c.Status != task.ContainerStopped {
			t.Errorf("its container is %+v", c)
		}
		if n := len(r.engine.Containers()); n != 1 {
			t.Fatalf("%d containers before the clean-up wait is over", n)
		}
		r.pass(r.setting.CleanupWait)
		if n := len(r.engine.Containers()); n != 0 {
			t.Errorf("%d containers are left", n)
		}
		if rec := r.state().Tasks[id(1)]; !rec.Tomb || !rec.Acked || len(rec.Definition) != 0 {
			t.Errorf("the record is %+v, want a tombstone", rec)
		}
		r.pass(2*time.Hour + 5*time.Minute)
		if n := len(r.state().Tasks); n != 0 {
			t.Errorf("%d records are left after the tombstone's time", n)
		}
		if n := r.inbox.Len(); n != 0 {
			t.Errorf("%d commands are left in the queue", n)
		}
		r.starts(1, 1, 1)
		r.down()
	})
}

func TestRegister_IsRepeatedUntilTheWelcomeAndABeatFollowsAtOnce(t *testing.T) {
	bubble(t, func(r *rig) {
		r.mute = true
		r.up()
		r.pass(30 * time.Second)
		before := len(sent[*wire.Register](r))
		if before < 4 {
			t.Errorf("%d registers in 30 s", before)
		}
		if n := len(sent[*wire.Heartbeat](r)); n != 0 {
			t.Errorf("%d heartbeats before any welcome", n)
		}
		m := last[*wire.Register](r)
		if m.CPU != 4096 || m.MemoryMiB != 8192 || m.Identity != identity || m.Attributes["ecs.cpu-architecture"] != "x86_64" {
			t.Errorf("registered as %+v", m)
		}
		r.put(r.welcome("first", 100))
		if b := last[*wire.Heartbeat](r); b.Epoch != 100 || b.Docker != wire.DockerOK || b.Session != "session-1" {
			t.Errorf("the beat after the welcome is %+v", b)
		}
		r.pass(10 * time.Minute)
		if n := len(sent[*wire.Register](r)); n != before {
			t.Errorf("%d registers after the welcome", n-before)
		}
		if n := len(sent[*wire.Heartbeat](r)); n < 10 || n > 12 {
			t.Errorf("%d heartbeats in 10 min", n)
		}
		r.down()
	})
}
