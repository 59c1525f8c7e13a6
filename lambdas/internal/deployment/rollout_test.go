package deployment_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/internal/deployment"
)

func breaker(s deployment.Service, rollback bool) deployment.Service {
	s.Breaker, s.Rollback = true, rollback
	return s
}

func failures(n int) func(*deployment.Deployment) {
	return func(d *deployment.Deployment) { d.Failures, d.LastFailed = n, now.Add(-time.Second) }
}

func TestDecide_CompletesAndSaysSoOnce(t *testing.T) {
	told := func(in *deployment.Input) { in.Told = deployment.Told{} }
	out := decide(service(2, 100, 200), rolling(), many(2, newOne), told)
	wantMessages(t, out, "(service web) (deployment ecs-svc/2) deployment completed.", "(service web) has reached a steady state.")
	d := out.Deployments
	if len(d) != 1 || d[0].Rollout != deployment.Completed || d[0].Reason != "ECS deployment ecs-svc/2 completed." || d[0].Rollback != "" {
		t.Errorf("deployments %+v", d)
	}
	again := decide(service(2, 100, 200), d, many(2, newOne), func(in *deployment.Input) { in.Told = out.Told })
	wantMessages(t, again)
	lost := decide(service(2, 100, 200), d, many(1, newOne), func(in *deployment.Input) { in.Told = again.Told })
	if lost.Told.Steady || lost.Deployments[0].Rollout != deployment.Completed {
		t.Errorf("one was lost: %+v", lost)
	}
	healed := decide(service(2, 100, 200), d, many(2, newOne), func(in *deployment.Input) { in.Told = lost.Told })
	wantMessages(t, healed, "(service web) has reached a steady state.")
}

func TestDecide_IsNotThroughWhile(t *testing.T) {
	for name, of := range map[string][]deployment.Task{
		"one is missing":         many(1, newOne),
		"one is not proven":      {task("n0", newOne), task("n1", newOne, unproven)},
		"one is unhealthy":       {task("n0", newOne), task("n1", newOne, ill)},
		"an old one ends":        append(many(2, newOne), task("o0", oldOne, toStop)),
		"an old one may be back": {task("n0", newOne), task("n1", newOne, silent), task("o0", oldOne, silent)},
		"all are silent":         {task("n0", newOne, silent), task("n1", newOne, silent)},
	} {
		if out := decide(service(2, 100, 200), rolling(), of, func(in *deployment.Input) { in.Told = deployment.Told{} }); out.Deployments[0].Rollout != deployment.InProgress || out.Told.Steady {
			t.Errorf("%s: %+v", name, out.Deployments)
		}
	}
}

func TestDecide_ARolloutEndsWithADeadHostInTheCluster(t *testing.T) {
	out := decide(service(2, 100, 200), rolling(), append(many(2, newOne), task("o0", oldOne, silent)))
	if !slices.Equal(stops(out), []string{"o0"}) || out.Deployments[0].Rollout != deployment.Completed || len(out.Deployments) != 1 {
		t.Errorf("an old task on a dead host: %+v", out)
	}
	out = decide(service(3, 50, 200), rolling(), []deployment.Task{task("n0", newOne), task("n1", newOne), task("n2", newOne, silent)})
	if out.Deployments[0].Rollout != deployment.Completed {
		t.Errorf("a new task on a host that fell silent: %+v", out.Deployments)
	}
}

func TestDecide_AServiceOfWhichNothingIsHeardIsNotThrough(t *testing.T) {
	out := decide(service(2, 0, 200), rolling(), []deployment.Task{task("n0", newOne, silent), task("n1", newOne, silent)})
	if out.Deployments[0].Rollout != deployment.InProgress {
		t.Errorf("%+v", out.Deployments)
	}
}

func TestThreshold_IsHalfOfDesiredBetweenThreeAnd200(t *testing.T) {
	for desired, want := range map[int]int{0: 3, 1: 3, 6: 3, 7: 4, 25: 13, 400: 200, 800: 200} {
		if got := deployment.Threshold(desired); got != want {
			t.Errorf("threshold of %d is %d, want %d", desired, got, want)
		}
	}
}

