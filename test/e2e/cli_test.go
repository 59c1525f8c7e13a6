//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/longshore-run/longshore/test/local"
)

// The longshore command as people have it: the binary, and the shell file of the
// local stack.
func TestCommand(t *testing.T) {
	s := up(t, local.Options{Agents: 1, CleanupWait: time.Hour})
	sub := func(name string, f func(t *testing.T, s *stack)) {
		t.Run(name, func(t *testing.T) { f(t, &stack{Stack: s.Stack, t: t, ecs: s.ecs}) })
	}
	sub("run shows the log and ends with the task's exit code", commandRuns)
	sub("queue says why a task waits, and Ctrl-C stops one that runs", commandQueue)
	sub("a stock client goes through the proxy", commandProxies)
	sub("doctor finds what was switched off", commandDoctor)
	sub("events are followed live and leave nothing", commandEvents)
	sub("a service is deployed with its progress shown", commandDeploys)
	sub("tables come back from a backup, and nothing that runs is stopped", commandRestores)
	sub("an instance is drained when nothing is left, and fenced", commandInstances)
}

func (s *stack) longshore(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(s.t.Context(), filepath.Join(s.Options.Root, "dist", "cli", runtime.GOARCH, "longshore"), args...)
	cmd.Dir = s.Options.Root
	cmd.Env = append(append(os.Environ(), s.Env()...), "LONGSHORE_ENDPOINT="+s.API(), "LONGSHORE_CLUSTER="+local.Cluster)
	return cmd
}

// says runs the command, and returns what it wrote and its exit code.
func (s *stack) says(args ...string) (out, errs string, code int) {
	s.t.Helper()
	cmd := s.longshore(args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	} else if err != nil {
		s.t.Fatal(err)
	}
	s.t.Logf("$ longshore %s\n%s%s(exit code %d)", strings.Join(args, " "), stdout.String(), stderr.String(), code)
	return stdout.String(), stderr.String(), code
}

// heard is what a command in the background has written so far.
type heard struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (h *heard) Write(p []byte) (int, error) { h.mu.Lock(); defer h.mu.Unlock(); return h.b.Write(p) }
func (h *heard) String() string              { h.mu.Lock(); defer h.mu.Unlock(); return h.b.String() }

// behind starts the command in the background.
func (s *stack) behind(args ...string) (*exec.Cmd, *heard) {
	s.t.Helper()
	cmd, said := s.longshore(args...), &heard{}
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
		s.t.Logf("$ longshore %s\n%s", strings.Join(args, " "), said)
	})
	return cmd, said
}

// definition writes a file with one container, main, on the test image.
func (s *stack) definition(family, script string, memory int) string {
	s.t.Helper()
	file := filepath.Join(s.t.TempDir(), family+".json")
	text := fmt.Sprintf(`{"family":%q,"networkMode":"none","containerDefinitions":[{"name":"main","image":%q,"memory":%d,"stopTimeout":30,"command":["sh","-c",%q]}]}`, family, s.Image, memory, script)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return file
}

func commandRuns(t *testing.T, s *stack) {
	file := s.definition("cli-seven", "echo one; sleep 1; echo two >&2; exit 7", 16)
	out, errs, code := s.says("run", file)
	if code != 7 || !strings.Contains(out, "one\n") || !strings.Contains(out, "two\n") || !strings.Contains(errs, "exit code 7") {
		t.Errorf("exit code %d", code)
	}
	out, _, code = s.says("run", "cli-seven", "--env", "X=42", "--", "sh", "-c", "echo x is $X")
	if code != 0 || out != "x is 42\n" {
		t.Errorf("exit code %d, wrote %q", code, out)
	}
	id, _, _ := s.says("ps", "--all", "-q", "--family", "cli-seven")
	if out, _, code := s.says("logs", strings.Fields(id)[0]); code != 0 || out != "x is 42\n" {
		t.Errorf("exit code %d, wrote %q", code, out)
	}
}

