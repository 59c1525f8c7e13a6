//go:build e2e

package chaos

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/longshore-run/longshore/test/link"
	"github.com/longshore-run/longshore/test/local"
)

const (
	agents         = 5
	heartbeatEvery = 2 * time.Second
	suspectAfter   = 6 * time.Second
)

// stage is a local stack whose agents stand behind links of their own.
type stage struct {
	*local.Stack
	t      *testing.T
	ecs    *ecs.Client
	clouds []*link.Link // of each agent, to the emulator
	docker []*link.Link // of each agent, to the engine

	machines []string // the instance of each agent
}

// enter brings a stage up. Its agents can have another clock, and read the engine
// anew every few seconds: a stream that has gone deaf is not noticed sooner.
func enter(t *testing.T, reapAfter time.Duration) *stage {
	t.Helper()
	dir, err := os.MkdirTemp("", "links-") // a socket's path may not be long
	if err != nil {
		t.Fatal(err)
	}
	g := &stage{t: t, clouds: make([]*link.Link, agents+1), docker: make([]*link.Link, agents+1)}
	t.Cleanup(func() { // after the stack was taken down
		for _, l := range slices.Concat(g.clouds, g.docker) {
			if l != nil {
				_ = l.Close()
			}
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
		if g.Stack != nil {
			g.nothingLeft()
		}
	})
	s := local.ForTest(t, local.Options{
		Agents: agents, HeartbeatEvery: heartbeatEvery, SuspectAfter: suspectAfter, ReapAfter: reapAfter, CleanupWait: time.Second,
		LogLevel: "debug", Persist: true, Program: local.SkewedAgent(t),
		AgentEnv: func(n int, endpoint string) (map[string]string, error) {
			at, err := url.Parse(endpoint)
			if err != nil {
				return nil, err
			}
			if g.clouds[n], err = link.New("tcp", "127.0.0.1:0", at.Host); err != nil {
				return nil, err
			}
			if g.docker[n], err = link.New("unix", filepath.Join(dir, fmt.Sprint(n)), socket()); err != nil {
				return nil, err
			}
			return map[string]string{
				"AWS_ENDPOINT_URL": "http://" + g.clouds[n].Addr(), "DOCKER_HOST": "unix://" + g.docker[n].Addr(),
				"LONGSHORE_RECHECK_EVERY": "10s", "LONGSHORE_INSTANCE_ATTRIBUTES": fmt.Sprintf("seat=%d", n),
			}, nil
		},
	})
	g.Stack, g.ecs = s, s.ECS()
	for n := 1; n <= agents; n++ {
		g.machines = append(g.machines, g.Agent(n).Instance)
	}
	t.Cleanup(func() {
		if t.Failed() {
			g.keepLogs()
		}
	})
	t.Cleanup(func() {
		ledgers, services := local.CheckBooks(t, s)
		t.Logf("audit: %d ledgers, %d services", ledgers, services)
	})
	return g
}

// nothingLeft wants no process, port or container of a stack that was taken down.
func (g *stage) nothingLeft() {
	g.t.Helper()
	if all := left(g.Options.Dir); len(all) > 0 {
		g.t.Errorf("processes left: %s", strings.Join(all, "\n"))
	}
	at, err := url.Parse(g.Endpoint)
	if err != nil {
		g.t.Fatal(err)
	}
	if c, err := net.Dial("tcp", at.Host); err == nil {
		_ = c.Close()
		g.t.Errorf("somebody still listens at %s", at.Host)
	}
	for n, instance := range g.machines {
		if all, err := local.Containers(context.Background(), instance); err != nil || len(all) > 0 {
			g.t.Errorf("%d containers of agent %d are left, %v", len(all), n+1, err)
		}
	}
}

// keepLogs keeps what was said on the way to a failure: go test -artifacts.
func (g *stage) keepLogs() {
	files, _ := filepath.Glob(filepath.Join(g.Options.Dir, "agents", "*", "log"))
	for _, file := range append(files, g.EmulatorLog()) {
		name := strings.ReplaceAll(strings.TrimPrefix(file, g.Options.Dir+"/"), "/", "-")
		if text, err := os.ReadFile(file); err == nil {
			_ = os.WriteFile(filepath.Join(g.t.ArtifactDir(), name), text, 0o644)
		}
	}
}

// socket is the engine's on this machine.
func socket() string {
	if path, ok := strings.CutPrefix(os.Getenv("DOCKER_HOST"), "unix://"); ok {
		return path
	}
	return "/var/run/docker.sock"
}

// on is the stage for a test within it.
func (g *stage) on(t *testing.T) *stage {
	other := *g
	other.t = t
	return &other
}

// eventually polls until done says so; it gives up with what is the matter.
func (g *stage) eventually(most time.Duration, what string, done func() (bool, any)) {
	g.t.Helper()
	deadline := time.After(most)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, matter := done()
		if ok {
			return
		}
		select {
		case <-deadline:
			g.t.Fatalf("after %s: not %s: %v", most, what, matter)
		case <-tick.C:
		}
	}
}

// insist repeats a call of the API until it is answered: functions are killed and
// the emulator is restarted under it.
func insist[Out any](ctx context.Context, most time.Duration, call func() (Out, error)) (Out, error) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		out, err := call()
		if err == nil || strings.Contains(err.Error(), "InvalidParameter") || strings.Contains(err.Error(), "ConflictException") {
			return out, err
		}
		select {
		case <-ctx.Done():
			return out, err
		case <-tick.C:
		}
	}
}

const patience = 2 * time.Minute // a restart of the emulator, on a busy machine

func (g *stage) register(family string, change func(*ecs.RegisterTaskDefinitionInput, *types.ContainerDefinition)) string {
	g.t.Helper()
	return g.Register(g.t, g.ecs, family, change)
}

