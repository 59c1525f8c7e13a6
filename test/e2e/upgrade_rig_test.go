//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/client"

	"github.com/longshore-run/longshore/test/link"
	"github.com/longshore-run/longshore/test/local"
)

// newVersion is that of the agent that takes the old one's place.
const newVersion = "99.0.0"

// upgrade is a stack whose one agent is a binary of its own, behind a link to the
// engine.
type upgrade struct {
	*stack
	docker *link.Link
	out    string          // what its tasks share
	next   func() []string // what is told of tasks
	bodies map[int64]string
	seen   map[string]bool          // messages that lay in the queue of reports
	sent   map[string]map[int64]era // reports that lay there, by task and n
	begun  time.Time                // when the old agent had ended
}

func enterUpgrade(t *testing.T) *upgrade {
	t.Helper()
	u := &upgrade{bodies: map[int64]string{}, seen: map[string]bool{}, sent: map[string]map[int64]era{}}
	program, sockets := filepath.Join(t.TempDir(), "longshore-agent"), socketDir(t)
	copyFile(t, (&local.Stack{Options: local.Options{Root: local.Root(t)}}).Binary(), program)
	t.Cleanup(func() { // after the stack was taken down
		if u.docker != nil {
			_ = u.docker.Close()
		}
	})
	u.stack = up(t, local.Options{Agents: 1, HeartbeatEvery: 2 * time.Second, SuspectAfter: time.Minute, Program: program,
		AgentEnv: func(int, string) (map[string]string, error) {
			socket, ok := strings.CutPrefix(os.Getenv("DOCKER_HOST"), "unix://")
			if !ok {
				socket = "/var/run/docker.sock"
			}
			var err error
			u.docker, err = link.New("unix", filepath.Join(sockets, "1"), socket)
			return map[string]string{"DOCKER_HOST": "unix://" + filepath.Join(sockets, "1")}, err
		}})
	u.out = u.folder()
	u.next = u.stack.told(eventbridge.NewFromConfig(u.Config()))
	return u
}

// socketDir is a folder whose path is short enough for sockets.
func socketDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "up-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, text, 0o755); err != nil {
		t.Fatal(err)
	}
}

// share has a container see what the test sees.
func (u *upgrade) share(in *ecs.RegisterTaskDefinitionInput, c *types.ContainerDefinition) {
	share(u.out, in, c)
}

// gated registers a definition whose main container waits for the end of another one.
func (u *upgrade) gated() string {
	u.t.Helper()
	in := &ecs.RegisterTaskDefinitionInput{Family: aws.String("gated"), NetworkMode: types.NetworkModeNone}
	gate := types.ContainerDefinition{Name: aws.String("gate"), Image: &u.Image, Memory: aws.Int32(16), Essential: aws.Bool(false),
		Command: []string{"sh", "-c", "while [ ! -e /out/gate ]; do sleep 0.1; done"}}
	main := types.ContainerDefinition{Name: aws.String("main"), Image: &u.Image, Memory: aws.Int32(16), StopTimeout: aws.Int32(2), Command: []string{"sleep", "600"},
		DependsOn: []types.ContainerDependency{{ContainerName: gate.Name, Condition: types.ContainerConditionSuccess}}}
	u.share(in, &gate)
	in.ContainerDefinitions = []types.ContainerDefinition{gate, main}
	out, err := u.ecs.RegisterTaskDefinition(u.t.Context(), in)
	if err != nil {
		u.t.Fatal(err)
	}
	return aws.ToString(out.TaskDefinition.TaskDefinitionArn)
}

func (u *upgrade) has(name string) bool {
	_, err := os.Stat(filepath.Join(u.out, name))
	return err == nil
}

func (u *upgrade) make(name string) {
	u.t.Helper()
	touch(u.t, u.out, name)
}

func (u *upgrade) await(what string, done func() bool) {
	u.t.Helper()
	u.eventually(what, done)
}

// upgrade puts the new binary in the old one's place while that runs, and restarts
// the agent as systemd does. What the engine was asked while it stalled arrives when
// nobody waits for it any more.
func (u *upgrade) upgrade() {
	u.t.Helper()
	agent, program := u.Agent(1), u.Options.Program
	build := exec.CommandContext(u.t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-tags", "lambda.norpc", "-ldflags", "-s -w -buildid= -X main.version="+newVersion, "-o", program+".new", "./edgeagent")
	build.Dir, build.Env = u.Options.Root, append(os.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		u.t.Fatalf("build another version of the agent: %v\n%s", err, said)
	}
	if err := os.Rename(program+".new", program); err != nil {
		u.t.Fatal(err)
	}
	begun := time.Now()
	if err := agent.Signal(u.t.Context(), syscall.SIGTERM); err != nil {
		u.t.Fatal(err)
	}
	u.begun = time.Now()
	u.docker.Mend()
	if err := agent.Start(); err != nil {
		u.t.Fatal(err)
	}
	u.t.Logf("the agent was restarted in %s", time.Since(begun).Round(time.Millisecond))
}

// look is what the agent knows, by its own command.
func (u *upgrade) look() (l agentLook) {
	u.t.Helper()
	out, err := exec.CommandContext(u.t.Context(), u.Options.Program, "-env-file", filepath.Join(u.Agent(1).Dir, "env"), "status", "-o", "json").Output()
	if len(out) == 0 {
		u.t.Fatalf("the agent's status: %v", err)
	}
	if err := json.Unmarshal(out, &l); err != nil {
		u.t.Fatalf("the agent's status: %v\n%s", err, out)
	}
	return l
}

type agentLook struct {
	Version, Incarnation, Session string
	Tasks                         []taskLook
}

type taskLook struct {
	ID           string
	Status       string `json:"lastStatus"`
	Acknowledged bool
}

func (u *upgrade) looks(arn string) taskLook {
	u.t.Helper()
	for _, k := range u.look().Tasks {
		if k.ID == id(arn) {
			return k
		}
	}
	return taskLook{}
}

func id(arn string) string { return arn[strings.LastIndex(arn, "/")+1:] }

// containers are those of the agent by task, with when each was started and ended.
func (u *upgrade) containers() map[string]map[string]string {
	u.t.Helper()
	all, err := local.Containers(u.t.Context(), u.Agent(1).Instance)
	if err != nil {
		u.t.Fatal(err)
	}
	api, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		u.t.Fatal(err)
	}
	defer api.Close()
	found := map[string]map[string]string{}
	for _, c := range all {
		is, err := api.ContainerInspect(context.WithoutCancel(u.t.Context()), c.ID)
		if cerrdefs.IsNotFound(err) { // it went since it was listed
			continue
		}
		if err != nil {
			u.t.Fatal(err)
		}
		arn := c.Labels["com.amazonaws.ecs.task-arn"]
		if found[arn] == nil {
			found[arn] = map[string]string{}
		}
		found[arn][c.ID] = is.State.StartedAt
	}
	return found
}

// same wants every container of before to be there still, started when it was.
func (u *upgrade) same(before map[string]map[string]string, when string) {
	u.t.Helper()
	after := u.containers()
	for task, all := range before {
		for c, started := range all {
			if got, there := after[task][c]; !there || got != started {
				u.t.Errorf("%s: container %s of %s was started at %s, and now at %q", when, c[:12], task, started, got)
			}
		}
	}
}
