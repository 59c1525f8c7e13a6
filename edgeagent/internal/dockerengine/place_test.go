package dockerengine

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
)

// yard is a registry whose pulls go on until they are let go, with what is asked of it.
type yard struct {
	mu    sync.Mutex
	asked []string
	gates map[string]chan struct{}
}

func newYard(s *stub) *yard {
	y := &yard{gates: map[string]chan struct{}{}}
	s.on(routePull, func(w http.ResponseWriter, r *http.Request) {
		name := r.URL.Query().Get("fromImage")
		y.mu.Lock()
		y.asked = append(y.asked, name)
		gate := y.gate(name)
		y.mu.Unlock()
		lines(`{"status":"Pulling"}`)(w, r)
		select {
		case <-gate:
		case <-r.Context().Done():
		}
	})
	return y
}

func (y *yard) gate(name string) chan struct{} {
	if y.gates[name] == nil {
		y.gates[name] = make(chan struct{})
	}
	return y.gates[name]
}

func (y *yard) open(name string) {
	y.mu.Lock()
	defer y.mu.Unlock()
	close(y.gate(name))
}

func (y *yard) list() []string {
	y.mu.Lock()
	defer y.mu.Unlock()
	return slices.Clone(y.asked)
}

const atYard = "yard.test/"

func TestPulls_AreBoundedAndTakeTurnsInTheOrderTheyCame(t *testing.T) {
	s := newStub(t)
	y := newYard(s)
	limits := patient()
	limits.Pulls = 2
	e := s.engine(t, limits)
	var wg sync.WaitGroup
	for n, name := range []string{"huge", "a", "b", "c"} {
		wg.Go(func() { _, _ = e.Image(t.Context(), atYard+name, agent.Login{}) })
		until(t, "the pull of "+name, func() bool {
			running, waiting := e.Pulls()
			return running+waiting == n+1 && len(y.list()) == min(n+1, limits.Pulls) // of two that go on none is the first at the registry
		})
	}
	if running, waiting := e.Pulls(); running != 2 || waiting != 2 {
		t.Errorf("%d run, %d wait", running, waiting)
	}
	for n, name := range []string{"a", "b", "c"} { // the huge one holds up none of them
		until(t, "the turn of "+name, func() bool { return len(y.list()) == n+2 })
		y.open(atYard + name)
	}
	until(t, "the small ones' end", func() bool { running, waiting := e.Pulls(); return running == 1 && waiting == 0 })
	if got := fmt.Sprint(y.list()); got != fmt.Sprint([]string{atYard + "huge", atYard + "a", atYard + "b", atYard + "c"}) {
		t.Errorf("pulled in the order %s", got)
	}
	y.open(atYard + "huge")
	wg.Wait()
}

func TestPulls_WhoLeavesTheQueueIsNotPulledFor(t *testing.T) {
	s := newStub(t)
	y := newYard(s)
	limits := patient()
	limits.Pulls = 1
	e := s.engine(t, limits)
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = e.Image(t.Context(), atYard+"first", agent.Login{}) })
	until(t, "the first", func() bool { return len(y.list()) == 1 })
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() { _, err := e.Image(ctx, atYard+"second", agent.Login{}); left <- err }()
	until(t, "the second to wait", func() bool { _, waiting := e.Pulls(); return waiting == 1 })
	leave()
	if err := <-left; !fault.Is(err, fault.Unavailable) {
		t.Errorf("the one who left: %v", err)
	}
	until(t, "its place in the queue to be empty", func() bool { _, waiting := e.Pulls(); return waiting == 0 })
	y.open(atYard + "first")
	wg.Wait()
	if got := y.list(); len(got) != 1 {
		t.Errorf("pulled were %v", got)
	}
}

func TestPulls_RegistriesThatAreDeadHoldNoPlaceForGood(t *testing.T) {
	bubble(t, func(t *testing.T, s *stub) {
		limits := patient()
		limits.Pulls, limits.PullTries, limits.PullRetry = 2, 3, 100*limits.PullSilence
		alive := make(chan struct{})
		s.on(routePull, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("fromImage") == "alive.test/a" {
				close(alive)
				return
			}
			thenStall(lines(`{"status":"Pulling"}`))(w, r)
		})
		e := s.engine(t, limits)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for n := range 4 { // each is between two tries for a hundred silences
			wg.Go(func() { _, _ = e.Image(ctx, fmt.Sprintf("dead.test/%d", n), agent.Login{}) })
		}
		<-time.After(limits.PullSilence * 3 / 2)
		synctest.Wait()
		if got := s.count(routePull); got != 4 {
			t.Errorf("%d of the four dead were tried", got)
		}
		wg.Go(func() { _, _ = e.Image(ctx, "alive.test/a", agent.Login{}) })
		select {
		case <-alive:
		case <-time.After(2 * limits.PullSilence):
			t.Error("the living one never got its turn")
		}
		cancel()
		wg.Wait()
	})
}

// The time of a whole pull does not run while it waits for its turn.
func TestPulls_WaitingForATurnIsNoPartOfAPullsTime(t *testing.T) {
	bubble(t, func(t *testing.T, s *stub) {
		y := newYard(s)
		limits := patient()
		limits.Pulls, limits.Pull = 1, limits.PullSilence/2
		e := s.engine(t, limits)
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { _, err := e.Image(t.Context(), atYard+"slow", agent.Login{}); first <- err }()
		synctest.Wait()
		y.open(atYard + "quick")
		go func() { _, err := e.Image(t.Context(), atYard+"quick", agent.Login{}); second <- err }()
		<-first // by its time
		if err := <-second; err == nil || !strings.Contains(err.Error(), "was pulled and is not there") || s.count(routePull) != 2 {
			t.Errorf("%v after %d pulls: it was to be pulled, and is not there", err, s.count(routePull))
		}
	})
}
