package endpoint

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// Two tasks on a bridge, and one on the host's network. Loopback has addresses
// enough for everybody to have one.
const (
	taskA, addressA = "0123456789abcdef0123456789abcdef", "127.0.0.2"
	taskB, addressB = "fedcba9876543210fedcba9876543210", "127.0.0.3"
	taskH, addressH = "00112233445566778899aabbccddeeff", "127.0.0.9"
	roleA           = "arn:aws:iam::000000000000:role/longshore/a"
	listenAt        = "127.0.0.10"
	arnStart        = "arn:aws:ecs:eu-west-1:000000000000:task/edge/"
)

var (
	idA = agent.ContainerID{Task: taskA, Attempt: 2, Container: "app"}
	idB = agent.ContainerID{Task: taskB, Attempt: 1, Container: "app"}
	idH = agent.ContainerID{Task: taskH, Attempt: 1, Container: "app"}
)

var began = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// rig is a server with all that it asks in memory. The engine is the rig.
type rig struct {
	*Server
	t    *testing.T
	logs *buffer

	mu      sync.Mutex
	tasks   map[string]agent.Served
	details map[agent.ContainerID]agent.Detail
	looks   int
	silent  bool
	cpu     int
	assume  func(role, session string) (Credentials, error)
}

type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func served(id agent.ContainerID, role, network string) agent.Served {
	def := &taskdef.TaskDefinition{Spec: taskdef.Spec{
		Family: "web", TaskRoleArn: role, NetworkMode: network, CPU: "256", Memory: "512",
		ContainerDefinitions: []taskdef.ContainerDefinition{{
			Name: "app", Image: "busybox", CPU: new(10), Memory: new(128), Environment: []taskdef.KeyValuePair{{Name: "PLAIN", Value: "environment-value"}},
			LogConfiguration: &taskdef.LogConfiguration{LogDriver: "splunk", Options: map[string]string{"splunk-url": "https://splunk", "splunk-token": "log-token"}},
		}},
	}}
	return agent.Served{
		TaskLook: agent.TaskLook{
			ID: id.Task, ARN: arnStart + id.Task, Attempt: id.Attempt, Family: "web", Revision: 7, Status: task.Running, Desired: task.DesiredRunning,
			Containers: []task.Container{{Name: "app", Status: task.ContainerRunning, RuntimeID: "rt-" + id.Task[:4], Image: "busybox", ImageDigest: "sha256:beef",
				Health: task.Healthy, Bindings: []task.Binding{{BindIP: "0.0.0.0", ContainerPort: 80, HostPort: 49153, Protocol: "tcp"}}}},
		},
		Cluster: "edge", ServiceName: "front", Definition: def, Restarts: map[string]int{"app": 3},
		PullStartedAt: began, PullStoppedAt: began.Add(time.Second),
	}
}

func detailAt(id agent.ContainerID, address string) agent.Detail {
	d := agent.Detail{
		RuntimeID: "rt-" + id.Task[:4], Name: "longshore-web-7-app", Image: "busybox", ImageID: "sha256:image", Running: true, LogDriver: "splunk",
		Labels: map[string]string{"com.amazonaws.ecs.container-name": "app"}, CreatedAt: began, StartedAt: began.Add(2 * time.Second),
		Mounts: []agent.Mount{{Name: "data", Source: "/var/lib/docker/volumes/data/_data", Destination: "/data"}},
		Health: &agent.HealthCheck{Status: "healthy", Output: "fine", At: began.Add(3 * time.Second)},
	}
	if address == "" {
		d.HostNetwork = true
	} else {
		d.Addresses = []netip.Addr{netip.MustParseAddr(address)}
	}
	return d
}

func newRig(t *testing.T, change func(*Config)) *rig {
	t.Helper()
	r := &rig{
		t: t, logs: &buffer{},
		tasks: map[string]agent.Served{taskA: served(idA, roleA, "bridge"), taskB: served(idB, "", "bridge"), taskH: served(idH, roleA, "host")},
		details: map[agent.ContainerID]agent.Detail{
			idA: detailAt(idA, addressA), idB: detailAt(idB, addressB), idH: detailAt(idH, ""),
		},
		assume: func(role, session string) (Credentials, error) {
			return Credentials{AccessKeyID: "ASIAKEY", SecretAccessKey: "very-secret", SessionToken: "token of " + role + "/" + session, Expires: began.Add(time.Hour)}, nil
		},
	}
	c := Config{
		Address: free(t), Key: bytes.Repeat([]byte{7}, keyBytes), HostNetwork: true, Rate: 40, Burst: 60, Region: "eu-west-1", Zone: "eu-west-1a", Engine: r,
		Assume: func(_ context.Context, role, session string) (Credentials, error) { return r.assume(role, session) },
		Served: func(id string) (agent.Served, bool) {
			r.mu.Lock()
			defer r.mu.Unlock()
			s, ok := r.tasks[id]
			return s, ok
		},
		Own: func(a netip.Addr) bool { return a.String() == addressH || a.String() == listenAt },
		Log: slog.New(slog.NewJSONHandler(r.logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if change != nil {
		change(&c)
	}
	r.Server = New(c)
	r.Look()
	t.Cleanup(func() {
		if r.server != nil {
			_ = r.server.Close()
		}
	})
	return r
}

// free is an address of loopback that nothing has. It is not 127.0.0.1, of which every
// connection of another test takes a port.
func free(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", listenAt+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Detail implements Engine.
func (r *rig) Detail(_ context.Context, id agent.ContainerID) (agent.Detail, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.looks++
	if r.silent {
		return agent.Detail{}, fault.New(fault.Unavailable, "silent")
	}
	d, ok := r.details[id]
	if !ok {
		return d, fault.New(fault.NotFound, "gone")
	}
	return d, nil
}

// Stats implements Engine.
func (r *rig) Stats(_ context.Context, id agent.ContainerID) (json.RawMessage, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cpu++
	return json.Marshal(map[string]any{"id": id.Task, "read": r.cpu, "cpu_stats": r.cpu, "precpu_stats": 0})
}

// set changes what is around the server.
func (r *rig) set(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

// clientAt asks from an address.
func clientAt(address string) *http.Client {
	d := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	return &http.Client{Timeout: time.Minute, Transport: &http.Transport{DialContext: d.DialContext, DisableKeepAlives: true}}
}

// get asks from an address for a path.
func (r *rig) get(from, path string, headers ...string) (status int, body string) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, "http://"+r.Address+path, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	answer, err := clientAt(from).Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return answer.StatusCode, strings.TrimSpace(string(text))
}

func (r *rig) credentialsPath(id agent.ContainerID) string {
	return "/v2/credentials/" + r.id(credentialsIDs, id)
}
func (r *rig) metadataPath(id agent.ContainerID) string { return "/v4/" + r.id(metadataIDs, id) }
