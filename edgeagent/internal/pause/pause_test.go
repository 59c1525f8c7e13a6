package pause

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

const asPause = "LONGSHORE_TEST_PAUSE"

func TestMain(m *testing.M) {
	if os.Getenv(asPause) == "" {
		os.Exit(m.Run())
	}
	Run()
}

func TestRun_WaitsForASignalIgnoresItsChildrenAndEndsWell(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
		cmd.Env = append(os.Environ(), asPause+"=1")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// Once SIGCHLD is ignored the handlers are there too. The mask is in hex.
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		late := time.After(20 * time.Second)
		for !ignores(t, cmd.Process.Pid, syscall.SIGCHLD) {
			select {
			case <-tick.C:
			case <-late:
				t.Fatal("it never ignored SIGCHLD")
			}
		}
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("after %s: %v", s, err)
		}
	}
}

// ignores says whether a process ignores a signal.
func ignores(t *testing.T, pid int, s syscall.Signal) bool {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	var mask uint64
	for line := range bytes.Lines(status) {
		if n, _ := fmt.Sscanf(string(line), "SigIgn: %x", &mask); n == 1 {
			return mask&(1<<(s-1)) != 0
		}
	}
	return false
}
