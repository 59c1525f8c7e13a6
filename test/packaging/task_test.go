//go:build package

package packaging

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/containerd/errdefs"
	"github.com/docker/docker/client"

	"github.com/longshore-run/longshore/test/local"
)

// runTask runs the one task whose container must not be touched.
func (l *life) runTask() {
	l.t.Helper()
	client := l.stack.ECS()
	definition := l.stack.Register(l.t, client, "through-packages", nil)
	l.eventually("room for a task", func() (bool, string) {
		out, err := client.RunTask(l.t.Context(), &ecs.RunTaskInput{Cluster: aws.String(local.Cluster), TaskDefinition: &definition})
		if err != nil {
			l.t.Fatal(err)
		}
		return len(out.Tasks) == 1, ""
	})
	l.eventually("running", func() (bool, string) {
		l.container = l.seen()
		return strings.HasSuffix(l.container, " running"), l.container
	})
}

// seen is what the engine says of the one container.
func (l *life) seen() string {
	l.t.Helper()
	api, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		l.t.Fatal(err)
	}
	defer api.Close()
	all, err := local.Containers(l.t.Context(), l.stack.Agent(1).Instance)
	if err != nil {
		l.t.Fatal(err)
	}
	if len(all) != 1 {
		return "no container yet, or too many"
	}
	c, err := api.ContainerInspect(l.t.Context(), all[0].ID)
	if errdefs.IsNotFound(err) {
		return all[0].ID + " is gone" // between the two questions
	}
	if err != nil {
		l.t.Fatal(err)
	}
	return strings.Join([]string{c.ID, c.State.StartedAt, time.Duration(c.State.Pid).String(), time.Duration(c.RestartCount).String(), c.State.Status}, " ")
}

func (l *life) untouched() {
	l.t.Helper()
	if now := l.seen(); now != l.container {
		l.t.Fatalf("the container was touched: it is\n%s\nand was\n%s", now, l.container)
	}
}

// settings are those of the stack's one agent, for a machine that has a place of its own for them.
func settings(t *testing.T, s *local.Stack) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.Agent(1).Dir, "env"))
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(string(text)), "\n"), func(line string) bool {
		return strings.HasPrefix(line, "LONGSHORE_DATA_DIR=") || strings.HasPrefix(line, "DOCKER_HOST=")
	})
	// The address of the endpoint is on the network, which is not the machine's own.
	return "# A person wrote this.\nLONGSHORE_TASK_ENDPOINT=off\n" + strings.Join(lines, "\n") + "\n"
}
