package endpoint

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
)

var update = flag.Bool("update", false, "rewrite the golden answers")

// golden compares an answer with the one of testdata, member by member in its order.
func golden(t *testing.T, name, body string) {
	t.Helper()
	var indented bytes.Buffer
	if err := json.Indent(&indented, []byte(body), "", "  "); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	indented.WriteByte('\n')
	file := filepath.Join("testdata", name+".json")
	if *update {
		if err := os.WriteFile(file, indented.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(want, indented.Bytes()) {
		t.Errorf("%s differs (%v; rewrite it with -update and read the difference):\n%s", file, err, indented.Bytes())
	}
}

func TestMetadata_HasTheShapesOfECS(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.set(func() { // a task with a second container that has ended, and a third that is not made yet
		s := r.tasks[taskA]
		s.Containers = append(s.Containers,
			task.Container{Name: "init", Status: task.ContainerStopped, RuntimeID: "rt-init", Image: "busybox", ExitCode: new(0)},
			task.Container{Name: "late", Status: task.ContainerPending, Image: "busybox"})
		r.tasks[taskA] = s
		d := detailAt(idA, "127.0.0.5")
		d.Running, d.FinishedAt, d.RuntimeID, d.Health, d.Mounts = false, began, "rt-init", nil, nil
		init := idA
		init.Container = "init"
		r.details[init] = d
	})
	for name, path := range map[string]string{"container": "", "task": "/task", "task-with-tags": "/taskWithTags", "stats": "/stats", "task-stats": "/task/stats"} {
		status, body := r.get(addressA, r.metadataPath(idA)+path)
		if status != http.StatusOK {
			t.Errorf("%s: %d %s", name, status, body)
			continue
		}
		for _, secret := range []string{"environment-value", "PLAIN", "log-token", "run.longshore", "very-secret"} {
			if strings.Contains(body, secret) {
				t.Errorf("%s has %q", name, secret)
			}
		}
		if name != "stats" && name != "task-stats" {
			golden(t, name, body)
		}
	}
	_, plain := r.get(addressA, r.metadataPath(idA))
	if _, slash := r.get(addressA, r.metadataPath(idA)+"/"); slash != plain {
		t.Errorf("with a slash at the end: %s", slash)
	}
	if _, body := r.get(addressH, r.metadataPath(idH)); !strings.Contains(body, `"Networks":[{"NetworkMode":"host"}]`) {
		t.Errorf("on the host's network: %s", body)
	}
}

// Who computes a share of the processor needs two measurements.
func TestStats_ShowTheMeasurementBefore(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for _, want := range []string{`"cpu_stats":1,"id":"` + taskA + `","precpu_stats":0`, `"cpu_stats":2,"id":"` + taskA + `","precpu_stats":1,"preread":1`} {
		if status, body := r.get(addressA, r.metadataPath(idA)+"/stats"); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%d %s\nwant %s in it", status, body, want)
		}
	}
	if status, body := r.get(addressA, r.metadataPath(idA)+"/task/stats"); status != http.StatusOK || !strings.HasPrefix(body, `{"rt-0123":{"cpu_stats":3,`) {
		t.Errorf("of the task: %d %s", status, body)
	}
}

func TestEnvironment_IsWhatSDKsLookFor(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	envOf := func(s *Server, id agent.ContainerID, role, network string) map[string]string {
		t.Helper()
		env, err := s.Environment(id, served(id, role, network).Definition)
		if err != nil {
			t.Fatal(err)
		}
		return env
	}
	r.Address = Standard // as if it served there
	env := envOf(r.Server, idA, roleA, "")
	if env["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"] != r.credentialsPath(idA) || env["ECS_CONTAINER_METADATA_URI_V4"] != "http://169.254.170.2"+r.metadataPath(idA) ||
		env["AWS_REGION"] != "eu-west-1" || len(env) != 3 {
		t.Errorf("on a bridge: %v", env)
	}
	if env := envOf(r.Server, idB, "", "host"); len(env) != 1 || env["ECS_CONTAINER_METADATA_URI_V4"] == "" {
		t.Errorf("without a role: %v", env)
	}
	if env := envOf(r.Server, idA, roleA, "none"); env != nil {
		t.Errorf("without a network: %v", env)
	}
	def := served(idA, roleA, "").Definition
	def.ContainerDefinitions[0].Environment[0].Name = "AWS_REGION"
	if env, err := r.Environment(idA, def); err != nil || env["AWS_REGION"] != "" {
		t.Errorf("a region of its own is overwritten: %v %v", env, err)
	}
	r.Address = "127.0.0.1:8123"
	if env := envOf(r.Server, idA, roleA, ""); env["AWS_CONTAINER_CREDENTIALS_FULL_URI"] != "http://127.0.0.1:8123"+r.credentialsPath(idA) || env["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"] != "" {
		t.Errorf("elsewhere: %v", env)
	}
}

// A task must not begin without the role that it asks for, and find another's.
func TestEnvironment_ARoleThatIsNotToBeHadIsAnError(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change  func(*Config)
		network string
		want    string
	}{
		"not served":      {func(c *Config) { c.Address = "203.0.113.1:80" }, "bridge", "prepare-host"},
		"switched off":    {func(c *Config) { c.Assume = nil }, "bridge", "LONGSHORE_TASK_ROLES is false"},
		"off on the host": {func(c *Config) { c.HostNetwork = false }, "host", "LONGSHORE_TASK_ROLES_NETWORK_HOST is false"},
	} {
		r := newRig(t, c.change)
		env, err := r.Environment(idA, served(idA, roleA, c.network).Definition)
		if err == nil || !strings.Contains(err.Error(), c.want) || env != nil {
			t.Errorf("%s: %v %v", name, env, err)
		}
		if env, err := r.Environment(idB, served(idB, "", c.network).Definition); err != nil {
			t.Errorf("%s, without a role: %v %v", name, env, err)
		}
	}
}

