//go:build package

package packaging

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore-run/longshore/test/local"
)

// Versions of the packages that the tests make, in their order.
const (
	older = "1.0.0-rc.1"
	newer = "1.0.0"
)

// newerSettings is what agent.env has on top in the newer version.
const newerSettings = "# The newer version says more here.\n"

// epoch is a time of files that nothing of today has.
var epoch = time.Date(1999, time.December, 31, 23, 59, 58, 0, time.UTC)

// scratch is what all tests of this binary make once and leave behind together.
var scratch string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "longshore-packages-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	scratch = dir
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// clone copies the source tree, as it is now, into a repository of its own with one
// commit of a given time: what a person has after a clone, wherever it is.
func clone(root, name string) (string, error) {
	dir := filepath.Join(scratch, name)
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("list the source: %w", err)
	}
	for file := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		info, err := os.Lstat(filepath.Join(root, file))
		if err != nil || !info.Mode().IsRegular() {
			continue // deleted and not committed yet, or a link out of the tree
		}
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return "", err
		}
		to := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(to, text, info.Mode()); err != nil {
			return "", err
		}
	}
	tools, err := filepath.EvalSymlinks(filepath.Join(root, ".tools"))
	if err == nil {
		err = os.Symlink(tools, filepath.Join(dir, ".tools")) // what is pinned is not built twice
	}
	if err != nil {
		return "", fmt.Errorf("%w; mend: make tools-nfpm", err)
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "--all", "."}, {"commit", "-q", "-m", "all of it"}} {
		cmd := exec.Command("git", append([]string{"-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "core.excludesFile=/dev/null"}, args...)...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z", "GIT_AUTHOR_DATE=2026-01-02T03:04:05Z")
		if said, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("git %s: %w\n%s", args[0], err, said)
		}
	}
	return dir, nil
}

// makePackages runs `make package` in a source tree.
func makePackages(dir, version, archs string, wrap ...string) (string, error) {
	args := append(append([]string{}, wrap...), "make", "package", "ARCHS="+archs)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "VERSION="+version)
	if said, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("make package in %s: %w\n%s", dir, err, said)
	}
	return filepath.Join(dir, "dist", "package"), nil
}

// both makes the two versions, once: the older for both architectures, the newer for
// this machine's.
var both = sync.OnceValues(func() (dirs [2]string, err error) {
	_, file, _, _ := runtime.Caller(0)
	dir, err := clone(filepath.Join(filepath.Dir(file), "..", ".."), "one")
	if err != nil {
		return dirs, err
	}
	for i, version := range []string{older, newer} {
		archs := "amd64 arm64"
		if version == newer {
			archs = runtime.GOARCH
			conf := filepath.Join(dir, "packaging", "agent", "agent.env")
			text, err := os.ReadFile(conf)
			if err == nil {
				err = os.WriteFile(conf, append(text, newerSettings...), 0o644)
			}
			if err != nil {
				return dirs, err
			}
		}
		out, err := makePackages(dir, version, archs)
		if err != nil {
			return dirs, err
		}
		dirs[i] = filepath.Join(scratch, version)
		if err := os.CopyFS(dirs[i], os.DirFS(out)); err != nil {
			return dirs, err
		}
	}
	return dirs, nil
})

// packages is the folder with a version's packages.
func packages(t *testing.T, version string) string {
	t.Helper()
	dirs, err := both()
	if err != nil {
		t.Fatal(err)
	}
	if version == older {
		return dirs[0]
	}
	return dirs[1]
}

// file is the one package of a kind ("deb") for an architecture, as Go calls it.
func file(t *testing.T, version, kind, arch string) string {
	t.Helper()
	if kind == "rpm" {
		arch = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[arch]
	}
	found, err := filepath.Glob(filepath.Join(packages(t, version), "*"+arch+"."+kind))
	if err != nil || len(found) != 1 {
		t.Fatalf("packages %v, %v", found, err)
	}
	return found[0]
}

// The bytes depend on the source alone: not on where, when, by whom, in which zone and on which host.
func TestPackage_OfOneSourceHasTheSameBytesWhereverItIsMade(t *testing.T) {
	t.Parallel()
	dir, err := clone(local.Root(t), "two")
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() == ".git" {
			return err
		}
		if info, err := d.Info(); err != nil || !info.Mode().IsRegular() {
			return err
		}
		return os.Chtimes(path, epoch, epoch)
	})
	if err != nil {
		t.Fatal(err)
	}
	here, err := makePackages(dir, older, "amd64 arm64",
		"unshare", "--uts", "sh", "-c", `hostname elsewhere; umask 077; TZ=Asia/Tokyo; export TZ; exec "$@"`, "sh")
	if err != nil {
		t.Fatal(err)
	}
	sums := func(dir string) string {
		text, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if one, two := sums(packages(t, older)), sums(here); one != two || strings.Count(one, "\n") != 4 {
		t.Errorf("packages of one source:\n%sand elsewhere:\n%s", one, two)
	}
}