func TestDecide_TheBreakerFailsARollout(t *testing.T) {
	reached := func(d *deployment.Deployment) { d.Reached = true }
	sick := func(d *deployment.Deployment) { d.Unhealthy = 3 }
	short := task("n0", newOne, func(t *deployment.Task) { t.Since = now.Add(-time.Second) })
	for name, c := range map[string]struct {
		service deployment.Service
		all     []deployment.Deployment
		tasks   []deployment.Task
		fails   bool
	}{
		"when enough failed": {breaker(service(2, 100, 200), false), rolling(failures(3)), many(2, oldOne), true},
		"not before":         {breaker(service(2, 100, 200), false), rolling(failures(2)), many(2, oldOne), false},
		"not if it is off":   {service(2, 100, 200), rolling(failures(9)), many(2, oldOne), false},
		"not while one runs": {breaker(service(2, 100, 200), false), rolling(failures(3)), []deployment.Task{short}, false},
		"but one that has not answered yet is none":     {breaker(service(2, 100, 200), false), rolling(failures(3)), []deployment.Task{task("n0", newOne, unproven)}, true},
		"one that always runs shields no crashing ones": {breaker(service(2, 100, 200), false), rolling(failures(12)), []deployment.Task{short}, true},
		"one that ran for a minute takes them back":     {breaker(service(2, 100, 200), false), rolling(failures(12)), many(1, newOne), false},
		"in the second stage only health counts":        {breaker(service(2, 100, 200), false), rolling(failures(9), reached), many(2, oldOne), false},
		"and does":                                      {breaker(service(2, 100, 200), false), rolling(reached, sick), many(2, oldOne), true},
		"a failure after that stands":                   {breaker(service(2, 100, 200), false), rolling(reached, sick, func(d *deployment.Deployment) { d.LastFailed = now.Add(-2 * time.Minute) }), many(1, newOne), true},
		"until another has run for a minute":            {breaker(service(2, 100, 200), false), rolling(reached, sick, func(d *deployment.Deployment) { d.LastFailed = now.Add(-2 * time.Hour) }), many(1, newOne), false},
		"never what was gone back to":                   {breaker(service(2, 100, 200), false), rolling(failures(9), func(d *deployment.Deployment) { d.RollingBack, d.Rollback = true, "" }), many(2, oldOne), false},
		"never one that was COMPLETED":                  {breaker(service(2, 100, 200), false), rolling(failures(9), func(d *deployment.Deployment) { d.Rollout = deployment.Completed }), nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			out := decide(c.service, c.all, c.tasks)
			if got := out.Deployments[0].Rollout == deployment.Failed; got != c.fails {
				t.Errorf("failed %v, want %v: %+v", got, c.fails, out.Deployments[0])
			}
			if c.fails && (len(out.Create) > 0 || !slices.Contains(messages(out), "(service web) (deployment ecs-svc/2) deployment failed: tasks failed to start.")) {
				t.Errorf("creates %v, tells %q", out.Create, messages(out))
			}
		})
	}
}

func TestDecide_CountsWhatItStopsForItsHealth(t *testing.T) {
	s := breaker(service(1, 100, 200), true)
	all := rolling(func(d *deployment.Deployment) { d.Failures, d.Unhealthy = 2, 2 })
	out := decide(s, all, []deployment.Task{task("o0", oldOne), task("n0", newOne, ill)})
	if d := out.Deployments[0]; d.Failures != 3 || d.Unhealthy != 3 || !d.LastFailed.Equal(now) || !out.More {
		t.Errorf("%+v", out)
	}
	wantMessages(t, out, "(service web) (task n0) failed container health checks.", "(service web) has stopped 1 running tasks: (task n0).")
	out = decide(s, out.Deployments, []deployment.Task{task("o0", oldOne), task("n0", newOne, ill, toStop)})
	if out.Deployments[0].ID != oldOne {
		t.Errorf("does not go back: %+v", out.Deployments)
	}
}

