package supervise

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
)

func after(pairs ...string) (all []taskdef.Dependency) {
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, taskdef.Dependency{ContainerName: pairs[i], Condition: pairs[i+1]})
	}
	return all
}

var check = &taskdef.HealthCheck{Command: []string{"CMD", "well"}}

func exits(t *Task, name string, code int, at time.Time) {
	c := t.container(name)
	*t = Observe(*t, Seen{Container: name, RuntimeID: c.Shown.RuntimeID, ExitCode: &code, StartedAt: c.Began, FinishedAt: at}, at)
}

func feels(t *Task, name string, h task.Health, at time.Time) {
	c := t.container(name)
	*t = Observe(*t, Seen{Container: name, RuntimeID: c.Shown.RuntimeID, Running: true, StartedAt: c.Began, Health: h, HealthAt: at}, at)
}

// minute is so many minutes after the start.
func minute(n int) time.Time { return start.Add(time.Duration(n) * time.Minute) }

func TestPlan_AContainerWaitsForAnothersEndSuccessOrHealth(t *testing.T) {
	for condition, c := range map[string]struct {
		not, then func(*Task)
	}{
		taskdef.ConditionComplete: {
			func(t *Task) { feels(t, "first", task.Healthy, minute(1)) },
			func(t *Task) { exits(t, "first", 3, minute(2)) },
		},
		taskdef.ConditionSuccess: {
			func(t *Task) { feels(t, "first", task.Healthy, minute(1)) },
			func(t *Task) { exits(t, "first", 0, minute(2)) },
		},
		taskdef.ConditionHealthy: {
			func(t *Task) { feels(t, "first", task.Unhealthy, minute(1)) },
			func(t *Task) { feels(t, "first", task.Healthy, minute(2)) },
		},
	} {
		t.Run(condition, func(t *testing.T) {
			tk := newTask(taskdef.ContainerDefinition{Name: "app", DependsOn: after("first", condition)},
				taskdef.ContainerDefinition{Name: "first", Essential: new(false), HealthCheck: check})
			if got := verbs(&tk, start); got[len(got)-1] != "start first" || tk.Status != task.Pending || tk.Desired != task.DesiredRunning {
				t.Fatalf("%q: %s", got, show(tk, nil))
			}
			c.not(&tk)
			if got := verbs(&tk, minute(1)); len(got) > 0 || tk.Desired != task.DesiredRunning {
				t.Fatalf("too early: %q, %s", got, show(tk, nil))
			}
			c.then(&tk)
			if got := verbs(&tk, minute(2)); !slices.Equal(got, []string{"create app", "start app"}) || tk.Status != task.Running {
				t.Fatalf("%q: %s", got, show(tk, nil))
			}
		})
	}
}

func TestPlan_WhatCanNeverBeMetEndsWhoWaitsForIt(t *testing.T) {
	for name, c := range map[string]struct {
		condition string
		happens   func(*Task)
		why       string
	}{
		"no success": {taskdef.ConditionSuccess, func(t *Task) { exits(t, "first", 1, minute(1)) }, "dependency first (SUCCESS) of container app did not exit successfully"},
		"no health":  {taskdef.ConditionHealthy, func(t *Task) { exits(t, "first", 0, minute(1)) }, "dependency first (HEALTHY) of container app has stopped"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, essential := range []bool{true, false} {
				tk := newTask(taskdef.ContainerDefinition{Name: "app", Essential: &essential, DependsOn: after("first", c.condition)},
					taskdef.ContainerDefinition{Name: "first", Essential: new(false), HealthCheck: check}, taskdef.ContainerDefinition{Name: "main"})
				verbs(&tk, start)
				c.happens(&tk)
				got := verbs(&tk, minute(1))
				reason := "CannotStartContainerError: " + c.why
				if app := tk.container("app"); app.Phase != Stopped || app.Ran || app.Shown.Reason != reason || app.Shown.ExitCode != nil {
					t.Errorf("the container is %+v", app)
				}
				switch {
				case essential && (tk.Status != task.Stopped || tk.Cause != task.FailedCause || tk.Reason != reason || !slices.Equal(got, []string{"stop main"})):
					t.Errorf("essential: %q, %s: %s", got, show(tk, nil), tk.Reason)
				case !essential && (tk.Status != task.Running || tk.Desired != task.DesiredRunning || len(got) > 0):
					t.Errorf("not essential: %q, %s", got, show(tk, nil))
				}
			}
		})
	}
}

// The second waits for the end of the first, which never ran: neither does the
// third, which waits for the second.
func TestPlan_WhatWaitsForWhatNeverRanIsGivenUpInTurn(t *testing.T) {
	no := new(false)
	tk := newTask(taskdef.ContainerDefinition{Name: "main"}, taskdef.ContainerDefinition{Name: "job", Essential: no},
		taskdef.ContainerDefinition{Name: "third", Essential: no, DependsOn: after("second", taskdef.ConditionComplete)},
		taskdef.ContainerDefinition{Name: "second", Essential: no, DependsOn: after("first", taskdef.ConditionStart)},
		taskdef.ContainerDefinition{Name: "first", Essential: no, DependsOn: after("job", taskdef.ConditionSuccess)})
	verbs(&tk, start)
	exits(&tk, "job", 9, minute(1))
	if verbs(&tk, minute(1)); show(tk, nil) != "RUNNING/RUNNING main=running job=stopped(9) third=stopped second=stopped first=stopped" {
		t.Error(show(tk, nil))
	}
}

