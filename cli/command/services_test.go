package command_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/cli/internal/exit"
)

// rollout plays a service's scheduler for a test: each DescribeServices after an
// update shows the next of the states.
type rollout struct {
	b       *bench
	present map[string]any
	states  []map[string]any
	updates []map[string]any
}

func deployment(id, status, definition, state, reason string, desired, running, failed int) map[string]any {
	return map[string]any{"id": id, "status": status, "taskDefinition": "arn:aws:ecs:us-east-1:000000000000:task-definition/" + definition, "rolloutState": state,
		"rolloutStateReason": reason, "desiredCount": desired, "runningCount": running, "pendingCount": 0, "failedTasks": failed, "createdAt": 1767323045.0}
}

func service(definition string, desired, running int, events []any, deployments ...any) map[string]any {
	return map[string]any{"serviceName": "web", "serviceArn": "arn:aws:ecs:us-east-1:000000000000:service/default/web", "status": "ACTIVE", "schedulingStrategy": "REPLICA",
		"taskDefinition": "arn:aws:ecs:us-east-1:000000000000:task-definition/" + definition, "desiredCount": desired, "runningCount": running, "pendingCount": 0,
		"deployments": deployments, "events": events, "createdAt": 1767323045.0}
}

func event(id, message string, at float64) any {
	return map[string]any{"id": id, "message": message, "createdAt": at}
}

func newRollout(b *bench, present map[string]any, states ...map[string]any) *rollout {
	r := &rollout{b: b, present: present, states: states}
	b.api.Stub = r.answer
	return r
}

func (r *rollout) answer(operation string, body []byte) (string, bool) {
	var v any
	switch operation {
	case "ListServices":
		v = map[string]any{"serviceArns": []any{r.present["serviceArn"]}}
	case "UpdateService":
		var in map[string]any
		if err := json.Unmarshal(body, &in); err != nil {
			r.b.t.Error(err)
		}
		r.updates = append(r.updates, in)
		r.present = r.states[0]
		v = map[string]any{"service": r.present}
	case "DescribeServices":
		if len(r.updates) > 0 && len(r.states) > 1 {
			r.states = r.states[1:]
			r.present = r.states[0]
		}
		v = map[string]any{"services": []any{r.present}, "failures": []any{}}
	default:
		return "", false
	}
	text, err := json.Marshal(v)
	if err != nil {
		r.b.t.Error(err)
	}
	return string(text), true
}

var before = service("web:1", 3, 3, nil, deployment("ecs-svc/1", "PRIMARY", "web:1", "COMPLETED", "", 3, 3, 0))

func TestServices_AreListedAndDescribed(t *testing.T) {
	b := newBench(t)
	newRollout(b, service("web:2", 3, 2, []any{event("e1", "(service web) has begun.", 1767323046)},
		deployment("ecs-svc/2", "PRIMARY", "web:2", "IN_PROGRESS", "ECS deployment ecs-svc/2 in progress.", 3, 1, 1), deployment("ecs-svc/1", "ACTIVE", "web:1", "COMPLETED", "", 3, 1, 0)))
	golden(t, "services.txt", b.must("services", "list"))
	golden(t, "describe-service.txt", b.must("describe", "service", "web"))
	if out := b.must("services", "events", "web"); out != "2026-01-02T03:04:06Z  (service web) has begun.\n" {
		t.Errorf("says %s", out)
	}
}

func TestDeploy_ShowsItsProgressAndEvents(t *testing.T) {
	b := newBench(t)
	old := func(n int) any { return deployment("ecs-svc/1", "ACTIVE", "web:1", "COMPLETED", "", 3, n, 0) }
	began := []any{event("e1", "(service web) has started 1 tasks.", 1767323047)}
	done := append([]any{event("e2", "(service web) has reached a steady state.", 1767323049)}, began...)
	r := newRollout(b, before,
		service("web:2", 3, 3, nil, deployment("ecs-svc/2", "PRIMARY", "web:2", "IN_PROGRESS", "", 3, 0, 0), old(3)),
		service("web:2", 3, 3, began, deployment("ecs-svc/2", "PRIMARY", "web:2", "IN_PROGRESS", "", 3, 1, 0), old(2)),
		service("web:2", 3, 3, began, deployment("ecs-svc/2", "PRIMARY", "web:2", "IN_PROGRESS", "", 3, 3, 0)),
		service("web:2", 3, 3, done, deployment("ecs-svc/2", "PRIMARY", "web:2", "COMPLETED", "", 3, 3, 0)))
	out := b.must("services", "deploy", "web", "--definition", "web:2", "--wait")
	golden(t, "deploy.txt", b.err.String()+out)
	if len(r.updates) != 1 || r.updates[0]["taskDefinition"] != "web:2" || r.updates[0]["desiredCount"] != nil {
		t.Errorf("asked for %v", r.updates)
	}
}

