//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/longshore-run/longshore/test/local"
)

// functions are those of the stack, as outputs and rights.txt name them.
var functions = []string{"Api", "Readapi", "Admission", "Statechange", "Reaper", "Services", "Events", "Schedule", "Audit"}

// The whole stack with IAM on: every role can do what the main job asks of it, and
// none can do more than infra/testdata/rights.txt says.
func TestRoles(t *testing.T) {
	t.Parallel()
	s := up(t, local.Options{Auth: true, Agents: 2, CleanupWait: time.Second, HeartbeatEvery: time.Second, SuspectAfter: 8 * time.Second, ReapAfter: 25 * time.Second})
	caller, err := s.NewUser(t.Context(), "caller", s.Outputs["CallerPolicyArn"])
	if err != nil {
		t.Fatal(err)
	}
	t.Run("a caller's main job runs, from RunTask to a lost instance", func(t *testing.T) { rolesDoTheirWork(t, s, caller) })
	t.Run("callers reach their endpoints and nothing else", func(t *testing.T) { callersAreHeld(t, s, caller) })
	t.Run("no role reaches beyond its rights", func(t *testing.T) { rolesAreHeld(t, s) })
	t.Run("an agent reaches its own queue and nothing else", func(t *testing.T) { agentsAreHeld(t, s) })
}

// as is an ECS client of one of the endpoints with somebody's keys.
func as(cfg aws.Config, endpoint string) *ecs.Client {
	return ecs.NewFromConfig(cfg, func(o *ecs.Options) { o.BaseEndpoint, o.RetryMaxAttempts = &endpoint, 1 })
}

func rolesDoTheirWork(t *testing.T, whole *stack, caller aws.Config) {
	s := &stack{Stack: whole.Stack, t: t, ecs: as(caller, whole.API())}
	def := s.register("roles", func(_ *ecs.RegisterTaskDefinitionInput, c *types.ContainerDefinition) {
		c.Command = []string{"sh", "-c", "exit 7"}
	})
	short := s.run(def)
	if got := s.awaitStatus(short, "STOPPED"); got.StopCode != types.TaskStopCodeEssentialContainerExited {
		t.Errorf("stopped for %s", got.StopCode)
	}
	long := s.run(def, "sleep", "600")
	lives := s.awaitStatus(long, "RUNNING")
	if _, err := s.ecs.CreateService(t.Context(), &ecs.CreateServiceInput{ServiceName: aws.String("roles"), TaskDefinition: aws.String(s.register("served", nil)), DesiredCount: aws.Int32(2)}); err != nil {
		t.Fatal(err)
	}
	s.eventually("two tasks of the service run", func() bool {
		out, err := s.ecs.DescribeServices(t.Context(), &ecs.DescribeServicesInput{Services: []string{"roles"}})
		return err == nil && len(out.Services) == 1 && out.Services[0].RunningCount == 2
	})
	due := `{"scheduledTime":"` + time.Now().UTC().Format(time.RFC3339) + `","run":{"version":1,"schedule":"now","cluster":"default","taskDefinition":"roles","count":1,"overlap":"allow","group":"scheduled"}}`
	if out, err := lambda.NewFromConfig(s.Config()).Invoke(t.Context(), &lambda.InvokeInput{FunctionName: aws.String(s.Outputs["ScheduleFunctionName"]), Payload: []byte(due)}); err != nil || out.FunctionError != nil {
		t.Fatalf("run a schedule: %v %s", err, out.Payload)
	}
	s.eventually("the scheduled task has ended", func() bool {
		out, err := s.ecs.ListTasks(t.Context(), &ecs.ListTasksInput{DesiredStatus: types.DesiredStatusStopped, Family: aws.String("roles")})
		return err == nil && len(out.TaskArns) >= 2
	})
	// A host that dies without a word: the reaper closes what it had, the service
	// has its tasks elsewhere.
	dead := 1
	if strings.HasSuffix(aws.ToString(lives.ContainerInstanceArn), s.Agent(2).Instance) {
		dead = 2
	}
	if err := s.Agent(dead).Vanish(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.eventually("its task is closed", func() bool {
		s.tick()
		return aws.ToString(s.task(long).LastStatus) == "STOPPED"
	})
	s.eventually("the service is whole again", func() bool {
		out, err := s.ecs.DescribeServices(t.Context(), &ecs.DescribeServicesInput{Services: []string{"roles"}})
		return err == nil && out.Services[0].RunningCount == 2
	})
	if _, err := s.ecs.DeleteService(t.Context(), &ecs.DeleteServiceInput{Service: aws.String("roles"), Force: aws.Bool(true)}); err != nil {
		t.Fatal(err)
	}
	if err := s.Agent(dead).Start(); err != nil {
		t.Fatal(err)
	}
	s.eventually("it is back", func() bool {
		s.tick()
		return !slices.ContainsFunc(s.instances(), func(i types.ContainerInstance) bool { return !i.AgentConnected })
	})
	s.eventually("all is free", func() bool { return s.allFree() == "" })
	for _, line := range denied(t, s.EmulatorLog()) {
		t.Errorf("a function was refused: %s", line)
	}
}

// denied are the lines of the functions' logs that tell of a refusal.
func denied(t *testing.T, log string) []string {
	f, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []string
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if line := lines.Text(); strings.Contains(line, "AccessDenied") || strings.Contains(line, "is not authorized to perform") {
			out = append(out, line)
		}
	}
	return out
}