func TestDecide_GoesBackToTheLastThatWasCompleted(t *testing.T) {
	s := breaker(service(2, 100, 200), true)
	out := decide(s, rolling(failures(3)), append(many(2, oldOne), task("n0", newOne, pending)), func(in *deployment.Input) { in.Told = deployment.Told{} })
	wantMessages(t, out,
		"(service web) (deployment ecs-svc/2) deployment failed: tasks failed to start.",
		"(service web) rolling back to deployment ecs-svc/1.",
		"(service web) stopped 1 pending tasks.")
	back, failed := out.Deployments[0], out.Deployments[1]
	if back.ID != oldOne || !back.Primary || back.Rollout != deployment.InProgress || !back.RollingBack || !back.CreatedAt.Equal(now) ||
		back.Reason != "ECS deployment circuit breaker: rolling back to deploymentId ecs-svc/1." {
		t.Errorf("gone back to %+v", back)
	}
	if failed.ID != newOne || failed.Primary || failed.Rollout != deployment.Failed || failed.Reason != "ECS deployment circuit breaker: tasks failed to start." {
		t.Errorf("failed is %+v", failed)
	}
	if len(out.Create) > 0 {
		t.Errorf("creates %v though all of the old ones run", out.Create)
	}
	out = decide(s, out.Deployments, many(2, oldOne), func(in *deployment.Input) { in.Told = out.Told })
	wantMessages(t, out, "(service web) (deployment ecs-svc/1) deployment completed.", "(service web) has reached a steady state.")
	if len(out.Deployments) != 1 || out.Deployments[0].RollingBack {
		t.Errorf("%+v", out.Deployments)
	}
}

func TestDecide_StallsWhereThereIsNothingToGoBackTo(t *testing.T) {
	s := breaker(service(2, 0, 200), true)
	out := decide(s, rolling(failures(3), func(d *deployment.Deployment) { d.Rollback = "" }), many(1, oldOne))
	if out.Deployments[0].ID != newOne || out.Deployments[0].Rollout != deployment.Failed || len(out.Create)+len(out.Stop) > 0 {
		t.Errorf("%+v", out)
	}
}

func TestDecide_WhatItMayGoBackToStaysThoughAllOfItsTasksAreGone(t *testing.T) {
	for _, state := range []deployment.Rollout{deployment.InProgress, deployment.Failed} {
		out := decide(service(2, 0, 100), rolling(func(d *deployment.Deployment) { d.Rollout = state }), nil)
		if len(out.Deployments) != 2 {
			t.Errorf("%s: %+v", state, out.Deployments)
		}
	}
}

func TestDecide_SlowsDownWhatNeverStarts(t *testing.T) {
	inARow := func(n int, ago time.Duration) func(*deployment.Deployment) {
		return func(d *deployment.Deployment) { d.InARow, d.LastFailed = n, now.Add(-ago) }
	}
	const impaired = "(service web) is unable to consistently start tasks successfully."
	for name, c := range map[string]struct {
		change func(*deployment.Deployment)
		create int
		next   time.Duration
		told   bool
	}{
		"not at once":              {inARow(2, 0), 1, 0, false},
		"then for ten seconds":     {inARow(3, time.Second), 0, 9 * time.Second, true},
		"and tries again":          {inARow(3, 10*time.Second), 1, 0, true},
		"then for twenty":          {inARow(6, 0), 0, 20 * time.Second, true},
		"then for forty":           {inARow(9, 0), 0, 40 * time.Second, true},
		"at most for 27 minutes":   {inARow(3000, 0), 0, 27 * time.Minute, true},
		"and then tries all again": {inARow(3000, 27*time.Minute), 1, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			out := decide(service(1, 100, 200), rolling(c.change), many(1, oldOne))
			next := time.Duration(0)
			if !out.Next.IsZero() {
				next = out.Next.Sub(now)
			}
			if len(out.Create) != c.create || next != c.next || slices.Contains(messages(out), impaired) != c.told || out.Told.Throttled != c.told {
				t.Errorf("creates %d, next in %s, tells %q", len(out.Create), next, messages(out))
			}
			again := decide(service(1, 100, 200), rolling(c.change), many(1, oldOne), func(in *deployment.Input) { in.Told = out.Told })
			wantMessages(t, again)
		})
	}
	well := task("n0", newOne, func(t *deployment.Task) { t.Since = now.Add(-time.Millisecond) })
	out := decide(service(2, 100, 200), rolling(inARow(9, time.Second)), []deployment.Task{well}, func(in *deployment.Input) { in.Told.Throttled = true })
	if out.Deployments[0].InARow != 0 || out.Told.Throttled || len(out.Create) != 1 {
		t.Errorf("one has reached RUNNING: %+v", out)
	}
	if out = decide(service(2, 100, 200), rolling(inARow(9, time.Second)), many(1, newOne)); out.Deployments[0].InARow != 9 || len(out.Create) > 0 {
		t.Errorf("one has been RUNNING for long, the others fail: %+v", out)
	}
	wide := decide(service(8, 100, 200), rolling(inARow(7, 0)), nil)
	if len(wide.Create) != 8 {
		t.Errorf("a first round of eight is slowed down: %+v", wide)
	}
}

