package link_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/longshore-run/longshore/test/link"
)

// server answers each line with "answer " and the line, and remembers what came.
type server struct {
	net.Listener
	mu    sync.Mutex
	lines []string
	ended int // connections whose end it was told
}

func serve(t *testing.T, network, address string) *server {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), network, address)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{Listener: l}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go s.answer(c)
		}
	}()
	return s
}

func (s *server) answer(c net.Conn) {
	defer c.Close()
	in := bufio.NewScanner(c)
	for in.Scan() {
		s.mu.Lock()
		s.lines = append(s.lines, in.Text())
		s.mu.Unlock()
		_, _ = io.WriteString(c, "answer "+in.Text()+"\n")
	}
	s.mu.Lock()
	s.ended++
	s.mu.Unlock()
}

func (s *server) came(line string) func() bool {
	return func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return slices.Contains(s.lines, line)
	}
}

func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-deadline:
			t.Fatalf("not %s", what)
		case <-tick.C:
		}
	}
}

// client is one connection over the link.
type client struct {
	net.Conn
	t  *testing.T
	in *bufio.Reader
}

func dial(t *testing.T, l *link.Link) *client {
	t.Helper()
	c, err := net.Dial("tcp", l.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return &client{c, t, bufio.NewReader(c)}
}

func (c *client) say(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

// hear is the next line, or what came of it and why no more, within the time.
func (c *client) hear(most time.Duration) (string, error) {
	_ = c.SetReadDeadline(time.Now().Add(most))
	line, err := c.in.ReadString('\n')
	return strings.TrimSpace(line), err
}

func (c *client) asks(line string) {
	c.t.Helper()
	c.say(line)
	if got, err := c.hear(10 * time.Second); err != nil || got != "answer "+line {
		c.t.Fatalf("%q is answered %q, %v", line, got, err)
	}
}

// lost waits until the link has dropped so many pieces: what it has not taken yet when
// the fault changes is another fault's.
func lost(t *testing.T, l *link.Link, requests, answers int64) {
	t.Helper()
	until(t, "lost", func() bool { c := l.Counts(); return c.RequestsLost >= requests && c.AnswersLost >= answers })
}

// silent wants nothing to come, nor the connection to end.
func (c *client) silent() {
	c.t.Helper()
	if got, err := c.hear(50 * time.Millisecond); !timedOut(err) || got != "" {
		c.t.Fatalf("heard %q, %v; want silence", got, err)
	}
}

func timedOut(err error) bool {
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout()
}

func reset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

func start(t *testing.T) (*server, *link.Link) {
	t.Helper()
	s := serve(t, "tcp", "127.0.0.1:0")
	l, err := link.New("tcp", "127.0.0.1:0", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return s, l
}

func TestLink_PassesOnWhatIsSaidAndTheEnd(t *testing.T) {
	s, l := start(t)
	c := dial(t, l)
	c.asks("a")
	c.asks("b")
	_ = c.Close()
	until(t, "told of the end", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.ended == 1 })
	if got := l.Counts(); got != (link.Counts{Connections: 1}) {
		t.Errorf("counts %+v", got)
	}
}

func TestCut_ResetsWhatIsThereAndWhatComes(t *testing.T) {
	s, l := start(t)
	old := dial(t, l)
	old.asks("a")
	l.Set(link.Fault{Kind: link.Cut})
	if _, err := old.hear(10 * time.Second); !reset(err) {
		t.Errorf("an open connection ends with %v, want a reset", err)
	}
	conn, err := net.Dial("tcp", l.Addr()) // the kernel may take it before the link does
	if err == nil {
		t.Cleanup(func() { _ = conn.Close() })
		_, _ = io.WriteString(conn, "b\n")
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		_, err = conn.Read(make([]byte, 1))
	}
	if !reset(err) && !errors.Is(err, io.EOF) {
		t.Errorf("a new one ends with %v, want a reset", err)
	}
	l.Mend()
	dial(t, l).asks("c")
	if s.came("b")() || l.Counts().Reset != 2 {
		t.Errorf("came %v, counts %+v", s.lines, l.Counts())
	}
}

func TestBlackHole_DropsWithoutAReset_AndWhatLostSomethingStaysDeaf(t *testing.T) {
	s, l := start(t)
	old, idle := dial(t, l), dial(t, l)
	old.asks("a")
	idle.asks("i")
	l.Set(link.Fault{Kind: link.BlackHole})
	old.say("b")
	lost(t, l, 1, 0)
	old.silent()
	fresh := dial(t, l)
	fresh.say("c")
	lost(t, l, 2, 0)
	fresh.silent()
	l.Mend()
	old.say("d")
	lost(t, l, 3, 0)
	old.silent()
	fresh.say("e")
	lost(t, l, 4, 0)
	fresh.silent()
	idle.asks("j") // it lost nothing
	dial(t, l).asks("f")
	_ = old.Close()
	dial(t, l).asks("g")
	for _, lost := range []string{"b", "c", "d", "e"} {
		if s.came(lost)() {
			t.Errorf("%s came through", lost)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != 0 {
		t.Error("the server was told of an end")
	}
	if got := l.Counts(); got.RequestsLost != 4 || got.Reset != 0 {
		t.Errorf("counts %+v", got)
	}
}

func TestHalfOpen_WhatIsAskedArrivesAndTheAnswerDoesNot(t *testing.T) {
	s, l := start(t)
	c := dial(t, l)
	c.asks("a")
	l.Set(link.Fault{Kind: link.HalfOpen})
	c.say("b")
	until(t, "arrived is b", s.came("b"))
	lost(t, l, 0, 1)
	c.silent()
	l.Mend()
	c.say("c")
	until(t, "arrived is c", s.came("c"))
	lost(t, l, 0, 2)
	c.silent()
	dial(t, l).asks("d")
	if got := l.Counts(); got.AnswersLost != 2 || got.RequestsLost != 0 {
		t.Errorf("counts %+v", got)
	}
}

func TestStall_AllOfItArrivesOnceMended(t *testing.T) {
	s, l := start(t)
	c := dial(t, l)
	l.Set(link.Fault{Kind: link.Stall})
	c.say("a")
	until(t, "held up", func() bool { return l.Counts().Late == 1 })
	c.silent()
	if s.came("a")() {
		t.Error("it arrived before the link was mended")
	}
	l.Mend()
	if got, err := c.hear(10 * time.Second); err != nil || got != "answer a" {
		t.Errorf("heard %q, %v", got, err)
	}
	if l.Counts().Late != 1 {
		t.Errorf("counts %+v", l.Counts())
	}
}

func TestDelay_EachPieceIsLater(t *testing.T) {
	_, l := start(t)
	c := dial(t, l)
	l.Set(link.Fault{Kind: link.Delay, Delay: 60 * time.Millisecond})
	begun := time.Now()
	c.asks("a")
	if took := time.Since(begun); took < 120*time.Millisecond {
		t.Errorf("there and back took %s, want two delays", took)
	}
	l.Set(link.Fault{Kind: link.Delay, Delay: time.Hour})
	c.say("b")
	until(t, "on its way", func() bool { return l.Counts().Late == 3 })
	l.Mend()
	if got, err := c.hear(10 * time.Second); err != nil || got != "answer b" {
		t.Errorf("mended: heard %q, %v", got, err)
	}
}

func TestSlow_TakesItsTimeAndLosesNothing(t *testing.T) {
	s, l := start(t)
	c := dial(t, l)
	l.Set(link.Fault{Kind: link.Slow, Rate: 400})
	begun := time.Now()
	long := strings.Repeat("x", 100)
	c.asks(long)
	if took := time.Since(begun); took < 400*time.Millisecond {
		t.Errorf("200 bytes at 400 a second took %s", took)
	}
	longer := strings.Repeat("y", 4000)
	c.say(longer)
	until(t, "on its way", func() bool { return l.Counts().Late >= 3 })
	l.Mend()
	if got, err := c.hear(10 * time.Second); err != nil || got != "answer "+longer || !s.came(longer)() {
		t.Errorf("mended in the middle: heard %d bytes, %v", len(got), err)
	}
}

func TestBreakOff_PartOfAnAnswerArrives(t *testing.T) {
	s, l := start(t)
	c := dial(t, l)
	c.asks("a")
	l.Set(link.Fault{Kind: link.BreakOff, Bytes: 9})
	c.asks("b") // "answer b" and its newline fit
	c.say("cc")
	until(t, "arrived is cc", s.came("cc"))
	got, err := c.hear(10 * time.Second)
	if !reset(err) || !strings.HasPrefix("answer cc", got) {
		t.Errorf("heard %q, %v; want the beginning and a reset", got, err)
	}
	l.Mend()
	dial(t, l).asks("d")
	if got := l.Counts(); got.AnswersBroken != 1 || got.Reset != 1 {
		t.Errorf("counts %+v", got)
	}
}

func TestClose_EndsAllWhateverIsWrong(t *testing.T) {
	for _, kind := range []link.Kind{link.None, link.Cut, link.BlackHole, link.HalfOpen, link.Stall, link.Delay, link.Slow, link.BreakOff} {
		_, l := start(t)
		c := dial(t, l)
		c.asks("a")
		l.Set(link.Fault{Kind: kind, Delay: time.Hour, Rate: 1})
		_, _ = io.WriteString(c, "b\n")
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := io.Copy(io.Discard, c.in); timedOut(err) { // an answer may have been on its way
			t.Errorf("%s: a connection outlives its link: %v", kind, err)
		}
	}
}

func TestLink_GoesThroughASocketInAFolderToo(t *testing.T) {
	dir := t.TempDir()
	serve(t, "unix", filepath.Join(dir, "server"))
	l, err := link.New("unix", filepath.Join(dir, "link"), filepath.Join(dir, "server"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	conn, err := net.Dial("unix", l.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	c := &client{conn, t, bufio.NewReader(conn)}
	c.asks("a")
	l.Set(link.Fault{Kind: link.Cut})
	if _, err := c.hear(10 * time.Second); err == nil || timedOut(err) {
		t.Errorf("cut: %v", err)
	}
}

func TestLink_AServerThatIsNotThereEndsTheConnection(t *testing.T) {
	s, l := start(t)
	_ = s.Close()
	if _, err := dial(t, l).hear(10 * time.Second); err == nil || timedOut(err) {
		t.Errorf("heard %v, want an end", err)
	}
}
