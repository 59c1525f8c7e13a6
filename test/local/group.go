package local

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// removeGroups removes the control groups of an agent's tasks, whose containers are
// gone: what an agent does that is not killed first.
func removeGroups(instance string) error {
	const root = "/sys/fs/cgroup"
	parent := "longshore-" + instance + ".slice"
	if _, err := os.Stat(filepath.Join(root, "longshore.slice", parent)); err == nil {
		return exec.Command("systemctl", "stop", parent).Run()
	}
	var errs []error
	for _, pattern := range []string{filepath.Join(root, "longshore", instance), filepath.Join(root, "*", "longshore", instance)} {
		found, err := filepath.Glob(pattern)
		errs = append(errs, err)
		for _, dir := range found {
			errs = append(errs, removeFolders(dir))
		}
	}
	return errors.Join(errs...)
}

// removeFolders removes a folder of the kernel's, the inner ones first; its files go with it.
func removeFolders(dir string) error {
	var all []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			all = append(all, path)
		}
		return err
	})
	errs := []error{err}
	for _, path := range slices.Backward(all) {
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