func TestDeploy_FailsWhenTheBreakerRollsBack(t *testing.T) {
	b := newBench(t)
	bad := deployment("ecs-svc/2", "ACTIVE", "web:2", "FAILED", "ECS deployment circuit breaker: tasks failed to start.", 0, 0, 3)
	newRollout(b, before,
		service("web:2", 3, 3, nil, deployment("ecs-svc/2", "PRIMARY", "web:2", "IN_PROGRESS", "", 3, 0, 0), deployment("ecs-svc/1", "ACTIVE", "web:1", "COMPLETED", "", 3, 3, 0)),
		service("web:1", 3, 3, nil, deployment("ecs-svc/3", "PRIMARY", "web:1", "IN_PROGRESS", "", 3, 2, 0), bad),
		service("web:1", 3, 3, nil, deployment("ecs-svc/3", "PRIMARY", "web:1", "COMPLETED", "", 3, 3, 0)))
	b.fails(exit.Failed, "the deployment did not hold: the service runs web:1: ECS deployment circuit breaker: tasks failed to start", "services", "deploy", "web", "--definition", "web:2", "--wait")
}

func TestDeploy_FailsWhenTheBreakerTripsWithoutRollback(t *testing.T) {
	b := newBench(t)
	newRollout(b, before,
		service("web:2", 3, 0, nil, deployment("ecs-svc/2", "PRIMARY", "web:2", "IN_PROGRESS", "", 3, 0, 0)),
		service("web:2", 3, 0, nil, deployment("ecs-svc/2", "PRIMARY", "web:2", "FAILED", "tasks failed to start.", 3, 0, 3)))
	b.fails(exit.Failed, "tasks failed to start", "services", "deploy", "web", "--definition", "web:2", "--wait", "--timeout", "5s")
}

func TestDeploy_GivesUpAfterItsTimeout(t *testing.T) {
	b := newBench(t)
	newRollout(b, before, service("web:2", 3, 0, nil, deployment("ecs-svc/2", "PRIMARY", "web:2", "IN_PROGRESS", "", 3, 0, 0)))
	b.fails(exit.Timeout, "service web to be stable", "services", "deploy", "web", "--force", "--wait", "--timeout", "20ms")
}

func TestDeploy_OtherImagesAreANewRevisionThatKeepsTheRest(t *testing.T) {
	b := newBench(t)
	b.must("definitions", "register", b.file("web.yaml", web))
	r := newRollout(b, before, service("web:2", 3, 3, nil, deployment("ecs-svc/2", "PRIMARY", "web:2", "IN_PROGRESS", "", 3, 0, 0)))
	b.must("services", "deploy", "web", "--image", "main=registry.example/web:2")
	if got := r.updates[0]["taskDefinition"]; got != "arn:aws:ecs:us-east-1:000000000000:task-definition/web:2" {
		t.Errorf("deploys %v", got)
	}
	b.must("definitions", "register", b.file("web.yaml", strings.Replace(web, "web:1", "web:2", 1)), "--dry-run")
	if !strings.Contains(b.err.String(), "web:2 is the same") {
		t.Errorf("the new revision differs in more than the image:\n%s", b.err.String())
	}
	b.fails(exit.Usage, "names no container", "services", "deploy", "web", "--image", "nobody=x")
	b.fails(exit.Usage, "nothing to deploy", "services", "deploy", "web")
	b.fails(exit.Usage, "can not both", "services", "deploy", "web", "--image", "main=x", "--definition", "web")
}

func TestRollback_GoesToWhatRanBefore(t *testing.T) {
	b := newBench(t)
	b.must("definitions", "register", b.file("web.yaml", web))
	b.must("definitions", "register", b.file("web.yaml", web), "--force")
	b.must("definitions", "register", b.file("web.yaml", web), "--force")
	steady := service("web:3", 3, 3, nil, deployment("ecs-svc/3", "PRIMARY", "web:3", "COMPLETED", "", 3, 3, 0))
	under := service("web:3", 3, 3, nil, deployment("ecs-svc/3", "PRIMARY", "web:3", "IN_PROGRESS", "", 3, 1, 0), deployment("ecs-svc/1", "ACTIVE", "web:1", "COMPLETED", "", 3, 2, 0))
	for want, present := range map[string]map[string]any{"web:2": steady, "web:1": under} {
		r := newRollout(b, present, before)
		b.must("services", "rollback", "web")
		if got := r.updates[0]["taskDefinition"].(string); !strings.HasSuffix(got, "/"+want) {
			t.Errorf("goes back to %s, want %s", got, want)
		}
	}
	newRollout(b, before, before)
	b.fails(exit.NotFound, "web:1 has no earlier revision", "services", "rollback", "web")
}

func TestScale_SetsTheCountAlone(t *testing.T) {
	b := newBench(t)
	r := newRollout(b, before, service("web:1", 5, 5, nil, deployment("ecs-svc/1", "PRIMARY", "web:1", "COMPLETED", "", 5, 5, 0)))
	b.must("services", "scale", "web", "5", "--wait")
	if r.updates[0]["desiredCount"] != 5.0 || r.updates[0]["taskDefinition"] != nil {
		t.Errorf("asked for %v", r.updates)
	}
	b.fails(exit.Usage, "is no count", "services", "scale", "web", "many")
	b.fails(exit.Usage, "is no count", "services", "scale", "web", "3x")
}
