package taskgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// makeTries bounds how often a folder is made again whose parent was just removed
// as empty.
const makeTries = 5

// makeAll makes a group and the two above it.
func (t tree) makeAll(dir string) (err error) {
	for range makeTries {
		if err = t.mkdirAll(dir); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return err
}

// write sets a file of the kernel's, which is there already: what is not is a
// controller that is not on.
func write(dir, file, value string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// unmake removes a group's folder, which the kernel refuses while anything is in
// it, and then those above it that are empty.
func (t tree) unmake(dir string) error {
	err := t.rmdir(dir)
	if err != nil {
		if _, gone := os.Lstat(dir); errors.Is(gone, fs.ErrNotExist) { // of what is read-only the kernel says only that
			err = nil
		}
	}
	switch {
	case errors.Is(err, syscall.EBUSY), errors.Is(err, syscall.ENOTEMPTY):
		return fmt.Errorf("%s: %w", dir, errBusy)
	case err != nil:
		return err
	}
	if t.rmdir(filepath.Dir(dir)) == nil { // of the instance; not empty is as well
		_ = t.rmdir(filepath.Dir(filepath.Dir(dir))) // of all of them
	}
	return nil
}

// folders are the names of the groups below a folder; none if it is not there.
func folders(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// try makes and removes a group, to see whether that can be done.
func (t tree) try(dir string) error {
	if err := t.makeAll(dir); err != nil {
		return err
	}
	return t.unmake(dir)
}

// rootNamespace is the kernel's fixed number of the first namespace of control groups.
const rootNamespace = "cgroup:[4026531835]"

// atRoot says no where paths of groups are not what the engine takes them for: in a
// container. Groups made there would be others than those its containers are in.
func atRoot() error {
	ns, err := os.Readlink("/proc/self/ns/cgroup")
	if err == nil && ns != rootNamespace {
		err = errors.New("this program is in a namespace of control groups of its own, as in a container")
	}
	return err
}

// inhabited says whether any process is in a group or below it.
func inhabited(dir string) (found bool, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // gone meanwhile
		}
		if err != nil || !d.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(path, "cgroup.procs"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENODEV) {
			return err
		}
		if strings.TrimSpace(string(text)) != "" {
			found = true
			return fs.SkipAll
		}
		return nil
	})
	return found, err
}
