//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/client"

	"github.com/longshore-run/longshore/shared/wire"
	"github.com/longshore-run/longshore/test/link"
	"github.com/longshore-run/longshore/test/local"
)

// A new agent's binary takes the place of the old one, as a package does it, while
// tasks are in every state that an agent knows. No container of theirs is touched,
// each goes on to its own end, and what was told before is not told as news again.
func TestUpgrade_ANewBinaryOverTheOldTouchesNoContainerAndTellsNothingTwice(t *testing.T) {
	t.Parallel()
	u := enterUpgrade(t)
	s, agent := u.stack, u.Agent(1)
	volume := s.register("upgraded", func(in *ecs.RegisterTaskDefinitionInput, c *types.ContainerDefinition) {
		u.share(in, c)
		c.StopTimeout = aws.Int32(120)
	})
	gated := u.gated()
	const term = "trap 'echo >>/out/term' TERM; echo >>/out/up; while [ ! -e /out/end ]; do sleep 0.1; done; exit 9"

	clean := s.run(volume, "sh", "-c", "exit 4") // its end is known, and it waits to be cleaned up
	s.awaitStatus(clean, "STOPPED", time.Minute)
	runs, stops := s.run(volume, "sleep", "600"), s.run(volume, "sh", "-c", term)
	s.awaitStatus(runs, "RUNNING", time.Minute)
	s.awaitStatus(stops, "RUNNING", time.Minute)
	u.await("up is the one to stop", func() bool { return u.has("up") })
	s.stop(stops)
	u.await("asked to stop is the one to stop", func() bool { return u.has("term") })
	s.awaitStatus(stops, "STOPPING", time.Minute)
	waits := s.run(gated)
	u.await("up is the gate", func() bool { return len(u.containers()[waits]) == 1 })
	s.reports(false)
	unheard := s.run(volume, "sh", "-c", "exit 3") // its end is not known
	u.await("ended is the one whose end is not known", func() bool { return u.looks(unheard).Status == "STOPPED" })
	u.await("acknowledged is the one to clean up", func() bool { return u.looks(clean).Acknowledged })
	u.docker.Set(link.Fault{Kind: link.Stall})
	made := s.run(volume, "sleep", "600") // it is being made
	u.await("taken is the one to make", func() bool { return u.looks(made).ID != "" })

	before, old := u.containers(), u.look()
	if s.instance(agent.Instance).VersionInfo.AgentVersion == nil || *s.instance(agent.Instance).VersionInfo.AgentVersion != old.Version || old.Version == newVersion {
		t.Errorf("the instance shows %+v, its agent is %s", s.instance(agent.Instance).VersionInfo, old.Version)
	}
	u.upgrade()
	u.await("told again, as it was, is what was not acknowledged", func() bool {
		u.peek()
		return slices.Contains(slices.Collect(maps.Values(u.sent[id(unheard)])), byBoth)
	})
	for _, arn := range []string{clean, runs} {
		if all := u.sent[id(arn)]; len(all) > 1 {
			t.Errorf("nothing has changed of %s, and it is told by %d numbers", arn, len(all))
		}
	}
	u.same(before, "after the upgrade")
	s.reports(true)
	u.await("registered is the new agent", func() bool {
		return aws.ToString(s.instance(agent.Instance).VersionInfo.AgentVersion) == newVersion && s.instance(agent.Instance).AgentConnected
	})
	if now := u.look(); now.Version != newVersion || now.Incarnation != old.Incarnation || now.Session == old.Session {
		t.Errorf("the agent was %+v and is %+v", old, now)
	}
	for _, name := range []string{"gate", "end"} {
		u.make(name)
	}
	for arn, want := range map[string]int32{clean: 4, stops: 9, unheard: 3} {
		got := s.awaitStatus(arn, "STOPPED", time.Minute)
		if c := got.Containers[0]; c.ExitCode == nil || *c.ExitCode != want {
			t.Errorf("%s ended with %+v, want %d", arn, c, want)
		}
	}
	for _, arn := range []string{runs, waits, made} {
		s.awaitStatus(arn, "RUNNING", time.Minute)
	}
	u.same(before, "in the end")
	for task, n := range map[string]int{clean: 1, runs: 1, stops: 1, waits: 2, unheard: 1, made: 1} {
		if all := u.containers()[task]; len(all) != n {
			t.Errorf("task %s had %d containers, want %d: %v", task, len(all), n, all)
		}
	}
	u.news(clean, runs, stops, waits, unheard, made)
}

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

