//go:build clients

package client

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/longshore-run/longshore/test/local"
)

func (g *goClient) service(ctx context.Context, name string) types.Service {
	g.t.Helper()
	out := of(g.DescribeServices(ctx, &ecs.DescribeServicesInput{Services: []string{name}})).must(g)
	g.want(len(out.Services) == 1, "one service", out)
	return out.Services[0]
}

// settled is that a service comes to run so many tasks of one revision, by one deployment:
// ecs-deploy has counted the tasks, and the service's own count follows.
func (g *goClient) settled(ctx context.Context, name, revision string, count int32) {
	g.t.Helper()
	got := g.service(ctx, name)
	g.want(strings.HasSuffix(aws.ToString(got.TaskDefinition), "/"+revision), "it is of "+revision, aws.ToString(got.TaskDefinition))
	for deadline := time.Now().Add(mostWait); got.RunningCount != count || len(got.Deployments) != 1; got = g.service(ctx, name) {
		g.want(time.Now().Before(deadline), "it has settled", got)
		<-time.After(200 * time.Millisecond)
	}
	g.want(got.DesiredCount == count && strings.HasSuffix(aws.ToString(got.TaskDefinition), "/"+revision), "it has settled", got)
	arns := of(g.ListTasks(ctx, &ecs.ListTasksInput{ServiceName: &name})).must(g).TaskArns
	for _, task := range of(g.DescribeTasks(ctx, &ecs.DescribeTasksInput{Tasks: arns})).must(g).Tasks {
		g.want(strings.HasSuffix(aws.ToString(task.TaskDefinitionArn), "/"+revision), "each task is of "+revision, task)
	}
}

// testECSDeploy is ecs-deploy's day: deploy, scale, run, and a deployment that fails and is rolled back.
func testECSDeploy(t *testing.T, s *stack) {
	d, ctx := s.door(t), t.Context()
	g := newGoClient(t, s, d.url, "ecs-deploy")
	g.register(ctx, "shop", forever...)
	of(g.CreateService(ctx, &ecs.CreateServiceInput{ServiceName: aws.String("shop"), TaskDefinition: aws.String("shop"), DesiredCount: aws.Int32(2)})).must(g)
	ecsDeploy := func(wantSaid string, wantFailure bool, args ...string) string {
		t.Helper()
		out, err := told(t, s.program(t, d, venv(t, "ecs"), args...))
		if (err != nil) != wantFailure || !strings.Contains(out, wantSaid) {
			t.Fatalf("ecs %s: %v; wanted %q\n%s", strings.Join(args, " "), err, wantSaid, out)
		}
		return out
	}
	ecsDeploy("Deployment successful", false, "deploy", local.Cluster, "shop", "--env", "main", "VERSION", "2", "--timeout", "300")
	g.settled(ctx, "shop", "shop:2", 2)

	ecsDeploy("Scaling successful", false, "scale", local.Cluster, "shop", "3", "--timeout", "300")
	g.settled(ctx, "shop", "shop:2", 3)

	out := ecsDeploy("Successfully started 1 instances", false, "run", local.Cluster, "shop", "1", "--command", "main", `["sh","-c","exit 4"]`)
	arn := regexp.MustCompile(`arn:aws:ecs:\S+:task/\S+`).FindString(out)
	done := of(ecs.NewTasksStoppedWaiter(g).WaitForOutput(ctx, &ecs.DescribeTasksInput{Tasks: []string{arn}}, mostWait)).must(g).Tasks[0]
	g.want(len(done.Containers) == 1 && done.Containers[0].ExitCode != nil && *done.Containers[0].ExitCode == 4, "the task ran", done)

	out = ecsDeploy("Rollback successful", true, "deploy", local.Cluster, "shop", "--command", "main", "/there/is/no/such/file", "--timeout", "40", "--rollback") // never RUNNING, not even for a moment
	g.want(strings.Contains(out, "Rolling back to task definition: shop:2"), "it went back to what was there", out)
	g.settled(ctx, "shop", "shop:2", 3)

	of(g.DeleteService(ctx, &ecs.DeleteServiceInput{Service: aws.String("shop"), Force: aws.Bool(true)})).must(g)
	if err := ecs.NewServicesInactiveWaiter(g).Wait(ctx, &ecs.DescribeServicesInput{Services: []string{"shop"}}, mostWait); err != nil {
		t.Fatal(err)
	}
}
