//go:build clients

package client

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/test/local"
)

var fenced = regexp.MustCompile("(?ms)^## ([^\n]*)$|^```(sh|python|go|js)\n(.*?)^```$")

// testDocs runs every block of docs/clients.md, in its order.
func testDocs(t *testing.T, s *stack) {
	page, err := os.ReadFile(filepath.Join(local.Root(t), "docs", "clients.md"))
	if err != nil {
		t.Fatal(err)
	}
	d := s.door(t)
	section, ran := "", 0
	for _, m := range fenced.FindAllStringSubmatch(string(page), -1) {
		if m[1] != "" {
			section = m[1]
			continue
		}
		ran++
		cmd := block(t, m[2], m[3])
		cmd.Env = append(s.environ(t, d), "AIRFLOW_HOME="+t.TempDir(), "AIRFLOW__LOGGING__LOGGING_LEVEL=ERROR",
			"PATH="+filepath.Dir(venv(t, "ecs"))+":"+filepath.Dir(awsCLI2(t))+":"+os.Getenv("PATH"))
		fmt.Fprintf(t.Output(), "docs/clients.md, %s (%s)\n", section, m[2])
		show(t, cmd)
	}
	if ran < 6 {
		t.Errorf("the page has %d blocks that are run", ran)
	}
}

// block is the program that runs a block of a language.
func block(t *testing.T, language, text string) *exec.Cmd {
	t.Helper()
	save := func(dir, name string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	switch language {
	case "sh":
		return exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", text)
	case "python":
		return exec.CommandContext(t.Context(), venv(t, "python"), "-c", text)
	case "go":
		cmd := exec.CommandContext(t.Context(), "go", "run", save(t.TempDir(), "main.go"))
		cmd.Dir = local.Root(t)
		return cmd
	default:
		// Modules are looked for from the file's folder upwards, or from the working directory for a text.
		cmd := exec.CommandContext(t.Context(), "node", "--input-type=module")
		cmd.Dir, cmd.Stdin = installed(t, "clients", "node"), strings.NewReader(text)
		return cmd
	}
}
