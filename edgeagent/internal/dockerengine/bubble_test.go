package dockerengine

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docker/docker/client"
)

// bubble runs a test in virtual time, with a stub that is reached through memory: what
// is cut off by a limit then depends on what the engine does, not on how busy the
// machine is.
func bubble(t *testing.T, test func(t *testing.T, s *stub)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
		path := filepath.Join(t.TempDir(), "s")
		l, err := new(net.ListenConfig).Listen(t.Context(), "unix", path) // which shows that the engine is not shutting down
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		s := &stub{host: "unix://" + path, version: "1.41", routes: map[string]http.HandlerFunc{}, memory: p}
		server := &http.Server{Handler: s, ReadHeaderTimeout: time.Hour}
		over := make(chan struct{})
		go func() { defer close(over); _ = server.Serve(p) }()
		t.Cleanup(func() { _ = server.Close(); <-over })
		test(t, s)
	})
}

// pipes is a listener whose connections are of this process.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	close(p.closed)
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Net: "unix"} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	mine, its := net.Pipe()
	select {
	case p.conns <- its:
		return mine, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// client speaks to the stub as the engine's own clients do.
func (p *pipes) client(t *testing.T) *client.Client {
	t.Helper()
	api, err := client.NewClientWithOpts(client.WithHTTPClient(&http.Client{Transport: &http.Transport{DialContext: p.dial}}),
		client.WithHost("tcp://in-memory"), client.WithDialContext(p.dial), client.WithAPIVersionNegotiation())
	if err != nil {
		t.Fatal(err)
	}
	return api
}
