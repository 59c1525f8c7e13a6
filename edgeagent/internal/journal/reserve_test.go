package journal

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
)

// What has the reserve's name and takes no room of its own is none: a copy of the
// data directory has holes where the file had nothing written, and a link takes room
// elsewhere.
func TestOpen_ReplacesAReserveThatTakesNoRoom(t *testing.T) {
	const size = 4 << 20
	for name, spoil := range map[string]func(path string) error{
		"only a length": func(path string) error {
			f, err := os.Create(path)
			if err != nil {
				return err
			}
			defer f.Close()
			return f.Truncate(size)
		},
		"a link to a file of its size": func(path string) error {
			other := filepath.Join(t.TempDir(), "other")
			if err := os.WriteFile(other, make([]byte, size), 0o600); err != nil {
				return err
			}
			return os.Symlink(other, path)
		},
		"shorter":         func(path string) error { return os.WriteFile(path, []byte("garbage"), 0o600) },
		"an empty folder": func(path string) error { return os.Mkdir(path, 0o700) },
		"a folder that holds something": func(path string) error {
			return os.MkdirAll(filepath.Join(path, "some", "thing"), 0o700)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, reserveName)
			if err := spoil(path); err != nil {
				t.Fatal(err)
			}
			j, how, err := Open(dir, Owner{}, func() string { return "incarnation" }, time.Now(), WithReserve(size))
			if err != nil {
				t.Fatal(err)
			}
			defer j.Close()
			info, err := os.Lstat(path)
			if err != nil {
				t.Fatal(err)
			}
			if name == "a folder that holds something" { // it is somebody's, and stays
				if how.Unreserved == "" {
					t.Error("it is not said that there is no reserve")
				}
			} else if s, ok := info.Sys().(*syscall.Stat_t); !info.Mode().IsRegular() || info.Size() != size || !ok || s.Blocks*512 < size || j.Spent() != "" {
				t.Errorf("%v, %d bytes, spent %q", info.Mode(), info.Size(), j.Spent())
			}
			if err := j.Commit(agent.Change{}); err != nil {
				t.Error(err)
			}
		})
	}
}
