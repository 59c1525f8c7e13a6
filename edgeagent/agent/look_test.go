package agent_test

import (
	"testing"
	"time"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

func TestLook_ShowsWhatIsKnownAndWhatDoesNotWork(t *testing.T) {
	bubble(t, func(r *rig) {
		r.set(func() { r.mute, r.acks = true, false })
		r.up()
		if l := r.agent.Look(); l.Registered || l.Epoch != 0 || !l.Docker.OK || !l.HeartbeatSent.IsZero() || len(l.Tasks) != 0 {
			t.Errorf("before the welcome: %+v", l)
		}
		r.set(func() { r.mute = false })
		r.pass(2 * time.Minute)
		r.put(r.assign(2, 1), r.assign(1, 1))
		r.engine.Exit(app(1, 1), 7)
		r.pass(2 * time.Minute)
		l := r.agent.Look()
		if !l.Registered || l.Epoch != 100 || l.Cluster != "default" || !l.Commands.OK || !l.Heartbeats.OK || r.agent.Now().Sub(l.HeartbeatSent) > time.Minute {
			t.Errorf("registered: %+v", l)
		}
		if len(l.Tasks) != 2 || l.Tasks[0].ID != id(1) || !l.Tasks[0].Ended() || l.Tasks[0].Acknowledged || *l.Tasks[0].Containers[0].ExitCode != 7 ||
			l.Tasks[1].Status != task.Running || l.Tasks[1].Family != "web" {
			t.Errorf("tasks: %+v", l.Tasks)
		}
		r.set(func() { r.acks = true })
		gone := fault.New(fault.Unavailable, "no route")
		r.outbox.Fail(gone)
		r.inbox.Fail(gone)
		r.engine.Die()
		r.pass(2 * time.Minute)
		if l = r.agent.Look(); l.Docker.OK || l.Docker.Why == "" || l.Commands.OK || l.Heartbeats.OK || l.Heartbeats.Why == "" {
			t.Errorf("nothing works: %+v", l)
		}
		r.outbox.Fail(nil)
		r.inbox.Fail(nil)
		r.engine.Revive()
		r.pass(20 * time.Minute)
		if l = r.agent.Look(); !l.Docker.OK || !l.Commands.OK || !l.Heartbeats.OK || !l.Tasks[0].Acknowledged {
			t.Errorf("all works again: %+v", l)
		}
		r.down()
	})
}

// ECS's attribute tells placement constraints where a task's size holds for its
// containers together.
func TestRegister_TellsWhetherTasksAreLimited(t *testing.T) {
	for _, limits := range []bool{false, true} {
		bubble(t, func(r *rig) {
			r.engine.Facts.TaskLimits = limits
			r.up()
			if _, told := last[*wire.Register](r).Attributes["ecs.capability.task-cpu-mem-limit"]; told != limits {
				t.Errorf("limits: %t, told: %t", limits, told)
			}
		})
	}
}