func commandQueue(t *testing.T, s *stack) {
	memory := 0
	for _, r := range s.instances()[0].RegisteredResources {
		if aws.ToString(r.Name) == "MEMORY" {
			memory = int(r.IntegerValue)
		}
	}
	file := s.definition("cli-big", "trap 'exit 3' TERM; while :; do sleep 0.1; done", memory*6/10)
	first, said := s.behind("run", file)
	s.eventually("RUNNING is the first", func() bool { return strings.Contains(said.String(), "RUNNING") })
	if _, _, code := s.says("run", "cli-big", "--detach"); code != 0 {
		t.Errorf("exit code %d", code)
	}
	s.eventually("waiting is the second, with its reason", func() bool {
		out, _, _ := s.says("queue")
		return strings.Contains(out, "RESOURCE:MEMORY")
	})
	if err := first.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := first.Wait(); first.ProcessState.ExitCode() != 3 {
		t.Errorf("%v; wrote %s", err, said)
	}
	s.eventually("empty is the queue", func() bool { out, _, _ := s.says("queue"); return out == "nothing waits\n" })
	id, _, _ := s.says("ps", "-q", "--family", "cli-big")
	if out, _, code := s.says("stop", strings.TrimSpace(id), "--wait"); code != 0 || !strings.Contains(out, "STOPPED") {
		t.Errorf("exit code %d, wrote %s", code, out)
	}
}

func commandProxies(t *testing.T, s *stack) {
	proxy, said := s.behind("proxy", "--listen", "127.0.0.1:0")
	url := ""
	s.eventually("listening is the proxy", func() bool {
		url = regexp.MustCompile(`http://127\.0\.0\.1:\d+\n`).FindString(said.String())
		return url != ""
	})
	url = strings.TrimSpace(url)
	out := s.tool("aws", "ecs", "--endpoint-url", url, "list-container-instances", "--query", "length(containerInstanceArns)")
	if out != "1" {
		t.Errorf("the stock client says %q", out)
	}
	if _, _, code := s.says("proxy", "health", "--url", url); code != 0 {
		t.Errorf("health: exit code %d", code)
	}
	if err := proxy.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := proxy.Wait(); err != nil {
		t.Errorf("the proxy ends with %v", err)
	}
}

func commandDoctor(t *testing.T, s *stack) {
	out, _, code := s.says("doctor")
	if code != 0 || strings.Contains(out, "fail  ") {
		t.Errorf("exit code %d", code)
	}
	functions := lambda.NewFromConfig(s.Config())
	source := aws.String(s.Outputs["ReportsSourceId"])
	enable := func(on bool, want string) {
		t.Helper()
		if _, err := functions.UpdateEventSourceMapping(t.Context(), &lambda.UpdateEventSourceMappingInput{UUID: source, Enabled: &on}); err != nil {
			t.Fatal(err)
		}
		s.eventually(want+" is the event source", func() bool {
			m, err := functions.GetEventSourceMapping(t.Context(), &lambda.GetEventSourceMappingInput{UUID: source})
			return err == nil && aws.ToString(m.State) == want
		})
	}
	enable(false, "Disabled")
	defer enable(true, "Enabled")
	out, _, code = s.says("doctor", "-o", "json")
	var found []struct{ Check, State, Text, Next string }
	if err := json.Unmarshal([]byte(out), &found); err != nil || code != 1 {
		t.Fatalf("exit code %d, %v", code, err)
	}
	fails := 0
	for _, f := range found {
		if f.State == "fail" {
			fails++
			if f.Check != "event sources" || !strings.Contains(f.Text, "Reports") || !strings.Contains(f.Next, *source) {
				t.Errorf("finding %+v", f)
			}
		}
	}
	if fails != 1 {
		t.Errorf("%d checks fail", fails)
	}
}

