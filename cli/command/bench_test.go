package command_test

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore-run/longshore/cli/command"
	"github.com/longshore-run/longshore/lambdas/apitest"
	"github.com/longshore-run/longshore/shared/task"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// bench is the command against the API over a control plane in memory.
type bench struct {
	t          *testing.T
	api        *apitest.API
	interrupts chan os.Signal
	terminal   bool
	in         string
	env        map[string]string
	out, err   buffer
}

// buffer is written by a command and read by a test meanwhile.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) { b.mu.Lock(); defer b.mu.Unlock(); return b.b.Write(p) }
func (b *buffer) String() string              { b.mu.Lock(); defer b.mu.Unlock(); return b.b.String() }
func (b *buffer) Reset()                      { b.mu.Lock(); defer b.mu.Unlock(); b.b.Reset() }

func newBench(t *testing.T) *bench {
	t.Helper()
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "VERYSECRET", "AWS_SESSION_TOKEN": "", "AWS_REGION": "us-east-1", "AWS_PROFILE": "",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_EC2_METADATA_DISABLED": "true", "AWS_CA_BUNDLE": "",
		"AWS_ENDPOINT_URL": "http://127.0.0.1:1", // nobody: no test asks the real AWS
		"PATH":             t.TempDir(),          // no docker: whose engine it is would decide the test
	} {
		t.Setenv(name, value)
	}
	b := &bench{t: t, api: apitest.New(t), interrupts: make(chan os.Signal, 4)}
	b.env = map[string]string{"LONGSHORE_ENDPOINT": b.api.URL}
	t.Cleanup(func() {
		if said := b.out.String() + b.err.String(); strings.Contains(said, "VERYSECRET") {
			t.Errorf("a secret was printed:\n%s", said)
		}
	})
	return b
}

// run runs the command and returns its exit code; out and err are what it said.
func (b *bench) run(args ...string) int {
	b.t.Helper()
	b.out.Reset()
	b.err.Reset()
	return command.Run(b.t.Context(), command.Program{
		Out: &b.out, Err: &b.err, In: strings.NewReader(b.in), Now: b.api.Clock.Now, Every: time.Millisecond, Interrupts: b.interrupts, Version: "1.2.3",
		Lookup:   func(name string) (string, bool) { v, ok := b.env[name]; return v, ok },
		Terminal: func(io.Writer) bool { return b.terminal },
	}, args)
}

// must runs the command, which must succeed, and returns what it wrote.
func (b *bench) must(args ...string) string {
	b.t.Helper()
	if code := b.run(args...); code != 0 {
		b.t.Fatalf("longshore %s: exit code %d\n%s%s", strings.Join(args, " "), code, b.out.String(), b.err.String())
	}
	return b.out.String()
}

// fails runs the command, which must end with a code and say something.
func (b *bench) fails(code int, says string, args ...string) {
	b.t.Helper()
	if got := b.run(args...); got != code {
		b.t.Errorf("longshore %s: exit code %d, want %d\n%s", strings.Join(args, " "), got, code, b.err.String())
	}
	said := strings.TrimSpace(b.err.String())
	last := said[strings.LastIndexByte(said, '\n')+1:]
	if !strings.HasPrefix(last, "longshore: ") || !strings.Contains(last, says) || strings.Count(said, "longshore: ") > 1 {
		b.t.Errorf("longshore %s said, not in one last line with %q:\n%s", strings.Join(args, " "), says, said)
	}
}

// docker puts a docker command into the path that does what a script says.
func (b *bench) docker(script string) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(os.Getenv("PATH"), "docker"), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		b.t.Fatal(err)
	}
}

// agent plays admission and an agent until the test's end: what is placed runs,
// and ends with a code where ends says so.
func (b *bench) agent(ends func(t string) (code int, yes bool)) {
	done, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			b.api.Clock.Move(time.Second) // so that what is slowed down comes, too
			b.api.Serve()
			b.api.Place()
			for id, k := range b.api.Memory.Tasks() {
				code, end := ends(id)
				switch {
				case k.LastStatus == task.Pending:
					b.api.Report(id, task.Running, 0)
				case k.LastStatus.Open() && k.DesiredStatus == task.DesiredStopped:
					b.api.Report(id, task.Stopped, 143)
				case k.LastStatus == task.Running && end:
					b.api.Report(id, task.Stopped, code)
				}
			}
		}
	}()
	b.t.Cleanup(func() { close(done); <-over })
}

// file writes a file of the test's own.
func (b *bench) file(name, text string) string {
	b.t.Helper()
	path := filepath.Join(b.t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return path
}

// eventually waits for something another goroutine does.
func (b *bench) eventually(what string, so func() bool) {
	b.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	deadline := time.After(time.Minute)
	for !so() {
		select {
		case <-deadline:
			b.t.Fatalf("not %s; said so far:\n%s%s", what, b.out.String(), b.err.String())
		case <-tick.C:
		}
	}
}

// golden compares with a file under testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || string(want) != got {
		t.Errorf("%s (%v) differs; go test ./cli/command -update rewrites it. got:\n%s", path, err, got)
	}
}
