package endpoint

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
)

func TestLimit_ATaskThatAsksTooOftenTakesNothingFromOthers(t *testing.T) {
	t.Parallel()
	now := time.Now()
	r := newRig(t, func(c *Config) { c.Rate, c.Burst, c.Now = 2, 3, func() time.Time { return now } })
	for i := range 3 {
		if status, body := r.get(addressA, r.metadataPath(idA)); status != http.StatusOK {
			t.Fatalf("request %d: %d %s", i, status, body)
		}
	}
	status, body := r.get(addressA, r.credentialsPath(idA))
	if status != http.StatusTooManyRequests || !strings.Contains(body, "TooManyRequests") {
		t.Errorf("one too many: %d %s", status, body)
	}
	if status, _ := r.get(addressB, r.metadataPath(idB)); status != http.StatusOK {
		t.Errorf("another task: %d", status)
	}
	now = now.Add(time.Second)
	for i := range 2 {
		if status, _ := r.get(addressA, r.metadataPath(idA)); status != http.StatusOK {
			t.Errorf("request %d a second later: %d", i, status)
		}
	}
}

// Who knows another's URL must not use up what that one may ask, nor the engine.
func TestLimit_AStrangerUsesUpNobodysRequestsAndAsksNoEngine(t *testing.T) {
	t.Parallel()
	now := time.Now()
	r := newRig(t, func(c *Config) { c.Rate, c.Burst, c.Now = 1, 1, func() time.Time { return now } })
	for range 50 {
		if status, _ := r.get(addressB, r.credentialsPath(idA)); status != http.StatusForbidden {
			t.Fatalf("a stranger: %d", status)
		}
	}
	if status, body := r.get(addressA, r.credentialsPath(idA)); status != http.StatusOK {
		t.Errorf("the container itself: %d %s", status, body)
	}
	if r.set(func() {}); r.looks > 1 {
		t.Errorf("the engine was asked %d times", r.looks)
	}
}

// One container opens as many connections as it can, lets half of them lie, sends
// half a request on others, and asks nonsense without end.
func TestFlood_OfOneContainerKeepsNoOtherFromItsCredentials(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	ctx, stop := context.WithCancel(t.Context())
	var attackers sync.WaitGroup
	defer attackers.Wait()
	defer stop()
	d := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(addressB)}}
	opened := make(chan struct{}, 1)
	for range 8 {
		attackers.Go(func() {
			var held []net.Conn
			defer func() {
				for _, c := range held {
					_ = c.Close()
				}
			}()
			for n := 0; ctx.Err() == nil && n < 150; n++ {
				c, err := d.DialContext(ctx, "tcp4", r.Address)
				if err != nil {
					continue
				}
				held = append(held, c)
				if n%2 == 0 {
					_, _ = c.Write([]byte("GET /v4/x HTTP/1.1\r\nHost: "))
				} else {
					_, _ = c.Write([]byte("GET /v4/x HTTP/1.1\r\nHost: " + r.Address + "\r\n\r\n"))
				}
			}
			select {
			case opened <- struct{}{}:
			default:
			}
			<-ctx.Done()
		})
	}
	select {
	case <-opened:
	case <-time.After(20 * time.Second):
		t.Fatal("the attackers did not get going")
	}
	const most = 4 * time.Second // by itself the server sheds half a request after five
	for range 20 {
		begun := time.Now()
		status, body := r.get(addressA, r.credentialsPath(idA))
		if took := time.Since(begun); status != http.StatusOK || took > most {
			t.Fatalf("%d after %s: %s", status, took, body)
		}
	}
}

