package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/edgeagent/agent/agenttest"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
)

// herd is many agents that share one AWS, whose calls are counted by the second.
type herd struct {
	*testing.T
	agents []*member

	mu    sync.Mutex
	down  bool
	calls map[string]map[int64]int // by what was called and the second, of those that got through
	tried map[int64]int            // and all
}

// member is one of them.
type member struct {
	h      *herd
	id     string
	engine *agenttest.Engine
	inbox  *agenttest.Inbox
	outbox *agenttest.Outbox
	plane  *agenttest.Plane
	saved  *agenttest.Journal
	random *rand.Rand
	leave  context.CancelFunc
	done   chan error
	lives  int
}

// call counts one, and says whether it gets through.
func (h *herd) call(what string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	second := time.Now().Unix()
	h.tried[second]++
	if h.down {
		return fault.New(fault.Unavailable, "no route to host")
	}
	if h.calls[what] == nil {
		h.calls[what] = map[int64]int{}
	}
	h.calls[what][second]++
	return nil
}

func (m *member) Receive(ctx context.Context) ([]agent.Command, error) {
	if err := m.h.call("receive"); err != nil {
		return nil, err
	}
	return m.inbox.Receive(ctx)
}

func (m *member) Delete(ctx context.Context, receipts []string) error {
	if len(receipts) == 0 {
		return nil
	}
	if err := m.h.call("delete"); err != nil {
		return err
	}
	return m.inbox.Delete(ctx, receipts)
}

func (m *member) SendReports(ctx context.Context, messages []wire.Message) []error {
	what := "report"
	if _, ok := messages[0].(*wire.Register); ok {
		what = "register"
	}
	if err := m.h.call(what); err != nil {
		return slices.Repeat([]error{err}, len(messages))
	}
	return m.outbox.SendReports(ctx, messages)
}

func (m *member) SendHeartbeat(ctx context.Context, beat *wire.Heartbeat) error {
	if err := m.h.call("heartbeat"); err != nil {
		return err
	}
	return m.outbox.SendHeartbeat(ctx, beat)
}

// rand is its own chance.
func (m *member) rand() float64 {
	m.h.mu.Lock()
	defer m.h.mu.Unlock()
	return m.random.Float64()
}

func (m *member) start() {
	s := newRig(m.h.T).setting
	s.CleanupWait = time.Hour
	m.lives++
	a, err := agent.New(agent.Config{
		Setting: s, Identity: m.id, Session: fmt.Sprintf("session-%d", m.lives), Version: "test", Engine: m.engine, Inbox: m, Outbox: m, Journal: m.saved,
		Log: slog.New(slog.DiscardHandler), Rand: m.rand,
	})
	if err != nil {
		m.h.Fatal(err)
	}
	ctx, cancel := context.WithCancel(m.h.Context())
	m.leave, m.done = cancel, make(chan error, 1)
	go func() { m.done <- a.Run(ctx) }()
}

func (m *member) stop() {
	m.leave()
	<-m.done
}

func newHerd(t *testing.T, size int) *herd {
	h := &herd{T: t, calls: map[string]map[int64]int{}, tried: map[int64]int{}}
	for n := range size {
		m := &member{h: h, id: fmt.Sprintf("AROAHERD:i-%04d", n), engine: agenttest.NewEngine(), inbox: agenttest.NewInbox(), outbox: agenttest.NewOutbox(), random: rand.New(rand.NewPCG(7, uint64(n)))}
		m.plane = agenttest.NewPlane(wire.InstanceID(m.id), 100, m.inbox)
		m.outbox.OnSend = m.plane.Hear
		m.saved = agenttest.NewJournal(fmt.Sprint("journal-", n), m.id)
		h.agents = append(h.agents, m)
	}
	return h
}

// most is the second with the most calls of a kind since then, and how many they were.
func (h *herd) most(what string, since int64) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for second, calls := range h.calls[what] {
		if second >= since {
			n = max(n, calls)
		}
	}
	return n
}

func (h *herd) set(down bool) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.down = down
	return time.Now().Unix()
}

// busiest is the second with the most calls of all kinds since then.
func (h *herd) busiest(since int64) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for second, calls := range h.tried {
		if second >= since {
			n = max(n, calls)
		}
	}
	return n
}

// Two hundred agents lose their link together, or their power, and have it back
// together. None of them is silent for long, all their ends arrive, and at no
// second do they come all at once.
func TestFault_AHerdOfTwoHundredComesBack(t *testing.T) {
	t.Parallel()
	const size, tasks = 200, 3
	linked := map[string]int{"register": 10, "heartbeat": 60, "report": 60, "receive": 110, "delete": 70, "in all": 260}
	powered := map[string]int{"register": 80, "heartbeat": 140, "report": 100, "receive": 240, "delete": 160, "in all": 650}
	for _, c := range []struct {
		name  string
		out   time.Duration
		power bool // the machines are off, too
		most  map[string]int
	}{
		{"after half a minute", 30 * time.Second, false, linked},
		{"after ten minutes", 10 * time.Minute, false, linked},
		{"after an hour", time.Hour, false, linked},
		{"after a loss of power", 10 * time.Minute, true, powered},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHerd(t, size)
				for n, m := range h.agents {
					m.start()
					<-time.After(time.Duration(n%7) * 130 * time.Millisecond)
				}
				for n, m := range h.agents {
					for k := range tasks {
						def := taskdef.Canonical(taskdef.TaskDefinition{Spec: taskdef.Spec{Family: "web", ContainerDefinitions: []taskdef.ContainerDefinition{{Name: "app", Image: "busybox"}}}, Revision: 1})
						m.plane.Assign(&wire.Assign{Header: wire.Header{Instance: wire.InstanceID(m.id)}, Epoch: 100, Task: id(n*tasks + k), Attempt: 1, Cluster: "default", Family: "web", Revision: 1, Definition: json.RawMessage(def)})
					}
				}
				<-time.After(5 * time.Minute)
				steady := h.busiest(time.Now().Unix() - 120)
				h.set(true)
				<-time.After(5 * time.Second)
				for n, m := range h.agents { // two of three end meanwhile
					for k := range tasks - 1 {
						m.engine.Exit(app(n*tasks+k, 1), k)
					}
					if c.power {
						m.stop()
					}
				}
				<-time.After(c.out)
				since := h.set(false)
				for _, m := range h.agents {
					if c.power {
						m.start()
					}
				}
				<-time.After(45 * time.Second)
				synctest.Wait()
				figures := map[string]int{}
				for _, what := range slices.Sorted(maps.Keys(h.calls)) {
					figures[what] = h.most(what, since)
				}
				figures["in all"] = h.busiest(since)
				t.Logf("%s: most calls of %d agents in a second: %v; %d before", c.name, size, figures, steady)
				for what, most := range c.most {
					if figures[what] > most {
						t.Errorf("%d calls of %s in a second, want at most %d", figures[what], what, most)
					}
				}
				for _, m := range h.agents {
					over := 0
					for _, told := range m.plane.Tasks() {
						if told.Over() {
							over++
						}
					}
					state, err := m.saved.Load()
					if err != nil {
						t.Fatal(err)
					}
					if wrong := m.plane.Differs(state, m.engine.Containers()); over != tasks-1 || len(wrong) > 0 {
						t.Fatalf("%s told of %d ends: %v", m.id, over, wrong)
					}
				}
				for _, m := range h.agents {
					m.stop()
				}
			})
		})
	}
}
