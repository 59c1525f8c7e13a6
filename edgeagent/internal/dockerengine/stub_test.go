package dockerengine

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// stub is an engine that answers as a test says: by method and path without
// the version. What is not said is a 404; _ping answers unless it is said.
type stub struct {
	host    string
	version string
	memory  *pipes // nil: it listens on a socket

	mu     sync.Mutex
	routes map[string]http.HandlerFunc
	calls  []string
}

var versionPath = regexp.MustCompile(`^/v(\d\.\d+)/`)

func newStub(t *testing.T) *stub {
	t.Helper()
	s := &stub{version: "1.41", routes: map[string]http.HandlerFunc{}}
	path := filepath.Join(t.TempDir(), "s")
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(s)
	server.Listener.Close()
	server.Listener = l
	server.Start()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	s.host = "unix://" + path
	return s
}

func (s *stub) on(route string, h http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.routes[route] = h
}

func (s *stub) speak(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version = version
}

// count is how many calls of a route there were.
func (s *stub) count(route string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, c := range s.calls {
		if c == route {
			n++
		}
	}
	return n
}

func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := versionPath.ReplaceAllString(r.URL.Path, "/")
	route := strings.Replace(r.Method, "HEAD", "GET", 1) + " " + path
	s.mu.Lock()
	h, version := s.routes[route], s.version
	s.calls = append(s.calls, route)
	s.mu.Unlock()
	w.Header().Set("Api-Version", version)
	if m := versionPath.FindStringSubmatch(r.URL.Path); m != nil && m[1] != version {
		say(http.StatusBadRequest, "client version "+m[1]+" is too old. Minimum supported API version is "+version)(w, r)
		return
	}
	switch {
	case h != nil:
		h(w, r)
	case path == "/_ping":
		w.WriteHeader(http.StatusOK)
	default:
		say(http.StatusNotFound, "No such thing: "+route)(w, r)
	}
}

// say answers with one of the engine's errors.
func say(status int, message string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]string{"message": message})
	}
}

func give(v any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	}
}

// stall answers nothing until the caller has left.
func stall(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // before that a server does not notice that its caller leaves
	<-r.Context().Done()
}

// inTurn answers one call after the other; the last one answers all that follow.
func inTurn(all ...http.HandlerFunc) http.HandlerFunc {
	var mu sync.Mutex
	n := 0
	return func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		h := all[min(n, len(all)-1)]
		n++
		mu.Unlock()
		h(w, r)
	}
}

// lines streams JSON texts, each as soon as it is there, and then goes on.
func lines(texts ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for _, text := range texts {
			_, _ = w.Write([]byte(text + "\n"))
			w.(http.Flusher).Flush()
		}
	}
}

// thenStall is a handler that stays after what first has said.
func thenStall(first http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		first(w, r)
		stall(w, r)
	}
}

// short are deadlines for tests of engines that do not answer.
func short() Limits {
	const d = 60 * time.Millisecond
	return Limits{
		Ping: d, Info: d, Inspect: d, List: d, Create: d, Start: d, Stop: d, Remove: d, Watch: d,
		Pull: 30 * time.Second, PullSilence: d, PullRetry: time.Millisecond, PullTries: 3,
	}
}

// patient are those of tests in which the engine answers.
func patient() Limits {
	l := DefaultLimits()
	l.PullRetry = time.Millisecond
	return l
}

func (s *stub) engine(t *testing.T, limits Limits, options ...Option) *Engine {
	t.Helper()
	e, err := New(s.host, "instance-1", "default", append([]Option{WithLimits(limits)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	if s.memory != nil {
		e.api = s.memory.client(t)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// until waits for something that happens elsewhere.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
