package whole

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/edgeagent/agent/agenttest"
	"github.com/longshore-run/longshore/shared/setting"
	"github.com/longshore-run/longshore/shared/wire"
)

// host is a machine: an engine, a disk with a journal, a clock, a network, and
// one life of an agent after another.
type host struct {
	w                  *World
	name, identity, id string
	cluster, zone      string
	memory             int // MiB that it registers
	skew               time.Duration
	strangers          []int // ports that other programs of it have

	on     bool
	broken bool // its engine never answers again
	engine *engine
	inbox  *inbox

	journal     *agenttest.Journal
	incarnation int
	full        time.Time // until when its disk takes no write
	cut         time.Time // until when nothing of it reaches AWS
	deaf        time.Time // until when no answer of AWS reaches it

	life   *life
	lives  int
	ending bool // told by a terminal fence; its supervisor does not start it again
	seenN  int64
}

func (w *World) newHost(n int, cluster string) *host {
	name := fmt.Sprintf("h%02d", n)
	h := &host{w: w, name: name, identity: "AROASIM:i-" + name, cluster: cluster, zone: fmt.Sprint("zone-", string(rune('a'+n%3)))}
	h.id = wire.InstanceID(h.identity)
	h.memory = 128 * (1 + w.random.IntN(4))
	h.engine, h.inbox = newEngine(h), &inbox{h: h, assigns: map[string][]byte{}}
	if w.chance(w.plan.skewed) {
		w.count("clock skewed")
		h.skew = w.between(-w.plan.skew, w.plan.skew)
	}
	h.newJournal()
	return h
}

// now is what its clock says.
func (h *host) now() time.Time { return time.Now().Add(h.skew) }

func (h *host) newJournal() {
	h.incarnation++
	h.journal = agenttest.NewJournal(fmt.Sprintf("%s-journal-%d", h.name, h.incarnation), h.identity)
}

// begin starts the agent.
func (h *host) begin() {
	if !h.on || h.life != nil || h.ending {
		return
	}
	w := h.w
	h.lives++
	l := &life{h: h, process: process{stage: &w.stage, name: h.name}}
	ctx, cancel := context.WithCancel(w.ctx)
	l.cancel = cancel
	a, err := agent.New(agent.Config{
		Setting: h.setting(), Identity: h.identity, Session: fmt.Sprintf("%s-session-%d", h.name, h.lives), Version: "sim",
		Engine: l, Inbox: l, Outbox: l, Journal: lifeJournal{l}, Log: w.logger(h.name), Taken: l.taken,
		Now: h.now, Rand: l.rand, Turn: l.turn,
	})
	if err != nil {
		w.fail("new agent on %s: %v", h.name, err)
		return
	}
	l.agent, h.life = a, l
	w.say("%s: agent starts, life %d", h.name, h.lives)
	go func() {
		err := a.Run(ctx)
		_ = l.wait(context.Background(), "ended", func(g *gate) {
			g.answer(nil)
			h.left(l, err)
		})
	}()
}

// left is after the agent went by itself.
func (h *host) left(l *life, err error) {
	h.w.say("%s: agent left: %v", h.name, err)
	l.dead.Store(true)
	if h.life != l {
		return
	}
	h.life = nil
	if errors.Is(err, agent.ErrTerminal) {
		h.ending = true
		return
	}
	h.again(h.w.between(time.Second, 10*time.Second))
}

// kill ends the agent as SIGKILL does; a supervisor starts it again.
func (h *host) kill(again time.Duration) {
	if h.life == nil {
		return
	}
	h.w.say("%s: agent is killed", h.name)
	l := h.life
	h.life = nil
	l.kill()
	h.again(again)
}

func (h *host) again(after time.Duration) { h.w.push(after, 0, "agent starts", h.begin) }

// off switches the host off: every container ends with it.
func (h *host) off() {
	if !h.on {
		return
	}
	h.w.say("%s: power off", h.name)
	h.on = false
	if h.life != nil {
		l := h.life
		h.life = nil
		l.kill()
	}
	for _, b := range h.engine.running() {
		h.engine.exit(b, 137)
	}
	h.engine.cut()
}

// back switches it on.
func (h *host) back() {
	if h.on {
		return
	}
	h.w.say("%s: power on", h.name)
	h.on = true
	if !h.broken {
		h.engine.silent = time.Now().Add(h.w.between(0, 20*time.Second)) // Docker starts, too
	}
	h.again(h.w.between(time.Second, 20*time.Second))
}

func (h *host) setting() setting.Agent {
	s := h.w.agents
	s.Cluster, s.Zone, s.CPU, s.MemoryMiB = h.cluster, h.zone, 1024, h.memory
	s.EC2InstanceID = "i-" + h.name
	return s
}

// state is what its journal holds.
func (h *host) state() agent.State {
	s, err := h.journal.Load()
	if err != nil {
		panic(err)
	}
	return s
}
