//go:build clients

package client

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/longshore-run/longshore/test/local"
)

// forever runs until it is asked to end, which it does at once.
var forever = []string{"sh", "-c", "trap 'exit 0' TERM; sleep 600 & wait"}

func newGoClient(t *testing.T, s *stack, endpoint, me string) *goClient {
	cfg := s.Config()
	cfg.BaseEndpoint = aws.String(endpoint)
	return &goClient{ecs.NewFromConfig(cfg), t, me, s.Image, s.instance}
}

// register registers a definition with one container, "main".
func (g *goClient) register(ctx context.Context, family string, command ...string) {
	g.t.Helper()
	main := types.ContainerDefinition{Name: aws.String("main"), Image: &g.image, Memory: aws.Int32(16), StopTimeout: aws.Int32(30), Command: command}
	of(g.RegisterTaskDefinition(ctx, &ecs.RegisterTaskDefinitionInput{
		Family: &family, NetworkMode: types.NetworkModeNone, ContainerDefinitions: []types.ContainerDefinition{main}})).must(g)
}

// listed are the tasks of a starter.
func (g *goClient) listed(ctx context.Context, startedBy string, status string) []string {
	g.t.Helper()
	return of(g.ListTasks(ctx, &ecs.ListTasksInput{StartedBy: &startedBy, DesiredStatus: types.DesiredStatus(status)})).must(g).TaskArns
}

// testAirflow runs Apache Airflow's ECS operators, and its executor's check at start-up.
func testAirflow(t *testing.T, s *stack) {
	cmd := s.program(t, s.door(t), venv(t, "python"), "airflow_operator.py")
	cmd.Env = append(cmd.Env, "AIRFLOW_HOME="+t.TempDir(), "AIRFLOW__LOGGING__LOGGING_LEVEL=ERROR", "AIRFLOW__CORE__LOAD_EXAMPLES=False")
	for _, kv := range []string{
		"CLUSTER=" + local.Cluster, "CONTAINER_NAME=main", "TASK_DEFINITION=airflow-batch", "LAUNCH_TYPE=EC2", "REGION_NAME=us-east-1", "CONN_ID=",
	} {
		cmd.Env = append(cmd.Env, "AIRFLOW__AWS_ECS_EXECUTOR__"+kv)
	}
	show(t, cmd)
}

// testEcho is that a definition is shown as it was registered, for those who compare.
func testEcho(t *testing.T, s *stack) {
	cmd := s.program(t, s.door(t), venv(t, "python"), "echo.py")
	cmd.Env = append(cmd.Env, "EXAMPLES="+filepath.Join(local.Root(t), "examples", "taskdefs"))
	show(t, cmd)
}

// testProbe is what Prometheus asks when it starts to discover targets: clusters, by no name.
func testProbe(t *testing.T, s *stack) {
	d := s.door(t)
	g := newGoClient(t, s, d.url, "probe")
	out := of(g.DescribeClusters(t.Context(), &ecs.DescribeClustersInput{})).must(g)
	g.want(len(out.Clusters)+len(out.Failures) == 1, "it is about the default cluster", out)
	out = of(g.DescribeClusters(t.Context(), &ecs.DescribeClustersInput{Clusters: []string{"never-made"}})).must(g)
	g.want(len(out.Failures) == 1 && aws.ToString(out.Failures[0].Reason) == "MISSING", "a cluster that never was", out)
}
