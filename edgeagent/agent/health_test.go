package agent_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/edgeagent/agent/agenttest"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
)

func checkedApp() taskdef.ContainerDefinition {
	return taskdef.ContainerDefinition{Name: "app", Image: "busybox", HealthCheck: &taskdef.HealthCheck{Command: []string{"CMD", "well"}}}
}

// healths are those that the reports about a task told, one after the other.
func (r *rig) healths(n int) (all []task.Health) {
	for _, m := range r.reports(n) {
		all = append(all, m.Health)
	}
	return all
}

func TestHealth_EachChangeIsReportedAndNoneIsForgottenByARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.up()
		r.put(r.assign(1, 1, checkedApp()))
		for _, h := range []task.Health{task.Healthy, task.Healthy, task.Unhealthy} {
			r.pass(time.Second)
			r.engine.Feel(app(1, 1), h)
			synctest.Wait()
		}
		if got, want := r.healths(1), []task.Health{task.HealthUnknown, task.Healthy, task.Unhealthy}; !slices.Equal(got, want) {
			t.Fatalf("reported %q, want %q", got, want)
		}
		r.kill()
		r.engine.Feel(app(1, 1), task.Healthy) // while nobody watches
		r.up()
		got := r.reports(1)
		if last := got[len(got)-1]; last.Health != task.Healthy || last.Containers[0].Health != task.Healthy || last.Status != task.Running {
			t.Errorf("after the restart: %+v", last)
		}
		r.down()
	})
}

func TestHealth_OfATaskWithoutACheckIsNotSpokenOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.up()
		r.put(r.assign(1, 1))
		if got := r.healths(1); !slices.Equal(got, []task.Health{""}) {
			t.Errorf("reported %q", got)
		}
		r.down()
	})
}

func TestHealth_OfATaskThatWasRebuiltFromItsContainersIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.up()
		r.put(r.assign(1, 1, checkedApp()))
		r.engine.Feel(app(1, 1), task.Unhealthy)
		synctest.Wait()
		r.kill()
		r.journal = agenttest.NewJournal("second", identity)
		r.epoch = 200
		r.up()
		r.pass(5 * time.Minute)
		got := r.reports(1)
		if last := got[len(got)-1]; last.Incarnation != "second" || last.Health != task.Unhealthy {
			t.Errorf("%+v", last)
		}
		r.down()
	})
}

// A container that ends is run again by its policy while the control plane is
// out of reach, also across the agent's own end, and the task never leaves
// RUNNING.
func TestRestart_ByPolicyGoesOnThroughKillsOfTheAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.up()
		r.put(r.assign(1, 1, taskdef.ContainerDefinition{Name: "app", Image: "busybox", RestartPolicy: &taskdef.RestartPolicy{Enabled: new(true), RestartAttemptPeriod: new(60)}}))
		for n := range 6 {
			r.pass(2 * time.Minute)
			if n%2 == 1 { // it dies at the very restart, before it or after
				r.life.OnCall = func(call string, done bool) {
					if call == "restart" && done == (n%4 == 1) {
						r.life.Kill()
					}
				}
			}
			r.engine.Exit(app(1, 1), 1)
			synctest.Wait()
			if n%2 == 1 {
				r.kill()
				r.up()
				r.pass(time.Minute)
			}
			if s := r.engine.Containers()[app(1, 1)]; !s.Running || r.engine.Starts(app(1, 1)) != n+2 {
				t.Fatalf("after end %d: %+v, ran %d times", n, s, r.engine.Starts(app(1, 1)))
			}
		}
		for _, m := range r.reports(1) {
			if m.Status != task.Running || m.Containers[0].Status != task.ContainerRunning {
				t.Errorf("reported %+v", m)
			}
		}
		r.engine.Exit(app(1, 1), 2)
		r.pass(time.Second)
		r.engine.Exit(app(1, 1), 3) // that run was too short for another
		synctest.Wait()
		if got := r.reports(1); got[len(got)-1].Status != task.Stopped || *got[len(got)-1].Containers[0].ExitCode != 3 {
			t.Errorf("at the end: %+v", got[len(got)-1])
		}
		r.down()
	})
}

func TestDependency_OnHealthHoldsBackAcrossTheAgentsRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.up()
		web := agent.ContainerID{Task: id(1), Attempt: 1, Container: "web"}
		r.put(r.assign(1, 1, checkedApp(), taskdef.ContainerDefinition{Name: "web", Image: "busybox",
			DependsOn: []taskdef.Dependency{{ContainerName: "app", Condition: taskdef.ConditionHealthy}}}))
		r.kill()
		r.up()
		r.pass(5 * time.Minute)
		if r.engine.Starts(web) != 0 || len(r.reports(1)) != 0 {
			t.Fatalf("too early: %d starts, %d reports", r.engine.Starts(web), len(r.reports(1)))
		}
		r.engine.Feel(app(1, 1), task.Healthy)
		synctest.Wait()
		if got := r.reports(1); r.engine.Starts(web) != 1 || r.engine.Starts(app(1, 1)) != 1 || len(got) != 1 || got[0].Status != task.Running {
			t.Errorf("%d starts, %d reports", r.engine.Starts(web), len(got))
		}
		r.down()
	})
}
