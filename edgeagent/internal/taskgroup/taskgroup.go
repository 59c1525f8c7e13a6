// Package taskgroup keeps one control group above the containers of a task, with
// the task's own limits: its memory, and its CPU as a quota. It makes groups, finds
// them again and removes empty ones; it never ends a process, and decides neither
// which task has one nor when it goes. Only the agent's main may import it.
package taskgroup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/logkey"
)

// Root is where control groups are mounted.
const Root = "/sys/fs/cgroup"

// DefaultPeriod is the kernel's, Docker's and systemd's.
const DefaultPeriod = 100 * time.Millisecond

// limits are a group's; 0 is none.
type limits struct {
	cpu    int // 1024 to a core
	memory int64
}

const (
	unitsPerCPU = 1024
	leastQuota  = 1000 // microseconds; the kernel takes no less
)

// quota is how much of each period the group may run.
func (l limits) quota(period time.Duration) time.Duration {
	return max(time.Duration(int64(l.cpu)*period.Microseconds()/unitsPerCPU), leastQuota) * time.Microsecond
}

// driver makes groups in the way that the engine's own are made. Names are of one
// instance's groups, as name makes them.
type driver interface {
	// parent is what a container is told.
	parent(name string) string
	// ensure makes the group, or gives one that is there its limits.
	ensure(ctx context.Context, name string, l limits) error
	// remove takes an empty group away; one with a process in it is a Conflict.
	remove(ctx context.Context, name string) error
	list(ctx context.Context) ([]string, error)
	// usable says why no group can be made here.
	usable(ctx context.Context) error
}

// Groups are those of one container instance.
type Groups struct {
	driver driver
	log    *slog.Logger

	mu   sync.Mutex
	held map[string]bool // ensured in this life: no sweep takes them
}

// Open looks how an engine of this machine makes control groups (its driver,
// cgroupfs or systemd, and their version, 1 or 2), and whether this program may do
// the same. The error is why not.
func Open(ctx context.Context, instance, driverName, version, root string, period time.Duration, log *slog.Logger) (*Groups, error) {
	var d driver
	switch {
	case driverName == "systemd":
		d = &sliceUnits{prefix: slicePrefix(instance), unified: version == "2", root: root, period: period, dial: dial}
	case driverName == "cgroupfs":
		if err := atRoot(); err != nil {
			return nil, err
		}
		t := tree{root: root, instance: instance, period: period, rmdir: os.Remove,
			mkdirAll: func(dir string) error { return os.MkdirAll(dir, 0o755) }}
		if d = (&hierarchies{t}); version == "2" {
			d = &unified{t}
		}
	default:
		return nil, fmt.Errorf("the engine's driver of control groups is %q; known are cgroupfs, systemd", driverName)
	}
	if err := d.usable(ctx); err != nil {
		return nil, err
	}
	return open(d, log), nil
}

func open(d driver, log *slog.Logger) *Groups {
	return &Groups{driver: d, log: log, held: map[string]bool{}}
}

// Ensure makes the group of an attempt of a task, or gives it its limits again, and
// says what its containers are to name as their parent. It is called before a
// container is made and before each start: a machine that was started anew has no
// groups, and an engine would make one without limits.
func (g *Groups) Ensure(ctx context.Context, task string, attempt, cpu, memoryMiB int) (parent string, err error) {
	n := name(task, attempt)
	g.mu.Lock()
	g.held[n] = true
	g.mu.Unlock()
	if err := g.driver.ensure(ctx, n, limits{cpu: cpu, memory: int64(memoryMiB) << 20}); err != nil {
		return "", fault.Wrap(fault.Unavailable, err, "control group of task %s", task)
	}
	return g.driver.parent(n), nil
}

// Remove takes the group away, once nothing runs in it: until then it is a Conflict.
// One that is not there is success.
func (g *Groups) Remove(ctx context.Context, task string, attempt int) error {
	n := name(task, attempt)
	if err := g.driver.remove(ctx, n); err != nil {
		return withKind(err, "remove control group of task %s", task)
	}
	g.mu.Lock()
	delete(g.held, n)
	g.mu.Unlock()
	return nil
}

// Sweep removes what an agent that died between making and using left: groups of
// this instance that this life has not asked for, whose task has no container, and in which nothing runs.
func (g *Groups) Sweep(ctx context.Context, used func(task string, attempt int) bool) error {
	all, err := g.driver.list(ctx)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "list control groups")
	}
	var failures []error
	for _, n := range all {
		task, attempt, ok := parse(n)
		if !ok || used(task, attempt) {
			continue
		}
		if err := g.sweep(ctx, n); err != nil {
			failures = append(failures, err)
			continue
		}
		g.log.Info("a control group without a task was removed", logkey.Task, task)
	}
	return errors.Join(failures...)
}

// sweep removes one, under the lock that keeps it from being ensured meanwhile.
func (g *Groups) sweep(ctx context.Context, n string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held[n] {
		return nil
	}
	return withKind(g.driver.remove(ctx, n), "remove control group %s", n)
}

func withKind(err error, format string, args ...any) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errBusy):
		return fault.Wrap(fault.Conflict, err, format, args...)
	}
	return fault.Wrap(fault.Unavailable, err, format, args...)
}

// errBusy is why a group stays.
var errBusy = errors.New("something runs in it")

// name is one to an attempt of a task. It has no hyphen, which systemd takes for
// the end of a parent's name.
func name(task string, attempt int) string { return plain(task) + "_" + strconv.Itoa(attempt) }

func parse(n string) (task string, attempt int, ok bool) {
	at := strings.LastIndexByte(n, '_')
	if at < 1 {
		return "", 0, false
	}
	attempt, err := strconv.Atoi(n[at+1:])
	return n[:at], attempt, err == nil && attempt >= 0 && n == name(n[:at], attempt)
}

// plain keeps of an id what may stand in every name; ids of tasks and instances
// consist of it.
func plain(id string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '_'
	}, id)
}

// tree is where groups are folders: <root>[/<hierarchy>]/longshore/<instance>/<name>.
type tree struct {
	root, instance string
	period         time.Duration
	mkdirAll       func(dir string) error
	rmdir          func(dir string) error
}

const ours = "longshore"

func (t tree) parent(name string) string { return filepath.Join("/", ours, plain(t.instance), name) }
