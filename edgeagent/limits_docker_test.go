//go:build docker

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/edgeagent/agent/agenttest"
	"github.com/longshore-run/longshore/edgeagent/internal/dockerengine"
	"github.com/longshore-run/longshore/edgeagent/internal/taskgroup"
	"github.com/longshore-run/longshore/shared/setting"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
	"github.com/longshore-run/longshore/test/image"
)

// limited is a real engine with groups of tasks, as the agent wires it.
type limited struct {
	*testing.T
	instance, host string
	engine         *dockerengine.Engine
}

func newLimited(t *testing.T) *limited {
	t.Helper()
	l := &limited{T: t, instance: wire.InstanceID(agenttest.RandomID()), host: cmp.Or(os.Getenv("DOCKER_HOST"), "unix:///var/run/docker.sock")}
	l.again()
	t.Cleanup(func() {
		if left := l.left(); len(left) > 0 {
			t.Errorf("left: %s", left)
		}
	})
	return l
}

// again is the engine as an agent that starts has it.
func (l *limited) again() {
	l.Helper()
	groups := &taskLimits{instance: l.instance, log: slog.New(slog.NewTextHandler(l.Output(), nil)), settings: settings{
		Agent: setting.Agent{DockerHost: l.host, TaskLimits: "true", CgroupPath: taskgroup.Root, CgroupPeriod: taskgroup.DefaultPeriod}}}
	e, err := dockerengine.New(l.host, l.instance, "default", dockerengine.WithPolicy(dockerengine.PolicyPreferCached), dockerengine.WithGroups(groups.open, true))
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { _ = e.Close() })
	info, err := e.Info(l.Context())
	if h, _ := groups.health(); err != nil || !info.TaskLimits || !h.OK {
		l.Fatalf("no groups of tasks can be made here: %v, %+v", err, h)
	}
	l.engine = e
}

// left are the groups of the instance, in every hierarchy.
func (l *limited) left() (all []string) {
	l.Helper()
	err := filepath.WalkDir(taskgroup.Root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil || !d.IsDir():
			return err
		case strings.Contains(path, l.instance) && filepath.Base(path) != "longshore-"+l.instance+".slice":
			all = append(all, path)
		}
		return nil
	})
	if err != nil {
		l.Fatal(err)
	}
	return all
}

// groupFile reads a file of the group that has the name, in whichever hierarchy it is.
func (l *limited) groupFile(parent string, names ...string) string {
	l.Helper()
	for _, dir := range l.left() {
		if filepath.Base(dir) != filepath.Base(parent) {
			continue
		}
		for _, name := range names {
			if text, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
				return strings.TrimSpace(string(text))
			}
		}
	}
	return ""
}

// sized is a task of 64 MiB and half a core, of containers that have no size of their own.
func (l *limited) sized(commands map[string]string) func(name string) agent.Spec {
	l.Helper()
	ref, err := image.Ensure(l.Context())
	if err != nil {
		l.Fatal(err)
	}
	def := &taskdef.TaskDefinition{Spec: taskdef.Spec{Family: "sized", NetworkMode: "none", CPU: "512", Memory: "64"}}
	for name, command := range commands {
		def.ContainerDefinitions = append(def.ContainerDefinitions, taskdef.ContainerDefinition{Name: name, Image: ref, Command: []string{"sh", "-c", command}})
	}
	task := agenttest.RandomID()
	return func(name string) agent.Spec {
		return agent.Spec{ContainerID: agent.ContainerID{Task: task, Attempt: 1, Container: name}, TaskARN: "arn:" + task, Cluster: "default", Family: "sized", Revision: 1, Definition: def}
	}
}

// bounds are what Docker bounds a container by.
type bounds struct {
	CgroupParent                string
	Memory, CpuQuota, CpuPeriod int64
}

// inspect asks the engine itself.
func (l *limited) inspect(runtimeID string) bounds {
	l.Helper()
	asker := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", strings.TrimPrefix(l.host, "unix://"))
	}}}
	answer, err := asker.Get("http://docker/containers/" + runtimeID + "/json")
	if err != nil {
		l.Fatal(err)
	}
	defer answer.Body.Close()
	var got struct{ HostConfig bounds }
	if err := json.NewDecoder(answer.Body).Decode(&got); err != nil {
		l.Fatal(err)
	}
	return got.HostConfig
}

func (l *limited) create(spec agent.Spec) (runtimeID string) {
	l.Helper()
	id, err := l.engine.Create(l.Context(), spec)
	if err != nil {
		l.Fatal(err)
	}
	return id
}

