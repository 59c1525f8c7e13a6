package journal_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/edgeagent/agent/agenttest"
	"github.com/longshore-run/longshore/edgeagent/internal/journal"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/setting"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
)

// machine is an agent on a journal's file, with everything else in memory.
type machine struct {
	*testing.T
	dir    string
	engine *agenttest.Engine
	plane  *agenttest.Plane
	life   *agenttest.Life
	how    journal.Opening
	file   *journal.Journal
	opened agent.State // what the agent found in it
	logs   bytes.Buffer
	leave  context.CancelFunc
	done   chan error
}

var machineID = wire.InstanceID(owner.Identity)

// up starts an agent there, as a new process.
func (m *machine) up() {
	m.Helper()
	var s setting.Agent
	if err := setting.FromEnv(&s, func(name string) (string, bool) {
		v, ok := map[string]string{"LONGSHORE_REPORTS_QUEUE_URL": "r", "LONGSHORE_HEARTBEATS_QUEUE_URL": "h", "LONGSHORE_CLEANUP_WAIT": "3m"}[name]
		return v, ok
	}); err != nil {
		m.Fatal(err)
	}
	var err error
	if m.file, m.how, err = journal.Open(m.dir, owner, newID, time.Now()); err != nil {
		m.Fatalf("an agent does not start: %v", err)
	}
	m.opened = m.state()
	outbox := agenttest.NewOutbox()
	outbox.OnSend = m.plane.Hear
	m.life = &agenttest.Life{}
	a, err := agent.New(m.life.Config(agent.Config{
		Setting: s, Identity: owner.Identity, Session: newID(), Version: "test", Rand: func() float64 { return 0 },
		Engine: m.engine, Inbox: m.plane.Inbox, Outbox: outbox, Journal: m.file, Log: slog.New(slog.NewTextHandler(&m.logs, nil)),
	}))
	if err != nil {
		m.Fatalf("an agent does not start: %v", err)
	}
	ctx, cancel := context.WithCancel(m.Context())
	m.leave, m.done = cancel, make(chan error, 1)
	go func() { m.done <- a.Run(ctx) }()
	synctest.Wait()
}

// kill ends it as SIGKILL does.
func (m *machine) kill() {
	m.life.Kill()
	m.leave()
	<-m.done
	if err := m.file.Close(); err != nil {
		m.Fatal(err)
	}
}

func (m *machine) pass(d time.Duration) {
	<-time.After(d) // by the bubble's clock
	synctest.Wait()
}

func (m *machine) state() agent.State {
	m.Helper()
	s, err := m.file.Load()
	if err != nil {
		m.Fatal(err)
	}
	return s
}

func (m *machine) assign(n int, containers ...taskdef.ContainerDefinition) {
	if len(containers) == 0 {
		containers = []taskdef.ContainerDefinition{{Name: "app", Image: "busybox"}}
	}
	def := taskdef.Canonical(taskdef.TaskDefinition{Spec: taskdef.Spec{Family: "web", ContainerDefinitions: containers}, Revision: 3})
	m.give(n, json.RawMessage(def))
}

func (m *machine) give(n int, def json.RawMessage) {
	epoch, _ := m.plane.Epoch()
	m.plane.Assign(&wire.Assign{Header: wire.Header{Instance: machineID}, Epoch: epoch, Task: number(n), Attempt: 1,
		TaskARN: "arn:aws:ecs:eu-west-1:000000000000:task/default/" + number(n), Cluster: "default", Family: "web", Revision: 3, Definition: def})
	synctest.Wait()
}

func number(n int) string { return fmt.Sprintf("%032x", 0xa000+n) }

func (m *machine) stop(n int) {
	m.plane.Inbox.Put(&wire.Stop{Header: wire.Header{Instance: machineID}, Task: number(n), Attempt: 1, Reason: "asked"})
	synctest.Wait()
}

func app(n int) agent.ContainerID {
	return agent.ContainerID{Task: number(n), Attempt: 1, Container: "app"}
}

// lived is a machine with a task in every state there is, whose agent was killed.
func lived(t *testing.T) *machine {
	m := &machine{T: t, dir: t.TempDir(), engine: agenttest.NewEngine(), plane: agenttest.NewPlane(machineID, 100, agenttest.NewInbox())}
	m.engine.OnStart = func(id agent.ContainerID) agenttest.Program { return agenttest.Program{Deaf: id == app(3)} }
	silent := fault.New(fault.Unavailable, "no answer")
	m.engine.Script = func(ctx context.Context, verb string, id agent.ContainerID) error {
		switch {
		case verb == "image" && id.Container == "never":
			<-ctx.Done()
			return silent
		case (verb == "start" || verb == "observe") && id == app(9), verb == "ping":
			return silent // it stays "starting": whether it runs is not known
		}
		return nil
	}
	m.up()
	policy := &taskdef.RestartPolicy{Enabled: new(true), RestartAttemptPeriod: new(60)}
	m.assign(1)
	m.assign(2, taskdef.ContainerDefinition{Name: "app", Image: "busybox", RestartPolicy: policy})
	m.assign(3)
	m.assign(4)
	m.assign(5)
	m.assign(8, taskdef.ContainerDefinition{Name: "app", Image: "never"})
	m.assign(9)
	m.assign(10, taskdef.ContainerDefinition{Name: "app", Image: "busybox"},
		taskdef.ContainerDefinition{Name: "later", Image: "busybox", DependsOn: []taskdef.Dependency{{ContainerName: "app", Condition: "COMPLETE"}}, Essential: new(false)})
	m.assign(11)
	m.engine.Exit(app(5), 5) // it becomes a tombstone
	m.pass(4 * time.Minute)
	m.engine.Exit(app(2), 9) // and runs again
	m.engine.Exit(app(4), 4) // acknowledged, and not cleaned up
	m.pass(time.Second)
	m.plane.Deaf = func() bool { return true }
	m.give(6, json.RawMessage(`"no definition"`)) // refused
	m.stop(7)                                     // before its assign
	m.engine.Exit(app(11), 11)
	m.stop(3) // takes its whole time-out
	m.pass(2 * time.Second)
	m.kill()
	return m
}

