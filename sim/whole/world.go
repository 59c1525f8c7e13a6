package whole

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/setting"
)

// Option is what a run is made of besides its seed.
type Option struct {
	Seed  uint64
	Hosts int
	// Chaos is for how long faults happen; then all must come to rest.
	Chaos time.Duration
	Tasks int
	// Trace keeps what happened in words.
	Trace bool
}

// World is one run.
type World struct {
	stage
	Option
	seed     uint64
	random   *rand.Rand
	ctx      context.Context
	begun    time.Time
	store    *controltest.Store
	control  setting.Control
	agents   setting.Agent
	plan     plan
	hosts    []*host
	byID     map[string]*host
	died     []*life
	internal []error // that no fault explains

	reports, heartbeats, services *queue
	admissions                    map[string]*queue
	outage                        time.Time // until when nothing of the control plane works
	calls, ids                    int
	second                        int64 // in which so many messages of hosts were sent
	sent, busiest                 int
	inflight                      map[*call]bool
	reaps                         bool // the reaper is called each minute

	check  checks
	counts map[string]int
	hash   uint64
	log    *trace
	broken string // what went wrong first
}

func newWorld(ctx context.Context, o Option) *World {
	w := &World{
		Option: o, seed: o.Seed, random: rand.New(rand.NewPCG(o.Seed, 0x5109)), ctx: ctx, begun: time.Now(), store: controltest.NewStore(),
		control: controltest.Setting(), byID: map[string]*host{}, admissions: map[string]*queue{}, counts: map[string]int{}, reaps: true, inflight: map[*call]bool{},
	}
	w.bell = make(chan struct{}, 1)
	if o.Trace {
		w.log = &trace{w: w}
	}
	w.store.Now = time.Now
	w.check = newChecks()
	must(setting.FromEnv(&w.agents, func(name string) (string, bool) {
		v, ok := map[string]string{"LONGSHORE_REPORTS_QUEUE_URL": "r", "LONGSHORE_HEARTBEATS_QUEUE_URL": "h"}[name]
		return v, ok
	}))
	w.reports = &queue{w: w, name: "reports", batch: 10, window: 200 * time.Millisecond, most: 4, tries: 5, handle: w.takeReports}
	w.heartbeats = &queue{w: w, name: "heartbeats", batch: 50, window: 5 * time.Second, most: 2, tries: 3, handle: w.takeHeartbeats}
	w.services = &queue{w: w, name: "services", batch: 10, window: time.Second, most: 2, tries: 3, handle: w.takeServices}
	return w
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// admission is the queue of a cluster's kicks: one decider each.
func (w *World) admission(cluster string) *queue {
	q := w.admissions[cluster]
	if q == nil {
		q = &queue{w: w, name: "admission", batch: 10, window: 100 * time.Millisecond, most: 1, tries: 3, handle: w.takeKicks}
		w.admissions[cluster] = q
	}
	return q
}

// queues are all of them, in order.
func (w *World) queues() []*queue {
	all := []*queue{w.reports, w.heartbeats, w.services}
	for _, c := range slices.Sorted(maps.Keys(w.admissions)) {
		all = append(all, w.admissions[c])
	}
	return all
}

// Chance.

func (w *World) chance(p float64) bool { return p > 0 && w.random.Float64() < p }

func (w *World) between(least, most time.Duration) time.Duration {
	if most <= least {
		return least
	}
	return least + time.Duration(w.random.Int64N(int64(most-least)))
}

// travel is how long a message is on its way.
func (w *World) travel(late float64, kind string) time.Duration {
	if w.chance(late) {
		w.count(kind)
		return w.between(time.Second, 20*time.Minute)
	}
	return w.between(2*time.Millisecond, 60*time.Millisecond)
}

// respite is after how long a supervisor starts a killed agent again.
func (w *World) respite() time.Duration {
	if w.chance(0.1) {
		return w.between(time.Minute, 10*time.Minute)
	}
	return w.between(time.Second, 20*time.Second)
}

func (w *World) cut(h *host) bool { return time.Now().Before(h.cut) }

// answerLost says whether an answer of AWS to a host is lost.
func (w *World) answerLost(h *host) bool {
	if time.Now().Before(h.deaf) || w.chance(w.plan.answersLost) {
		w.count("answer to an agent lost")
		return true
	}
	return false
}

// newID makes an id that nobody else makes.
func (w *World) newID(who string, n int) string {
	h := fnv.New64a()
	fmt.Fprint(h, w.seed, who, n)
	x := h.Sum64()
	x = (x ^ x>>31) * 0x94d049bb133111eb
	return fmt.Sprintf("%016x%016x", x^x>>29, uint64(n))
}

// short is a task's id for people.
func short(id string) string { return id[:min(len(id), 6)] }

func (w *World) count(kind string) { w.counts[kind]++ }

// fail notes what went wrong; the first counts.
func (w *World) fail(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.say("WRONG %s", text)
	if w.broken == "" {
		w.broken = text
	}
}

// note goes into the run's hash: two runs of a seed must agree in all of it.
func (w *World) note(who, what string, err error) {
	w.mix(who)
	w.mix(what)
	w.hash = w.hash*1099511628211 ^ uint64(time.Since(w.begun))
	if err != nil {
		w.mix(err.Error())
	}
	if w.Trace {
		w.log.line("  %s %s: %v", who, what, err)
	}
}

func (w *World) mix(text string) {
	for i := range len(text) {
		w.hash = (w.hash ^ uint64(text[i])) * 1099511628211
	}
}

func (w *World) clock() string {
	d := time.Since(w.begun)
	return fmt.Sprintf("%d:%02d:%06.3f", int(d.Hours()), int(d.Minutes())%60, (d % time.Minute).Seconds())
}

// say puts a line into the trace.
func (w *World) say(format string, args ...any) {
	if w.Trace {
		w.log.line(format, args...)
	}
}

// Hash names the run as it went.
func (w *World) Hash() uint64 { return w.hash }

// until lets things happen until a time, or something is broken.
func (w *World) until(at time.Time) {
	over := false
	w.push(time.Until(at), 1<<62, "time", func() { over = true })
	for w.bury(); !over && w.broken == ""; w.bury() {
		w.step()
	}
}

// end stops everything, so that the bubble can end.
func (w *World) end() {
	w.events = nil
	for _, h := range w.hosts {
		h.on = false
		if h.life != nil {
			h.life.kill()
		}
	}
	w.collect()
	for c := range w.inflight {
		c.kill()
	}
	w.collect()
}
