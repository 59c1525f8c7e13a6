package introspect_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/edgeagent/internal/introspect"
	"github.com/longshore-run/longshore/shared/task"
)

func look() agent.Look {
	return agent.Look{
		ContainerInstanceARN: "arn:i", Cluster: "edge", Version: "1.2", Registered: true, Epoch: 7,
		TaskEndpoint: &agent.Health{OK: true}, MetadataBlock: &agent.Health{Why: "nobody has looked"},
		NoRoom: "no room", Images: &agent.ImagesLook{Known: 7, Tracked: 5, DiskUsed: 96, DiskFreeMiB: 3, CleanedAt: time.Unix(50, 0), Removed: 2, FreedBytes: 9, PullsRunning: 4, PullsWaiting: 1},
		Docker: agent.Health{Why: "silent"}, Commands: agent.Health{OK: true}, Heartbeats: agent.Health{OK: true}, HeartbeatSent: time.Unix(100, 0), Tombstones: 3,
		Tasks: []agent.TaskLook{
			{ID: "a", ARN: "arn:a", Attempt: 1, Family: "web", Revision: 4, Status: task.Running, Desired: task.DesiredRunning,
				Containers: []task.Container{{Name: "app", RuntimeID: "c1", Bindings: []task.Binding{{ContainerPort: 80, HostPort: 8080, Protocol: "tcp"}}}}},
			{ID: "b", ARN: "arn:b", Attempt: 1, Family: "job", Revision: 1, Status: task.Stopped, Desired: task.DesiredStopped, Containers: []task.Container{{Name: "app"}}},
		},
	}
}

func get(t *testing.T, path string, host ...string) (int, string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Host = append(host, "localhost:51678")[0]
	w := httptest.NewRecorder()
	introspect.Handler(look, func(family string, _ int, id agent.ContainerID) string { return family + "-" + id.Container }).ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func TestHandler_AnswersWhatECSsAgentAnswers(t *testing.T) {
	for path, want := range map[string]string{
		"/v1/metadata":            `{"Cluster":"edge","ContainerInstanceArn":"arn:i","Version":"longshore-agent 1.2"}`,
		"/v1/tasks?taskarn=arn:b": `{"Arn":"arn:b","DesiredStatus":"STOPPED","KnownStatus":"STOPPED","Family":"job","Version":"1","Containers":[{"DockerId":"","DockerName":"job-app","Name":"app"}]}`,
		"/v1/tasks?dockerid=c1":   `{"Arn":"arn:a","KnownStatus":"RUNNING","Family":"web","Version":"4","Containers":[{"DockerId":"c1","DockerName":"web-app","Name":"app","Ports":[{"ContainerPort":80,"Protocol":"tcp","HostPort":8080}]}]}`,
	} {
		if code, got := get(t, path); code != http.StatusOK || strings.TrimSpace(got) != want {
			t.Errorf("%s: %d %s", path, code, got)
		}
	}
	var all struct{ Tasks []struct{ Arn string } }
	if _, got := get(t, "/v1/tasks"); json.Unmarshal([]byte(got), &all) != nil || len(all.Tasks) != 2 {
		t.Errorf("%s", got)
	}
}

func TestHandler_RefusesWhatIsNotThereAndWhoIsNotHere(t *testing.T) {
	for path, want := range map[string]int{
		"/v1/tasks?taskarn=arn:c": http.StatusNotFound, "/v1/tasks?dockerid=": http.StatusNotFound,
		"/v1/tasks?dockerid=c1&taskarn=arn:a": http.StatusBadRequest, "/v2": http.StatusNotFound,
	} {
		if code, _ := get(t, path); code != want {
			t.Errorf("%s: %d, want %d", path, code, want)
		}
	}
	for _, host := range []string{"evil.example", "10.0.0.1:51678", "localhost.evil.example"} {
		if code, _ := get(t, "/v1/status", host); code != http.StatusForbidden {
			t.Errorf("by the name %s: %d", host, code)
		}
	}
	for _, host := range []string{"127.0.0.1:51678", "[::1]:51678", "localhost"} {
		if code, _ := get(t, "/v1/status", host); code != http.StatusOK {
			t.Errorf("by the name %s: %d", host, code)
		}
	}
}

func TestMetrics_CountTasksAndSayWhatDoesNotWork(t *testing.T) {
	_, got := get(t, "/metrics")
	for _, line := range []string{
		"longshore_agent_task_endpoint_ok 1", "longshore_agent_instance_metadata_blocked 0", "longshore_agent_registered 1", "longshore_agent_docker_ok 0", "longshore_agent_epoch 7", "longshore_agent_heartbeat_timestamp_seconds 100", "longshore_agent_tombstones 3",
		"longshore_agent_room_ok 0", "longshore_agent_images 7", "longshore_agent_images_tracked 5", "longshore_agent_images_removed 2", "longshore_agent_images_freed_bytes 9",
		`longshore_agent_pulls{state="running"} 4`, `longshore_agent_pulls{state="waiting"} 1`, "longshore_agent_images_disk_used_percent 96",
		"longshore_agent_images_disk_free_bytes 3145728", "longshore_agent_images_cleaned_timestamp_seconds 50",
		`longshore_agent_tasks{status="RUNNING"} 1`, `longshore_agent_tasks{status="STOPPED"} 1`, `longshore_agent_tasks{status="PENDING"} 0`,
		"longshore_agent_ends_unacknowledged 1", "process_resident_memory_bytes ",
	} {
		if !strings.Contains(got, "\n"+line) && !strings.HasPrefix(got, line) {
			t.Errorf("%q is not in\n%s", line, got)
		}
	}
}

func TestServe_OnASocketOfItsOwnersAndOnLoopbackUntilItEnds(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "agent.sock")
	if err := os.WriteFile(socket, nil, 0o644); err != nil { // an agent that was killed left something
		t.Fatal(err)
	}
	at, err := net.Listen("tcp", "127.0.0.11:0") // of 127.0.0.1 every connection of another test takes a port
	if err != nil {
		t.Fatal(err)
	}
	address := at.Addr().String()
	if err := at.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		introspect.Serve(ctx, introspect.Handler(look, nil), socket, address, slog.New(slog.DiscardHandler))
	}()
	byName := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	bySocket := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	for url, client := range map[string]*http.Client{"http://" + address + "/v1/status": byName, "http://localhost/v1/status": bySocket} {
		var body string
		for deadline := time.Now().Add(20 * time.Second); body == "" && time.Now().Before(deadline); {
			if answer, err := client.Get(url); err == nil {
				text, _ := io.ReadAll(answer.Body)
				_ = answer.Body.Close()
				body = string(text)
			}
		}
		if !strings.Contains(body, `"containerInstanceArn":"arn:i"`) {
			t.Errorf("%s: %q", url, body)
		}
	}
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket: %v, %v", info, err)
	}
	end()
	<-done
	if _, err := net.DialTimeout("tcp", address, time.Second); err == nil {
		t.Error("it still listens")
	}
}

func TestServe_AnAddressThatSomethingHasIsNoFault(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	socket := filepath.Join(t.TempDir(), "agent.sock")
	ctx, end := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		introspect.Serve(ctx, introspect.Handler(look, nil), socket, other.Addr().String(), slog.New(slog.DiscardHandler))
	}()
	for deadline := time.Now().Add(20 * time.Second); ; {
		if c, err := net.Dial("unix", socket); err == nil {
			_ = c.Close()
			break
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	end()
	<-done
}
