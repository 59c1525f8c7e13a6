//go:build docker && soak

package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent/agenttest"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
)

// machine is an agent, an engine of the test's own that is killed, and a control
// plane. Each run of a container leaves a line in a file, whoever started it.
type machine struct {
	*program
	d     *dockerd
	plane *agenttest.Plane
	runs  string // the folder of these files
	who   *wire.Register
	lost  int // containers that Docker was killed in the middle of starting, and lost
}

// moment is when an engine is killed: so long after it was asked for something.
type moment struct {
	verb, path string
	after      time.Duration
}

func (m *machine) assign(n int, image, script string, policy *taskdef.RestartPolicy) {
	m.Helper()
	c := m.container("app", fmt.Sprintf("echo run >> /runs/%d; %s", n, script))
	c.Image, c.RestartPolicy, c.MountPoints = image, policy, []taskdef.MountPoint{{SourceVolume: "runs", ContainerPath: "/runs"}}
	def := taskdef.TaskDefinition{Revision: 1, Spec: taskdef.Spec{
		Family: "program", NetworkMode: taskdef.NetworkNone, ContainerDefinitions: []taskdef.ContainerDefinition{c},
		Volumes: []taskdef.Volume{{Name: "runs", Host: &taskdef.HostVolume{SourcePath: m.runs}}},
	}}
	m.plane.Assign(&wire.Assign{
		Header: wire.Header{Instance: m.instance}, Epoch: 100, Task: taskID(n), Attempt: 1, TaskARN: "arn:aws:ecs:us-east-1:000000000000:task/default/" + taskID(n),
		Cluster: "default", Family: "program", Revision: 1, Definition: []byte(taskdef.Canonical(def)),
	})
	m.pump(m.plane)
}

func (m *machine) stop(n int) {
	m.Helper()
	m.send(&wire.Stop{Header: wire.Header{Instance: m.instance}, Task: taskID(n), Attempt: 1})
}

// started is how often the container of a task has begun to run.
func (m *machine) started(n int) int {
	text, _ := os.ReadFile(filepath.Join(m.runs, fmt.Sprint(n)))
	return strings.Count(string(text), "run\n")
}

func (m *machine) told(n int) agenttest.Told { return m.plane.Tasks()[taskID(n)] }

// until waits for what the control plane is told.
func (m *machine) until(what string, done func() bool) {
	m.Helper()
	for deadline := time.Now().Add(90 * time.Second); !done(); {
		if time.Now().After(deadline) {
			m.Fatalf("waited in vain for %s: %+v", what, m.plane.Tasks())
		}
		m.pump(m.plane)
		<-time.After(20 * time.Millisecond)
	}
}

