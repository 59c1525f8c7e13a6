package main

import (
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
)

func TestNotify_TellsSystemdThatItLivesUnlessItIsStuck(t *testing.T) {
	name := filepath.Join(t.TempDir(), "notify")
	at, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer at.Close()
	t.Setenv("NOTIFY_SOCKET", name)
	t.Setenv("WATCHDOG_USEC", "300000")
	hear := func(within time.Duration) string {
		text := make([]byte, 4096)
		if err := at.SetReadDeadline(time.Now().Add(within)); err != nil {
			t.Fatal(err)
		}
		n, err := at.Read(text)
		if err != nil {
			return ""
		}
		return string(text[:n])
	}
	log := slog.New(slog.DiscardHandler)
	started(log)
	if got := hear(10 * time.Second); got != "READY=1" {
		t.Errorf("at the start: %q", got)
	}
	stuck := make(chan struct{})
	looks := 0
	ctx, end := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		notify(ctx, func() agent.Look {
			if looks++; looks > 3 {
				<-stuck
			}
			return agent.Look{Docker: agent.Health{Why: "two\nlines"}}
		}, log)
	}()
	for range 3 {
		if got := hear(10 * time.Second); got != "WATCHDOG=1\nSTATUS=Docker is IMPAIRED: two lines" {
			t.Errorf("while it lives: %q", got)
		}
	}
	if got := hear(time.Second); got != "" {
		t.Errorf("while it is stuck: %q", got)
	}
	close(stuck)
	end()
	for got := ""; !strings.Contains(got, "STOPPING=1"); {
		if got = hear(10 * time.Second); got == "" {
			t.Fatal("its end is not told")
		}
	}
	<-done
}
