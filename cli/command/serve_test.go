package command_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/longshore-run/longshore/cli/internal/exit"
)

// Against the scheduler itself, where services_test.go plays one.
func TestServices_AreDeployedScaledAndRolledBack(t *testing.T) {
	b := newBench(t)
	b.api.Instance("i", 1000, 1000)
	app := b.file("app.yaml", "family: app\ncontainerDefinitions: [{name: main, image: 'busybox:2', memory: 16}]\n")
	bad := b.file("bad.yaml", "family: app\ncontainerDefinitions: [{name: main, image: 'busybox:bad', memory: 16}]\n")
	b.agent(func(id string) (int, bool) { return 1, b.api.Task(id).Number == 3 })
	client := ecs.New(ecs.Options{Region: "us-east-1", BaseEndpoint: &b.api.URL, Credentials: credentials.NewStaticCredentialsProvider("A", "S", "")})
	if _, err := client.CreateService(t.Context(), &ecs.CreateServiceInput{ServiceName: aws.String("web"), TaskDefinition: aws.String("app:1"), DesiredCount: aws.Int32(2),
		DeploymentConfiguration: &types.DeploymentConfiguration{DeploymentCircuitBreaker: &types.DeploymentCircuitBreaker{Enable: true, Rollback: true}}}); err != nil {
		t.Fatal(err)
	}
	b.must("services", "scale", "web", "3", "--wait")
	if out := b.must("services", "deploy", "web", "--definition", app, "--wait"); !strings.Contains(out, "app:2") || !strings.Contains(b.err.String(), "has reached a steady state") {
		t.Errorf("says %s%s", b.err.String(), out)
	}
	if code := b.run("services", "deploy", "web", "--definition", bad, "--wait"); code != exit.Failed || !strings.Contains(b.err.String(), "the deployment did not hold: the service runs app:2") {
		t.Errorf("exit code %d: %s%s", code, b.err.String(), b.out.String())
	}
	if out := b.must("services", "rollback", "web", "--wait"); !strings.Contains(out, "app:1") {
		t.Errorf("says %s%s", b.err.String(), out)
	}
	if out := b.must("services", "list"); !strings.Contains(out, "web") || !strings.Contains(out, "COMPLETED") {
		t.Errorf("says %s", out)
	}
	if out := b.must("ps", "--service", "web", "-q"); strings.Count(out, "\n") != 3 {
		t.Errorf("lists %s", out)
	}
	b.must("describe", "service", "web")
	if out := b.must("__complete", "services", "scale", ""); !strings.Contains(out, "web") {
		t.Errorf("completes %s", out)
	}
}
