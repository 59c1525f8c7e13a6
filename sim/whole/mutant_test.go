//go:build sim || soak

package whole

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var oneMutant = flag.String("mutant", "", "plant this mistake only")

// hunted is in how many seeds of few hosts a mistake must show.
const hunted = 60

// A simulation that finds nothing must be known to find something: each of these
// mistakes, most of them in the real agent, breaks what its file says, within a
// few seeds. That the same seeds find nothing without it is the other test.
func TestMutants_EachIsCaught(t *testing.T) {
	files, err := filepath.Glob("testdata/mutant/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no mutants", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		if *oneMutant != "" && name != *oneMutant {
			continue
		}
		t.Run(name, func(t *testing.T) {
			seed, caught, overlay := plant(t, file)
			binary := filepath.Join(t.TempDir(), "mutant.test")
			if out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-tags", "sim", "-overlay", overlay, "-o", binary, ".").CombinedOutput(); err != nil {
				t.Fatalf("build: %v\n%s", err, out)
			}
			hunt := func(from, n string) (string, bool) {
				out, err := exec.CommandContext(t.Context(), binary, "-test.run", "TestSeeds", "-dense", "-seed-from", from, "-seeds", n, "-first").CombinedOutput()
				return string(out), err != nil
			}
			out, found := hunt(seed, "1") // where it was found last time
			if !found {
				out, found = hunt("1", fmt.Sprint(hunted))
			}
			if !found {
				t.Fatalf("%d seeds did not find it", hunted)
			}
			line := regexp.MustCompile(`seed \d+: .*`).FindString(out)
			_, what, _ := strings.Cut(line, ": ")
			if !slices.ContainsFunc(caught, func(word string) bool { return strings.HasPrefix(what, word) }) {
				t.Fatalf("caught by %q, not by %v\n%s", line, caught, out[:min(len(out), 2000)])
			}
			t.Logf("%s", line)
		})
	}
}

// plant writes the changed files, and the overlay that names them.
func plant(t *testing.T, file string) (seed string, caught []string, overlay string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(string(text), "\n-- ")
	for line := range strings.Lines(head) {
		switch words := strings.Fields(line); {
		case len(words) > 1 && words[0] == "caught":
			caught = words[1:]
		case len(words) > 1 && words[0] == "seed":
			seed = words[1]
		}
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	replaced := map[string]string{}
	for part := range strings.SplitSeq(rest, "\n-- ") {
		path, body, _ := strings.Cut(part, " --\n")
		old, changed, ok := strings.Cut(strings.TrimSuffix(body, "\n"), "\n==>\n")
		source, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(source), old); !ok || n != 1 {
			t.Fatalf("%s: the text to replace is there %d times in %s", file, n, path)
		}
		to := filepath.Join(dir, filepath.Base(path))
		if err := os.WriteFile(to, []byte(strings.Replace(string(source), old, changed, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		replaced[filepath.Join(root, path)] = to
	}
	b, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	overlay = filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return seed, caught, overlay
}
