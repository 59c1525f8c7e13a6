package emulator

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
)

var shared struct {
	mu      sync.Mutex
	process *Process
	err     error
}

// Shared returns the one emulator of this test binary, started at its first use. Tests that
// share it use names of their own for tables and queues. An emulator that is not installed or
// does not start fails the test.
func Shared(t testing.TB) *Process {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.process == nil && shared.err == nil {
		shared.process, shared.err = Start(context.Background(), Options{})
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.process
}

// ForTest starts an emulator that this test alone uses and that ends with it.
func ForTest(t testing.TB, opts Options) *Process {
	t.Helper()
	p, err := Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return p
}

// Main runs the tests and then stops the shared emulator. A package that uses Shared calls it:
//
//	func TestMain(m *testing.M) { emulator.Main(m) }
//
// A binary that panics or is killed does not get here; the emulator then ends by its lifeline.
func Main(m *testing.M) {
	code := m.Run()
	shared.mu.Lock()
	if shared.process != nil {
		if err := shared.process.Stop(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	shared.mu.Unlock()
	os.Exit(code)
}
