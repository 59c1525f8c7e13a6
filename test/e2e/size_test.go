//go:build e2e

package e2e

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/test/local"
)

// Sizes that machine images and cold starts pay for.
const (
	mostAgentBytes    = 20_000_000
	mostResidentBytes = 20 << 20
	mostZipBytes      = 5_500_000
)

func TestSizes_WhatWasBuiltIsSmall(t *testing.T) {
	dist := filepath.Join(local.Root(t), "dist")
	agent, err := os.Stat(filepath.Join(dist, "agent", runtime.GOARCH, "longshore-agent"))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("agent: %.1f MB", float64(agent.Size())/1e6)
	if agent.Size() > mostAgentBytes {
		t.Errorf("the agent has %d bytes, want at most %d", agent.Size(), mostAgentBytes)
	}
	functions, err := filepath.Glob(filepath.Join(dist, "lambda", runtime.GOARCH, "*", "bootstrap"))
	if err != nil || len(functions) < 5 {
		t.Fatalf("functions %v, %v", functions, err)
	}
	for _, file := range functions {
		n := zipped(t, file)
		t.Logf("%s: %.1f MB zipped", filepath.Base(filepath.Dir(file)), float64(n)/1e6)
		if n > mostZipBytes {
			t.Errorf("%s has %d bytes zipped, want at most %d", file, n, mostZipBytes)
		}
	}
}

// What ships has the machine's clock alone; only a program built with the tag skew
// can be told another.
func TestClock_NothingThatShipsCanBeToldAnother(t *testing.T) {
	const sign = local.ClockSkew
	has := func(file string) bool {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Contains(b, []byte(sign))
	}
	root := local.Root(t)
	files, err := filepath.Glob(filepath.Join(root, "dist", "agent", "*", "longshore-agent"))
	if err != nil || len(files) == 0 {
		t.Fatalf("agents %v, %v", files, err)
	}
	for _, file := range files {
		if has(file) {
			t.Errorf("%s knows %s", file, sign)
		}
	}
	if skewed := local.SkewedAgent(t); !has(skewed) {
		t.Errorf("a program built to have another clock does not know %s", sign)
	}
}

// counter is an io.Writer that only counts.
type counter int64

func (c *counter) Write(p []byte) (int, error) { *c += counter(len(p)); return len(p), nil }

func zipped(t *testing.T, file string) int64 {
	t.Helper()
	var n counter
	archive := zip.NewWriter(&n)
	w, err := archive.Create("bootstrap")
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := io.Copy(w, f); err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return int64(n)
}

// resident is a process's memory in use.
func resident(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var kib int64
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &kib); err == nil {
			return kib << 10
		}
	}
	t.Fatalf("process %d shows no VmRSS", pid)
	return 0
}
