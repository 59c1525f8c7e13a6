//go:build e2e

package e2e

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/longshore-run/longshore/test/local"
)

const (
	standard        = "169.254.170.2"
	metadataService = "169.254.169.254"
)

// trustAll lets the stack's agents, who are users on an emulator, assume a role.
const trustAll = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":"*"},"Action":"sts:AssumeRole"}]}`

// TestTaskEndpoint_OnAMachineThatIsPrepared: a container with a stock SDK is its task's
// role and nothing else, whoever else knows its URL; and no container on a bridge
// reaches the instance metadata service, which the machine itself does.
func TestTaskEndpoint_OnAMachineThatIsPrepared(t *testing.T) {
	m := newMachine(t)
	s := up(t, local.Options{CleanupWait: time.Hour, HeartbeatEvery: time.Second, AgentEnv: func(int, string) (map[string]string, error) {
		return map[string]string{"LONGSHORE_TASK_ENDPOINT": standard + ":80", "LONGSHORE_BLOCK_INSTANCE_METADATA": "true"}, nil
	}})
	agent := s.Agent(1)
	data := filepath.Join(agent.Dir, "data")

	// Without the address nothing is promised, and nobody with a role is placed.
	roles := iam.NewFromConfig(s.Config())
	var arns []string
	for _, name := range []string{"ours", "theirs"} {
		out, err := roles.CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: &name, Path: aws.String("/longshore/"), AssumeRolePolicyDocument: aws.String(trustAll)})
		if err != nil {
			t.Fatal(err)
		}
		arns = append(arns, *out.Role.Arn)
	}
	if s.hasAttribute("com.amazonaws.ecs.capability.task-iam-role") {
		t.Fatalf("the agent says it serves roles before it has %s; is something else of this machine prepared?", standard)
	}
	at, err := net.ResolveTCPAddr("tcp4", strings.TrimPrefix(s.Endpoint, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	emulator := m.forward(at.String())
	oursARN, ours := s.program(m, arns[0], "bridge", emulator, "ask")
	s.eventually("a task that waits for a machine which serves roles", func() bool {
		for _, a := range s.task(oursARN).Attributes {
			if aws.ToString(a.Name) == "longshore.waitingReason" {
				return strings.Contains(aws.ToString(a.Value), "ATTRIBUTE")
			}
		}
		return false
	})

	// The machine is prepared, twice as once, and taken back at the end.
	t.Cleanup(func() { m.prepare(s.Binary(), data, nil, "-remove") })
	m.prepare(s.Binary(), data, nil)
	m.prepare(s.Binary(), data, nil)
	if err := agent.Signal(t.Context(), syscall.SIGTERM); err != nil { // else the next look is in a minute
		t.Fatal(err)
	}
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	s.eventually("a machine that registered what it serves", func() bool {
		return s.hasAttribute("com.amazonaws.ecs.capability.task-iam-role") && s.hasAttribute("com.amazonaws.ecs.capability.task-iam-role-network-host")
	})
	s.tick() // the sweep, which looks each minute at who waits
	s.awaitStatus(oursARN, "RUNNING")
	who := regexp.MustCompile(`(?m)^\d+ arn:aws:sts::\d+:assumed-role/.*$`)
	got := s.awaitSaid(m, ours, who)
	if t.Logf("task %s asked who it is: %s", ours, got); !strings.HasSuffix(got, "/ours/"+ours) {
		t.Errorf("the task is %s; want the role ours, its session named %s", got, ours)
	}

	// A neighbour, and one on the host's network, who know the whole URL.
	url := "http://" + standard + m.env(ours, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
	for _, network := range []string{"bridge", "host"} {
		_, thief := s.program(m, arns[1], network, emulator, "get", url, m.env(ours, "ECS_CONTAINER_METADATA_URI_V4")+"/task")
		got := s.awaitSaid(m, thief, regexp.MustCompile(`(?s)^\d+ .*\n\d+ .*\n`))
		if t.Logf("a thief on network %s: %s", network, got); strings.Count(got, "403 ") != 2 || strings.Contains(got, "SecretAccessKey") || strings.Contains(got, ours) {
			t.Errorf("a thief on network %s got %s", network, got)
		}
	}
	_, theirs := s.program(m, arns[1], "host", emulator, "ask")
	if got := s.awaitSaid(m, theirs, who); !strings.HasSuffix(got, "/theirs/"+theirs) {
		t.Errorf("the other, on the host's network, is %s", got)
	}

	// Metadata.
	plainARN, plain := s.program(m, "", "bridge", emulator, "metadata")
	got = s.awaitSaid(m, plain, regexp.MustCompile(`(?s)^(\d+ .*\n){4}`))
	lines := strings.Split(regexp.MustCompile(`\n+`).ReplaceAllString(strings.TrimSpace(got), "\n"), "\n")
	var one, all struct{ ContainerARN, TaskARN, DockerId string } //nolint:revive // ECS's name
	for i, into := range []any{&one, &all} {
		if err := json.Unmarshal([]byte(strings.TrimPrefix(lines[i], "200 ")), into); err != nil {
			t.Errorf("%v: %s", err, lines[i])
		}
	}
	c := m.container(plain)
	if api := s.task(plainARN).Containers[0]; one.DockerId != c.ID || one.ContainerARN != aws.ToString(api.ContainerArn) || all.TaskARN != plainARN {
		t.Errorf("metadata: %s\nthe API says %s", got, aws.ToString(api.ContainerArn))
	}
	if !strings.Contains(lines[2], `"cpu_stats":{`) || !strings.Contains(lines[3], `"`+c.ID+`":{`) || m.env(plain, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") != "" {
		t.Errorf("stats of a task without a role: %s", got)
	}

	// The agent is killed: containers go on with what they were given.
	if err := agent.Signal(t.Context(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	before := strings.Count(m.said(ours), "assumed-role/")
	s.eventually("as many answers again", func() bool { return strings.Count(m.said(ours), "assumed-role/") > before+3 })

	// The instance metadata service, which is behind this machine: the machine reaches
	// it, and a container does once the rule is gone, which is what kept it out.
	m.behind(metadataService)
	if got := machineSees(t); got != "the machine's own role" {
		t.Errorf("the machine itself sees %q", got)
	}
	ask := func() string {
		_, id := s.program(m, "", "bridge", emulator, "get", "http://"+metadataService+"/")
		return s.awaitSaid(m, id, regexp.MustCompile(`(?m)^.+$`))
	}
	if got := ask(); !strings.Contains(got, "connection refused") {
		t.Errorf("a container on a bridge sees %q", got)
	}
	m.prepare(s.Binary(), data, []string{"LONGSHORE_BLOCK_INSTANCE_METADATA=false"})
	if got := ask(); got != "200 the machine's own role" {
		t.Errorf("without the rule a container sees %q: it is not what kept it out", got)
	}

	// Nothing of all this is written down by the agent.
	log, err := os.ReadFile(filepath.Join(agent.Dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{url[strings.LastIndex(url, "-")+1:], "SecretAccessKey"} {
		if strings.Contains(string(log), secret) {
			t.Errorf("the agent's log has %s", secret)
		}
	}
}

func machineSees(t *testing.T) string {
	t.Helper()
	answer, err := (&http.Client{Timeout: time.Minute}).Get("http://" + metadataService + "/")
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	text := make([]byte, 100)
	n, _ := answer.Body.Read(text)
	return string(text[:n])
}

// hasAttribute says whether the one instance has an attribute.
func (s *stack) hasAttribute(name string) bool {
	s.t.Helper()
	for _, i := range s.instances() {
		for _, a := range i.Attributes {
			if aws.ToString(a.Name) == name {
				return true
			}
		}
	}
	return false
}
