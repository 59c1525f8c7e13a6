package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/edgeagent/agent/agenttest"
	"github.com/longshore-run/longshore/shared/setting"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
)

const identity = "AROAEXAMPLE:i-0123456789abcdef0"

var instance = wire.InstanceID(identity)

// rig is an agent with everything around it in memory. The control plane is a
// function that answers what the agent sends.
type rig struct {
	t       *testing.T
	engine  *agenttest.Engine
	inbox   *agenttest.Inbox
	outbox  *agenttest.Outbox
	journal *agenttest.Journal
	setting setting.Agent
	logs    *logs
	now     func() time.Time
	turn    func(who string)
	rand    func() float64
	spoil   agenttest.Spoil
	taken   func(tcp, udp []int) ([]int, []int)
	host    agent.Host
	// endpoint is where containers learn of their task; nil: it is off
	endpoint agent.Endpoint
	reserve  *agenttest.Reserve

	provider agent.Provider

	mu    sync.Mutex
	epoch int64
	acks  bool
	mute  bool // registers are not answered

	onCall func(what string, done bool)
	again  chan struct{} // the agent was killed and is to be started again

	life  *agenttest.Life
	agent *agent.Agent
	leave context.CancelFunc
	done  chan error
	start int
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{
		t: t, engine: agenttest.NewEngine(), inbox: agenttest.NewInbox(), outbox: agenttest.NewOutbox(),
		again:   make(chan struct{}, 1),
		journal: agenttest.NewJournal("first", identity), reserve: agenttest.NewReserve(), epoch: 100, acks: true, logs: &logs{}, rand: func() float64 { return 0 },
	}
	if err := setting.FromEnv(&r.setting, func(name string) (string, bool) {
		v, ok := map[string]string{"LONGSHORE_REPORTS_QUEUE_URL": "r", "LONGSHORE_HEARTBEATS_QUEUE_URL": "h"}[name]
		return v, ok
	}); err != nil {
		t.Fatal(err)
	}
	r.outbox.OnSend = r.answer
	return r
}

// answer is the control plane in as few words as these tests need.
func (r *rig) answer(m wire.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := wire.Header{Instance: instance}
	switch m := m.(type) {
	case *wire.Register:
		if !r.mute {
			r.inbox.Put(r.welcome(m.Incarnation, r.epoch))
		}
	case *wire.Report:
		if r.acks && m.Status == task.Stopped {
			r.inbox.Put(&wire.Ack{Header: h, Task: m.Task, Attempt: m.Attempt})
		}
	case *wire.Refused:
		if r.acks {
			r.inbox.Put(&wire.Ack{Header: h, Task: m.Task, Attempt: m.Attempt})
		}
	}
}

func (r *rig) welcome(incarnation string, epoch int64) *wire.Welcome {
	return &wire.Welcome{Header: wire.Header{Instance: instance}, Incarnation: incarnation, Cluster: "default", Epoch: epoch, HeartbeatEveryS: 60}
}