func TestStarted_IsInECSWords(t *testing.T) {
	if got := deployment.Started("web", []string{"a", "b"}, 0).Message; got != "(service web) has started 2 tasks: (task a) (task b)." {
		t.Error(got)
	}
	if got := deployment.Started("web", []string{"a"}, 1).Message; got != "(service web) has started 1 tasks: (task a). Amazon ECS replaced 1 tasks due to an unhealthy status." {
		t.Error(got)
	}
	out := decide(service(2, 100, 200), done(), []deployment.Task{task("o0", oldOne), task("o1", oldOne, ill)})
	if out.Replaces != 1 {
		t.Errorf("replaces %d unhealthy ones, want 1", out.Replaces)
	}
}

func TestDecide_TellsOfNoRoomInECSWords(t *testing.T) {
	const before = "(service web) was unable to place a task because no container instance met all of its requirements. "
	const after = " For more information, see the Troubleshooting section of the Amazon ECS Developer Guide."
	for reason, want := range map[string]string{
		"RESOURCE:CPU":     "The closest matching container-instance has insufficient CPU units available.",
		"RESOURCE:MEMORY":  "The closest matching container-instance has insufficient memory available.",
		"RESOURCE:PORTS":   "The closest matching container-instance is already using a port required by your task.",
		"ATTRIBUTE":        "The closest matching container-instance is missing an attribute required by your task.",
		"AGENT":            `The closest matching container-instance encountered error "AGENT".`,
		"distinctInstance": `The closest matching container-instance encountered error "distinctInstance".`,
		"EMPTY CAPACITY":   "Reason: No Container Instances were found in your cluster.",
	} {
		of := []deployment.Task{task("o0", oldOne), task("o1", oldOne, waits(reason, time.Minute))}
		out := decide(service(2, 100, 200), done(), of)
		wantMessages(t, out, before+want+after)
		if e := out.Events[0]; e.Name != "SERVICE_TASK_PLACEMENT_FAILURE" {
			t.Error(e.Name)
		}
		again := func(at time.Duration) deployment.Output {
			return decide(service(2, 100, 200), done(), of, func(in *deployment.Input) { in.Told, in.Now = out.Told, now.Add(at) })
		}
		wantMessages(t, again(6*time.Hour-time.Second))
		wantMessages(t, again(6*time.Hour), before+want+after)
	}
	out := decide(service(1, 100, 200), done(), []deployment.Task{task("o0", oldOne, waits("RESOURCE:CPU", 20*time.Second))})
	wantMessages(t, out)
	if !out.Next.Equal(now.Add(10 * time.Second)) {
		t.Errorf("looks again at %s", out.Next)
	}
	out = decide(daemon(0), done(), []deployment.Task{task("o0", oldOne, waits("RESOURCE:CPU", time.Minute), on("abc"))}, func(in *deployment.Input) { in.Hosts = []deployment.Host{{ID: "abc"}} })
	wantMessages(t, out, before+"The closest matching (container-instance abc) has insufficient CPU units available."+after)
}

