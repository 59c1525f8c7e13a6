package local

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/longshore-run/longshore/shared/setting"
	"github.com/longshore-run/longshore/shared/wire"
)

// Agent is one agent of a local stack: a user of its own, a folder of its own.
type Agent struct {
	N        int
	Dir      string
	Instance string // container instance id
	binary   string
}

func (s *Stack) agentDir(n int) string {
	return filepath.Join(s.Options.Dir, "agents", strconv.Itoa(n))
}

// Agent is the nth agent, from 1.
func (s *Stack) Agent(n int) *Agent {
	id, _ := os.ReadFile(filepath.Join(s.agentDir(n), "instance"))
	return &Agent{N: n, Dir: s.agentDir(n), Instance: string(id), binary: s.Binary()}
}

func (s *Stack) startAgents(ctx context.Context) error {
	for n := 1; n <= s.Options.Agents; n++ {
		if err := s.prepareAgent(ctx, n); err != nil {
			return fmt.Errorf("agent %d: %w", n, err)
		}
		if s.Options.Elsewhere {
			continue
		}
		if err := s.Agent(n).Start(); err != nil {
			return fmt.Errorf("agent %d: %w", n, err)
		}
	}
	return nil
}

// prepareAgent makes the agent's IAM user with the deployed agent policy, its
// own identity filled in (the emulator substitutes no policy variables), and
// its settings.
func (s *Stack) prepareAgent(ctx context.Context, n int) error {
	dir := s.agentDir(n)
	if err := os.MkdirAll(filepath.Join(dir, "data"), 0o700); err != nil {
		return err
	}
	users := iam.NewFromConfig(s.Config())
	name := fmt.Sprintf("agent-%d", n)
	if _, err := users.CreateUser(ctx, &iam.CreateUserInput{UserName: &name}); err != nil {
		return fmt.Errorf("create user %s: %w", name, err)
	}
	key, err := users.CreateAccessKey(ctx, &iam.CreateAccessKeyInput{UserName: &name})
	if err != nil {
		return fmt.Errorf("create key of %s: %w", name, err)
	}
	cfg := s.Config()
	cfg.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: *key.AccessKey.AccessKeyId, SecretAccessKey: *key.AccessKey.SecretAccessKey}, nil
	})
	who, err := sts.NewFromConfig(cfg).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return fmt.Errorf("ask who %s is: %w", name, err)
	}
	identity := aws.ToString(who.UserId)
	policy, err := s.agentPolicy(ctx, users, identity)
	if err != nil {
		return err
	}
	if _, err := users.PutUserPolicy(ctx, &iam.PutUserPolicyInput{UserName: &name, PolicyName: aws.String("agent"), PolicyDocument: &policy}); err != nil {
		return fmt.Errorf("put policy of %s: %w", name, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "instance"), []byte(wire.InstanceID(identity)), 0o644); err != nil {
		return err
	}
	return s.writeAgentEnv(n, *key.AccessKey.AccessKeyId, *key.AccessKey.SecretAccessKey)
}

// agentPolicy is the deployed agent role's policy for one identity.
func (s *Stack) agentPolicy(ctx context.Context, users *iam.Client, identity string) (string, error) {
	out, err := users.GetRolePolicy(ctx, &iam.GetRolePolicyInput{RoleName: aws.String(s.Outputs["AgentRoleName"]), PolicyName: aws.String("agent")})
	if err != nil {
		return "", fmt.Errorf("read the agent role's policy: %w", err)
	}
	text := aws.ToString(out.PolicyDocument)
	if decoded, err := url.QueryUnescape(text); err == nil && !json.Valid([]byte(text)) {
		text = decoded
	}
	return strings.ReplaceAll(text, "${aws:userid}", identity), nil
}

func (s *Stack) writeAgentEnv(n int, key, secret string) error {
	dir, of := s.agentDir(n), s.Options.Agents
	a := setting.Agent{ReportsQueueURL: s.Outputs["ReportsQueueUrl"], HeartbeatsQueueURL: s.Outputs["HeartbeatsQueueUrl"]}
	urls := setting.Env(a)
	if err := setting.FromEnv(&a, func(name string) (string, bool) { v, ok := urls[name]; return v, ok && strings.HasSuffix(name, "_URL") }); err != nil {
		return err
	}
	a.Cluster, a.DataDir, a.CommandQueueNameStart = Cluster, filepath.Join(dir, "data"), s.Outputs["CommandQueueNameStart"]
	a.CPU, a.MemoryMiB = runtime.NumCPU()*1024/of, memoryMiB()*9/10/of
	a.Zone, a.CleanupWait, a.LogLevel = "local-"+string(rune('a'+(n-1)%26)), s.Options.CleanupWait, s.Options.LogLevel
	a.Introspection = "off" // the port is one a machine; `longshore-agent status` needs none
	// The address and the rules are the machine's, which a stack leaves as it is: a test
	// that wants them says so with AgentEnv, and takes them away again.
	a.TaskEndpoint, a.BlockMetadata = "off", false
	var b bytes.Buffer
	values := setting.Env(a)
	values["AWS_ACCESS_KEY_ID"], values["AWS_SECRET_ACCESS_KEY"] = key, secret
	if host := os.Getenv("DOCKER_HOST"); host != "" {
		values["DOCKER_HOST"] = host
	}
	if s.Options.AgentEnv != nil {
		more, err := s.Options.AgentEnv(n, s.Endpoint)
		if err != nil {
			return err
		}
		maps.Copy(values, more)
	}
	for k, v := range values {
		fmt.Fprintf(&b, "%s=%s\n", k, v)
	}
	for _, kv := range s.Env() {
		if name, _, _ := strings.Cut(kv, "="); values[name] == "" {
			b.WriteString(kv + "\n")
		}
	}
	return os.WriteFile(filepath.Join(dir, "env"), b.Bytes(), 0o600)
}

