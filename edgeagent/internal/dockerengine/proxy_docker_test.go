//go:build docker

package dockerengine

import (
	"context"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
)

// mode is what a proxy does with the engine's answers.
type mode int

const (
	pass    mode = iota
	hold         // they do not come until the mode changes
	swallow      // the connection is closed in their place
)

// proxy stands between a client and the real engine and spoils answers; what is
// asked always reaches the engine.
type proxy struct {
	host string

	mu      sync.Mutex
	mode    mode
	changed chan struct{}
	conns   map[net.Conn]bool
}

func newProxy(t *testing.T) *proxy {
	t.Helper()
	p := &proxy{changed: make(chan struct{}), conns: map[net.Conn]bool{}}
	path := filepath.Join(t.TempDir(), "s")
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	p.host = "unix://" + path
	t.Cleanup(func() {
		l.Close()
		p.set(swallow)
		p.cut()
	})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(c)
		}
	}()
	return p
}

func (p *proxy) serve(c net.Conn) {
	engine, err := net.Dial("unix", strings.TrimPrefix(host(), "unix://"))
	if err != nil {
		c.Close()
		return
	}
	p.mu.Lock()
	p.conns[c], p.conns[engine] = true, true
	p.mu.Unlock()
	go func() {
		_, _ = io.Copy(engine, c)
		engine.Close()
	}()
	defer c.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := engine.Read(buffer)
		if n > 0 {
			if p.gate() == swallow {
				return
			}
			if _, err := c.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// gate waits while answers are held and says what to do with this one.
func (p *proxy) gate() mode {
	for {
		p.mu.Lock()
		m, changed := p.mode, p.changed
		p.mu.Unlock()
		if m != hold {
			return m
		}
		<-changed
	}
}

func (p *proxy) set(m mode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mode = m
	close(p.changed)
	p.changed = make(chan struct{})
}

// cut closes every connection there is.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
		delete(p.conns, c)
	}
}

func (p *proxy) engine(t *testing.T, instance string, limits Limits) *Engine {
	t.Helper()
	e, err := New(p.host, instance, "default", WithLimits(limits))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// TestProxy_StalledCallsEndAndAreMadeUpFor has every verb stall once on the way
// back from the real engine, which has carried it out: the second try finds it so.
func TestProxy_StalledCallsEndAndAreMadeUpFor(t *testing.T) {
	for name, bad := range map[string]mode{"stalled": hold, "cut off": swallow} {
		t.Run(name, func(t *testing.T) {
			p := newProxy(t)
			instance := newInstance()
			quick := short()
			quick.PullTries = 1
			e := p.engine(t, instance, DefaultLimits())
			spec := testSpec(t, "sh", "-c", "trap 'exit 3' TERM; sleep 600 & wait")
			clearAfter(t, instance, spec.ContainerID)
			for _, step := range []struct {
				verb string
				call func(context.Context) error
			}{
				{"create", func(ctx context.Context) error { _, err := e.Create(ctx, spec); return err }},
				{"start", func(ctx context.Context) error { return e.Start(ctx, spec.ContainerID) }},
				{"observe", func(ctx context.Context) error { _, err := e.Observe(ctx, spec.ContainerID); return err }},
				{"list", func(ctx context.Context) error { _, err := e.List(ctx); return err }},
				{"stop", func(ctx context.Context) error { return e.Stop(ctx, spec.ContainerID, time.Second) }},
				{"remove", func(ctx context.Context) error { return e.Remove(ctx, spec.ContainerID) }},
				{"removetask", func(ctx context.Context) error { return e.RemoveTask(ctx, spec.Task, spec.Attempt) }},
				{"ping", e.Ping},
			} {
				e.limits = quick
				p.set(bad)
				begun := time.Now()
				err := step.call(t.Context())
				if took := time.Since(begun); !fault.Is(err, fault.Unavailable) || took > 30*time.Second {
					t.Errorf("%s: %v after %s, want an unavailable engine within its limit of milliseconds", step.verb, err, took)
				}
				p.set(pass)
				p.cut()
				e.limits = DefaultLimits()
				if err := step.call(t.Context()); err != nil {
					t.Fatalf("%s, tried again: %v", step.verb, err)
				}
			}
			if all, err := e.List(t.Context()); err != nil || len(all) != 0 {
				t.Errorf("left are %+v, %v", all, err)
			}
		})
	}
}

func TestProxy_ABrokenStreamClosesTheWatchAndTheNextOneMissesNothing(t *testing.T) {
	p := newProxy(t)
	instance := newInstance()
	e := p.engine(t, instance, DefaultLimits())
	news, err := e.Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p.cut()
	if s, open := <-news; open {
		t.Fatalf("it says %+v, want it closed", s)
	}
	spec := testSpec(t, "sh", "-c", "exit 5")
	clearAfter(t, instance, spec.ContainerID)
	if _, err := e.Create(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if err := e.Start(t.Context(), spec.ContainerID); err != nil {
		t.Fatal(err)
	}
	end(t, e, spec.ContainerID)
	// The stream is opened after the end, and reaches back to it.
	if news, err = e.Watch(t.Context()); err != nil {
		t.Fatal(err)
	}
	late := time.After(2 * time.Minute)
	for {
		select {
		case s, open := <-news:
			if !open {
				t.Fatal("the stream ended before it told what happened while none was open")
			}
			if s.ContainerID == spec.ContainerID && s.ExitCode != nil && *s.ExitCode == 5 {
				return
			}
		case <-late:
			t.Fatal("what happened while no stream was open is not told")
		}
	}
}

// end waits for the end of a container.
func end(t *testing.T, e *Engine, id agent.ContainerID) agent.Seen {
	t.Helper()
	var s agent.Seen
	until(t, "the container's end", func() bool {
		var err error
		if s, err = e.Observe(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		return s.ExitCode != nil
	})
	return s
}