// Whatever page of the file is damaged, and however: the agent starts, with all
// that was in it or with a new incarnation that takes in what the engine has. No
// container is started that was started before, and in the end the journal, the
// engine and the control plane say the same.
func TestDamage_OfAnyPageTheAgentGoesOnAndAllAgree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := lived(t)
		whole, err := os.ReadFile(filepath.Join(before.dir, "journal.db"))
		if err != nil {
			t.Fatal(err)
		}
		kinds := map[string]int{}
		known, _ := closed(t, before.dir, owner)
		for _, r := range known.Tasks {
			switch {
			case r.Tomb:
				kinds["tombstone"]++
			case r.State.Refusal != nil:
				kinds["refused"]++
			default:
				kinds[string(r.State.Status)]++
			}
		}
		t.Logf("%d pages with %v", len(whole)/os.Getpagesize(), kinds)
		if len(known.Tasks) != 11 || kinds["refused"] == 0 || kinds["tombstone"] == 0 || kinds["STOPPED"] == 0 || kinds["STOPPING"] == 0 || kinds["RUNNING"] < 2 || kinds["PENDING"] < 3 {
			t.Fatalf("not every state is there: %v", kinds)
		}
		damaged := damages(whole)
		used, moved := 0, 0
		for _, name := range slices.Sorted(maps.Keys(damaged)) {
			m := &machine{T: t, dir: t.TempDir(), engine: before.engine.Copy(), plane: before.plane.Copy(agenttest.NewInbox())}
			if err := os.WriteFile(filepath.Join(m.dir, "journal.db"), damaged[name], 0o600); err != nil {
				t.Fatal(err)
			}
			m.up()
			if m.how.Fresh {
				moved++
				if kept, err := os.ReadFile(m.how.MovedTo); err != nil || !bytes.Equal(kept, damaged[name]) || m.how.Why == "" {
					t.Errorf("%s: the old file is not kept as it was: %v", name, err)
				}
			} else {
				used++
				if !reflect.DeepEqual(m.opened, known) {
					t.Errorf("%s: it was opened with something else than was in it", name)
				}
			}
			m.pass(5 * time.Minute)
			if wrong := m.plane.Differs(m.state(), m.engine.Containers()); len(wrong) > 0 {
				t.Errorf("%s (moved aside: %v):\n%s\n%s", name, m.how.Fresh, strings.Join(wrong, "\n"), m.logs.String())
			}
			for n := range 12 {
				most := 1
				if n == 2 {
					most = 2 // by its policy
				}
				if got := m.engine.Starts(app(n)); got > most {
					t.Errorf("%s: task %d was started %d times", name, n, got)
				}
			}
			if told := m.plane.Tasks()[number(1)]; told.Over() {
				t.Errorf("%s: what ran on is %+v", name, told)
			}
			m.kill()
			if t.Failed() {
				return
			}
		}
		t.Logf("%d damaged files: %d are used as they were, %d moved aside", len(damaged), used, moved)
		if used == 0 || moved < len(damaged)/4 { // many a flipped bit is of what no page uses
			t.Errorf("of %d damaged files %d were used and %d moved aside: the test damages too little or too much", len(damaged), used, moved)
		}
	})
}

// damages are a file with each of its pages spoiled in turn.
func damages(whole []byte) map[string][]byte {
	page := os.Getpagesize()
	all := map[string][]byte{"empty": {}, "whole": whole}
	for at := 0; at < len(whole); at += page {
		if at > 0 {
			all[fmt.Sprintf("truncated at page %d", at/page)] = whole[:at]
		}
		all[fmt.Sprintf("truncated in page %d", at/page)] = whole[:at+page/3]
		for name, spoil := range map[string]func(b []byte){
			"zeroed":  func(b []byte) { clear(b) },
			"flipped": flip(at, 120),
			"garbled": garble(at),
		} {
			b := bytes.Clone(whole)
			spoil(b[at : at+page])
			all[fmt.Sprintf("%s page %d", name, at/page)] = b
		}
	}
	return all
}