func commandEvents(t *testing.T, s *stack) {
	if s.Outputs["EventBusName"] == "" {
		t.Fatal("the stack has no event bus")
	}
	events, said := s.behind("events", "--follow")
	s.eventually("following is the command", func() bool { return strings.Contains(said.String(), "following the bus") })
	s.says("run", "cli-seven", "--follow=false")
	s.eventually("seen is the task's end", func() bool { return regexp.MustCompile(`Task State Change .*STOPPED`).MatchString(said.String()) })
	if err := events.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := events.Wait(); err != nil {
		t.Errorf("it ends with %v", err)
	}
	out, err := sqs.NewFromConfig(s.Config()).ListQueues(t.Context(), &sqs.ListQueuesInput{QueueNamePrefix: aws.String("longshore-follow-")})
	if err != nil || len(out.QueueUrls) > 0 {
		t.Errorf("left over: %v, %v", out, err)
	}
}

func commandDeploys(t *testing.T, s *stack) {
	first := s.definition("cli-web", "trap 'exit 0' TERM; while :; do sleep 0.1; done", 16)
	if _, _, code := s.says("definitions", "register", first); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	if _, err := s.ecs.CreateService(t.Context(), &ecs.CreateServiceInput{Cluster: aws.String(local.Cluster), ServiceName: aws.String("web"),
		TaskDefinition: aws.String("cli-web"), DesiredCount: aws.Int32(3)}); err != nil {
		t.Fatal(err)
	}
	if _, _, code := s.says("services", "scale", "web", "3", "--wait", "--timeout", "5m"); code != 0 {
		t.Errorf("scale: exit code %d", code)
	}
	second := s.definition("cli-web", "trap 'exit 0' TERM; while :; do sleep 0.2; done", 16)
	out, errs, code := s.says("services", "deploy", "web", "--definition", second, "--wait", "--timeout", "5m")
	if code != 0 || !strings.Contains(out, "cli-web:2") || !strings.Contains(errs, "3/3 running") {
		t.Errorf("deploy: exit code %d", code)
	}
	s.says("services", "list")
	s.says("describe", "service", "web")
	if _, _, code := s.says("services", "rollback", "web", "--wait", "--timeout", "5m"); code != 0 {
		t.Errorf("rollback: exit code %d", code)
	}
	if _, err := s.ecs.DeleteService(t.Context(), &ecs.DeleteServiceInput{Cluster: aws.String(local.Cluster), Service: aws.String("web"), Force: aws.Bool(true)}); err != nil {
		t.Fatal(err)
	}
	s.eventually("empty is the cluster", func() bool {
		out, _, _ := s.says("ps", "-q")
		return out == ""
	})
}

func commandInstances(t *testing.T, s *stack) {
	id := s.Agent(1).Instance
	if out, _, code := s.says("instances", "drain", id, "--deadline", "10m", "--wait", "--timeout", "5m"); code != 0 || !strings.Contains(out, "drained") {
		t.Errorf("exit code %d, wrote %s", code, out)
	}
	if _, _, code := s.says("instances", "undrain", id); code != 0 {
		t.Errorf("exit code %d", code)
	}
	job := s.run(s.register("cli-fenced", nil))
	s.awaitStatus(job, "RUNNING")
	if _, errs, code := s.says("instances", "fence", id, "--confirmed-off"); code != 1 || !strings.Contains(errs, "still connected") {
		t.Errorf("exit code %d", code)
	}
	if err := s.Agent(1).Signal(t.Context(), syscall.SIGKILL); err != nil { // the host is off
		t.Fatal(err)
	}
	if out, _, code := s.says("instances", "fence", id, "--confirmed-off", "--yes"); code != 0 || !strings.Contains(out, "LOST") {
		t.Errorf("exit code %d, wrote %s", code, out)
	}
	if got := s.awaitStatus(job, "STOPPED"); got.StopCode != "InfrastructureHealth" || !strings.Contains(aws.ToString(got.StoppedReason), "confirmed to be off") {
		t.Errorf("%s %s", got.StopCode, aws.ToString(got.StoppedReason))
	}
	if err := s.Agent(1).Start(); err != nil { // and is switched on again
		t.Fatal(err)
	}
	s.eventually("connected again is the instance", func() bool { return s.instance(id).AgentConnected })
	s.eventually("gone are the containers of what was closed", func() bool {
		all, err := local.Containers(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range all {
			if c.State == "running" {
				return false
			}
		}
		return true
	})
}
