//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/longshore-run/longshore/shared/schema"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
	"github.com/longshore-run/longshore/test/local"
)

func TestAgentDies_OneOfTwo(t *testing.T) { t.Parallel(); agentDies(t, 2) }
func TestAgentDies_TheOnly(t *testing.T)  { t.Parallel(); agentDies(t, 1) }

// agentDies kills an agent and starts it again, then kills it for good until it
// is LOST, then starts it once more.
func agentDies(t *testing.T, agents int) {
	s := up(t, local.Options{Agents: agents, HeartbeatEvery: 5 * time.Second, SuspectAfter: 20 * time.Second, ReapAfter: 90 * time.Second, CleanupWait: time.Second})
	victim := s.Agent(1)
	def := s.register("survivor", nil)
	onVictim := func() string {
		out, err := s.ecs.StartTask(t.Context(), &ecs.StartTaskInput{Cluster: aws.String(local.Cluster), TaskDefinition: &def, ContainerInstances: []string{victim.Instance}})
		if err != nil || len(out.Tasks) != 1 {
			t.Fatalf("start task: %v %+v", err, out)
		}
		return aws.ToString(out.Tasks[0].TaskArn)
	}
	arn := onVictim()
	before := s.awaitStatus(arn, "RUNNING")

	if err := victim.Signal(t.Context(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	// A command that the killed agent's open poll took comes again when it is
	// visible again; so some more time than usual.
	marker := onVictim()
	s.awaitStatus(marker, "RUNNING")
	s.stop(marker)
	s.awaitStatus(marker, "STOPPED")
	after := s.task(arn)
	if aws.ToString(after.LastStatus) != "RUNNING" || aws.ToString(after.Containers[0].RuntimeId) != aws.ToString(before.Containers[0].RuntimeId) {
		t.Fatalf("after a restart of its agent: %s, container %s, was %s", aws.ToString(after.LastStatus), aws.ToString(after.Containers[0].RuntimeId), aws.ToString(before.Containers[0].RuntimeId))
	}
	s.eventually("one container runs", func() bool { return runningContainers(t, victim.Instance) == 1 })

	if err := victim.Signal(t.Context(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.eventually("LOST is the instance", func() bool {
		s.tick()
		return strings.HasPrefix(aws.ToString(s.instance(victim.Instance).StatusReason), "LOST")
	})
	took := time.Since(s.lastBeat(victim.Instance))
	t.Logf("LOST %s after its last heartbeat", took.Round(time.Second))
	if took < s.Options.ReapAfter {
		t.Errorf("reaped %s after its last heartbeat, before REAP_AFTER", took)
	}
	if agents == 2 { // the other one has been idle for more than a minute
		rss := resident(t, s.Agent(2).PID())
		for n := 0; n < 90 && rss > mostResidentBytes; n++ { // what is free again it gives back each minute
			<-time.After(time.Second)
			rss = min(rss, resident(t, s.Agent(2).PID()))
		}
		t.Logf("an idle agent has %.1f MiB resident", float64(rss)/(1<<20))
		if rss > mostResidentBytes {
			t.Errorf("an idle agent has %d bytes resident, want at most %d", rss, mostResidentBytes)
		}
	}
	gone := s.awaitStatus(arn, "STOPPED")
	if gone.StopCode != "InfrastructureHealth" || !strings.Contains(aws.ToString(gone.StoppedReason), "lost") {
		t.Errorf("stop code %s, reason %q", gone.StopCode, aws.ToString(gone.StoppedReason))
	}
	lost := s.instance(victim.Instance)
	for _, r := range lost.RemainingResources {
		if r.IntegerValue != 0 {
			t.Errorf("a LOST instance shows %d %s remaining", r.IntegerValue, aws.ToString(r.Name))
		}
	}
	if lost.AgentConnected {
		t.Error("a LOST instance is shown as connected")
	}

	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	s.eventually("back is the instance", func() bool { return s.instance(victim.Instance).AgentConnected })
	s.eventually("stopped is the fenced container", func() bool { return runningContainers(t, victim.Instance) == 0 })
	again := onVictim()
	s.awaitStatus(again, "RUNNING")
	s.stop(again)
	s.awaitStatus(again, "STOPPED")
	if held := s.allFree(); held != "" {
		t.Error(held)
	}
}

// lastBeat is when the last heartbeat was sent that the control plane has taken.
func (s *stack) lastBeat(instance string) time.Time {
	s.t.Helper()
	item := s.item("LeasesTableName", instance)
	sent, ok := item["sent"].(*dynamotypes.AttributeValueMemberS)
	if !ok {
		s.t.Fatalf("the lease of %s says nothing of its last heartbeat: %v", instance, item)
	}
	at, err := time.Parse(time.RFC3339Nano, sent.Value)
	if err != nil {
		s.t.Fatal(err)
	}
	return at
}

// item is a record as it is stored.
func (s *stack) item(table, id string) map[string]dynamotypes.AttributeValue {
	s.t.Helper()
	db := dynamodb.NewFromConfig(s.Config())
	got, err := db.GetItem(s.t.Context(), &dynamodb.GetItemInput{TableName: aws.String(s.Outputs[table]), ConsistentRead: aws.Bool(true),
		Key: map[string]dynamotypes.AttributeValue{schema.ID: &dynamotypes.AttributeValueMemberS{Value: id}}})
	if err != nil {
		s.t.Fatal(err)
	}
	return got.Item
}

func runningContainers(t *testing.T, instance string) (n int) {
	t.Helper()
	all, err := local.Containers(t.Context(), instance)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		if c.State == "running" {
			n++
		}
	}
	return n
}

// held is for how long TestReportsHeldBack holds reports back.
var held = time.Minute

// Reports are held back while heartbeats go on; each start is delivered twice more.
func TestReportsHeldBack(t *testing.T) {
	t.Parallel()
	s := up(t, local.Options{Agents: 1, CleanupWait: time.Second})
	out := s.folder()
	def := s.register("held", func(in *ecs.RegisterTaskDefinitionInput, c *types.ContainerDefinition) {
		c.StopTimeout = aws.Int32(60)
		share(out, in, c)
	})
	s.reports(false)
	script := func(n, code int) []string {
		return []string{"sh", "-c", fmt.Sprintf("echo run >>/out/%d; exit %d", n, code)}
	}
	arns := []string{s.run(def, script(0, 0)...), s.run(def, script(1, 7)...), s.run(def, script(2, 3)...)}
	lines := func(n int) int {
		b, _ := os.ReadFile(filepath.Join(out, strconv.Itoa(n)))
		return strings.Count(string(b), "run")
	}
	for n := range arns {
		s.eventually(fmt.Sprintf("run is task %d", n), func() bool { return lines(n) == 1 })
	}
	long := s.run(def, "sh", "-c", "trap 'exit 5' TERM; echo run >>/out/3; while :; do sleep 0.1; done")
	s.eventually("run is task 3", func() bool { return lines(3) == 1 })
	s.stop(long)
	arns = append(arns, long)
	for range 2 {
		for _, arn := range arns {
			s.redeliver(arn)
		}
	}
	until := time.After(held)
	<-until
	for _, arn := range arns {
		if got := s.task(arn); aws.ToString(got.LastStatus) == "STOPPED" {
			t.Fatalf("a report got through: %+v", got)
		}
	}
	s.reports(true)
	for n, code := range []int32{0, 7, 3, 5} {
		got := s.awaitStatus(arns[n], "STOPPED")
		if c := got.Containers[0]; c.ExitCode == nil || *c.ExitCode != code {
			t.Errorf("task %d: exit code %v, want %d", n, c.ExitCode, code)
		}
		if lines(n) != 1 {
			t.Errorf("task %d ran %d times", n, lines(n))
		}
	}
	s.awaitClean(s.Agent(1))
	if left := s.allFree(); left != "" {
		t.Error(left)
	}
}

// reports switches the event source of the reports queue.
func (s *stack) reports(on bool) {
	s.t.Helper()
	c := lambda.NewFromConfig(s.Config())
	if _, err := c.UpdateEventSourceMapping(s.t.Context(), &lambda.UpdateEventSourceMappingInput{UUID: aws.String(s.Outputs["ReportsSourceId"]), Enabled: &on}); err != nil {
		s.t.Fatal(err)
	}
}

// redeliver sends a task's assign again, as SQS may at any time.
func (s *stack) redeliver(arn string) {
	s.t.Helper()
	id := arn[strings.LastIndex(arn, "/")+1:]
	item := s.item("TasksTableName", id)
	number := func(name string) int64 {
		n, err := strconv.ParseInt(item[name].(*dynamotypes.AttributeValueMemberN).Value, 10, 64)
		if err != nil {
			s.t.Fatal(err)
		}
		return n
	}
	memory := 16
	def := taskdef.Echo(taskdef.Input{Spec: taskdef.Spec{Family: "held", ContainerDefinitions: []taskdef.ContainerDefinition{
		{Name: "main", Image: s.Image, Memory: &memory, Command: []string{"sh", "-c", "echo run >>/out/extra"}}}}}, taskdef.Registration{Revision: 1})
	instance := s.Agent(1).Instance
	body, err := wire.Encode(&wire.Assign{Header: wire.Header{Instance: instance}, Epoch: number("epoch"), Task: id, Attempt: int(number("attempt")),
		TaskARN: arn, Cluster: local.Cluster, Family: "held", Revision: 1, Definition: taskdef.Canonical(def)})
	if err != nil {
		s.t.Fatal(err)
	}
	url := s.Outputs["ReportsQueueUrl"]
	url = url[:strings.LastIndex(url, "/")+1] + s.Outputs["CommandQueueNameStart"] + instance
	if _, err := sqs.NewFromConfig(s.Config()).SendMessage(s.t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String(string(body))}); err != nil {
		s.t.Fatal(err)
	}
}