// SetEnv changes a variable of the agent's environment, from its next start on.
func (a *Agent) SetEnv(name, value string) error {
	file := filepath.Join(a.Dir, "env")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(string(text)), "\n"), func(l string) bool { return strings.HasPrefix(l, name+"=") })
	return os.WriteFile(file, []byte(strings.Join(append(lines, name+"="+value), "\n")+"\n"), 0o600)
}

func memoryMiB() int {
	var info syscall.Sysinfo_t
	if err := syscall.Sysinfo(&info); err != nil {
		return 2048
	}
	return int(uint64(info.Totalram) * uint64(info.Unit) >> 20)
}

// Start starts the agent's process, which outlives the caller.
func (a *Agent) Start() error {
	env, err := os.ReadFile(filepath.Join(a.Dir, "env"))
	if err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(a.Dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(a.binary)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + a.Dir}, strings.Split(strings.TrimSpace(string(env)), "\n")...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", a.binary, err)
	}
	go func() { _ = cmd.Wait() }() // no zombie while the caller lives
	return os.WriteFile(a.pidFile(), []byte(strconv.Itoa(cmd.Process.Pid)), 0o644)
}

func (a *Agent) pidFile() string { return filepath.Join(a.Dir, "pid") }

// PID is the agent's process id, 0 if it does not run.
func (a *Agent) PID() int { return running(a.pidFile()) }

// Signal sends the agent a signal and, if it ends it, waits for the end.
func (a *Agent) Signal(ctx context.Context, sig syscall.Signal) error {
	pid := a.PID()
	if pid == 0 {
		return nil
	}
	if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	if sig != syscall.SIGKILL && sig != syscall.SIGTERM {
		return nil
	}
	return await(ctx, 2*time.Minute, "agent to end", func() (bool, error) { return a.PID() == 0, nil })
}

// running is the process id in a file, if such an agent runs.
func running(pidFile string) int {
	text, err := os.ReadFile(pidFile)
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 1 {
		return 0
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil || !bytes.Contains(stat, []byte("(longshore-agent")) || bytes.Contains(stat, []byte(") Z ")) {
		return 0 // gone, a zombie, or somebody else's by now
	}
	return pid
}

func (s *Stack) awaitAgents(ctx context.Context) error {
	if s.Options.Elsewhere {
		return nil
	}
	client := s.ECS()
	var dead error // an agent that has ended will not connect
	err := await(ctx, 3*time.Minute, fmt.Sprintf("%d connected agents", s.Options.Agents), func() (bool, error) {
		for n := 1; n <= s.Options.Agents && dead == nil; n++ {
			if s.Agent(n).PID() == 0 {
				dead = fmt.Errorf("agent %d has ended by itself", n)
			}
		}
		if dead != nil {
			return true, nil
		}
		list, err := client.ListContainerInstances(ctx, &ecs.ListContainerInstancesInput{Cluster: aws.String(Cluster)})
		if err != nil || len(list.ContainerInstanceArns) < s.Options.Agents {
			return false, err
		}
		all, err := client.DescribeContainerInstances(ctx, &ecs.DescribeContainerInstancesInput{Cluster: aws.String(Cluster), ContainerInstances: list.ContainerInstanceArns})
		if err != nil {
			return false, err
		}
		connected := 0
		for _, i := range all.ContainerInstances {
			if i.AgentConnected {
				connected++
			}
		}
		return connected >= s.Options.Agents, nil
	})
	if err = errors.Join(dead, err); err != nil {
		return fmt.Errorf("%w%s", err, s.agentLogs())
	}
	return nil
}

// agentLogs is the end of what each agent said: a stack that did not come up is
// often gone before anybody looks.
func (s *Stack) agentLogs() string {
	var b strings.Builder
	for n := 1; n <= s.Options.Agents; n++ {
		file := filepath.Join(s.agentDir(n), "log")
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		fmt.Fprintf(&b, "\nthe end of %s:\n  %s", file, strings.Join(lines[max(0, len(lines)-12):], "\n  "))
	}
	return b.String()
}

// await polls until done, an error that stays, or the deadline.
func await(ctx context.Context, most time.Duration, what string, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := done()
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("gave up waiting for %s after %s", what, most), err)
		case <-tick.C:
		}
	}
}
