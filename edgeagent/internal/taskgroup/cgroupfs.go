package taskgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// unified is the one hierarchy of version 2, for engines with the driver cgroupfs.
type unified struct{ tree }

func (u *unified) usable(context.Context) error {
	controllers, err := os.ReadFile(filepath.Join(u.root, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("control groups of version 2 are not at %s: %w", u.root, err)
	}
	for _, c := range []string{"cpu", "memory"} {
		if !strings.Contains(" "+strings.TrimSpace(string(controllers))+" ", " "+c+" ") {
			return fmt.Errorf("the controller %s is not on at %s", c, u.root)
		}
	}
	return u.try(filepath.Join(u.root, u.parent("probe")))
}

func (u *unified) ensure(_ context.Context, name string, l limits) error {
	dir := filepath.Join(u.root, u.parent(name))
	if err := u.makeAll(dir); err != nil {
		return err
	}
	for _, above := range []string{u.root, filepath.Dir(filepath.Dir(dir)), filepath.Dir(dir)} {
		if err := write(above, "cgroup.subtree_control", "+cpu +memory"); err != nil {
			return err
		}
	}
	if l.memory > 0 {
		if err := write(dir, "memory.max", strconv.FormatInt(l.memory, 10)); err != nil {
			return err
		}
	}
	if l.cpu > 0 {
		return write(dir, "cpu.max", fmt.Sprintf("%d %d", l.quota(u.period).Microseconds(), u.period.Microseconds()))
	}
	return nil
}

func (u *unified) remove(_ context.Context, name string) error {
	return u.unmake(filepath.Join(u.root, u.parent(name)))
}

func (u *unified) list(context.Context) ([]string, error) {
	return folders(filepath.Dir(filepath.Join(u.root, u.parent("any"))))
}

// hierarchies are those of version 1, a folder each below the root. Limits are set
// in two of them; the engine makes the parent in all.
type hierarchies struct{ tree }

func (h *hierarchies) dir(hierarchy, name string) string {
	return filepath.Join(h.root, hierarchy, h.parent(name))
}

func (h *hierarchies) usable(context.Context) error {
	for _, limit := range []string{"memory/memory.limit_in_bytes", "cpu/cpu.cfs_quota_us"} {
		if _, err := os.Stat(filepath.Join(h.root, limit)); err != nil {
			return fmt.Errorf("control groups of version 1 are not at %s: %w", h.root, err)
		}
		if err := h.try(h.dir(filepath.Dir(limit), "probe")); err != nil {
			return err
		}
	}
	return nil
}

func (h *hierarchies) ensure(_ context.Context, name string, l limits) error {
	memory, cpu := h.dir("memory", name), h.dir("cpu", name)
	if err := errors.Join(h.makeAll(memory), h.makeAll(cpu)); err != nil {
		return err
	}
	if l.memory > 0 {
		if err := h.counted(memory); err != nil {
			return err
		}
		if err := write(memory, "memory.limit_in_bytes", strconv.FormatInt(l.memory, 10)); err != nil {
			return err
		}
	}
	if l.cpu == 0 {
		return nil
	}
	if err := write(cpu, "cpu.cfs_period_us", strconv.FormatInt(h.period.Microseconds(), 10)); err != nil {
		return err
	}
	return write(cpu, "cpu.cfs_quota_us", strconv.FormatInt(l.quota(h.period).Microseconds(), 10))
}

// counted has a group count what those below it use. Kernels do so by themselves;
// where an old one does not, it is set before the first container is below it.
func (h *hierarchies) counted(dir string) error {
	now, err := os.ReadFile(filepath.Join(dir, "memory.use_hierarchy"))
	if err != nil || strings.TrimSpace(string(now)) != "0" {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	return write(dir, "memory.use_hierarchy", "1")
}

// remove does so in every hierarchy: the engine, which makes parents, leaves them.
func (h *hierarchies) remove(_ context.Context, name string) error {
	all, err := h.all()
	failures := []error{err}
	for _, hierarchy := range all {
		failures = append(failures, h.unmake(h.dir(hierarchy, name)))
	}
	return errors.Join(failures...)
}

func (h *hierarchies) list(context.Context) (names []string, err error) {
	all, err := h.all()
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, hierarchy := range all {
		here, err := folders(filepath.Dir(h.dir(hierarchy, "any")))
		if err != nil {
			return nil, err
		}
		for _, n := range here {
			if !seen[n] {
				seen[n], names = true, append(names, n)
			}
		}
	}
	return names, nil
}

// all are the hierarchies; those that are only another name of one are left out.
func (h *hierarchies) all() ([]string, error) { return folders(h.root) }