func TestCapabilities_FollowWhatIsServed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"all":             {nil, taskdef.CapabilityTaskRole + " " + taskdef.CapabilityTaskRoleHost},
		"off on the host": {func(c *Config) { c.HostNetwork = false }, taskdef.CapabilityTaskRole},
		"switched off":    {func(c *Config) { c.Assume = nil }, ""},
		"no address":      {func(c *Config) { c.Address = "203.0.113.1:80" }, ""},
	} {
		if got := strings.Join(newRig(t, c.change).Capabilities(), " "); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// Of two agents on a machine the first has the address; the other says so, and has it
// once the first is gone.
func TestServe_TheSecondOfTwoAgentsSaysSoAndTakesOver(t *testing.T) {
	t.Parallel()
	first := newRig(t, nil)
	second := newRig(t, func(c *Config) { c.Address = first.Address })
	if h := second.Health(); h.OK || !strings.Contains(h.Why, "address already in use") || second.Capabilities() != nil {
		t.Errorf("%+v %v", h, second.Capabilities())
	}
	if second.Look() {
		t.Error("something changed while the first still serves")
	}
	_ = first.server.Close()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(time.Minute); !second.Look(); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%+v after the first is gone", second.Health())
		}
	}
	if !second.Health().OK {
		t.Errorf("%+v after the first is gone", second.Health())
	}
	if logs := second.logs.String(); strings.Count(logs, "are not served") != 1 {
		t.Errorf("it is not said once: %s", logs)
	}
}

func TestKey_IsMadeOnceAndForTheAgentAlone(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "endpoint.key")
	made, err := Key(file)
	if err != nil || len(made) != keyBytes {
		t.Fatalf("%d bytes, %v", len(made), err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if again, err := Key(file); err != nil || !bytes.Equal(again, made) {
		t.Errorf("another key the second time, %v", err)
	}
	if err := os.WriteFile(file, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Key(file); err == nil || !strings.Contains(err.Error(), "has 5 bytes, want 32") {
		t.Errorf("a broken key: %v", err)
	}
}
