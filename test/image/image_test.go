//go:build docker

package image

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	dockerimage "github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"
	"github.com/docker/docker/pkg/stdcopy"
)

func TestEnsure_TwiceIsNoWorkTheSecondTime(t *testing.T) {
	api := engine(t)
	ref, err := Ensure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	first, err := api.ImageInspect(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	never := func(context.Context, *client.Client, string) error {
		return errors.New("asked for an image that is there")
	}
	if err := ensure(t.Context(), api, ref, never); err != nil {
		t.Fatal(err)
	}
	second, err := api.ImageInspect(t.Context(), ref)
	if err != nil || second.ID != first.ID {
		t.Fatalf("image changed from %s to %s (%v)", first.ID, second.ID, err)
	}
}

func TestEnsure_WithoutRegistryBuildsAnImageThatRuns(t *testing.T) {
	api := engine(t)
	ref := fmt.Sprintf("longshore-image-test-%d:latest", time.Now().UnixNano())
	t.Cleanup(func() {
		_, _ = api.ImageRemove(context.Background(), ref, dockerimage.RemoveOptions{Force: true, PruneChildren: true})
	})
	noRegistry := func(context.Context, *client.Client, string) error { return errors.New("no registry answers") }
	if err := ensure(t.Context(), api, ref, noRegistry, buildLocally); err != nil {
		t.Fatal(err)
	}

	script := `trap 'echo trapped' USR1; kill -USR1 $$
mkdir /tmp/www && echo hello > /tmp/www/f && httpd -p 127.0.0.1:8080 -h /tmp/www
until wget -q -O - http://127.0.0.1:8080/f; do sleep 0.05; done
while :; do echo bye | nc -l -p 8081 >/dev/null; done & until echo | nc 127.0.0.1 8081 | grep bye; do sleep 0.05; done
true && ! false && exit 7`
	out, code := run(t, api, ref, script)
	if code != 7 || out != "trapped\nhello\nbye\n" {
		t.Fatalf("exit code %d and output %q", code, out)
	}
}

func TestPull_RegistryThatNeverAnswersIsGivenUpAfterSeconds(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // accepts by its backlog and stays silent
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	begun := time.Now()
	err = pull(t.Context(), engine(t), l.Addr().String()+"/nothing:latest")
	if err == nil || !strings.Contains(err.Error(), "no registry answers") {
		t.Errorf("error is %v", err)
	}
	if took := time.Since(begun); took < registryPatience || took > pullPatience {
		t.Errorf("giving up took %s", took)
	}
}

func TestEnsure_NoSourceTellsEveryReason(t *testing.T) {
	t.Setenv(busyboxVariable, "/nonexistent/busybox")
	noRegistry := func(context.Context, *client.Client, string) error { return errors.New("no registry answers") }
	err := ensure(t.Context(), engine(t), "longshore-image-test-none:latest", noRegistry, buildLocally)
	if err == nil || !strings.Contains(err.Error(), "no registry answers") || !strings.Contains(err.Error(), "apt-get install -y busybox-static") {
		t.Fatalf("error is %v", err)
	}
}

func TestEnsure_SilentEngineIsNamed(t *testing.T) {
	t.Setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
	_, err := Ensure(t.Context())
	if err == nil || !strings.Contains(err.Error(), "tools/check docker") {
		t.Fatalf("error is %v", err)
	}
}

func engine(t *testing.T) *client.Client {
	t.Helper()
	api, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = api.Close() })
	return api
}

func run(t *testing.T, api *client.Client, ref, script string) (output string, code int64) {
	t.Helper()
	c, err := api.ContainerCreate(t.Context(), &container.Config{Image: ref, Cmd: []string{"sh", "-c", script}},
		&container.HostConfig{NetworkMode: "none"}, nil, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = api.ContainerRemove(context.Background(), c.ID, container.RemoveOptions{Force: true})
	})
	if err := api.ContainerStart(t.Context(), c.ID, container.StartOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	ended, failed := api.ContainerWait(ctx, c.ID, container.WaitConditionNotRunning)
	select {
	case err := <-failed:
		t.Fatal(err)
	case end := <-ended:
		code = end.StatusCode
	}
	logs, err := api.ContainerLogs(t.Context(), c.ID, container.LogsOptions{ShowStdout: true, ShowStderr: true})
	if err != nil {
		t.Fatal(err)
	}
	defer logs.Close()
	var stdout, stderr bytes.Buffer
	if _, err := stdcopy.StdCopy(&stdout, &stderr, logs); err != nil {
		t.Fatal(err)
	}
	if stderr.Len() > 0 {
		t.Logf("standard error: %s", &stderr)
	}
	return stdout.String(), code
}