func callersAreHeld(t *testing.T, s *stack, caller aws.Config) {
	reader, err := s.NewUser(t.Context(), "reader", s.Outputs["ReadOnlyCallerPolicyArn"])
	if err != nil {
		t.Fatal(err)
	}
	nobody, err := s.NewUser(t.Context(), "nobody")
	if err != nil {
		t.Fatal(err)
	}
	forged := s.As("AKIAFORGED0000000000", "forged", "")
	for name, c := range map[string]struct {
		cfg           aws.Config
		writes, reads bool
	}{"caller": {caller, true, true}, "reader": {reader, false, true}, "nobody": {nobody, false, false}, "unknown key": {forged, false, false}} {
		for endpoint, let := range map[string]bool{s.API(): c.writes, s.ReadAPI(): c.reads} {
			if _, err := as(c.cfg, endpoint).ListClusters(t.Context(), &ecs.ListClustersInput{}); (err == nil) != let {
				t.Errorf("%s at %s: %v", name, endpoint, err)
			}
		}
		// Through the reading endpoint nobody changes anything.
		if _, err := as(c.cfg, s.ReadAPI()).CreateCluster(t.Context(), &ecs.CreateClusterInput{ClusterName: aws.String("made")}); err == nil {
			t.Errorf("%s made a cluster through the reading endpoint", name)
		}
		if name == "unknown key" {
			continue
		}
		// Not around the URL: an event of one's own could name any caller.
		for _, a := range slices.Concat(onTables(s.Outputs), onQueues(s.Outputs, s.Endpoint), beyond(s.Outputs, functions, s.Outputs["AgentRoleArn"])) {
			if err := a.do(t.Context(), c.cfg); !refused(err) {
				t.Errorf("%s may %s on %s: %v", name, a.action, a.resource, err)
			}
		}
	}
	if got := s.hasCluster(t, "made"); got {
		t.Error("the cluster is there")
	}
}

// hasCluster says whether a cluster is there.
func (s *stack) hasCluster(t *testing.T, cluster string) bool {
	out, err := s.ecs.DescribeClusters(t.Context(), &ecs.DescribeClustersInput{Clusters: []string{cluster}})
	if err != nil {
		t.Fatal(err)
	}
	return len(out.Clusters) > 0
}

// rights are the lines of the golden list, "ApiRole dynamodb:GetItem {TasksTable.Arn}".
func rights(t *testing.T, root string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "infra", "testdata", "rights.txt"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 4 && f[1] == "Allow" {
			out[f[0]+" "+f[2]+" "+f[3]] = true
		}
	}
	return out
}

// unreached are rights that are listed and that the emulator refuses all the same.
// Of a log group CloudFormation's Arn ends in :* on AWS, and in its name there.
var unreached = []string{"logs:CreateLogStream"}

func rolesAreHeld(t *testing.T, s *stack) {
	listed := rights(t, s.Options.Root)
	all := slices.Concat(onTables(s.Outputs), onQueues(s.Outputs, s.Endpoint), beyond(s.Outputs, functions, s.Outputs["AgentRoleArn"]))
	may, not := 0, 0
	for _, name := range functions {
		cfg, err := s.FunctionAs(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range all {
			let := !refused(a.do(t.Context(), cfg))
			if want := listed[name+"Role "+a.action+" "+a.resource]; let != want && (let || !slices.Contains(unreached, a.action)) {
				t.Errorf("%s, %s on %s: let through %v, listed %v", name, a.action, a.resource, let, want)
			}
			if let {
				may++
			} else {
				not++
			}
		}
	}
	t.Logf("%d roles, %d calls each: %d let through, %d refused", len(functions), len(all), may, not)
	if may < 100 || not < 800 {
		t.Error("that is too few of either")
	}
}

func agentsAreHeld(t *testing.T, s *stack) {
	cfg, err := s.AgentAs(1)
	if err != nil {
		t.Fatal(err)
	}
	queue := func(instance string) string {
		return s.Endpoint + "/000000000000/" + s.Outputs["CommandQueueNameStart"] + instance
	}
	let := func(resource string, action string) bool {
		switch resource {
		case "its own":
			return slices.Contains([]string{"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes"}, action)
		case "{ReportsQueue.Arn}", "{HeartbeatsQueue.Arn}":
			return action == "sqs:SendMessage"
		}
		return false
	}
	all := slices.Concat(onTables(s.Outputs), onQueues(s.Outputs, s.Endpoint), beyond(s.Outputs, functions, s.Outputs["AgentRoleArn"]),
		onQueue("its own", queue(s.Agent(1).Instance)), onQueue("another's", queue(s.Agent(2).Instance)))
	n := 0
	for _, a := range all {
		n++
		if got, want := !refused(a.do(t.Context(), cfg)), let(a.resource, a.action); got != want {
			t.Errorf("%s on %s: let through %v, want %v", a.action, a.resource, got, want)
		}
	}
	if _, err := sqs.NewFromConfig(cfg).ListQueues(context.Background(), &sqs.ListQueuesInput{}); !refused(err) {
		t.Errorf("an agent may list the queues: %v", err)
	}
	for name, endpoint := range map[string]string{"API": s.API(), "reading API": s.ReadAPI()} {
		if _, err := as(cfg, endpoint).ListClusters(t.Context(), &ecs.ListClustersInput{}); err == nil {
			t.Errorf("an agent may call the %s", name)
		}
	}
	t.Logf("an agent tried %d calls", n)
}