func (r *rig) set(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

// up starts the agent, as a new process would, and lets it settle.
func (r *rig) up() {
	r.t.Helper()
	r.begin()
	synctest.Wait()
}

func (r *rig) begin() {
	r.t.Helper()
	r.start++
	r.life = &agenttest.Life{OnCall: r.onCall}
	a, err := agent.New(r.life.Config(agent.Config{
		Setting: r.setting, Identity: identity, Session: fmt.Sprintf("session-%d", r.start), Version: "test",
		Engine: r.spoil.On(r.engine), Images: r.engine, Reserve: r.reserve, Inbox: r.inbox, Outbox: r.outbox, Journal: r.journal, Log: slog.New(slog.NewTextHandler(r.logs, nil)),
		Taken: r.taken, Host: r.host, Endpoint: r.endpoint, Provider: r.provider, Rand: r.rand, Now: r.now, Turn: r.turn,
	}))
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(r.t.Context())
	r.agent, r.leave, r.done = a, cancel, make(chan error, 1)
	done := r.done
	go func() { done <- a.Run(ctx) }()
}

// down ends it by SIGTERM.
func (r *rig) down() {
	r.t.Helper()
	r.leave()
	if err := <-r.done; err != nil {
		r.t.Fatalf("the agent left with %v", err)
	}
}

// kill ends it by SIGKILL: nothing it does from here on has any effect.
func (r *rig) kill() {
	r.t.Helper()
	r.life.Kill()
	r.leave()
	<-r.done
}

// pass lets time pass.
func (r *rig) pass(d time.Duration) {
	<-time.After(d) // by the bubble's clock
	synctest.Wait()
}

func id(n int) string { return fmt.Sprintf("%032x", 0xa000+n) }

func (r *rig) assign(n, attempt int, containers ...taskdef.ContainerDefinition) *wire.Assign {
	if len(containers) == 0 {
		containers = []taskdef.ContainerDefinition{{Name: "app", Image: "busybox"}}
	}
	def := taskdef.Canonical(taskdef.TaskDefinition{Spec: taskdef.Spec{Family: "web", ContainerDefinitions: containers}, Revision: 3})
	return &wire.Assign{
		Header: wire.Header{Instance: instance}, Epoch: r.epoch, Task: id(n), Attempt: attempt,
		TaskARN: "arn:aws:ecs:eu-west-1:000000000000:task/default/" + id(n), Cluster: "default", Family: "web", Revision: 3, Definition: json.RawMessage(def),
	}
}

func (r *rig) stop(n, attempt int) *wire.Stop {
	return &wire.Stop{Header: wire.Header{Instance: instance}, Task: id(n), Attempt: attempt, Reason: "Task stopped by user"}
}

func app(n, attempt int) agent.ContainerID {
	return agent.ContainerID{Task: id(n), Attempt: attempt, Container: "app"}
}

// put sends commands and lets them work.
func (r *rig) put(m ...wire.Message) {
	r.inbox.Put(m...)
	synctest.Wait()
}

// reports are those about one task, in the order they were sent.
func (r *rig) reports(n int) []*wire.Report {
	var all []*wire.Report
	for _, m := range r.outbox.Sent() {
		if m, ok := m.(*wire.Report); ok && m.Task == id(n) {
			all = append(all, m)
		}
	}
	return all
}

// story is what was reported about a task, in short.
func (r *rig) story(n int) string {
	var words []string
	for _, m := range r.outbox.Sent() {
		switch m := m.(type) {
		case *wire.Report:
			if m.Task != id(n) {
				continue
			}
			words = append(words, shortened(m))
		case *wire.Refused:
			if m.Task == id(n) {
				words = append(words, fmt.Sprintf("REFUSED %s tcp%v udp%v", m.Code, m.TCP, m.UDP))
			}
		}
	}
	return strings.Join(words, ", ")
}

// shortened is a report's status and its containers' exit codes.
func shortened(m *wire.Report) string {
	word := string(m.Status)
	for _, c := range m.Containers {
		if c.ExitCode != nil {
			word += fmt.Sprintf(" %d", *c.ExitCode)
		}
	}
	return word
}

// ended wants the last report about a task to be this one.
func (r *rig) ended(n int, last string) {
	r.t.Helper()
	if got := r.story(n); got != last && !strings.HasSuffix(got, ", "+last) {
		r.t.Errorf("task %d: reported %q, want the last to be %q", n, got, last)
	}
}

func (r *rig) expect(n int, story string) {
	r.t.Helper()
	if got := r.story(n); got != story {
		r.t.Errorf("task %d: reported %q, want %q", n, got, story)
	}
}

func last[M wire.Message](r *rig) M {
	r.t.Helper()
	all := sent[M](r)
	if len(all) == 0 {
		r.t.Fatalf("no %T was sent", *new(M))
	}
	return all[len(all)-1]
}

func sent[M wire.Message](r *rig) (all []M) {
	for _, m := range r.outbox.Sent() {
		if m, ok := m.(M); ok {
			all = append(all, m)
		}
	}
	return all
}

// inventory is the newest one, in short.
func (r *rig) inventory() map[string]wire.Phase {
	all := map[string]wire.Phase{}
	for _, e := range last[*wire.Heartbeat](r).Inventory {
		all[fmt.Sprintf("%s/%d", e.Task[28:], e.Attempt)] = e.Phase
	}
	return all
}

// state is what the journal holds.
func (r *rig) state() agent.State {
	r.t.Helper()
	s, err := r.journal.Load()
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

func (r *rig) starts(n, attempt, want int) {
	r.t.Helper()
	if got := r.engine.Starts(app(n, attempt)); got != want {
		r.t.Errorf("task %d attempt %d: its container was started %d times, want %d", n, attempt, got, want)
	}
}

type logs struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// bubble runs a test in virtual time; on failure it shows the agent's log.
func bubble(t *testing.T, test func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		defer func() {
			if r.leave != nil {
				r.leave()
				synctest.Wait()
			}
			if t.Failed() {
				t.Log(r.logs.String())
			}
		}()
		test(r)
	})
}