// start starts a task on one agent.
func (g *stage) start(agent int, definition string, command ...string) string {
	g.t.Helper()
	in := &ecs.StartTaskInput{Cluster: aws.String(local.Cluster), TaskDefinition: &definition, ContainerInstances: []string{g.Agent(agent).Instance}}
	if len(command) > 0 {
		in.Overrides = override(command)
	}
	out, err := g.ecs.StartTask(g.t.Context(), in)
	if err != nil || len(out.Tasks) != 1 {
		g.t.Fatalf("start %s: %v %+v", definition, err, out)
	}
	return aws.ToString(out.Tasks[0].TaskArn)
}

func override(command []string) *types.TaskOverride {
	return &types.TaskOverride{ContainerOverrides: []types.ContainerOverride{{Name: aws.String("main"), Command: command}}}
}

// tasks describes tasks, in their order.
func (g *stage) tasks(arns []string) []types.Task {
	g.t.Helper()
	var all []types.Task
	for part := range slices.Chunk(arns, 100) {
		out, err := insist(g.t.Context(), patience, func() (*ecs.DescribeTasksOutput, error) {
			return g.ecs.DescribeTasks(g.t.Context(), &ecs.DescribeTasksInput{Cluster: aws.String(local.Cluster), Tasks: part})
		})
		if err != nil {
			g.t.Fatal(err)
		}
		if len(out.Tasks) != len(part) {
			g.t.Fatalf("of %d tasks %d are known: %+v", len(part), len(out.Tasks), out.Failures)
		}
		all = append(all, out.Tasks...)
	}
	return all
}

func (g *stage) task(arn string) types.Task {
	g.t.Helper()
	return g.tasks([]string{arn})[0]
}

func (g *stage) awaitStatus(arn, status string, most time.Duration) types.Task {
	g.t.Helper()
	var got types.Task
	g.eventually(most, status+" is task "+arn, func() (bool, any) {
		got = g.task(arn)
		return aws.ToString(got.LastStatus) == status, told(got)
	})
	return got
}

// told is what there is to say of a task.
func told(t types.Task) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s is %s, wanted %s, %s %q on %s", short8(aws.ToString(t.TaskArn)), aws.ToString(t.LastStatus), aws.ToString(t.DesiredStatus),
		t.StopCode, aws.ToString(t.StoppedReason), short8(aws.ToString(t.ContainerInstanceArn)))
	for _, c := range t.Containers {
		fmt.Fprintf(&b, "; %s %s", aws.ToString(c.Name), aws.ToString(c.LastStatus))
		if c.ExitCode != nil {
			fmt.Fprintf(&b, " code %d", *c.ExitCode)
		}
		if c.Reason != nil {
			fmt.Fprintf(&b, " %q", *c.Reason)
		}
	}
	return b.String()
}

func short8(arn string) string {
	id := arn[strings.LastIndex(arn, "/")+1:]
	return id[:min(8, len(id))]
}

// instances are the container instances by agent, from 1.
func (g *stage) instances(ctx context.Context) ([]types.ContainerInstance, error) {
	out, err := g.ecs.DescribeContainerInstances(ctx, &ecs.DescribeContainerInstancesInput{Cluster: aws.String(local.Cluster), ContainerInstances: g.machines})
	if err != nil {
		return nil, err
	}
	all := make([]types.ContainerInstance, agents+1)
	for _, i := range out.ContainerInstances {
		for n, id := range g.machines {
			if strings.HasSuffix(aws.ToString(i.ContainerInstanceArn), "/"+id) {
				all[n+1] = i
			}
		}
	}
	return all, nil
}

func (g *stage) instance(agent int) types.ContainerInstance {
	g.t.Helper()
	all, err := g.instances(g.t.Context())
	if err != nil {
		g.t.Fatal(err)
	}
	return all[agent]
}

func lost(i types.ContainerInstance) bool {
	return strings.HasPrefix(aws.ToString(i.StatusReason), "LOST")
}

// awaitLost runs the reaper until an agent's instance is LOST.
func (g *stage) awaitLost(agent int) {
	g.t.Helper()
	g.eventually(4*time.Minute, fmt.Sprintf("LOST is agent %d", agent), func() (bool, any) {
		if err := g.Tick(g.t.Context()); err != nil {
			return false, err
		}
		i := g.instance(agent)
		return lost(i), aws.ToString(i.StatusReason)
	})
}

// awaitBack waits until an agent's instance takes work.
func (g *stage) awaitBack(agent int, most time.Duration) {
	g.t.Helper()
	g.eventually(most, fmt.Sprintf("connected is agent %d", agent), func() (bool, any) {
		i := g.instance(agent)
		return i.AgentConnected && !lost(i), aws.ToString(i.StatusReason)
	})
}

// allFree says what is still held, or "".
func (g *stage) allFree() string {
	all, err := g.instances(g.t.Context())
	if err != nil {
		g.t.Fatal(err)
	}
	for n, i := range all {
		if held := local.Held(i); held != "" {
			return fmt.Sprintf("agent %d: %s", n, held)
		}
	}
	return ""
}

// awaitClean waits until an agent has left no container on the engine.
func (g *stage) awaitClean(agent int, most time.Duration) {
	g.t.Helper()
	g.eventually(most, fmt.Sprintf("clean is the engine of agent %d", agent), func() (bool, any) {
		all, err := local.Containers(g.t.Context(), g.Agent(agent).Instance)
		var left []string
		for _, c := range all {
			left = append(left, c.Names[0]+" "+c.Status)
		}
		return err == nil && len(all) == 0, fmt.Sprint(left, err)
	})
}
