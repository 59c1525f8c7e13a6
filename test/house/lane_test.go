package house

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// tools/lane with a go command that answers with these lines.
func TestToolsLane_ALaneInWhichNoTestRanIsAFailure(t *testing.T) {
	for _, c := range []struct {
		lines string
		want  string // in what it says
		ok    bool
	}{
		{"ok  \tx\t0.1s [no tests to run]", "lane unit: no test was run", false},
		{"ok  \tx\t0.1s [no tests to run]\nok  \ty\t0.1s", "lane unit: ok", true},
		{"?   \tx\t[no test files]", "lane unit: no test was run", false},
	} {
		bin := t.TempDir()
		script := "#!/bin/sh\ncat <<'END'\n" + c.lines + "\nEND\n"
		if err := os.WriteFile(filepath.Join(bin, "go"), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), filepath.Join("..", "..", "tools", "lane"), "unit")
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if (err == nil) != c.ok || !strings.Contains(string(out), c.want) {
			t.Errorf("%q: error %v and it said:\n%s", c.lines, err, out)
		}
	}
}
