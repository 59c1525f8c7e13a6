//go:build e2e

package e2e

import (
	"encoding/json"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/longshore-run/longshore/test/local"
)

// One stack for what does not disturb each other.
func TestMainJob(t *testing.T) {
	s := up(t, local.Options{Agents: 2, CleanupWait: 2 * time.Second})
	sub := func(name string, f func(t *testing.T, s *stack)) {
		t.Run(name, func(t *testing.T) { f(t, &stack{Stack: s.Stack, t: t, ecs: s.ecs}) })
	}
	sub("the stock AWS CLI runs the minimal definition unchanged", stockCLI)
	sub("boto3 does the same", stockBoto3)
	sub("a task that does not fit waits with its reason and starts when room appears", waitsForRoom)
	sub("RunTask to RUNNING takes little more than the engine's own time", latency)
	sub("two hundred random run and stop pairs leak nothing", runStopPairs)
	sub("finished tasks leave no container", nothingLeft)
}

func stockCLI(t *testing.T, s *stack) {
	s.aws("register-task-definition", "--cli-input-json", "file://"+filepath.Join("examples", "taskdefs", "12-minimal-and-defaults.json"))
	run := func(args ...string) string {
		return s.aws(append([]string{"run-task", "--task-definition", "hello_minimal-1", "--query", "tasks[0].taskArn", "--output", "text"}, args...)...)
	}
	long := run("--overrides", `{"containerOverrides":[{"name":"hello","command":["sleep","600"]}]}`)
	s.aws("wait", "tasks-running", "--tasks", long)
	s.aws("stop-task", "--task", long)
	short := run()
	s.aws("wait", "tasks-stopped", "--tasks", short)
	var out struct{ Tasks []map[string]any }
	if err := json.Unmarshal([]byte(s.aws("describe-tasks", "--tasks", short, "--output", "json")), &out); err != nil {
		t.Fatal(err)
	}
	task := out.Tasks[0]
	container := task["containers"].([]any)[0].(map[string]any)
	if container["exitCode"] != 7.0 || task["stopCode"] != "EssentialContainerExited" {
		t.Errorf("exit code %v, stop code %v", container["exitCode"], task["stopCode"])
	}
	for _, time := range []string{"createdAt", "pullStartedAt", "pullStoppedAt", "startedAt", "stoppingAt", "executionStoppedAt", "stoppedAt"} {
		if task[time] == nil {
			t.Errorf("%s is missing", time)
		}
	}
}

func stockBoto3(t *testing.T, s *stack) {
	if out := s.tool("python", filepath.Join("test", "e2e", "testdata", "main_job.py")); out != "exit code 7" {
		t.Error(out)
	}
}

func waitsForRoom(t *testing.T, s *stack) {
	// One instance's whole memory, whose process ignores SIGTERM.
	biggest := 0
	for _, i := range s.instances() {
		for _, r := range i.RegisteredResources {
			if aws.ToString(r.Name) == "MEMORY" {
				biggest = max(biggest, int(r.IntegerValue))
			}
		}
	}
	out := s.folder()
	def := s.register("whole-instance", func(in *ecs.RegisterTaskDefinitionInput, c *types.ContainerDefinition) {
		c.Memory, c.MemoryReservation = nil, aws.Int32(int32(biggest*6/10))
		c.StopTimeout = aws.Int32(120)
		share(out, in, c)
	})
	run := func(name string) string { // until there is a file of the name
		return s.run(def, "sh", "-c", "trap '' TERM; until test -e /out/"+name+"; do sleep 0.1; done")
	}
	first, second := run("first"), run("second")
	s.awaitStatus(first, "RUNNING")
	s.awaitStatus(second, "RUNNING")
	third, fourth := run("third"), run("fourth")
	for _, arn := range []string{third, fourth} {
		s.eventually("waiting with its reason", func() bool {
			task := s.task(arn)
			return aws.ToString(task.LastStatus) == "PROVISIONING" && slices.ContainsFunc(task.Attributes, func(a types.Attribute) bool {
				return aws.ToString(a.Name) == "longshore.waitingReason" && aws.ToString(a.Value) == "RESOURCE:MEMORY"
			})
		})
	}
	s.stop(first)
	if got := s.stop(third); aws.ToString(got.LastStatus) != "STOPPED" {
		t.Errorf("a waiting task that was stopped is %s", aws.ToString(got.LastStatus))
	}
	if now := s.task(first); aws.ToString(now.LastStatus) == "STOPPED" {
		t.Error("the task in front was to ignore SIGTERM, and has ended")
	}
	touch(t, out, "first")
	ended := s.awaitStatus(first, "STOPPED")
	// By the end itself, and not by the sweep of each minute.
	if next := s.awaitStatus(fourth, "RUNNING"); next.PullStartedAt.Sub(*ended.StoppedAt) > 30*time.Second {
		t.Errorf("room appeared at %s, and was used at %s", ended.StoppedAt, next.PullStartedAt)
	}
	s.stop(second)
	s.stop(fourth)
	touch(t, out, "second")
	touch(t, out, "fourth")
	s.awaitStatus(second, "STOPPED")
	s.awaitStatus(fourth, "STOPPED")
	if held := s.allFree(); held != "" {
		t.Error(held)
	}
}