// again starts the engine that was killed.
func (m *machine) again() {
	m.Helper()
	select {
	case <-m.d.exited:
		m.d.cmd = nil
	case <-time.After(60 * time.Second):
		m.Fatal("dockerd was killed and does not end")
	}
	// Its containerd dies with it; a new dockerd waits in vain for one that is dead and
	// not yet gone.
	pid, err := os.ReadFile(filepath.Join(m.d.dir, "exec", "containerd", "containerd.pid"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		m.Fatal(err)
	}
	m.await("the end of containerd", func() bool {
		_, gone := os.Stat(filepath.Join("/proc", strings.TrimSpace(string(pid)), "stat"))
		return err != nil || gone != nil
	})
	m.d.start()
}

// settle waits until what is told to run does, and nothing waits.
func (m *machine) settle() {
	m.Helper()
	m.until("rest", func() bool {
		list, err := m.engine.List(m.Context())
		runs := map[string]bool{}
		for _, s := range list {
			runs[s.Task] = runs[s.Task] || s.Running
		}
		for id, told := range m.plane.Tasks() {
			if !told.Over() && (told.Status != task.Running || !runs[id]) || told.Over() && runs[id] {
				return false
			}
		}
		return err == nil
	})
}

// agree has the agent, which must be the one that was started, the engine and the
// control plane say the same, and starts the agent again.
func (m *machine) agree() {
	m.Helper()
	m.program.agree(m.plane, m.who.Identity)
	m.send(&wire.Ack{Header: wire.Header{Instance: m.instance}, Task: taskID(1), Attempt: 1}) // for the long poll of the one that has left
	m.start()
}

// Docker is killed (SIGKILL) under the agent, which leaves the shims of containers
// behind, and with them the containers: while tasks run, in the middle of a pull, and of
// the calls that make, start and stop a container; a new Docker comes up, without
// live-restore and with it. Then the journal, the engine and the control plane agree,
// each end was told once, and no container ran twice. What Docker then knows of its own
// shims is chance's: that is logged.
func TestProgram_OutlivesAnEngineThatIsKilled(t *testing.T) {
	for name, settings := range map[string]string{"without live-restore": `{}`, "with live-restore": `{"live-restore": true}`} {
		t.Run(name, func(t *testing.T) {
			d := newDockerd(t)
			if err := os.WriteFile(filepath.Join(d.dir, "daemon.json"), []byte(settings), 0o600); err != nil {
				t.Fatal(err)
			}
			d.start()
			m := &machine{program: newProgram(t), d: d, runs: t.TempDir()}
			k, host := d.between()
			m.env = append(m.env, "DOCKER_HOST="+host)
			m.who = m.welcomed()
			m.plane = agenttest.NewPlane(m.instance, 100, agenttest.NewInbox())
			m.plane.Hear(m.who)
			m.killEverywhere(k, name == "with live-restore")
		})
	}
}

func (m *machine) killEverywhere(k *killer, restores bool) {
	registry, pulled := m.d.serve(m.image)
	policy := &taskdef.RestartPolicy{Enabled: new(true), RestartAttemptPeriod: new(1)}
	m.assign(1, m.image, goesOn, nil)
	m.assign(2, m.image, goesOn, policy)
	m.assign(3, m.image, "while ! test -e /runs/go; do sleep 0.1; done; exit 7", nil)
	for n := 1; n <= 3; n++ {
		m.until("a task to run", func() bool { return m.told(n).Status == task.Running })
	}
	before := m.running(1)
	stalled := registry.stall()
	m.assign(4, pulled, goesOn, nil)
	select {
	case <-stalled:
	case <-time.After(60 * time.Second):
		m.Fatal("nothing was pulled")
	}
	if err := m.d.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		m.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(m.runs, "go"), nil, 0o600); err != nil { // one ends while there is no engine
		m.Fatal(err)
	}
	m.again()
	m.until("the task whose pull broke off to run", func() bool { return m.told(4).Status == task.Running })
	m.until("the end in the meantime", func() bool { return m.told(3).Over() })
	if !slices.Equal(m.told(3).Codes, []int{7}) {
		m.Errorf("what ended in the meantime is %+v", m.told(3))
	}
	if restores {
		if now := m.running(1); !now.Running || now.RuntimeID != before.RuntimeID || !now.StartedAt.Equal(before.StartedAt) {
			m.Errorf("what outlives its engine is %+v, was %+v", now, before)
		}
	} else {
		m.until("the end of what Docker ended", func() bool { return m.told(1).Over() })
		if !slices.Equal(m.told(1).Codes, []int{5}) {
			m.Errorf("what Docker ended is %+v", m.told(1))
		}
	}
	const create, start, stop = "POST /v[0-9.]+/containers/create", "POST /v[0-9.]+/containers/[^/]+/start", "POST /v[0-9.]+/containers/[^/]+/stop"
	moments := []moment{{"create", create, 20 * time.Millisecond}, {"start", start, 20 * time.Millisecond}, {"start", start, 150 * time.Millisecond}}
	if restores {
		moments = moments[2:]
	}
	for i, at := range moments {
		n := 10 + i
		m.kill(k, at, func() { m.assign(n, m.image, goesOn, nil) })
		m.until(fmt.Sprintf("task %d, in the middle of whose %s it was killed, to run or end", n, at.verb), func() bool {
			s := m.told(n).Status
			return s == task.Running || s == task.Stopped
		})
		told := m.told(n)
		m.Logf("killed %s into a %s: %+v, begun %d times", at.after, at.verb, told, m.started(n))
		switch {
		case told.Status == task.Running, len(told.Codes) == 1 && !restores: // it ran, and the new Docker has ended it
		case strings.HasPrefix(told.Reason, "CannotCreateContainerError: Error response from daemon: "), strings.HasPrefix(told.Reason, "CannotStartContainerError: Error response from daemon: "):
			// Docker does not know what its containerd has of this one ("already exists",
			// "file exists"). Whether it runs nobody can say then, so nothing is started in
			// its place.
			m.lost++
		default:
			m.Errorf("task %d is %+v", n, told)
		}
	}
	m.settle()
	m.agree()
	m.assign(30, m.image, goesOn, nil)
	m.until("a task to run", func() bool { return m.told(30).Status == task.Running })
	m.kill(k, moment{"stop", stop, 20 * time.Millisecond}, func() { m.stop(30) })
	m.until("the end of what was to stop", func() bool { return m.told(30).Over() })
	for id, told := range m.plane.Tasks() {
		if !told.Over() {
			m.send(&wire.Stop{Header: wire.Header{Instance: m.instance}, Task: id, Attempt: 1})
		}
	}
	m.until("the end of all", func() bool {
		return !slices.ContainsFunc(slices.Collect(maps.Values(m.plane.Tasks())), func(t agenttest.Told) bool { return !t.Over() })
	})
	m.agree()
	m.until("everything to be removed", func() bool {
		list, err := m.engine.List(m.Context())
		return err == nil && len(list) == 0
	})
	for id := range m.plane.Tasks() {
		var n int
		_, _ = fmt.Sscanf(id[:2], "%x", &n)
		if got := m.started(n); got > 1 && n != 2 {
			m.Errorf("task %d ran %d times", n, got)
		}
	}
	m.Logf("%d tasks were lost by Docker, %d processes are there beside dockerd and containerd", m.lost, len(m.d.left())-2)
}

// kill has the engine killed in the middle of a call that something leads to, and
// starts it again.
func (m *machine) kill(k *killer, at moment, lead func()) {
	m.Helper()
	k.at(at.path, at.after)
	lead()
	m.until("a call to "+at.verb, func() bool {
		select {
		case <-k.killed:
			return true
		default:
			return false
		}
	})
	m.again()
}
