package main

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/edgeagent/internal/introspect"
	"github.com/longshore-run/longshore/shared/task"
)

func TestStatus_ShowsTheAgentAndExitsByHowItIs(t *testing.T) {
	dir := t.TempDir()
	lookup := func(name string) (string, bool) { return dir, name == "LONGSHORE_DATA_DIR" }
	ask := func(args ...string) (int, string, string) {
		var out, fault bytes.Buffer
		return status([]string{os.DevNull}, args, lookup, nil, &out, &fault), out.String(), fault.String()
	}
	if code, _, fault := ask(); code != exitFault || !strings.Contains(fault, "no agent answers at "+filepath.Join(dir, socketName)) {
		t.Errorf("without an agent: %d %s", code, fault)
	}
	ok := agent.Health{OK: true}
	l := agent.Look{Instance: "i", ContainerInstanceARN: "arn:i", Cluster: "edge", Version: "1.2", Registered: true, Epoch: 7, Docker: ok, Commands: ok, Heartbeats: ok,
		HeartbeatSent: time.Now(), HeartbeatEvery: time.Minute, Tombstones: 2, Tasks: []agent.TaskLook{
			{ID: "0a", Attempt: 2, Family: "web", Revision: 3, Status: task.Running, Desired: task.DesiredRunning},
			{ID: "0b", Attempt: 1, Family: "job", Revision: 1, Status: task.Pending, Desired: task.DesiredStopped, Refused: "port 80 is taken"},
		}}
	serve := func(l agent.Look, use func()) {
		ctx, end := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			introspect.Serve(ctx, introspect.Handler(func() agent.Look { return l }, nil), filepath.Join(dir, socketName), introspect.Off, slog.New(slog.DiscardHandler))
		}()
		for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
			if code, _, _ := ask(); code != exitFault {
				break
			}
		}
		use()
		end()
		<-done
	}
	serve(l, func() {
		code, out, fault := ask()
		if code != exitOK || fault != "" {
			t.Errorf("%d %s", code, fault)
		}
		for _, part := range []string{"registered in cluster edge, epoch 7", "arn:i", "docker             OK",
			"task endpoint      off: tasks with a role are placed elsewhere", "instance metadata  open to containers, as LONGSHORE_BLOCK_INSTANCE_METADATA says", "tasks              1 open, 1 ended and not acknowledged, 2 remembered by their end",
			"0a    2        web:3       RUNNING  RUNNING  -       -", "0b    1        job:1       REFUSED  STOPPED  -       port 80 is taken"} {
			if !strings.Contains(out, part) {
				t.Errorf("%q is not in\n%s", part, out)
			}
		}
		if code, out, _ := ask("-o", "json"); code != exitOK || !strings.Contains(out, `"refused":"port 80 is taken"`) {
			t.Errorf("%d %s", code, out)
		}
		if code, _, _ := ask("-o", "yaml"); code != exitUsage {
			t.Errorf("-o yaml: %d", code)
		}
	})
	// What containers lack is shown, and keeps nothing else from its work.
	l.TaskEndpoint, l.MetadataBlock = &agent.Health{Why: "no address"}, &agent.Health{Why: "nobody has looked"}
	serve(l, func() {
		code, out, _ := ask()
		if code != exitOK || !strings.Contains(out, "NOT SERVED: no address") || !strings.Contains(out, "MAY BE REACHED by containers: nobody has looked") {
			t.Errorf("%d %s", code, out)
		}
	})
	l.TaskEndpoint, l.MetadataBlock = &ok, &ok
	l.NoRoom, l.Images = "no room for images", &agent.ImagesLook{Cleanup: "disk", Known: 7, Tracked: 5, DiskUsed: 96.4, DiskFreeMiB: 300, CleanedAt: time.Now().Add(-time.Hour), Removed: 3, FreedBytes: 5 << 20, PullsRunning: 4, PullsWaiting: 2}
	serve(l, func() {
		code, out, _ := ask()
		for _, part := range []string{"NONE: no room for images", "7, 5 of them pulled here; disk 96 % full, 300 MiB free; cleaned up 1h0m0s ago, 3 removed and 5 MiB freed since the start; 4 pulls go on, 2 wait"} {
			if code != exitUnwell || !strings.Contains(out, part) {
				t.Errorf("%d: %q is not in\n%s", code, part, out)
			}
		}
	})
	for want, i := range map[string]agent.ImagesLook{
		"1, 0 of them pulled here; disk unknown: elsewhere; nothing to clean up yet": {Cleanup: "disk", Known: 1, DiskWhy: "elsewhere"},
		"0, 0 of them pulled here; disk 0 % full, 0 MiB free; not cleaned up":        {Cleanup: "off"},
	} {
		if got := images(i, time.Now()); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	l.NoRoom = ""
	l.Docker = agent.Health{Why: "the socket does not answer"}
	serve(l, func() {
		if code, out, _ := ask(); code != exitUnwell || !strings.Contains(out, "IMPAIRED: the socket does not answer") ||
			!strings.Contains(out, "roles and metadata are served") || !strings.Contains(out, "containers on bridges are kept from it") {
			t.Errorf("%d %s", code, out)
		}
		if got := summary(l); got != "Docker is IMPAIRED: the socket does not answer" {
			t.Errorf("%s", got)
		}
	})
}
