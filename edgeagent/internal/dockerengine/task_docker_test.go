//go:build docker

package dockerengine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/volume"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/edgeagent/agent/agenttest"
	"github.com/longshore-run/longshore/shared/setting"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
)

// machine is the agent itself on the real engine, with the control plane's part in
// memory.
type machine struct {
	*testing.T
	engine   *Engine
	inbox    *agenttest.Inbox
	outbox   *agenttest.Outbox
	instance string
}

// newMachine starts one. When the test has ended, nothing that it ran is left.
func newMachine(t *testing.T) *machine {
	t.Helper()
	testImage(t)
	program, err := theAgent()
	if err != nil {
		t.Fatal(err)
	}
	identity := "AROATEST:" + agenttest.RandomID()
	m := &machine{T: t, inbox: agenttest.NewInbox(), outbox: agenttest.NewOutbox(), instance: wire.InstanceID(identity)}
	m.engine = docker(t, m.instance, WithPause(program, pauseCommand), WithPolicy(PolicyPreferCached))
	m.outbox.OnSend = func(sent wire.Message) {
		if r, ok := sent.(*wire.Register); ok {
			m.inbox.Put(&wire.Welcome{Header: wire.Header{Instance: m.instance}, Incarnation: r.Incarnation, Cluster: "default", Epoch: 1, HeartbeatEveryS: 60})
		}
	}
	config := agent.Config{
		Identity: identity, Session: "1", Version: "test", Engine: m.engine, Inbox: m.inbox, Outbox: m.outbox,
		Journal: agenttest.NewJournal("first", identity), Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	if err := setting.FromEnv(&config.Setting, func(name string) (string, bool) {
		v, ok := map[string]string{"LONGSHORE_REPORTS_QUEUE_URL": "r", "LONGSHORE_HEARTBEATS_QUEUE_URL": "h"}[name]
		return v, ok
	}); err != nil {
		t.Fatal(err)
	}
	a, err := agent.New(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	t.Cleanup(func() {
		leave()
		if err := errors.Join(<-done, m.clear()); err != nil {
			t.Error(err)
		}
	})
	return m
}

// clear removes all that the instance has on the engine, those that hold others'
// namespaces last.
func (m *machine) clear() error {
	ctx := context.Background()
	list, err := m.engine.List(ctx)
	fails := []error{err}
	for _, last := range []bool{false, true} {
		for _, s := range list {
			if (s.Container == agent.PauseContainer) == last {
				fails = append(fails, m.engine.Stop(ctx, s.ContainerID, 0), m.engine.Remove(ctx, s.ContainerID))
			}
		}
	}
	for _, s := range list {
		fails = append(fails, m.engine.RemoveTask(ctx, s.Task, s.Attempt))
	}
	return errors.Join(fails...)
}

// assign registers a definition, as the API does, and has a task of it run.
func (m *machine) assign(body []byte) (id string, def taskdef.TaskDefinition) {
	m.Helper()
	in, err := taskdef.Decode(body)
	if err != nil {
		m.Fatal(err)
	}
	def = taskdef.Echo(in, taskdef.Registration{Region: "eu-west-1", Account: "000000000000", Revision: 7})
	id = agenttest.RandomID()
	m.inbox.Put(&wire.Assign{
		Header: wire.Header{Instance: m.instance}, Epoch: 1, Task: id, Attempt: 1, TaskARN: "arn:aws:ecs:eu-west-1:000000000000:task/default/" + id,
		Cluster: "default", Family: def.Family, Revision: def.Revision, Definition: json.RawMessage(taskdef.Canonical(def)),
	})
	return id, def
}

// told is the newest report of a task, once it is as wanted. A task that ends or is
// refused unexpectedly fails the test.
func (m *machine) told(id string, wanted task.Status) *wire.Report {
	m.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.After(4 * time.Minute)
	for {
		for _, sent := range m.outbox.Sent() {
			switch sent := sent.(type) {
			case *wire.Refused:
				if sent.Task == id {
					m.Fatalf("task %s is refused: %s", id, sent.Reason)
				}
			case *wire.Report:
				switch {
				case sent.Task != id:
				case sent.Status == wanted:
					return sent
				case sent.Status == task.Stopped:
					m.Fatalf("task %s ended: %s %+v", id, sent.Reason, sent.Containers)
				}
			}
		}
		select {
		case <-tick.C:
		case <-late:
			m.Fatalf("waited in vain for task %s to be %s", id, wanted)
		}
	}
}

// sights are the containers of a task, as the engine shows them.
func (m *machine) sights(id string, def taskdef.TaskDefinition) []sight {
	m.Helper()
	api := raw(m.T)
	list, err := api.VolumeList(m.Context(), volume.ListOptions{})
	if err != nil {
		m.Fatal(err)
	}
	info, err := api.Info(m.Context())
	if err != nil {
		m.Fatal(err)
	}
	volumes := map[string]volume.Volume{}
	for _, v := range list.Volumes {
		volumes[v.Name] = *v
	}
	pause := ""
	if def.PidMode == taskdef.NamespaceTask {
		c, err := api.ContainerInspect(m.Context(), fmt.Sprintf("longshore-%s-%d-.internal.ecs.pause.namespace-%s-1", def.Family, def.Revision, id[:12]))
		if err != nil || c.HostConfig.IpcMode != "shareable" || c.HostConfig.NetworkMode != "none" {
			m.Fatalf("the pause container: %+v, %v", c.HostConfig, err)
		}
		pause = c.ID
	}
	var all []sight
	for _, c := range def.ContainerDefinitions {
		name := fmt.Sprintf("longshore-%s-%d-%s-%s-1", def.Family, def.Revision, c.Name, id[:12])
		got, err := api.ContainerInspect(m.Context(), name)
		if err != nil {
			m.Fatal(err)
		}
		all = append(all, sight{def, c, id, got, volumes, info.CgroupVersion, pause})
	}
	return all
}

// Every member that runs is shown by "docker inspect" on a real engine, after its
// definition was registered and the agent has run a task of it.
func TestMembers_EachIsShownByDockerInspect(t *testing.T) {
	t.Cleanup(func() { removeVolumes(t, "whole-shared") })
	m := newMachine(t)
	seen := map[string]bool{}
	tasks := map[string]taskdef.TaskDefinition{}
	for _, name := range []string{"whole", "host", "alone"} {
		id, def := m.assign([]byte(strings.ReplaceAll(string(inspectFile(t, name)), "FOLDER", t.TempDir())))
		tasks[id] = def
	}
	for id, def := range tasks {
		m.told(id, task.Running)
		for _, s := range m.sights(id, def) {
			s.check(t, seen)
		}
	}
	for _, member := range taskdef.Members() {
		_, shown := shownAt[member.Path]
		switch {
		case member.State != taskdef.Run:
			if shown {
				t.Errorf("%s is refused, and docker inspect is said to show it", member.Path)
			}
		case elsewhere[member.Path] != "", notHere[member.Path] != "", member.Type == taskdef.Object, member.Type == taskdef.Objects:
		case !shown:
			t.Errorf("%s: where does docker inspect show it?", member.Path)
		case !seen[member.Path]:
			t.Errorf("%s is in no definition that was run", member.Path)
		}
	}
}