func (l *limited) ended(id agent.ContainerID) (s agent.Seen) {
	l.Helper()
	eventually(l.T, "the end of "+id.Container, func() bool {
		var err error
		if s, err = l.engine.Observe(l.Context(), id); err != nil {
			l.Fatal(err)
		}
		return s.ExitCode != nil
	})
	return s
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.After(patience)
	for !done() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// Two containers without a limit of their own, of a task of 64 MiB: 40 MiB are there for
// one, and not for another beside it.
func TestLimits_TheContainersOfATaskCannotExceedItTogether(t *testing.T) {
	l := newLimited(t)
	const take = "dd if=/dev/zero of=/dev/null bs=40M count=1"
	spec := l.sized(map[string]string{
		"alone": take, "second": take, "holder": "dd if=/dev/zero of=/dev/shm/held bs=1M count=40 && sleep 600",
	})
	var all []agent.ContainerID
	for _, name := range []string{"alone", "holder", "second"} {
		all = append(all, spec(name).ContainerID)
	}
	t.Cleanup(func() { l.clear(all) })

	var parent string
	for _, id := range all {
		h := l.inspect(l.create(spec(id.Container)))
		parent = h.CgroupParent
		if !strings.Contains(parent, id.Task) || h.Memory != 0 || h.CpuQuota != 0 || h.CpuPeriod != 0 {
			t.Errorf("%s: parent %q, memory %d, quota %d/%d", id.Container, parent, h.Memory, h.CpuQuota, h.CpuPeriod)
		}
	}
	l.hasLimits(parent)

	start := func(name string) agent.ContainerID {
		id := spec(name).ContainerID
		if err := l.engine.Start(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		return id
	}
	if s := l.ended(start("alone")); *s.ExitCode != 0 {
		t.Fatalf("40 MiB of 64 are not there for one: %+v", s)
	}
	holder := start("holder")
	eventually(t, "40 MiB to be held", func() bool {
		return strings.Contains(l.groupFile(parent, "memory.stat"), "shmem 41943040\n") // of version 1 the total
	})
	// SIGKILL, which nobody here sends: whether Docker hears of the kernel's reason in time is not sure.
	s := l.ended(start("second"))
	if hits := l.groupFile(parent, "memory.failcnt", "memory.events"); *s.ExitCode != 137 || hits == "0" || strings.Contains(hits, "\nmax 0\n") {
		t.Errorf("another 40 MiB beside them: exit code %d, the group's limit was hit so often: %s", *s.ExitCode, hits)
	}
	t.Logf("OOMKilled: %t", s.OOMKilled)
	if s, err := l.engine.Observe(t.Context(), holder); err != nil || !s.Running {
		t.Errorf("the one that held them: %+v, %v", s, err)
	}
	if err := l.engine.RemoveTask(t.Context(), holder.Task, 1); err == nil {
		t.Error("the group of a container that runs was removed")
	}
}

func (l *limited) hasLimits(parent string) {
	l.Helper()
	memory, quota := l.groupFile(parent, "memory.limit_in_bytes", "memory.max"), l.groupFile(parent, "cpu.cfs_quota_us", "cpu.max")
	if memory != "67108864" || strings.TrimSuffix(quota, " 100000") != "50000" {
		l.Errorf("the group %s has memory %q and quota %q, want 67108864 and 50000", parent, memory, quota)
	}
}

// clear removes containers as the agent does, and the groups with them.
func (l *limited) clear(ids []agent.ContainerID) {
	ctx, fails := context.Background(), []error(nil) // the test's own has ended
	for _, id := range ids {
		fails = append(fails, l.engine.Stop(ctx, id, 0), l.engine.Remove(ctx, id))
	}
	for _, id := range ids {
		fails = append(fails, l.engine.RemoveTask(ctx, id.Task, id.Attempt))
	}
	if err := errors.Join(fails...); err != nil {
		l.Error(err)
	}
}

// A machine that was started anew has containers and no groups: they are made again, with
// their limits, before a container runs once more.
func TestLimits_AreThereAgainBeforeAContainerIs(t *testing.T) {
	l := newLimited(t)
	spec := l.sized(map[string]string{"main": "true"})("main")
	t.Cleanup(func() { l.clear([]agent.ContainerID{spec.ContainerID}) })
	parent := l.inspect(l.create(spec)).CgroupParent
	if err := l.engine.Start(t.Context(), spec.ContainerID); err != nil {
		t.Fatal(err)
	}
	s := l.ended(spec.ContainerID)
	if err := l.engine.RemoveTask(t.Context(), spec.Task, 1); err != nil {
		t.Fatal(err)
	}
	if left := l.left(); len(left) > 0 {
		t.Fatalf("left: %s", left)
	}
	l.again()
	if err := l.engine.Restart(t.Context(), spec.ContainerID, s.StartedAt); err != nil {
		t.Fatal(err)
	}
	l.hasLimits(parent)
	l.ended(spec.ContainerID)
}

// What an agent made and died before it used goes when the next one lists.
func TestLimits_AGroupWithoutATaskGoesAtTheNextStart(t *testing.T) {
	l := newLimited(t)
	used, unused := l.sized(map[string]string{"main": "true"})("main"), l.sized(map[string]string{"main": "true"})("main")
	t.Cleanup(func() { l.clear([]agent.ContainerID{used.ContainerID, unused.ContainerID}) })
	l.create(used)
	l.create(unused)
	if err := l.engine.Remove(t.Context(), unused.ContainerID); err != nil {
		t.Fatal(err)
	}
	for _, again := range []bool{false, true} {
		if again {
			l.again()
		}
		if _, err := l.engine.List(t.Context()); err != nil {
			t.Fatal(err)
		}
		left := strings.Join(l.left(), " ")
		if !strings.Contains(left, used.Task) || strings.Contains(left, unused.Task) == again {
			t.Errorf("started again: %t, there are %s", again, left)
		}
	}
}
