package deployment_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/longshore-run/longshore/lambdas/internal/deployment"
)

// situations counts the decisions that were generated and checked; enough is more
// than the hundred thousand that the project asks for.
var situations int

const enough = 150_000

// TestDecide_KeepsItsBoundsAndEndsEveryRollout drives the decision in a loop
// against a world in which everything goes wrong, and then nothing does.
func TestDecide_KeepsItsBoundsAndEndsEveryRollout(t *testing.T) {
	situations = 0
	for situations < enough && !t.Failed() {
		rapid.Check(t, func(r *rapid.T) {
			w := newWorld(r)
			if rapid.IntRange(0, 3).Draw(r, "grown") > 0 {
				w.grow()
			}
			for range rapid.IntRange(0, 120).Draw(r, "steps") {
				w.disturb()
			}
			w.settle()
		})
	}
	t.Logf("%d generated situations", situations)
	if t.Failed() {
		return
	}
	if situations < enough {
		t.Errorf("only %d situations were generated, want at least %d", situations, enough)
	}
	for _, what := range wanted {
		if met[what] < 20 {
			t.Errorf("%q was met %d times only: %v", what, met[what], met)
		}
	}
}

func newWorld(r *rapid.T) *world {
	w := &world{T: r, now: time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC), bad: map[string]badness{}}
	w.service = deployment.Service{Name: "web", Strategy: rapid.SampledFrom([]string{deployment.Replica, deployment.Replica, deployment.Daemon}).Draw(r, "strategy")}
	w.configure()
	w.limit = rapid.SampledFrom([]int{0, 1, 3, 40}).Draw(r, "limit")
	w.checked = rapid.Bool().Draw(r, "health check")
	w.room = rapid.SampledFrom([]int{1000, 1000, 3, 2, 1}).Draw(r, "room")
	for range rapid.IntRange(1, 5).Draw(r, "instances") {
		w.addHost()
	}
	w.update(good)
	return w
}

func (w *world) configure() {
	w.service.Desired = rapid.IntRange(0, 7).Draw(w.T, "desired")
	w.service.MinimumPercent = rapid.SampledFrom([]int{0, 34, 50, 100}).Draw(w.T, "minimum percent")
	w.service.MaximumPercent = rapid.SampledFrom([]int{100, 125, 150, 200}).Draw(w.T, "maximum percent")
	if w.daemon() {
		w.service.MinimumPercent, w.service.MaximumPercent = rapid.SampledFrom([]int{0, 0, 50, 90}).Draw(w.T, "minimum percent of a daemon"), 100
	}
	w.service.Confirmed = rapid.IntRange(0, 3).Draw(w.T, "confirmed") == 0
	w.service.Breaker = rapid.IntRange(0, 2).Draw(w.T, "breaker") > 0
	w.service.Rollback = rapid.IntRange(0, 2).Draw(w.T, "rollback") > 0
	w.version++
}

func (w *world) addHost() {
	w.made++
	w.hosts = append(w.hosts, &host{id: fmt.Sprintf("i%03d", w.made), zone: string(rune('a' + w.made%3))})
	w.version++
}

// disturb lets one thing happen.
func (w *world) disturb() {
	what := rapid.IntRange(0, 29).Draw(w.T, "what")
	pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(w.T, "which") }
	switch {
	case what == 0: // what a failure is shrunk to
	case what < 4: // a decider reads; the index may hide some
		lag := rapid.SampledFrom([]int{0, 0, 2, 3}).Draw(w.T, "lag")
		w.deciders[what%2] = w.read(func(i int) bool { return lag > 0 && (i+w.version)%lag == 0 })
	case what < 8:
		if s := w.deciders[what%2]; s != nil {
			w.decide(s)
			w.deciders[what%2] = nil
		}
	case what < 12:
		w.decide(w.read(nil))
	case what < 15: // all move on, and a decider that sees all is asked
		for _, t := range slices.Clone(w.tasks) {
			if w.task(t.ID) != nil {
				w.step(t)
			}
		}
		w.decide(w.read(nil))
	case what < 20 && len(w.tasks) > 0:
		w.step(w.tasks[pick(len(w.tasks))])
	case what < 23 && len(w.tasks) > 0:
		w.harm(w.tasks[pick(len(w.tasks))])
	case what < 26 && len(w.hosts) > 0:
		w.shake(w.hosts[pick(len(w.hosts))])
	case what == 26:
		w.now = w.now.Add(rapid.SampledFrom([]time.Duration{time.Second, 40 * time.Second, 3 * time.Minute, time.Hour}).Draw(w.T, "time passes"))
	case what == 27:
		w.update(rapid.SampledFrom([]badness{good, good, neverStarts, neverWell, crashes}).Draw(w.T, "revision"))
	case what == 28:
		if w.storm = !w.storm; w.storm {
			w.configure()
		}
	case what == 29 && len(w.hosts) < 6:
		w.addHost()
	}
}

