package house

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// The version of a tree rises with its commits: what is built after a tag is newer
// than the tag, and never a pre-release of it.
func TestToolsVersion_RisesWithTagsAndCommits(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=test", "-c", "user.email=test@example.org"}, args...)...)
		cmd.Dir = dir
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, said)
		}
	}
	version := func(env ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "tools", "version"))
		cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}, env...)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	script := read(t, filepath.Join("..", "..", "tools", "version"))
	if err := os.Mkdir(filepath.Join(dir, "tools"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "tools", "version"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	git("init", "-q")
	git("add", ".")
	commit := func() { git("commit", "-q", "--allow-empty", "-m", "one more") }
	for _, step := range []struct {
		what string
		do   func()
		want string
	}{
		{"no tag", func() { commit(); commit() }, `0\.0\.0-2\.g[0-9a-f]{9}`},
		{"a tag of a pre-release", func() { git("tag", "-m", "x", "v1.2.0-rc.1") }, `1\.2\.0-rc\.1`},
		{"after it", commit, `1\.2\.0-rc\.1\+1\.g[0-9a-f]+`},
		{"a tag", func() { git("tag", "-m", "x", "v1.2.0") }, `1\.2\.0`},
		{"after it", func() { commit(); commit() }, `1\.2\.0\+2\.g[0-9a-f]+`},
		{"and not committed", func() {
			if err := os.WriteFile(filepath.Join(dir, "tools", "version"), []byte(script+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
		}, `1\.2\.0\+2\.g[0-9a-f]+\.dirty`},
		{"a tag, with changes", func() { git("tag", "-m", "x", "v1.2.1") }, `1\.2\.1\+dirty`},
	} {
		step.do()
		if got := version(); !regexp.MustCompile("^" + step.want + "\n$").MatchString(got) {
			t.Errorf("%s: %s, want %s", step.what, got, step.want)
		}
	}
	if got := version("VERSION=3.1.4"); got != "3.1.4\n" {
		t.Errorf("as told: %s", got)
	}
}
