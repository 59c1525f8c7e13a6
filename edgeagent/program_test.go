//go:build docker

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/edgeagent/internal/dockerengine"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
	"github.com/longshore-run/longshore/test/emulator"
	"github.com/longshore-run/longshore/test/image"
)

// program is the real binary with real queues and a real engine; the test is
// the control plane.
type program struct {
	*testing.T
	binary, dir, instance, image string
	env                          []string
	client                       *sqs.Client
	engine                       *dockerengine.Engine
	reports, beats, commands     string
	cmd                          *exec.Cmd
	exited                       chan error
	heard                        []wire.Message
	ends                         map[string]map[int64]bool // the numbers of the ends that were told, by task
}

func newProgram(t *testing.T) *program {
	t.Helper()
	p := &program{T: t, dir: t.TempDir(), ends: map[string]map[int64]bool{}}
	var err error
	if p.image, err = image.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	cloud := emulator.ForTest(t, emulator.Options{})
	p.client = sqs.NewFromConfig(cloud.AWSConfig())
	who, err := sts.NewFromConfig(cloud.AWSConfig()).GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
	if err != nil {
		t.Fatal(err)
	}
	p.instance = wire.InstanceID(*who.UserId)
	p.reports, p.beats = p.queue("program-reports"), p.queue("program-heartbeats")
	p.binary = filepath.Join(p.dir, "longshore-agent")
	if out, err := exec.Command("go", "build", "-o", p.binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if p.engine, err = dockerengine.New(dockerHost(), p.instance, "default"); err != nil {
		t.Fatal(err)
	}
	p.env = append(cloud.Env(), "PATH="+os.Getenv("PATH"), "DOCKER_HOST="+dockerHost(), "LONGSHORE_DATA_DIR="+filepath.Join(p.dir, "data"),
		"LONGSHORE_REPORTS_QUEUE_URL="+p.reports, "LONGSHORE_HEARTBEATS_QUEUE_URL="+p.beats, "LONGSHORE_CLEANUP_WAIT=1s")
	t.Cleanup(p.tidy)
	return p
}

func dockerHost() string {
	if h := os.Getenv("DOCKER_HOST"); h != "" {
		return h
	}
	return "unix:///var/run/docker.sock"
}

// tidy leaves no process and no container.
func (p *program) tidy() {
	if p.cmd != nil && p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	list, err := p.engine.List(ctx)
	for _, s := range list {
		err = errors.Join(err, p.engine.Stop(ctx, s.ContainerID, 0), p.engine.Remove(ctx, s.ContainerID))
	}
	if err := errors.Join(err, p.engine.Close()); err != nil {
		p.Error(err)
	}
	if p.Failed() {
		log, _ := os.ReadFile(filepath.Join(p.dir, "log"))
		p.Logf("the agent's log:\n%s", log)
	}
}

func (p *program) queue(name string) string {
	p.Helper()
	out, err := p.client.CreateQueue(p.Context(), &sqs.CreateQueueInput{QueueName: &name})
	if err != nil {
		p.Fatal(err)
	}
	return *out.QueueUrl
}

func (p *program) start() {
	p.Helper()
	log, err := os.OpenFile(filepath.Join(p.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		p.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(p.binary)
	cmd.Env, cmd.Stdout, cmd.Stderr = p.env, log, log
	if err := cmd.Start(); err != nil {
		p.Fatal(err)
	}
	p.cmd, p.exited = cmd, make(chan error, 1)
	exited := p.exited
	go func() { exited <- cmd.Wait() }()
}

// signal ends the process, and returns its exit code.
func (p *program) signal(s syscall.Signal) int {
	p.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.Fatal(err)
	}
	return p.exit()
}

func (p *program) exit() int {
	p.Helper()
	select {
	case <-p.exited:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		p.Fatal("the agent does not end")
		return 0
	}
}

func (p *program) send(m wire.Message) {
	p.Helper()
	body, err := wire.Encode(m)
	if err != nil {
		p.Fatal(err)
	}
	if _, err := p.client.SendMessage(p.Context(), &sqs.SendMessageInput{QueueUrl: &p.commands, MessageBody: aws.String(string(body))}); err != nil {
		p.Fatal(err)
	}
}

// patience ends a wait in vain; how fast a machine is is not looked at.
const patience = 3 * time.Minute

// hear waits for a message that fits, of those that were not heard before.
func hear[M wire.Message](p *program, what string, fits func(M) bool) M {
	p.Helper()
	for deadline := time.Now().Add(patience); ; {
		for i, m := range p.heard {
			if m, ok := m.(M); ok && fits(m) {
				p.heard = append(p.heard[:i:i], p.heard[i+1:]...)
				return m
			}
		}
		if time.Now().After(deadline) {
			p.Fatalf("never heard %s; else heard: %+v", what, p.heard)
		}
		for _, url := range []string{p.reports, p.beats} {
			out, err := p.client.ReceiveMessage(p.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10, VisibilityTimeout: 3600})
			if err != nil {
				p.Fatal(err)
			}
			for _, m := range out.Messages {
				read, err := wire.Decode([]byte(*m.Body))
				if err != nil {
					p.Fatal(err)
				}
				p.heard = append(p.heard, read)
				p.note(read)
			}
		}
		select {
		case <-p.exited:
			p.Fatalf("the agent ended while waiting for %s", what)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (p *program) note(m wire.Message) {
	r, ok := m.(*wire.Report)
	if !ok || r.Status != task.Stopped {
		return
	}
	if p.ends[r.Task] == nil {
		p.ends[r.Task] = map[int64]bool{}
	}
	p.ends[r.Task][r.N] = true
}

// oneEndEach wants no task to have been told to have ended in two ways; one end may be
// told again.
func (p *program) oneEndEach() {
	p.Helper()
	for id, n := range p.ends {
		if len(n) > 1 {
			p.Errorf("task %s: %d different ends were told", id[:2], len(n))
		}
	}
}

func (p *program) status(n int, s task.Status) *wire.Report {
	p.Helper()
	return hear(p, fmt.Sprintf("task %d %s", n, s), func(r *wire.Report) bool { return r.Task == taskID(n) && r.Status == s })
}

func taskID(n int) string { return fmt.Sprintf("%02x%030x", n, n) }

func (p *program) assign(n int, script string) {
	p.Helper()
	p.assignSpec(n, taskdef.Spec{Family: "program", ContainerDefinitions: []taskdef.ContainerDefinition{p.container("app", script)}})
}

func (p *program) container(name, script string) taskdef.ContainerDefinition {
	return taskdef.ContainerDefinition{Name: name, Image: p.image, Memory: new(32), Command: []string{"sh", "-c", script}}
}

func (p *program) assignSpec(n int, spec taskdef.Spec) {
	p.Helper()
	def := taskdef.TaskDefinition{Spec: spec, Revision: 1}
	p.send(&wire.Assign{
		Header: wire.Header{Instance: p.instance}, Epoch: 100, Task: taskID(n), Attempt: 1, TaskARN: "arn:aws:ecs:us-east-1:000000000000:task/default/" + taskID(n),
		Cluster: "default", Family: "program", Revision: 1, Definition: json.RawMessage(taskdef.Canonical(def)),
	})
}

func (p *program) running(n int) agent.Seen {
	p.Helper()
	s, err := p.engine.Observe(p.Context(), agent.ContainerID{Task: taskID(n), Attempt: 1, Container: "app"})
	if err != nil {
		p.Fatal(err)
	}
	return s
}

// shared has containers see a folder of the test at /shared, by which each waits for the
// other: no time has to be long enough.
func (p *program) shared(containers ...taskdef.ContainerDefinition) (dir string, spec taskdef.Spec) {
	p.Helper()
	dir = p.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		p.Fatal(err)
	}
	for i := range containers {
		containers[i].MountPoints = []taskdef.MountPoint{{SourceVolume: "shared", ContainerPath: "/shared"}}
	}
	return dir, taskdef.Spec{Family: "program", ContainerDefinitions: containers, Volumes: []taskdef.Volume{{Name: "shared", Host: &taskdef.HostVolume{SourcePath: dir}}}}
}

func (p *program) make(file string) {
	p.Helper()
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		p.Fatal(err)
	}
}

// welcomed starts the agent and lets it in.
func (p *program) welcomed() *wire.Register {
	p.Helper()
	p.start()
	r := hear(p, "register", func(*wire.Register) bool { return true })
	p.commands = p.queue("longshore-cmd-" + p.instance)
	p.send(&wire.Welcome{Header: wire.Header{Instance: p.instance}, Incarnation: r.Incarnation, Cluster: "default", Epoch: 100, HeartbeatEveryS: 2})
	hear(p, "a heartbeat of epoch 100", func(b *wire.Heartbeat) bool { return b.Epoch == 100 && b.Docker == wire.DockerOK && b.FreeDiskMiB > 0 })
	return r
}

// welcomedAgain starts the agent that was killed and lets it in; last is the session of
// one before. The first answer may go to the long poll of the process that is no more.
func (p *program) welcomedAgain(r *wire.Register, last string) *wire.Register {
	p.Helper()
	p.start()
	again := hear(p, "a register after the kill", func(m *wire.Register) bool { return m.Session != r.Session && m.Session != last })
	if again.Incarnation != r.Incarnation {
		p.Errorf("registered again as %+v", again)
	}
	for range 2 {
		p.send(&wire.Welcome{Header: wire.Header{Instance: p.instance}, Incarnation: r.Incarnation, Cluster: "default", Epoch: 100, HeartbeatEveryS: 2})
		<-time.After(300 * time.Millisecond)
	}
	return again
}

// A store that is checked, a job that waits until it is well, and a server that
// waits for the job's success and finds the store by its link: up in that order,
// down in the reverse, and its health is told on the way.
func TestProgram_BringsAGroupUpByItsDependenciesAndDownInReverse(t *testing.T) {
	p := newProgram(t)
	p.welcomed()
	on := func(name, condition string) []taskdef.Dependency {
		return []taskdef.Dependency{{ContainerName: name, Condition: condition}}
	}
	store := p.container("store", "trap 'exit 0' TERM; sleep 2; touch /shared/up; sleep 1000 & wait")
	store.HealthCheck = &taskdef.HealthCheck{Command: []string{"CMD", "test", "-e", "/shared/up"}, Interval: new(1), Retries: new(10)}
	job := p.container("job", "test -e /shared/up || exit 8; sleep 1; touch /shared/done")
	job.Essential, job.DependsOn = new(false), on("store", taskdef.ConditionHealthy)
	web := p.container("web", "trap 'exit 0' TERM; cat /etc/hosts | while read line; do case \"$line\" in *db*) touch /tmp/found; esac; done; test -e /tmp/found || exit 9; test -e /shared/done || exit 10; touch /shared/serves; sleep 1000 & wait")
	web.DependsOn, web.Links = on("job", taskdef.ConditionSuccess), []string{"store:db"}
	dir, spec := p.shared(web, job, store)
	p.assignSpec(3, spec)
	up := p.status(3, task.Running)
	if up.Health != task.Healthy || up.Containers[2].Health != task.Healthy || up.Containers[0].Health != "" {
		t.Errorf("it came up as %+v", up)
	}
	p.await("the server to listen to signals", func() bool { _, err := os.Stat(filepath.Join(dir, "serves")); return err == nil })
	p.send(&wire.Stop{Header: wire.Header{Instance: p.instance}, Task: taskID(3), Attempt: 1})
	end := p.status(3, task.Stopped)
	w, j, s := end.Containers[0], end.Containers[1], end.Containers[2]
	for _, c := range end.Containers {
		if c.ExitCode == nil || *c.ExitCode != 0 {
			t.Errorf("the end of %s is %+v", c.Name, c)
		}
	}
	if j.StartedAt.Before(s.StartedAt) || w.StartedAt.Before(j.StoppedAt) || s.StoppedAt.Before(w.StoppedAt) {
		t.Errorf("store %s to %s, job %s to %s, web %s to %s", s.StartedAt, s.StoppedAt, j.StartedAt, j.StoppedAt, w.StartedAt, w.StoppedAt)
	}
}

// One life of an agent on a real engine and real queues: registered, a task
// that ends by itself, one that outlives a SIGKILL and a SIGTERM of the agent,
// clean-up after the acknowledgement and not before, and the end for good.
func TestProgram_LivesADayOfATaskOnARealEngine(t *testing.T) {
	p := newProgram(t)
	r := p.welcomed()
	if r.CPU < 1024 || r.MemoryMiB < 128 || r.DockerVersion == "" || r.Attributes["ecs.os-type"] != "linux" {
		t.Errorf("registered as %+v", r)
	}

	dir, short := p.shared(p.container("app", "until test -e /shared/end; do sleep 0.1; done; exit 7"))
	p.assignSpec(1, short)
	p.status(1, task.Running)
	p.make(filepath.Join(dir, "end"))
	end := p.status(1, task.Stopped)
	if c := end.Containers[0]; c.ExitCode == nil || *c.ExitCode != 7 || c.RuntimeID == "" || c.ImageDigest == "" || end.Cause != task.ExitedCause {
		t.Errorf("the end is %+v", end)
	}

	p.assign(2, "trap 'exit 5' TERM; sleep 1000 & wait")
	first := p.status(2, task.Running)
	before := p.running(2)
	p.assignSpec(1, short) // delivered again
	p.signal(syscall.SIGKILL)
	p.start()
	again := hear(p, "a register after the kill", func(m *wire.Register) bool { return m.Session != r.Session })
	if again.Incarnation != r.Incarnation || again.Epoch != 100 {
		t.Errorf("registered again as %+v", again)
	}
	p.send(&wire.Welcome{Header: wire.Header{Instance: p.instance}, Incarnation: r.Incarnation, Cluster: "default", Epoch: 100, HeartbeatEveryS: 2})
	hear(p, "an inventory with both", func(b *wire.Heartbeat) bool {
		phases := map[string]wire.Phase{}
		for _, e := range b.Inventory {
			phases[e.Task] = e.Phase
		}
		return b.Session == again.Session && phases[taskID(1)] == wire.PhaseEnded && phases[taskID(2)] == wire.PhaseRunning
	})
	if now := p.running(2); now.RuntimeID != before.RuntimeID || !now.StartedAt.Equal(before.StartedAt) || !now.Running {
		t.Errorf("after the kill the container is %+v, was %+v", now, before)
	}
	if code := p.signal(syscall.SIGTERM); code != exitOK {
		t.Errorf("SIGTERM ended it with %d", code)
	}
	if now := p.running(2); !now.Running {
		t.Error("SIGTERM of the agent ended a container")
	}
	p.start()
	if s := p.running(1); s.Running || s.ExitCode == nil {
		t.Errorf("the container of the end that was not acknowledged is %+v", s)
	}
	p.send(&wire.Ack{Header: wire.Header{Instance: p.instance}, Task: taskID(1), Attempt: 1})
	p.send(&wire.Stop{Header: wire.Header{Instance: p.instance}, Task: taskID(2), Attempt: 1, Reason: "enough"})
	end = p.status(2, task.Stopped)
	if c := end.Containers[0]; c.ExitCode == nil || *c.ExitCode != 5 || end.Reason != "enough" || !end.StartedAt.Equal(first.StartedAt) {
		t.Errorf("the end is %+v", end)
	}
	p.send(&wire.Ack{Header: wire.Header{Instance: p.instance}, Task: taskID(2), Attempt: 1})
	p.await("both containers to be removed", func() bool {
		list, err := p.engine.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(list) == 0
	})
	t.Logf("resident memory: %d KiB", p.resident())
	p.send(&wire.Fence{Header: wire.Header{Instance: p.instance}, Incarnation: r.Incarnation, Epoch: 200, Terminal: true})
	if code := p.exit(); code != exitTerminal {
		t.Errorf("deregistered, it ended with %d", code)
	}
}

func (p *program) await(what string, done func() bool) {
	p.Helper()
	for deadline := time.Now().Add(patience); !done(); {
		if time.Now().After(deadline) {
			p.Fatalf("waited in vain for %s", what)
		}
		<-time.After(50 * time.Millisecond)
	}
}

func (p *program) resident() int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, _ := strconv.Atoi(strings.Fields(rest)[0])
			return n
		}
	}
	return 0
}
