//go:build e2e

package e2e

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/client"
	"github.com/docker/docker/pkg/stdcopy"

	"github.com/longshore-run/longshore/test/local"
)

// machine is what tests of the task endpoint change of this machine, and take back.
type machine struct {
	t      *testing.T
	docker *client.Client
	whoami string // the program of testdata/whoami, static
	image  string // with it alone
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	api, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = api.Close() })
	m := &machine{t: t, docker: api, whoami: filepath.Join(t.TempDir(), "whoami"), image: "longshore-test-whoami:latest"}
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", m.whoami, "./test/e2e/testdata/whoami")
	build.Dir, build.Env = local.Root(t), append(os.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build whoami: %v\n%s", err, said)
	}
	program, err := os.ReadFile(m.whoami)
	if err != nil {
		t.Fatal(err)
	}
	var root bytes.Buffer
	w := tar.NewWriter(&root)
	if err := w.WriteHeader(&tar.Header{Name: "whoami", Mode: 0o755, Size: int64(len(program))}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(program); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	body, err := api.ImageImport(t.Context(), image.ImportSource{Source: &root, SourceName: "-"}, m.image, image.ImportOptions{Changes: []string{`ENTRYPOINT ["/whoami"]`}})
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if _, err := io.Copy(io.Discard, body); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := api.ImageRemove(context.Background(), m.image, image.RemoveOptions{Force: true}); err != nil {
			t.Error(err)
		}
	})
	return m
}

// run runs a command of the machine.
func (m *machine) run(name string, args ...string) string {
	m.t.Helper()
	out, err := exec.CommandContext(context.Background(), name, args...).CombinedOutput()
	if err != nil {
		m.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// prepare calls the agent's prepare-host, with an agent's data directory.
func (m *machine) prepare(binary, dataDir string, env []string, args ...string) {
	m.t.Helper()
	cmd := exec.CommandContext(context.Background(), binary, append([]string{"-env-file", "/dev/null", "prepare-host"}, args...)...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "LONGSHORE_DATA_DIR=" + dataDir}, env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		m.t.Fatalf("prepare-host %v: %v\n%s(it needs to be root, and iproute2 and iptables)", args, err, out)
	}
}

// behind makes a network namespace to which this machine forwards what is for an
// address, and has a program serve there. It returns once that serves.
func (m *machine) behind(address string) {
	m.t.Helper()
	const ns, here, there = "ls-e2e-imds", "ls-e2e-a", "ls-e2e-b"
	m.run("ip", "netns", "add", ns)
	m.t.Cleanup(func() { m.run("ip", "netns", "del", ns) })
	m.run("ip", "link", "add", here, "type", "veth", "peer", "name", there, "netns", ns)
	m.run("ip", "address", "add", "198.18.77.1/30", "dev", here)
	m.run("ip", "link", "set", here, "up")
	for _, line := range []string{"link set lo up", "link set " + there + " up", "address add 198.18.77.2/30 dev " + there, "address add " + address + "/32 dev lo", "route add default via 198.18.77.1"} {
		m.run("ip", append([]string{"-n", ns}, strings.Fields(line)...)...)
	}
	m.run("ip", "route", "add", address+"/32", "via", "198.18.77.2")
	serve := exec.CommandContext(context.Background(), "ip", "netns", "exec", ns, m.whoami, "serve", address+":80")
	said, err := serve.StdoutPipe()
	if err == nil {
		err = serve.Start()
	}
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() {
		_ = serve.Process.Kill()
		_ = serve.Wait()
	})
	if _, err := io.ReadFull(said, make([]byte, len("ready"))); err != nil {
		m.t.Fatalf("nothing serves at %s: %v", address, err)
	}
}

