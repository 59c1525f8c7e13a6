package taskgroup

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/longshore-run/longshore/shared/fault"
)

const (
	testInstance = "0123456789abcdef0123456789abcdef"
	testTask     = "fedcba9876543210fedcba9876543210"
)

// kernelFiles are what the kernel puts into a new group.
var kernelFiles = []string{
	"cgroup.procs", "cgroup.subtree_control", "memory.max", "cpu.max",
	"memory.limit_in_bytes", "memory.use_hierarchy", "cpu.cfs_period_us", "cpu.cfs_quota_us",
}

// fakeKernel is a folder that behaves as a mounted hierarchy of control groups does.
type fakeKernel struct {
	*testing.T
	root string
}

func newKernel(t *testing.T, hierarchies ...string) fakeKernel {
	t.Helper()
	k := fakeKernel{t, t.TempDir()}
	for _, h := range hierarchies {
		k.put(filepath.Join(k.root, h))
	}
	return k
}

func (k fakeKernel) tree() tree {
	return tree{root: k.root, instance: testInstance, period: DefaultPeriod, mkdirAll: k.mkdirAll, rmdir: k.rmdir}
}

func (k fakeKernel) put(dir string) {
	k.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		k.Fatal(err)
	}
	for _, f := range append([]string{"cgroup.controllers"}, kernelFiles...) {
		text := map[string]string{"cgroup.controllers": "cpuset cpu io memory pids\n", "memory.use_hierarchy": "0\n"}[f]
		if err := os.WriteFile(filepath.Join(dir, f), []byte(text), 0o644); err != nil {
			k.Fatal(err)
		}
	}
}

func (k fakeKernel) mkdirAll(dir string) error {
	if dir == k.root {
		return nil
	}
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := k.mkdirAll(filepath.Dir(dir)); err != nil {
		return err
	}
	k.put(dir)
	return nil
}

// rmdir removes a group that has neither a process nor a group below it.
func (k fakeKernel) rmdir(dir string) error {
	below, err := folders(dir)
	if err != nil {
		return err
	}
	procs, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	switch {
	case err != nil:
		return err
	case len(below) > 0 || len(procs) > 0:
		return &fs.PathError{Op: "rmdir", Path: dir, Err: syscall.EBUSY}
	}
	return os.RemoveAll(dir)
}

func (k fakeKernel) holds(file, want string) {
	k.Helper()
	if got, err := os.ReadFile(filepath.Join(k.root, file)); err != nil || string(got) != want {
		k.Errorf("%s is %q (%v), want %q", file, got, err, want)
	}
}

