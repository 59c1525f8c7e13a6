package dockerengine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/client"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// Groups are control groups above the containers of tasks, one to an attempt of a
// task that has a size. Any number of goroutines may call them.
type Groups interface {
	// Ensure makes the group, or gives it its limits again, and returns what its
	// containers name as their parent. The limits are CPU units and MiB; 0 is none.
	Ensure(ctx context.Context, task string, attempt, cpu, memoryMiB int) (parent string, err error)
	// Remove takes it away once nothing runs in it: a Conflict until then.
	Remove(ctx context.Context, task string, attempt int) error
	// Sweep removes empty groups that nobody uses and this life has not ensured.
	Sweep(ctx context.Context, used func(task string, attempt int) bool) error
}

// OpenGroups says what groups there are on an engine with this driver of control
// groups (cgroupfs, systemd, …) of this version (1, 2); nil if none can be made.
type OpenGroups func(ctx context.Context, driver, version string) Groups

// WithGroups has tasks with a size run in groups. Without put new containers are
// not put into one; those that are in one from before still are.
func WithGroups(open OpenGroups, put bool) Option {
	return func(e *Engine) { e.groups.open, e.groups.put = open, put }
}

// grouping is what an engine knows of its groups.
type grouping struct {
	open OpenGroups // nil: there are none
	put  bool

	mu    sync.Mutex
	known bool   // looked for since this program began
	like  string // driver and version that are holds for
	are   Groups // nil: none can be made
	clean bool   // swept
}

// regard opens the groups of an engine that shows itself, unless they are open.
func (e *Engine) regard(ctx context.Context, info system.Info) Groups {
	g := &e.groups
	if g.open == nil {
		return nil
	}
	driver := info.CgroupDriver
	if slices.ContainsFunc(info.SecurityOptions, func(o string) bool { return strings.Contains(o, "name=rootless") }) {
		driver += " (rootless)" // whose groups are a user's, below another root
	}
	like := driver + " " + info.CgroupVersion
	g.mu.Lock()
	if g.known && g.like == like && g.are != nil {
		defer g.mu.Unlock()
		return g.are
	}
	g.mu.Unlock()
	are := g.open(ctx, driver, info.CgroupVersion)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.known && g.like == like && g.are != nil { // somebody else was first
		return g.are
	}
	g.known, g.like, g.are, g.clean = true, like, are, false
	return are
}

// grouped is the engine's groups, which it is asked for if it never was.
func (e *Engine) grouped(ctx context.Context, api *client.Client) (Groups, error) {
	g := &e.groups
	g.mu.Lock()
	known, are := g.known, g.are
	g.mu.Unlock()
	if known || g.open == nil {
		return are, nil
	}
	info, err := api.Info(ctx)
	if err != nil {
		return nil, err
	}
	return e.regard(ctx, info), nil
}

// size is a task's own, each 0 where its definition names none.
type size struct{ cpu, memoryMiB int }

func sizeOf(spec agent.Spec) (s size) {
	whole := taskdef.Needs(*spec.Definition, taskdef.TaskOverride{})
	if spec.Definition.CPU != "" {
		s.cpu = whole.CPU
	}
	if spec.Definition.Memory != "" {
		s.memoryMiB = whole.MemoryMiB
	}
	return s
}

func (s size) String() string { return fmt.Sprintf("cpu=%d,memory=%d", s.cpu, s.memoryMiB) }

func parseSize(text string) (s size, ok bool) {
	n, err := fmt.Sscanf(text, "cpu=%d,memory=%d", &s.cpu, &s.memoryMiB)
	return s, err == nil && n == 2 && s.cpu >= 0 && s.memoryMiB >= 0 && s.String() == text
}

// enroll makes the group of a task that has a size, and the request one for a
// container in it.
func (e *Engine) enroll(ctx context.Context, api *client.Client, r *createRequest, spec agent.Spec) error {
	s := sizeOf(spec)
	if !e.groups.put || s == (size{}) {
		return nil
	}
	groups, err := e.grouped(ctx, api)
	if err != nil || groups == nil {
		return err
	}
	parent, err := groups.Ensure(ctx, spec.Task, spec.Attempt, s.cpu, s.memoryMiB)
	if err != nil {
		return err
	}
	into(r, spec, s, parent)
	return nil
}

// into changes a request to one for a container in its task's group: what the group
// bounds is not set for each container again. The task's memory stays the
// container's where maxSwap is to come on top of it.
func into(r *createRequest, spec agent.Spec, s size, parent string) {
	r.Host.CgroupParent = parent
	r.Host.CPUPeriod, r.Host.CPUQuota = 0, 0
	if c, ok := spec.Definition.Container(spec.Container); ok && value(c.Memory) == 0 && r.Host.MemorySwap == 0 {
		r.Host.Memory = 0
	}
	r.Config.Labels[labelSize] = s.String()
}

// reenroll sees to it that the group of a container that is about to run has its
// limits: an engine whose machine was started anew would make one without.
func (e *Engine) reenroll(ctx context.Context, api *client.Client, c container.InspectResponse) error {
	text := c.Config.Labels[labelSize]
	if text == "" || c.HostConfig.CgroupParent == "" {
		return nil
	}
	id, _ := identity(c.Config.Labels)
	s, ok := parseSize(text)
	if !ok {
		return fault.New(fault.Invalid, "%s: the label %s is %q", cannotStart, labelSize, text)
	}
	groups, err := e.grouped(ctx, api)
	if err != nil {
		return err
	}
	if groups == nil {
		return fault.New(fault.Invalid, "%s: it belongs into a control group of its task, and none can be made here any more", cannotStart)
	}
	parent, err := groups.Ensure(ctx, id.Task, id.Attempt, s.cpu, s.memoryMiB)
	if err == nil && parent != c.HostConfig.CgroupParent {
		err = fault.New(fault.Invalid, "%s: its control group is %s, and those of this engine are like %s", cannotStart, c.HostConfig.CgroupParent, parent)
	}
	return err
}

// ungroup removes the group of an attempt of a task, whose containers are gone.
func (e *Engine) ungroup(ctx context.Context, api *client.Client, task string, attempt int) error {
	groups, err := e.grouped(ctx, api)
	if err != nil || groups == nil {
		return err
	}
	return groups.Remove(ctx, task, attempt)
}

// sweep removes, once in a life, groups of tasks that have no container. What fails
// is tried again with the next list.
func (e *Engine) sweep(ctx context.Context, api *client.Client, found []container.Summary) {
	groups, err := e.grouped(ctx, api)
	if err != nil || groups == nil {
		return
	}
	e.groups.mu.Lock()
	clean := e.groups.clean
	e.groups.mu.Unlock()
	if clean {
		return
	}
	type key struct {
		task    string
		attempt int
	}
	used := map[key]bool{}
	for _, c := range found {
		id, _ := identity(c.Labels)
		used[key{id.Task, id.Attempt}] = true
	}
	if groups.Sweep(ctx, func(task string, attempt int) bool { return used[key{task, attempt}] }) != nil {
		return
	}
	e.groups.mu.Lock()
	e.groups.clean = e.groups.are == groups
	e.groups.mu.Unlock()
}
