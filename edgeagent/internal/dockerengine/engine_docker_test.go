//go:build docker

package dockerengine

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/docker/docker/api/types/volume"
	"github.com/docker/docker/client"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/edgeagent/agent/agenttest"
	"github.com/longshore-run/longshore/test/image"
)

// host is the engine the tests run on.
func host() string { return cmp.Or(os.Getenv("DOCKER_HOST"), "unix:///var/run/docker.sock") }

func testImage(t *testing.T) string {
	t.Helper()
	ref, err := image.Ensure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// theAgent is the agent as it ships, made once.
var theAgent = sync.OnceValues(func() (string, error) {
	folder, err := os.MkdirTemp("", "longshore-pause-")
	if err != nil {
		return "", err
	}
	file := filepath.Join(folder, "longshore-agent")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", file, "../..")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the agent: %w\n%s", err, out)
	}
	return file, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if file, err := theAgent(); err == nil {
		_ = os.RemoveAll(filepath.Dir(file))
	}
	os.Exit(code)
}

// docker is the engine for one instance, closed with the test.
func docker(t *testing.T, instance string, options ...Option) *Engine {
	t.Helper()
	e, err := New(host(), instance, "default", options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// removeVolumes deletes the volumes whose names begin with prefix, which the
// engine itself leaves alone.
func removeVolumes(t *testing.T, prefix string) {
	api := raw(t)
	list, err := api.VolumeList(context.Background(), volume.ListOptions{})
	if err != nil {
		t.Error(err)
	}
	for _, v := range list.Volumes {
		if strings.HasPrefix(v.Name, prefix) {
			if err := api.VolumeRemove(context.Background(), v.Name, false); err != nil {
				t.Error(err)
			}
		}
	}
}

// raw is a client of its own, to look past the adapter.
func raw(t *testing.T) *client.Client {
	t.Helper()
	api, err := client.NewClientWithOpts(client.WithHost(host()), client.WithAPIVersionNegotiation())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = api.Close() })
	return api
}

func TestEngine_PassesTheSuiteOnDocker(t *testing.T) {
	t.Cleanup(func() { removeVolumes(t, agenttest.SharedVolumePrefix) })
	program, err := theAgent()
	if err != nil {
		t.Fatal(err)
	}
	agenttest.EngineSuite(t, func(instance string) agent.Engine { return docker(t, instance, WithPause(program, pauseCommand)) }, testImage(t))
}