// left are the folders of ours anywhere.
func (k fakeKernel) left() (all []string) {
	k.Helper()
	err := filepath.WalkDir(k.root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.Contains(path, "/"+ours) {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		k.Fatal(err)
	}
	return all
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func TestUnified_AGroupHasTheTasksSizeAndGoes(t *testing.T) {
	k := newKernel(t, "")
	d := &unified{k.tree()}
	if err := d.usable(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := k.left(); len(left) > 0 {
		t.Fatalf("looking whether it can be done left %s", left)
	}
	g := open(d, quiet())
	for range 2 { // the second one finds it
		parent, err := g.Ensure(t.Context(), testTask, 3, 512, 256)
		if want := "/longshore/" + testInstance + "/" + testTask + "_3"; err != nil || parent != want {
			t.Fatalf("%q, %v; want %q", parent, err, want)
		}
	}
	dir := "longshore/" + testInstance + "/" + testTask + "_3"
	k.holds(dir+"/memory.max", "268435456")
	k.holds(dir+"/cpu.max", "50000 100000")
	for _, above := range []string{"", "longshore", "longshore/" + testInstance} {
		k.holds(filepath.Join(above, "cgroup.subtree_control"), "+cpu +memory")
	}
	for range 2 { // the second one finds nothing
		if err := g.Remove(t.Context(), testTask, 3); err != nil {
			t.Fatal(err)
		}
	}
	if left := k.left(); len(left) > 0 {
		t.Errorf("left: %s", left)
	}
}

func TestHierarchies_AGroupHasTheTasksSizeAndGoesFromAllOfThem(t *testing.T) {
	k := newKernel(t, "memory", "cpu", "pids", "systemd")
	d := &hierarchies{k.tree()}
	d.period = 20 * time.Millisecond
	if err := d.usable(t.Context()); err != nil {
		t.Fatal(err)
	}
	g := open(d, quiet())
	parent, err := g.Ensure(t.Context(), testTask, 1, 2048, 64)
	if err != nil {
		t.Fatal(err)
	}
	k.holds(filepath.Join("memory", parent, "memory.limit_in_bytes"), "67108864")
	k.holds(filepath.Join("memory", parent, "memory.use_hierarchy"), "1")
	k.holds(filepath.Join("cpu", parent, "cpu.cfs_period_us"), "20000")
	k.holds(filepath.Join("cpu", parent, "cpu.cfs_quota_us"), "40000")
	if err := k.mkdirAll(filepath.Join(k.root, "pids", parent)); err != nil { // as the engine makes it
		t.Fatal(err)
	}
	if err := g.Remove(t.Context(), testTask, 1); err != nil {
		t.Fatal(err)
	}
	if left := k.left(); len(left) > 0 {
		t.Errorf("left: %s", left)
	}
}

func TestGroups_OneThatSomethingRunsInStays(t *testing.T) {
	k := newKernel(t, "")
	g := open(&unified{k.tree()}, quiet())
	parent, err := g.Ensure(t.Context(), testTask, 1, 0, 64)
	if err != nil {
		t.Fatal(err)
	}
	k.holds(filepath.Join(parent, "cpu.max"), "") // the task names none
	procs := filepath.Join(k.root, parent, "cgroup.procs")
	if err := os.WriteFile(procs, []byte("1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := g.Remove(t.Context(), testTask, 1); !fault.Is(err, fault.Conflict) {
		t.Errorf("%v, want a conflict", err)
	}
	if err := open(&unified{k.tree()}, quiet()).Sweep(t.Context(), func(string, int) bool { return false }); !fault.Is(err, fault.Conflict) {
		t.Errorf("swept: %v, want a conflict", err)
	}
	if err := os.WriteFile(procs, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := g.Remove(t.Context(), testTask, 1); err != nil || len(k.left()) > 0 {
		t.Errorf("%v; left: %s", err, k.left())
	}
}

func TestGroups_ASweepTakesWhatNoTaskHas(t *testing.T) {
	k := newKernel(t, "memory", "cpu")
	before := open(&hierarchies{k.tree()}, quiet())
	for attempt := 1; attempt <= 3; attempt++ {
		if _, err := before.Ensure(t.Context(), testTask, attempt, 256, 64); err != nil {
			t.Fatal(err)
		}
	}
	other := k.tree()
	other.instance = strings.Repeat("9", 32)
	if _, err := open(&hierarchies{other}, quiet()).Ensure(t.Context(), testTask, 7, 256, 64); err != nil {
		t.Fatal(err)
	}
	now := open(&hierarchies{k.tree()}, quiet()) // after a crash
	if _, err := now.Ensure(t.Context(), testTask, 3, 256, 64); err != nil {
		t.Fatal(err)
	}
	if err := now.Sweep(t.Context(), func(task string, attempt int) bool { return task == testTask && attempt == 2 }); err != nil {
		t.Fatal(err)
	}
	names, err := now.driver.list(t.Context())
	slices.Sort(names)
	if want := []string{testTask + "_2", testTask + "_3"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("after the sweep there are %s (%v), want %s: one has containers, one was ensured in this life", names, err, want)
	}
	if others, err := (&hierarchies{other}).list(t.Context()); err != nil || len(others) != 1 {
		t.Errorf("another instance has %s (%v)", others, err)
	}
}

func TestOpen_SaysWhyThereCanBeNone(t *testing.T) {
	for what, open := range map[string]func(context.Context) error{
		"no such driver": func(ctx context.Context) error {
			_, err := Open(ctx, testInstance, "none", "2", Root, DefaultPeriod, quiet())
			return err
		},
		"version 2 is not there": func(ctx context.Context) error { return (&unified{newKernel(t, "memory").tree()}).usable(ctx) },
		"version 1 is not there": func(ctx context.Context) error { return (&hierarchies{newKernel(t, "").tree()}).usable(ctx) },
		"read-only": func(ctx context.Context) error {
			u := &unified{newKernel(t, "").tree()}
			u.mkdirAll = func(string) error { return syscall.EROFS }
			return u.usable(ctx)
		},
	} {
		if err := open(t.Context()); err == nil {
			t.Errorf("%s: it is said to work", what)
		}
	}
}

func TestWrite_MakesNoFile(t *testing.T) {
	if err := write(t.TempDir(), "memory.max", "1"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v: a controller that is not on was taken for a file to make", err)
	}
}

func TestLimits_AQuotaIsNeverLessThanTheKernelTakes(t *testing.T) {
	for _, c := range []struct {
		cpu    int
		period time.Duration
		want   time.Duration
	}{{1024, DefaultPeriod, DefaultPeriod}, {10240, DefaultPeriod, time.Second}, {2, DefaultPeriod, time.Millisecond}, {128, 8 * time.Millisecond, time.Millisecond}} {
		if got := (limits{cpu: c.cpu}).quota(c.period); got != c.want {
			t.Errorf("%d units in %s: %s, want %s", c.cpu, c.period, got, c.want)
		}
	}
}

func TestName_IsReadAgain(t *testing.T) {
	if task, attempt, ok := parse(name(testTask, 12)); task != testTask || attempt != 12 || !ok {
		t.Errorf("%q %d %t", task, attempt, ok)
	}
	for _, n := range []string{"", "probe", "_1", "a_", "a_-1", "a_01", "a-b_1"} {
		if _, _, ok := parse(n); ok {
			t.Errorf("%q is taken for one of ours", n)
		}
	}
}
