// Package apitest is the ECS API over a control plane in memory, behind HTTP on
// loopback: what tests of clients of the API talk to. It plays the agent too,
// as far as a test tells it. Tests import it, also those outside of lambdas,
// which can not import the handler itself.
package apitest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/lambdas/internal/ecsapi"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

// API is a control plane and where it answers.
type API struct {
	*controltest.World
	URL string
	t   testing.TB
	mu  sync.Mutex
	n   int64
	got []string
	// Stub answers instead of the API, if it knows what: a test's own word for
	// what is hard to bring about here.
	Stub func(operation string, body []byte) (answer string, ok bool)
}

// New starts one with an empty cluster "default" and the definition app:1, whose
// one container is "main".
func New(t testing.TB) *API {
	t.Helper()
	a := &API{World: controltest.NewWorld(t), t: t}
	a.Memory.Lag = 0
	a.Put(&control.Family{Name: "app", Latest: 1, Active: 1}) // of the world's one definition
	handler := ecsapi.New(a.Control)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		a.got = append(a.got, r.Header.Get("Authorization"))
		a.mu.Unlock()
		if a.stubbed(w, r) {
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	a.URL = server.URL
	return a
}

func (a *API) stubbed(w http.ResponseWriter, r *http.Request) bool {
	if a.Stub == nil {
		return false
	}
	body, err := io.ReadAll(r.Body)
	if err != nil { // its client has given up, as a test may want
		return true
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	answer, ok := a.Stub(operation, body)
	if ok {
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		_, _ = io.WriteString(w, answer)
	}
	return ok
}

// Signatures are the Authorization headers of the calls so far.
func (a *API) Signatures() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string(nil), a.got...)
}

// Instance adds a connected instance and returns its id.
func (a *API) Instance(name string, cpu, memory int, change ...func(*control.Instance, *control.Ledger, *control.Lease)) string {
	a.t.Helper()
	return a.AddInstance(name, control.Held{CPU: cpu, MemoryMiB: memory}, change...)
}

// Place runs an admission pass.
func (a *API) Place() {
	a.t.Helper()
	if err := a.Admit(context.Background(), control.Kick{Cluster: "default"}); err != nil {
		a.t.Errorf("admit: %v", err)
	}
}

// Serve runs a pass of the services' scheduler.
func (a *API) Serve() {
	a.t.Helper()
	if err := a.Control.Serve(context.Background(), control.Kick{Cluster: "default"}); err != nil {
		a.t.Errorf("serve: %v", err)
	}
}

// Report says of a placed task what its agent would: RUNNING, or STOPPED with an
// exit code of its first container.
func (a *API) Report(id string, status task.Status, code int) {
	a.t.Helper()
	k := a.Task(id)
	in := &control.Instance{ID: k.Instance}
	if err := a.Store.Load(context.Background(), in); err != nil {
		a.t.Errorf("load instance %s: %v", k.Instance, err)
		return
	}
	a.mu.Lock()
	a.n++
	n := a.n
	a.mu.Unlock()
	now := a.Clock.Now()
	r := &wire.Report{
		Header: wire.Header{Instance: k.Instance}, Origin: wire.Origin{Incarnation: in.Incarnation, N: n},
		Snapshot: wire.Snapshot{Task: id, Attempt: k.Attempt, Epoch: k.Epoch, Status: status, StartedAt: now,
			Containers: []task.Container{{Name: "main", Status: task.ContainerRunning, RuntimeID: "c0ffee", StartedAt: now}}},
	}
	if status == task.Stopped {
		r.Containers[0].Status, r.Containers[0].ExitCode, r.Containers[0].StoppedAt = task.ContainerStopped, &code, now
		r.Cause, r.StoppedAt = task.ExitedCause, now
	}
	if err := a.IngestReport(context.Background(), control.Sender{Identity: in.Identity, SentAt: now, MessageID: a.NewID()}, r); err != nil {
		a.t.Errorf("report %s of task %s: %v", status, id, err)
	}
}
