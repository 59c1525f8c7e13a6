//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/longshore-run/longshore/test/local"
)

// stack is a local stack of one test, with what the tests say often.
type stack struct {
	*local.Stack
	t     *testing.T
	ecs   *ecs.Client
	reads *ecs.Client // another function's, if a test sets it: what it asks is not counted
}

// up brings a stack up for one test; at its end the books are audited, and it is
// taken down.
func up(t *testing.T, o local.Options) *stack {
	t.Helper()
	o.LogLevel = "debug"
	s := local.ForTest(t, o)
	t.Cleanup(func() { local.CheckBooks(t, s) })
	return &stack{Stack: s, t: t, ecs: s.ECS()}
}

// patience ends a wait in vain. How long something takes on a busy machine is looked at
// by none but those tests whose subject it is.
const patience = 5 * time.Minute

// eventually polls until done says so.
func (s *stack) eventually(what string, done func() bool) {
	s.t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-deadline:
			s.t.Fatalf("after %s: not %s", patience, what)
		case <-s.t.Context().Done():
			s.t.Fatal(s.t.Context().Err())
		case <-tick.C:
		}
	}
}

// run runs a task of a definition with some command in its one container.
func (s *stack) run(definition string, command ...string) string {
	s.t.Helper()
	in := &ecs.RunTaskInput{Cluster: aws.String(local.Cluster), TaskDefinition: &definition}
	if len(command) > 0 {
		in.Overrides = &types.TaskOverride{ContainerOverrides: []types.ContainerOverride{{Name: aws.String("main"), Command: command}}}
	}
	out, err := s.ecs.RunTask(s.t.Context(), in)
	if err != nil || len(out.Tasks) != 1 {
		s.t.Fatalf("run %s: %v %+v", definition, err, out)
	}
	if got := aws.ToString(out.Tasks[0].LastStatus); got != "PROVISIONING" {
		s.t.Fatalf("RunTask answered a task that is %s", got)
	}
	return aws.ToString(out.Tasks[0].TaskArn)
}

func (s *stack) task(arn string) types.Task {
	s.t.Helper()
	out, err := s.ecs.DescribeTasks(s.t.Context(), &ecs.DescribeTasksInput{Cluster: aws.String(local.Cluster), Tasks: []string{arn}})
	if err != nil || len(out.Tasks) != 1 {
		s.t.Fatalf("describe %s: %v %+v", arn, err, out)
	}
	return out.Tasks[0]
}

func (s *stack) stop(arn string) types.Task {
	s.t.Helper()
	out, err := s.ecs.StopTask(s.t.Context(), &ecs.StopTaskInput{Cluster: aws.String(local.Cluster), Task: &arn, Reason: aws.String("the test wants it")})
	if err != nil {
		s.t.Fatalf("stop %s: %v", arn, err)
	}
	return *out.Task
}

func (s *stack) awaitStatus(arn, status string) types.Task {
	s.t.Helper()
	var t types.Task
	s.eventually(fmt.Sprintf("%s of task %s", status, arn), func() bool {
		t = s.task(arn)
		return aws.ToString(t.LastStatus) == status
	})
	return t
}

func (s *stack) instances() []types.ContainerInstance {
	s.t.Helper()
	list, err := s.ecs.ListContainerInstances(s.t.Context(), &ecs.ListContainerInstancesInput{Cluster: aws.String(local.Cluster)})
	if err != nil {
		s.t.Fatal(err)
	}
	out, err := s.ecs.DescribeContainerInstances(s.t.Context(), &ecs.DescribeContainerInstancesInput{Cluster: aws.String(local.Cluster), ContainerInstances: list.ContainerInstanceArns})
	if err != nil {
		s.t.Fatal(err)
	}
	return out.ContainerInstances
}

func (s *stack) instance(id string) types.ContainerInstance {
	s.t.Helper()
	for _, i := range s.instances() {
		if strings.HasSuffix(aws.ToString(i.ContainerInstanceArn), "/"+id) {
			return i
		}
	}
	s.t.Fatalf("instance %s is not listed", id)
	return types.ContainerInstance{}
}

// allFree says what is still held, or "".
func (s *stack) allFree() string {
	for _, i := range s.instances() {
		if held := local.Held(i); held != "" {
			return aws.ToString(i.ContainerInstanceArn) + ": " + held
		}
	}
	return ""
}

// register registers a definition with one container, "main", on the test image.
func (s *stack) register(family string, change func(*ecs.RegisterTaskDefinitionInput, *types.ContainerDefinition)) string {
	s.t.Helper()
	return s.Register(s.t, s.ecs, family, change)
}

// tool runs one of the pinned stock clients against the stack.
func (s *stack) tool(name string, args ...string) string {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), filepath.Join(s.Options.Root, ".tools", "venv", "bin", name), args...)
	cmd.Dir = s.Options.Root
	cmd.Env = append(append(os.Environ(), s.Env()...), "LONGSHORE_ENDPOINT="+s.API())
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func (s *stack) aws(args ...string) string {
	s.t.Helper()
	return s.tool("aws", append([]string{"ecs", "--endpoint-url", s.API()}, args...)...)
}

// awaitClean waits until an agent has left no container on the engine.
func (s *stack) awaitClean(agent *local.Agent) {
	s.t.Helper()
	var left []string
	defer func() {
		if len(left) > 0 {
			s.t.Logf("left by agent %d: %s", agent.N, strings.Join(left, ", "))
		}
	}()
	s.eventually(fmt.Sprintf("clean is the engine of agent %d", agent.N), func() bool {
		all, err := local.Containers(s.t.Context(), agent.Instance)
		if err != nil {
			s.t.Fatal(err)
		}
		left = nil
		for _, c := range all {
			left = append(left, fmt.Sprintf("%s (%s, %s)", c.Names[0], c.State, c.Status))
		}
		return len(left) == 0
	})
}

// folder is one of the test that containers may write, too.
func (s *stack) folder() string {
	s.t.Helper()
	dir := s.t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		s.t.Fatal(err)
	}
	return dir
}

// share has a container see a folder of the test at /out.
func share(folder string, in *ecs.RegisterTaskDefinitionInput, c *types.ContainerDefinition) {
	in.Volumes = []types.Volume{{Name: aws.String("out"), Host: &types.HostVolumeProperties{SourcePath: &folder}}}
	c.MountPoints = []types.MountPoint{{SourceVolume: aws.String("out"), ContainerPath: aws.String("/out")}}
}

// touch makes a file for which a container waits.
func touch(t *testing.T, folder, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, name), nil, 0o666); err != nil {
		t.Fatal(err)
	}
}

func (s *stack) tick() {
	s.t.Helper()
	if err := s.Tick(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}
