package ecsapi_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/task"
)

func TestClient_ProtectsATaskOfAService(t *testing.T) {
	r := newRig(t)
	r.world()
	id := "0123456789abcdef0123456789abcdef"
	r.put(
		&control.Task{ID: id, Cluster: "default", LastStatus: task.Provisioning, DesiredStatus: task.DesiredRunning, Attempt: 1, Family: "web", Number: 1, Group: "service:web", Service: "web", CreatedAt: r.now},
		&control.Live{Cluster: "default", Service: "web", Live: 1},
	)
	other := "arn:aws:ecs:us-east-1:123456789012:task/default/" + id
	out, err := r.ecs.UpdateTaskProtection(r.ctx, &ecs.UpdateTaskProtectionInput{
		Cluster: aws.String("default"), Tasks: []string{r.control.TaskARN("default", id), other}, ProtectionEnabled: true, ExpiresInMinutes: aws.Int32(5),
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.ProtectedTasks) != 1 || !out.ProtectedTasks[0].ProtectionEnabled || !out.ProtectedTasks[0].ExpirationDate.Equal(r.now.Add(5*time.Minute)) {
		t.Errorf("protected are %+v", out.ProtectedTasks)
	}
	if len(out.Failures) != 1 || aws.ToString(out.Failures[0].Arn) != other || aws.ToString(out.Failures[0].Reason) != "MISSING" {
		t.Errorf("failures are %+v: one of another region is told as it was given", out.Failures)
	}
	got, err := r.ecs.GetTaskProtection(r.ctx, &ecs.GetTaskProtectionInput{Cluster: aws.String("default"), Tasks: []string{id}})
	if err != nil || len(got.ProtectedTasks) != 1 || aws.ToString(got.ProtectedTasks[0].TaskArn) != r.control.TaskARN("default", id) {
		t.Errorf("read %+v, %v", got, err)
	}
	for body, member := range map[string]string{
		`{"cluster":"default","tasks":["a"],"protectionEnabled":true,"expiresInMinutes":0}`:    "expiresInMinutes",
		`{"cluster":"default","tasks":["a"],"protectionEnabled":true,"expiresInMinutes":2881}`: "expiresInMinutes",
		`{"cluster":"default","tasks":["a"]}`:                                                  "protectionEnabled",
		`{"tasks":["a"],"protectionEnabled":true}`:                                             "cluster",
	} {
		if _, message := r.refused("UpdateTaskProtection", body); len(message) < len(member) || message[:len(member)] != member {
			t.Errorf("%s: %s", body, message)
		}
	}
}