// gateway is this machine's address on Docker's bridge.
func (m *machine) gateway() string {
	m.t.Helper()
	n, err := m.docker.NetworkInspect(m.t.Context(), "bridge", network.InspectOptions{})
	if err != nil || len(n.IPAM.Config) == 0 {
		m.t.Fatalf("the bridge has no addresses: %v %+v", err, n.IPAM)
	}
	if at := n.IPAM.Config[0].Gateway; at != "" { // younger engines say it
		return at
	}
	subnet, err := netip.ParsePrefix(n.IPAM.Config[0].Subnet)
	if err != nil {
		m.t.Fatal(err)
	}
	return subnet.Masked().Addr().Next().String()
}

// forward has containers reach what listens on loopback alone.
func (m *machine) forward(to string) (at string) {
	m.t.Helper()
	l, err := new(net.ListenConfig).Listen(m.t.Context(), "tcp4", m.gateway()+":0")
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer in.Close()
				out, err := net.Dial("tcp4", to)
				if err != nil {
					return
				}
				defer out.Close()
				go func() { _, _ = io.Copy(out, in) }()
				_, _ = io.Copy(in, out)
			}()
		}
	}()
	return l.Addr().String()
}

// container is the one container of a task on the engine, empty if there is none yet.
func (m *machine) container(task string) container.InspectResponse {
	m.t.Helper()
	list, err := m.docker.ContainerList(m.t.Context(), container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", "run.longshore.task="+task))})
	if err != nil || len(list) > 1 {
		m.t.Fatalf("task %s has containers %v, %v", task, list, err)
	}
	if len(list) == 0 {
		return container.InspectResponse{Config: &container.Config{}}
	}
	c, err := m.docker.ContainerInspect(m.t.Context(), list[0].ID)
	if errdefs.IsNotFound(err) { // the engine says so of one that it just makes
		return container.InspectResponse{Config: &container.Config{}}
	}
	if err != nil {
		m.t.Fatal(err)
	}
	return c
}

// said is what a task's container has printed.
func (m *machine) said(task string) string {
	m.t.Helper()
	c := m.container(task)
	if c.ContainerJSONBase == nil {
		return ""
	}
	body, err := m.docker.ContainerLogs(m.t.Context(), c.ID, container.LogsOptions{ShowStdout: true, ShowStderr: true})
	if errdefs.IsNotFound(err) {
		return ""
	}
	if err != nil {
		m.t.Fatal(err)
	}
	defer body.Close()
	var out bytes.Buffer
	if _, err := stdcopy.StdCopy(&out, &out, body); err != nil {
		m.t.Fatal(err)
	}
	return out.String()
}

// env is a variable of a task's container.
func (m *machine) env(task, name string) string {
	m.t.Helper()
	for _, kv := range m.container(task).Config.Env {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// program registers and runs a task of whoami with some role, network and arguments.
func (s *stack) program(m *machine, role, network, sts string, args ...string) (arn, id string) {
	s.t.Helper()
	family := fmt.Sprintf("whoami-%d", time.Now().UnixNano())
	def := s.register(family, func(in *ecs.RegisterTaskDefinitionInput, c *types.ContainerDefinition) {
		in.NetworkMode = types.NetworkMode(network)
		if role != "" {
			in.TaskRoleArn = &role
		}
		c.Image, c.Memory, c.Command = &m.image, aws.Int32(64), args
		c.Environment = []types.KeyValuePair{{Name: aws.String("AWS_ENDPOINT_URL"), Value: aws.String("http://" + sts)}}
	})
	arn = s.run(def)
	return arn, arn[strings.LastIndex(arn, "/")+1:]
}

// awaitSaid waits until a task's container has printed a line, and returns it.
func (s *stack) awaitSaid(m *machine, task string, line *regexp.Regexp) string {
	s.t.Helper()
	var got string
	defer func() {
		if s.t.Failed() {
			s.t.Logf("task %s said: %s", task, got)
		}
	}()
	s.eventually(fmt.Sprintf("a line %s of task %s", line, task), func() bool {
		got = m.said(task)
		return line.MatchString(got)
	})
	return line.FindString(got)
}
