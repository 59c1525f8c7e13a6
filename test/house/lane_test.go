package house

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
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

// What the LocalStack lane leaves out of its packages is listed with its reason,
// which the lane prints at its end; and nothing is that is run, or not there.
func TestToolsLane_LocalStackSaysWhatItLeavesOutAndWhy(t *testing.T) {
	root := filepath.Join("..", "..")
	script := read(t, filepath.Join(root, "tools", "lane"))
	_, lane, found := strings.Cut(script, "\nlocalstack)")
	lane, _, _ = strings.Cut(lane, ";;")
	packages := regexp.MustCompile(`(?m)^\tpackages="([^"]*)"$`).FindStringSubmatch(lane)
	pattern := regexp.MustCompile(`-run '([^']*)'`).FindStringSubmatch(lane)
	if !found || packages == nil || pattern == nil {
		t.Fatal("the lane is written in another way: this test does not read it")
	}
	runs := regexp.MustCompile(pattern[1])
	why := map[string]bool{} // entries, and whether they were of use
	for line := range strings.Lines(read(t, filepath.Join(root, "tools", "localstack", "skipped.txt"))) {
		what, reason, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if reason == "" {
			t.Errorf("no reason in %q", line)
		}
		why[what] = !strings.Contains(what, "/") || strings.Contains(what, "/RunTask") // not about a package's tests
	}
	tag := regexp.MustCompile(`(?m)^//go:build .*\b(emulator|e2e)\b`)
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text := read(t, path)
		if !tag.MatchString(text) {
			return nil
		}
		dir, _ := filepath.Rel(root, filepath.Dir(path))
		for _, m := range regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)\(t `).FindAllStringSubmatch(text, -1) {
			if slices.Contains(strings.Fields(packages[1]), "./"+dir) && runs.MatchString(m[1]) {
				continue
			}
			entry := dir + " " + m[1]
			if _, single := why[entry]; !single {
				entry = dir
			}
			if _, listed := why[entry]; !listed {
				if !slices.Contains(strings.Fields(packages[1]), "./"+dir) {
					continue // it is one of those that the last line is about
				}
				t.Errorf("tools/localstack/skipped.txt does not say why %s of %s is not run", m[1], dir)
			}
			why[entry] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for entry, used := range why {
		if !used {
			t.Errorf("tools/localstack/skipped.txt lists %q, which is run or not there", entry)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A lane installs the AWS emulator if a test of it starts one, also where no other
// lane has done so before.
func TestMakefile_ALaneWhoseTestsStartTheEmulatorInstallsIt(t *testing.T) {
	root := filepath.Join("..", "..")
	makefile := read(t, filepath.Join(root, "Makefile"))
	tagged, starter := regexp.MustCompile(`(?m)^//go:build (emulator|docker|package|e2e|clients)$`), regexp.MustCompile(`longshore/test/(emulator|local)"`)
	starts := map[string]string{} // a test of each lane
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != root && strings.HasPrefix(d.Name(), ".") {
			return filepath.SkipDir
		}
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text := read(t, path)
		if tag := tagged.FindStringSubmatch(text); tag != nil && starter.MatchString(text) {
			starts[tag[1]] = path
		}
		return nil
	})
	if err != nil || len(starts) < 3 {
		t.Fatalf("%v, %v", starts, err)
	}
	for lane, path := range starts {
		needs := regexp.MustCompile(`(?m)^test-` + lane + `:([^#\n]*)`).FindString(makefile)
		if !strings.Contains(needs, "tools-python") {
			t.Errorf("%s starts the emulator, and the Makefile has %q without tools-python", path, needs)
		}
	}
}
