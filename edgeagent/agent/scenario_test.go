package agent_test

import (
	"testing"
	"time"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
)

// What users of other agents have reported, played on one machine. The list of all
// of them is docs/design/scenarios.md.

// moby#31694, #31807: one id twice upset the accounting and ran twice.
func TestScenario_OnePlacementThatIsDeliveredFiveTimesRunsOnce(t *testing.T) {
	bubble(t, func(r *rig) {
		r.up()
		one := r.assign(1, 1)
		r.put(one, one, one) // in one batch
		r.put(one)
		r.pass(time.Hour)
		r.put(one)
		r.starts(1, 1, 1)
		for _, m := range r.reports(1) {
			if m.Status != task.Running {
				t.Errorf("reported %s", m.Status)
			}
		}
		if n := len(r.inventory()); n != 1 {
			t.Errorf("the inventory lists %d tasks", n)
		}
		r.down()
	})
}

// ecs-agent#2916: a container that crashes while its machine is offline stays down.
func TestScenario_OfflineItIsRestartedByItsPolicyAndTellsInOrderLater(t *testing.T) {
	bubble(t, func(r *rig) {
		policy := &taskdef.RestartPolicy{Enabled: new(true), RestartAttemptPeriod: new(60)}
		r.up()
		r.put(r.assign(1, 1, taskdef.ContainerDefinition{Name: "app", Image: "busybox", RestartPolicy: policy}))
		r.put(r.assign(2, 1))
		gone := fault.New(fault.Unavailable, "no route")
		r.outbox.Fail(gone)
		r.inbox.Fail(gone)
		r.outbox.Forget()
		for n := range 3 {
			r.pass(20 * time.Minute)
			r.engine.Exit(app(1, 1), 9)
			if n == 1 {
				r.engine.Exit(app(2, 1), 7)
			}
			r.pass(time.Second)
		}
		r.starts(1, 1, 4)
		if !r.engine.Containers()[app(1, 1)].Running {
			t.Fatal("it does not run while the machine is offline")
		}
		r.outbox.Fail(nil)
		r.inbox.Fail(nil)
		r.pass(15 * time.Minute)
		r.ended(2, "STOPPED 7")
		for _, m := range r.reports(1) {
			if m.Status != task.Running {
				t.Errorf("a restart by policy was told as %s", m.Status)
			}
		}
		r.engine.Exit(app(1, 1), 3)
		r.pass(time.Second)
		r.engine.Exit(app(1, 1), 4) // that run was too short for another
		r.pass(time.Second)
		r.ended(1, "STOPPED 4")
		told := sent[*wire.Report](r)
		for k := range told[1:] {
			again := told[k+1].N == told[k].N && told[k+1].Status == task.Stopped // as an end may be, until it is acknowledged
			if told[k+1].N <= told[k].N && told[k+1].Task == told[k].Task && !again {
				t.Errorf("n %d after n %d of one task", told[k+1].N, told[k].N)
			}
		}
		r.down()
	})
}