func TestDecide_SaysOnceWhatCanNeverMove(t *testing.T) {
	const percent = "(service web) was unable to stop or start tasks during a deployment because of the service deployment configuration. Update the minimumHealthyPercent or maximumPercent value and try again."
	port := task("n0", newOne, waits("RESOURCE:PORTS", 3*time.Minute))
	for name, c := range map[string]struct {
		service deployment.Service
		all     []deployment.Deployment
		tasks   []deployment.Task
		want    string
	}{
		"100/100":                    {service(1, 100, 100), rolling(), many(1, oldOne), percent},
		"75 % of two is two":         {service(2, 75, 100), rolling(), many(2, oldOne), percent},
		"125 % of three is three":    {service(3, 100, 125), rolling(), many(3, oldOne), percent},
		"a drained one, 100/100":     {service(1, 100, 100), done(), []deployment.Task{task("o0", oldOne, drained)}, percent},
		"one port on the only host":  {service(1, 100, 200), rolling(), []deployment.Task{task("o0", oldOne), port}, percent + " A new task waits for RESOURCE:PORTS while minimumHealthyPercent keeps the task it is to replace: lower it, or add a container instance."},
		"all that is left protected": {service(1, 0, 100), rolling(), []deployment.Task{task("o0", oldOne, protected)}, "(service web) was unable to reach steady state because (taskSet ecs-svc/1) was unable to scale in due to (reason 1 tasks under protection). Their protection ends by 2026-01-02T04:00:00Z; UpdateTaskProtection ends it before."},
		"a protected surplus":        {service(0, 0, 100), done(), []deployment.Task{task("o0", oldOne, protected)}, "(service web) was unable to reach steady state because (taskSet ecs-svc/1) was unable to scale in due to (reason 1 tasks under protection). Their protection ends by 2026-01-02T04:00:00Z; UpdateTaskProtection ends it before."},
		"not while one ends":         {service(1, 100, 100), rolling(), []deployment.Task{task("o0", oldOne), task("o1", oldOne, toStop)}, ""},
		"not while a host is silent": {service(1, 100, 100), rolling(), []deployment.Task{task("o0", oldOne, silent)}, ""},
		"not while one starts":       {service(1, 100, 200), rolling(), []deployment.Task{task("o0", oldOne), task("n0", newOne, pending)}, ""},
		"not in two minutes":         {service(1, 100, 200), rolling(), []deployment.Task{task("o0", oldOne), task("n0", newOne, waits("RESOURCE:PORTS", 20*time.Second))}, ""},
		"not what a failed one left": {service(1, 100, 100), rolling(func(d *deployment.Deployment) { d.Rollout = deployment.Failed }), many(1, oldOne), ""},
	} {
		t.Run(name, func(t *testing.T) {
			room := func(in *deployment.Input) { in.Told.NoRoom = now.Add(-time.Minute) }
			out := decide(c.service, c.all, c.tasks, room)
			if c.want == "" {
				wantMessages(t, out)
				return
			}
			wantMessages(t, out, c.want)
			told := out.Told
			again := decide(c.service, c.all, c.tasks, room, func(in *deployment.Input) { in.Told = told })
			wantMessages(t, again)
			if again.Told.Stuck == "" {
				t.Error("forgets what it is stuck on")
			}
		})
	}
}

func TestDecide_AHealthyServiceSaysNothingThatADeployToolFailsOn(t *testing.T) {
	w := deployment.Told{}
	all, of := rolling(), many(3, oldOne)
	for n := range 3 {
		out := decide(service(3, 100, 200), all, of, func(in *deployment.Input) { in.Told = w })
		for _, m := range messages(out) {
			if strings.Contains(m, "unable") {
				t.Errorf("step %d: %s", n, m)
			}
		}
		w, all = out.Told, out.Deployments
		of = tasks(many(3-n, oldOne), many(n+1, newOne), []deployment.Task{task("w", newOne, waits("RESOURCE:MEMORY", 5*time.Second))})
	}
}