func (w *world) harm(t *inhabitant) {
	h := w.host(t.Instance)
	if h == nil || h.silent {
		return
	}
	switch rapid.IntRange(0, 3).Draw(w.T, "harm") {
	case 0:
		if t.Status == deployment.Running || t.Status == deployment.Pending {
			w.fail(t)
		}
	case 1:
		if t.Status == deployment.Running && w.checked && !t.Unproven {
			t.Unhealthy = !t.Unhealthy
		}
	case 2:
		t.ProtectedUntil = w.now.Add(2 * time.Hour)
	case 3:
		t.ProtectedUntil = time.Time{}
	}
}

func (w *world) shake(h *host) {
	switch rapid.IntRange(0, 4).Draw(w.T, "shake") {
	case 0, 1:
		if !h.dead {
			h.silent = !h.silent
		}
	case 2:
		h.dead, h.silent = true, true
	case 3:
		h.drained = !h.drained
		w.version++
	case 4:
		if h.silent {
			w.reap(h)
		}
	}
}

// grow lets the service come to its first steady state, if nothing is in the way.
func (w *world) grow() {
	for n := 0; n < 30 && !w.told.Steady; n++ {
		for _, t := range slices.Clone(w.tasks) {
			if w.task(t.ID) != nil {
				w.step(t)
			}
		}
		w.decide(w.read(nil))
	}
}

// settle lets the world be quiet, and demands that everything comes to its end.
func (w *world) settle() {
	w.quiet, w.quietSince, w.storm = true, w.now, false
	w.now = w.now.Add(time.Second)
	w.mend()
	var last deployment.Output
	for n := 0; ; n++ {
		if n > 3000 {
			w.Fatalf("never settles: %s\nlast %+v", w, last)
		}
		moved := false
		for _, t := range slices.Clone(w.tasks) {
			if w.task(t.ID) != nil && w.step(t) {
				moved = true
			}
		}
		before := w.version
		last, _ = w.decide(w.read(nil))
		if moved || w.version != before || last.More {
			continue
		}
		switch i := slices.IndexFunc(w.hosts, func(h *host) bool { return h.silent }); {
		case i >= 0:
			w.now = w.now.Add(10 * time.Minute)
			w.reap(w.hosts[i])
		case !last.Next.IsZero() && w.told.NoRoom.IsZero():
			w.now = last.Next
		case !last.Next.IsZero() && last.Next.Sub(w.now) < 3*time.Hour:
			w.now = last.Next
		default:
			w.checkQuiet(last)
			return
		}
	}
}

// mend ends what is no fault of the decisions: a revision stays bad only where the
// breaker is there to find out.
func (w *world) mend() {
	for _, d := range w.all {
		if !d.Primary || d.Rollout != deployment.InProgress || !w.service.Breaker || d.RollingBack || w.bad[d.ID] == crashes {
			w.bad[d.ID] = good
		}
		if w.bad[d.ID] == neverWell && !w.checked {
			w.bad[d.ID] = good
		}
	}
	if !slices.ContainsFunc(w.hosts, func(h *host) bool { return !h.drained && !h.silent }) {
		w.addHost()
	}
}
