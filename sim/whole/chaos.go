package whole

import (
	"context"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
)

// plan is how likely each kind of fault is in a run. A run has some kinds and not
// others: what many kinds at once would hide shows where one is alone.
type plan struct {
	messageLost, messageTwice, messageLate float64 // to the functions
	commandLost, commandTwice, commandLate float64 // to the agents
	sendFails, answersLost                 float64
	storeFails, storeSlow, conflicts       float64
	functionKilled, tickLost               float64
	engineFails, pullFails, eventLost      float64
	skewed                                 float64
	skew                                   time.Duration
	lag                                    int // writes that indexes do not show
	disasters                              int
}

func (w *World) choose() {
	p := &w.plan
	some := func(most float64) float64 {
		if w.chance(0.45) {
			return 0
		}
		return most * (0.1 + 0.9*w.random.Float64())
	}
	*p = plan{
		messageLost: some(0.08), messageTwice: some(0.15), messageLate: some(0.1),
		commandLost: some(0.1), commandTwice: some(0.2), commandLate: some(0.1),
		sendFails: some(0.05), answersLost: some(0.05),
		storeFails: some(0.01), storeSlow: some(0.005), conflicts: some(0.05),
		functionKilled: some(0.08), tickLost: some(0.1),
		engineFails: some(0.03), pullFails: some(0.1), eventLost: some(0.2),
		skewed: some(0.5), skew: 72 * time.Hour,
		lag: w.random.IntN(60), disasters: 20 + w.random.IntN(60),
	}
	w.store.Lag = p.lag
	w.agents.CleanupWait = []time.Duration{time.Second, time.Minute, 10 * time.Minute, 3 * time.Hour}[w.random.IntN(4)]
}

// disaster is something that happens to one host, or to the control plane.
type disaster struct {
	name  string
	share int
	do    func(w *World, h *host)
}

var disasters = []disaster{
	{"agent to be killed at a call", 12, func(w *World, h *host) {
		if h.life != nil {
			h.life.doom = doom{calls: 1 + w.random.IntN(40), after: w.chance(0.5)}
		}
	}},
	{"agent down for long", 3, func(w *World, h *host) { h.kill(w.between(time.Minute, 40*time.Minute)) }},
	{"agent told to leave", 3, func(w *World, h *host) {
		if h.life != nil {
			h.life.leave()
		}
	}},
	{"host rebooted", 5, func(w *World, h *host) { h.off(); w.push(w.between(20*time.Second, 4*time.Minute), 0, "on", h.back) }},
	{"host off for long", 3, func(w *World, h *host) { h.off(); w.push(w.between(5*time.Minute, 60*time.Minute), 0, "on", h.back) }},
	{"host gone for good", 2, func(_ *World, h *host) { h.off() }},
	{"host terminated, says EC2", 1, func(w *World, h *host) {
		h.off()
		at := time.Now().Add(time.Second)
		w.push(w.between(2*time.Second, time.Minute), 0, "ec2", func() { w.ec2(h, "terminated", at) })
	}},
	{"host off, says an operator", 1, func(w *World, h *host) {
		h.off()
		w.push(w.between(time.Second, 5*time.Minute), 0, "fence", func() {
			w.ask("fence "+h.name, 5, func(ctx context.Context, c *control.Control) error {
				_, err := c.FenceContainerInstance(ctx, h.cluster, h.id)
				return err
			})
		})
		if w.chance(0.5) {
			w.push(w.between(5*time.Minute, 60*time.Minute), 0, "on", h.back)
		}
	}},
	{"engine restarted", 4, func(w *World, h *host) { h.engine.fall(w.between(time.Second, 30*time.Second), false, true) }},
	{"engine restarted, containers live on", 3, func(w *World, h *host) { h.engine.fall(w.between(time.Second, 30*time.Second), false, false) }},
	{"engine hangs", 4, func(w *World, h *host) { h.engine.fall(w.between(20*time.Second, 25*time.Minute), true, false) }},
	{"engine never back", 1, func(w *World, h *host) { h.engine.fall(1000*time.Hour, w.chance(0.5), w.chance(0.3)); h.broken = true }},
	{"engine streams cut", 4, func(_ *World, h *host) { h.engine.cut() }},
	{"container killed", 5, func(w *World, h *host) {
		if all := h.engine.running(); len(all) > 0 {
			h.engine.exit(all[w.random.IntN(len(all))], 137)
		}
	}},
	{"container removed", 3, func(w *World, h *host) {
		if all := h.engine.all(); len(all) > 0 {
			h.engine.lose(all[w.random.IntN(len(all))])
		}
	}},
	{"journal lost", 2, func(w *World, h *host) { h.lose(false) }},
	{"disk lost", 1, func(w *World, h *host) { h.lose(true) }},
	{"disk full", 3, func(w *World, h *host) { h.full = time.Now().Add(w.between(time.Second, 3*time.Minute)) }},
	{"clock set", 2, func(w *World, h *host) { h.skew += w.between(-time.Hour, time.Hour) }},
	{"partition", 10, func(w *World, h *host) { h.cut = time.Now().Add(w.between(5*time.Second, 40*time.Minute)) }},
	{"answers do not reach a host", 4, func(w *World, h *host) { h.deaf = time.Now().Add(w.between(5*time.Second, 20*time.Minute)) }},
	{"port taken by a stranger", 2, func(w *World, h *host) {
		h.strangers = []int{8080}
		w.push(w.between(time.Minute, 20*time.Minute), 0, "port", func() { h.strangers = nil })
	}},
	{"drained", 3, func(w *World, h *host) {
		w.setState(h, control.Draining)
		if w.chance(0.7) {
			w.push(w.between(time.Minute, 20*time.Minute), 0, "undrain", func() { w.setState(h, control.Active) })
		}
	}},
	{"deregistered", 1, func(w *World, h *host) {
		w.ask("deregister "+h.name, 5, func(ctx context.Context, c *control.Control) error {
			_, err := c.DeregisterContainerInstance(ctx, h.cluster, h.id, true)
			return err
		})
	}},
	{"reports held up", 2, func(w *World, _ *host) { w.stall(w.reports, 20*time.Minute) }},
	{"heartbeats held up", 2, func(w *World, _ *host) { w.stall(w.heartbeats, 8*time.Minute) }},
	{"zone partitioned", 1, func(w *World, h *host) {
		at := time.Now().Add(w.between(time.Minute, 20*time.Minute))
		for _, o := range w.hosts {
			if o.zone == h.zone {
				o.cut = at
			}
		}
	}},
	{"outage of the control plane", 1, func(w *World, _ *host) { w.outage = time.Now().Add(w.between(20*time.Second, 6*time.Minute)) }},
	{"indexes far behind", 3, func(w *World, _ *host) {
		w.store.Lag = 200 + w.random.IntN(400)
		w.push(w.between(10*time.Second, 2*time.Minute), 0, "lag", func() { w.store.Lag = w.plan.lag })
	}},
}