func TestPlan_StartTimeoutBoundsTheWaitForMoreThanAStart(t *testing.T) {
	tk := newTask(taskdef.ContainerDefinition{Name: "app", DependsOn: after("db", taskdef.ConditionHealthy)},
		taskdef.ContainerDefinition{Name: "db", HealthCheck: check, StartTimeout: new(120)})
	verbs(&tk, start)
	next, do, wake := Plan(tk, minute(1))
	if len(do) > 0 || !wake.Equal(minute(2)) || next.Desired != task.DesiredRunning {
		t.Fatalf("after a minute: %s, again at %s", show(next, do), wake)
	}
	in := next
	feels(&in, "db", task.Healthy, minute(1))
	if got := verbs(&in, minute(1)); in.Status != task.Running {
		t.Errorf("in time: %q, %s", got, show(in, nil))
	}
	if verbs(&in, minute(60)); in.Desired != task.DesiredRunning {
		t.Errorf("an hour later: %s", show(in, nil))
	}
	late, do, _ := Plan(next, minute(2))
	if len(do) != 1 || do[0].Verb != Stop || late.Cause != task.FailedCause ||
		late.Reason != "CannotStartContainerError: dependency db (HEALTHY) of container app did not come so far within its startTimeout of 2m0s" {
		t.Errorf("too late: %s: %s", show(late, do), late.Reason)
	}
}

func TestPlan_LinksAndVolumesAreReasonsToWait(t *testing.T) {
	tk := newTask(taskdef.ContainerDefinition{Name: "app", Links: []string{"db:store"}, VolumesFrom: []taskdef.VolumeFrom{{SourceContainer: "data"}}},
		taskdef.ContainerDefinition{Name: "db", DependsOn: after("data", taskdef.ConditionComplete)},
		taskdef.ContainerDefinition{Name: "data", Essential: new(false)})
	got := verbs(&tk, start)
	if !slices.Equal(got[1:], []string{"create data", "start data"}) {
		t.Fatalf("first %q", got)
	}
	exits(&tk, "data", 0, minute(1))
	// A link needs the other to be there when the container is made, and up when it starts.
	if got := verbs(&tk, minute(1)); !slices.Equal(got, []string{"create db", "create app, start db", "start app"}) {
		t.Errorf("then %q", got)
	}
	tk.want(Order{}, minute(2))
	if got := verbs(&tk, minute(2)); !slices.Equal(got, []string{"stop app", "stop db"}) {
		t.Errorf("down %q", got)
	}
}

func TestPlan_ACircleIsADeadlockAlsoBesideAContainerThatRuns(t *testing.T) {
	tk := newTask(taskdef.ContainerDefinition{Name: "log"},
		taskdef.ContainerDefinition{Name: "a", DependsOn: after("b", taskdef.ConditionStart, "log", taskdef.ConditionStart)},
		taskdef.ContainerDefinition{Name: "b", DependsOn: after("a", taskdef.ConditionStart)})
	if verbs(&tk, start); tk.Status != task.Stopped || tk.Cause != task.DeadlockCause {
		t.Error(show(tk, nil))
	}
}

func TestHealth_IsThatOfEssentialContainersAndOfTheNewestPicture(t *testing.T) {
	tk := newTask(taskdef.ContainerDefinition{Name: "app", HealthCheck: check}, taskdef.ContainerDefinition{Name: "plain"},
		taskdef.ContainerDefinition{Name: "side", Essential: new(false), HealthCheck: check})
	if tk.Health() != task.HealthUnknown {
		t.Errorf("before anything: %q", tk.Health())
	}
	verbs(&tk, start)
	for _, c := range []struct {
		name string
		h    task.Health
		at   time.Time
		want task.Health
	}{
		{"side", task.Unhealthy, minute(1), task.HealthUnknown},
		{"app", task.Healthy, minute(2), task.Healthy},
		{"app", task.Unhealthy, minute(4), task.Unhealthy},
		{"app", task.Healthy, minute(3), task.Unhealthy}, // an older picture
		{"app", task.Healthy, minute(5), task.Healthy},
	} {
		before := essence(tk)
		feels(&tk, c.name, c.h, c.at)
		if tk.Health() != c.want {
			t.Errorf("%s %s: the task is %q, want %q", c.name, c.h, tk.Health(), c.want)
		}
		if changed := before != essence(tk); changed != (c.at != minute(3)) {
			t.Errorf("%s %s: to be saved: %v", c.name, c.h, changed)
		}
	}
	if tk := newTask(); tk.Health() != "" {
		t.Errorf("without a check it is %q", tk.Health())
	}
	none := newTask(taskdef.ContainerDefinition{Name: "app", HealthCheck: &taskdef.HealthCheck{Command: []string{"NONE"}}})
	if none.Health() != "" {
		t.Errorf("with a check that is none it is %q", none.Health())
	}
}

func TestConditions_AreECSs(t *testing.T) {
	var texts []string
	for _, m := range taskdef.Members() {
		if strings.HasSuffix(m.Path, ".dependsOn[].condition") {
			for _, c := range m.Choices {
				texts = append(texts, c.Text)
			}
		}
	}
	if want := []string{string(OnStart), string(OnComplete), string(OnSuccess), string(OnHealthy)}; !slices.Equal(texts, want) {
		t.Errorf("ECS has %q, plan knows %q", texts, want)
	}
}