// era says which of the two agents has sent something.
type era int

const (
	byOld era = 1 << iota
	byNew
	byBoth = byOld | byNew
)

func enterUpgrade(t *testing.T) *upgrade {
	t.Helper()
	u := &upgrade{out: t.TempDir(), bodies: map[int64]string{}, seen: map[string]bool{}, sent: map[string]map[int64]era{}}
	program, sockets := filepath.Join(t.TempDir(), "longshore-agent"), socketDir(t)
	if err := os.Chmod(u.out, 0o777); err != nil {
		t.Fatal(err)
	}
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
	in.Volumes = []types.Volume{{Name: aws.String("out"), Host: &types.HostVolumeProperties{SourcePath: &u.out}}}
	c.MountPoints = []types.MountPoint{{SourceVolume: aws.String("out"), ContainerPath: aws.String("/out")}}
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
	if err := os.WriteFile(filepath.Join(u.out, name), nil, 0o666); err != nil {
		u.t.Fatal(err)
	}
}

func (u *upgrade) await(what string, done func() bool) {
	u.t.Helper()
	u.eventually(time.Minute, what, done)
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

// peek reads the reports that wait, and leaves them there: one n is one snapshot,
// however often it is sent.
func (u *upgrade) peek() {
	u.t.Helper()
	queue := u.Outputs["ReportsQueueUrl"]
	out, err := sqs.NewFromConfig(u.Config()).ReceiveMessage(u.t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &queue, MaxNumberOfMessages: 10, VisibilityTimeout: 5,
		MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{sqstypes.MessageSystemAttributeNameSentTimestamp}})
	if err != nil {
		u.t.Fatal(err)
	}
	for _, m := range out.Messages {
		message, err := wire.Decode([]byte(*m.Body))
		if err != nil {
			u.t.Fatal(err)
		}
		r, ok := message.(*wire.Report)
		if !ok || u.seen[*m.MessageId] {
			continue
		}
		u.seen[*m.MessageId] = true
		if old, known := u.bodies[r.N]; known && old != *m.Body {
			u.t.Errorf("n %d stands for two snapshots:\n%s\n%s", r.N, old, *m.Body)
		}
		u.bodies[r.N] = *m.Body
		if u.sent[r.Task] == nil {
			u.sent[r.Task] = map[int64]era{}
		}
		sent, err := strconv.ParseInt(m.Attributes["SentTimestamp"], 10, 64)
		if err != nil {
			u.t.Fatal(err)
		}
		by := byOld
		if time.UnixMilli(sent).After(u.begun) {
			by = byNew
		}
		u.sent[r.Task][r.N] |= by
	}
}

// news wants each change of a task to have been told once, by when all have come to
// where they stay.
func (u *upgrade) news(arns ...string) {
	u.t.Helper()
	type state struct {
		version float64
		status  string
	}
	last, told := map[string]state{}, map[string]int{}
	u.await("told is where each has come to", func() bool {
		for _, body := range u.next() {
			arn, version, status, rest := change(u.t, body)
			if version >= last[arn].version { // they come in any order
				last[arn] = state{version, status}
			}
			told[rest]++
		}
		return !slices.ContainsFunc(arns, func(arn string) bool { return last[arn].status != aws.ToString(u.task(arn).LastStatus) })
	})
	for what, n := range told {
		if n > 1 {
			u.t.Errorf("told %d times: %s", n, what)
		}
	}
}

// change is what an event says of a task, less what counts the changes.
func change(t *testing.T, body string) (arn string, version float64, status, rest string) {
	t.Helper()
	var e struct{ Detail map[string]any }
	if err := json.Unmarshal([]byte(body), &e); err != nil {
		t.Fatal(err)
	}
	arn, _ = e.Detail["taskArn"].(string)
	status, _ = e.Detail["lastStatus"].(string)
	version, _ = e.Detail["version"].(float64)
	if arn == "" || status == "" || version == 0 {
		t.Fatalf("an event without task, status or version: %s", body)
	}
	delete(e.Detail, "version")
	delete(e.Detail, "updatedAt")
	text, err := json.Marshal(e.Detail)
	if err != nil {
		t.Fatal(err)
	}
	return arn, version, status, string(text)
}