func latency(t *testing.T, s *stack) {
	def := s.register("latency", nil)
	var times, engine []time.Duration
	for range 10 {
		begun := time.Now()
		arn := s.run(def)
		task := s.awaitStatus(arn, "RUNNING")
		times = append(times, time.Since(begun))
		engine = append(engine, task.StartedAt.Sub(*task.PullStoppedAt))
		s.stop(arn)
	}
	slices.Sort(times)
	slices.Sort(engine)
	t.Logf("RunTask to RUNNING: median %s of %s; of that create and start about %s", times[5], times, engine[5])
	if most := 250*time.Millisecond + engine[5]; times[5] > 4*most {
		t.Errorf("median %s, want about %s: more than four times that is not noise", times[5], most)
	}
}

func runStopPairs(t *testing.T, s *stack) {
	def := s.register("pairs", nil)
	arns := make([]string, 200)
	var wg sync.WaitGroup
	slots := make(chan struct{}, 8)
	for i := range arns {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			arns[i] = s.run(def)
			until := time.After(time.Duration(rand.IntN(400)) * time.Millisecond)
			<-until
			s.stop(arns[i])
		})
	}
	wg.Wait()
	for _, arn := range arns {
		s.awaitStatus(arn, "STOPPED")
	}
	if held := s.allFree(); held != "" {
		t.Error(held)
	}
	codes := map[string]int{}
	for chunk := range slices.Chunk(arns, 100) {
		out, err := s.ecs.DescribeTasks(t.Context(), &ecs.DescribeTasksInput{Cluster: aws.String(local.Cluster), Tasks: chunk})
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range out.Tasks {
			codes[string(task.StopCode)]++
		}
	}
	t.Logf("200 tasks by stop code: %v", codes)
	if codes["UserInitiated"] != 200 {
		t.Errorf("stop codes %v", codes)
	}
}

func nothingLeft(t *testing.T, s *stack) {
	for n := 1; n <= 2; n++ {
		s.awaitClean(s.Agent(n))
	}
	if held := s.allFree(); held != "" {
		t.Error(held)
	}
	var listed []string
	pages := ecs.NewListTasksPaginator(s.ecs, &ecs.ListTasksInput{Cluster: aws.String(local.Cluster), DesiredStatus: types.DesiredStatusStopped, MaxResults: aws.Int32(17)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		listed = append(listed, page.TaskArns...)
	}
	slices.Sort(listed)
	if n := len(slices.Compact(slices.Clone(listed))); n != len(listed) || n < 200 {
		t.Errorf("%d stopped tasks are listed, %d different ones", len(listed), n)
	}
	if strings.Contains(strings.Join(listed, " "), "//") {
		t.Errorf("an ARN is malformed: %v", listed)
	}
}