func (w *World) stall(q *queue, most time.Duration) {
	q.stalled = time.Now().Add(w.between(30*time.Second, most))
}

func (w *World) ec2(h *host, state string, at time.Time) {
	w.invoke("ec2", 55*time.Second, func(ctx context.Context, c *control.Control) {
		w.unexpected(c.IngestHostState(ctx, control.HostState{EC2InstanceID: "i-" + h.name, State: state, At: at}))
	}, nil)
}

// lose takes the journal away, and with the disk the containers.
func (h *host) lose(disk bool) {
	again := h.w.between(time.Second, time.Minute)
	if disk {
		h.off()
		for _, b := range h.engine.all() {
			h.engine.lose(b)
		}
	}
	h.newJournal()
	h.seenN = 0
	if disk {
		h.w.push(again, 0, "on", h.back)
		return
	}
	h.kill(again)
}

// chaos has disasters happen all along.
func (w *World) chaos() {
	sum := 0
	for _, d := range disasters {
		sum += d.share
	}
	for range w.plan.disasters {
		n := w.random.IntN(sum)
		for _, d := range disasters {
			if n -= d.share; n < 0 {
				w.push(w.between(time.Minute, w.Chaos), 0, d.name, func() {
					h := w.hosts[w.random.IntN(len(w.hosts))]
					w.count(d.name)
					w.say("DISASTER %s: %s", h.name, d.name)
					d.do(w, h)
				})
				break
			}
		}
	}
}

// heal ends every fault: from here on all must come to rest.
func (w *World) heal() {
	w.say("HEAL")
	skewed := w.plan
	w.plan = plan{skewed: skewed.skewed, skew: skewed.skew}
	w.store.Lag = 3
	w.outage = time.Time{}
	for _, q := range w.queues() {
		q.stalled = time.Time{}
	}
	for _, h := range w.hosts {
		h.cut, h.deaf, h.full, h.strangers = time.Time{}, time.Time{}, time.Time{}, nil
		if h.life != nil {
			h.life.doom = doom{}
		}
		if !h.broken && time.Now().Before(h.engine.silent) {
			h.engine.silent = time.Now()
		}
	}
}