func TestCrowd_TheOldestOfWhoHasTheMostGoes(t *testing.T) {
	t.Parallel()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := crowded(l, 3, 4).(*crowd)
	defer c.Close()
	enter := func(from string) net.Conn {
		t.Helper()
		d := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		mine, err := d.DialContext(t.Context(), "tcp4", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = mine.Close() })
		if _, err := c.Accept(); err != nil {
			t.Fatal(err)
		}
		return mine
	}
	ends := func(conn net.Conn, within time.Duration) bool {
		_ = conn.SetReadDeadline(time.Now().Add(within))
		_, err := conn.Read(make([]byte, 1))
		timeout, ok := errors.AsType[net.Error](err)
		return err != nil && (!ok || !timeout.Timeout())
	}
	goes := func(conn net.Conn) bool { return ends(conn, 20*time.Second) }
	shut := func(conn net.Conn) bool { return ends(conn, 100*time.Millisecond) }
	first, second, third := enter(addressB), enter(addressB), enter(addressB)
	if shut(first) || shut(second) || shut(third) {
		t.Fatal("one was shut while there was room")
	}
	fourth := enter(addressB) // one too many of this address
	if !goes(first) || shut(second) {
		t.Error("the oldest of the address did not go")
	}
	other := enter(addressA) // fills the whole
	another := enter(addressA)
	if !goes(second) || shut(other) || shut(another) || shut(third) || shut(fourth) {
		t.Error("not the oldest of who has the most went")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all != 4 {
		t.Errorf("%d are counted, want 4", c.all)
	}
}

func TestHandler_IsAskedByItsAddressAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for _, host := range []string{"evil.example", "localhost", "169.254.170.2", "127.0.0.1"} {
		if status, body := r.get(addressA, r.credentialsPath(idA), "Host", host); status != http.StatusForbidden || strings.Contains(body, "ASIA") {
			t.Errorf("as %s: %d %s", host, status, body)
		}
	}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+r.Address+r.credentialsPath(idA), strings.NewReader(strings.Repeat("x", 1<<20)))
	if answer, err := clientAt(addressA).Do(req); err == nil {
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("POST: %s", answer.Status)
		}
	}
	conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(addressA)}}).DialContext(t.Context(), "tcp4", r.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = conn.Write([]byte("GET /v4/x HTTP/1.1\r\nHost: " + r.Address + "\r\nX-Long: " + strings.Repeat("x", 64<<10) + "\r\n\r\n"))
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	head := make([]byte, 64)
	if n, err := conn.Read(head); err == nil && !strings.HasPrefix(string(head[:n]), "HTTP/1.1 431") {
		t.Errorf("long headers: %s", head[:n])
	}
}

// A thousand containers that came and went within an hour are not remembered, and
// those who ask at once for one share a question that was put after they came.
func TestDetails_AreBoundedAndSharedByThoseWhoAskAtOnce(t *testing.T) {
	t.Parallel()
	e := &slowEngine{asked: make(chan struct{}), answer: make(chan struct{})}
	d := newDetails(e, time.Now)
	var all sync.WaitGroup
	ask := func() {
		if _, err := d.since(t.Context(), idA, time.Now()); err != nil {
			t.Error(err)
		}
	}
	all.Go(ask)
	<-e.asked
	for range 50 { // these came after the first question, which does not do for them
		all.Go(ask)
	}
	e.answer <- struct{}{}
	for range 50 {
		select {
		case <-e.asked:
			e.answer <- struct{}{}
			continue
		case <-wait(&all):
		}
		break
	}
	if n := e.n.Load(); n < 2 {
		t.Errorf("the engine was asked %d times", n)
	}
	close(e.answer)
	go func() {
		for range e.asked { //nolint:revive // they are only let go
		}
	}()
	for n := range 3 * mostDetails {
		id := idA
		id.Attempt = n + 10
		if _, err := d.of(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	close(e.asked)
	if len(d.all) > mostDetails || len(d.looks) > 0 {
		t.Errorf("%d are remembered, and %d asked for", len(d.all), len(d.looks))
	}
}

func wait(g *sync.WaitGroup) chan struct{} {
	done := make(chan struct{})
	go func() { g.Wait(); close(done) }()
	return done
}

// slowEngine answers when it is told to.
type slowEngine struct {
	Engine
	asked, answer chan struct{}
	n             atomic.Int64
}

func (e *slowEngine) Detail(context.Context, agent.ContainerID) (agent.Detail, error) {
	e.n.Add(1)
	e.asked <- struct{}{}
	<-e.answer
	return agent.Detail{Running: true}, nil
}
