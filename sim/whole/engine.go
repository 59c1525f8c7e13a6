package whole

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// engine is a host's container engine. It outlives agents; all of it is the
// world's goroutine's.
type engine struct {
	h       *host
	boxes   map[agent.ContainerID]*box
	streams []*stream
	starts  map[agent.ContainerID]int // first starts, containers that are gone too
	made    int
	silent  time.Time // until when it does not answer
	hangs   bool      // and does not say so either
}

// box is a container.
type box struct {
	seen      agent.Seen
	memory    int
	tcp       []int
	program   program
	runs      int  // how often it was started
	forgotten bool // its agent removed it: its end is known
}

// program is what a container does.
type program struct {
	ends  time.Duration // by itself, after so long; 0: never
	code  int           // with this code
	deaf  bool          // SIGTERM does nothing
	slow  time.Duration // it needs this long to end on SIGTERM
	fails bool          // it cannot be started
}

// stream is one Watch.
type stream struct {
	life *life
	ctx  context.Context
	to   chan agent.Seen
	cut  bool
}

func newEngine(h *host) *engine {
	return &engine{h: h, boxes: map[agent.ContainerID]*box{}, starts: map[agent.ContainerID]int{}}
}

func (e *engine) now() time.Time { return e.h.now() }

// down says what a call meets if the engine does not answer, and how long that
// takes.
func (e *engine) down() (time.Duration, error) {
	if time.Now().Before(e.silent) {
		wait := 5 * time.Millisecond
		if e.hangs {
			wait = min(30*time.Second, time.Until(e.silent)+time.Millisecond)
		}
		return wait, fault.New(fault.Unavailable, "the engine does not answer")
	}
	return 0, nil
}

func (e *engine) create(spec agent.Spec) (string, error) {
	if b := e.boxes[spec.ContainerID]; b != nil {
		return b.seen.RuntimeID, nil
	}
	c, ok := spec.Definition.Container(spec.Container)
	if !ok {
		return "", fault.New(fault.Invalid, "no container %s in the definition", spec.Container)
	}
	e.made++
	labels := map[string]string{}
	if !c.IsEssential() {
		labels["run.longshore.essential"] = "false"
	}
	b := &box{program: e.h.w.program(spec.Task, spec.Container, spec.Family), seen: agent.Seen{
		ContainerID: spec.ContainerID, Epoch: spec.Epoch, RuntimeID: fmt.Sprintf("%s-c%d", e.h.name, e.made), Created: true, Image: c.Image, Digest: "sha256:" + c.Image,
		TaskARN: spec.TaskARN, Cluster: spec.Cluster, Family: spec.Family, Revision: spec.Revision, Labels: labels,
	}}
	if c.Memory != nil {
		b.memory = *c.Memory
	}
	for _, p := range taskdef.Ports(*spec.Definition) {
		if p.Container == spec.Container && p.HostPort != 0 {
			b.tcp = append(b.tcp, p.HostPort)
		}
	}
	e.boxes[spec.ContainerID] = b
	e.tell(b.seen)
	return b.seen.RuntimeID, nil
}

// exitOf is a container's key among those that ended.
func exitOf(id agent.ContainerID) string {
	return fmt.Sprintf("%s/%d/%s", id.Task, id.Attempt, id.Container)
}

// start runs a container that was never started.
func (e *engine) start(id agent.ContainerID) error {
	b := e.boxes[id]
	switch {
	case b == nil:
		return fault.New(fault.NotFound, "no container %v", id)
	case !b.seen.Created:
		return nil
	case b.program.fails:
		return fault.New(fault.Invalid, "no such program")
	}
	if port := e.taken(b.tcp); port != 0 {
		return fault.Wrap(fault.Conflict, &agent.PortsTaken{TCP: []int{port}, Cause: fault.New(fault.Conflict, "port %d is taken", port)}, "start")
	}
	e.starts[id]++
	e.h.w.started(e.h, b)
	e.run(b)
	return nil
}

func (e *engine) restart(id agent.ContainerID, began time.Time) error {
	b := e.boxes[id]
	switch {
	case b == nil:
		return fault.New(fault.NotFound, "no container %v", id)
	case b.seen.Running || !b.seen.StartedAt.Equal(began):
		return nil
	}
	e.run(b)
	return nil
}

func (e *engine) run(b *box) {
	b.runs++
	b.seen.Running, b.seen.Created, b.seen.ExitCode = true, false, nil
	b.seen.StartedAt, b.seen.FinishedAt = e.now(), time.Time{}
	e.tell(b.seen)
	if b.program.ends > 0 {
		run := b.runs
		e.h.w.push(b.program.ends, 0, "exit", func() {
			if b.runs == run {
				e.exit(b, b.program.code)
			}
		})
	}
}

// taken is the first of some ports that something here has.
func (e *engine) taken(ports []int) int {
	for _, p := range ports {
		if slices.Contains(e.h.strangers, p) {
			return p
		}
		for _, b := range e.boxes {
			if b.seen.Running && slices.Contains(b.tcp, p) {
				return p
			}
		}
	}
	return 0
}

func (e *engine) exit(b *box, code int) {
	if !b.seen.Running {
		return
	}
	b.seen.Running, b.seen.ExitCode, b.seen.FinishedAt = false, &code, e.now()
	e.h.w.check.exits[exitOf(b.seen.ContainerID)] = code
	e.h.w.say("%s: %s/%d %s ends with %d", e.h.name, short(b.seen.Task), b.seen.Attempt, b.seen.Container, code)
	e.tell(b.seen)
}

// stopTakes is how long a stop takes, and what the container ends with.
func (e *engine) stopTakes(id agent.ContainerID, timeout time.Duration) (time.Duration, int) {
	b := e.boxes[id]
	switch {
	case b == nil || !b.seen.Running:
		return 0, 0
	case b.program.deaf || b.program.slow > timeout:
		return timeout, 137
	}
	return b.program.slow, 143
}

func (e *engine) remove(id agent.ContainerID) error {
	b := e.boxes[id]
	switch {
	case b == nil:
		return nil
	case b.seen.Running:
		return fault.New(fault.Conflict, "container %v runs", id)
	}
	b.forgotten = true
	e.lose(b)
	return nil
}

// lose takes a container away, by whomever.
func (e *engine) lose(b *box) {
	b.runs++ // what it would have ended with is nothing any more
	delete(e.boxes, b.seen.ContainerID)
	if !b.forgotten {
		delete(e.h.w.check.exits, exitOf(b.seen.ContainerID))
	}
	gone := b.seen
	gone.Running, gone.Gone = false, true
	e.tell(gone)
}

func (e *engine) observe(id agent.ContainerID) (agent.Seen, error) {
	if b := e.boxes[id]; b != nil {
		return b.seen, nil
	}
	return agent.Seen{}, fault.New(fault.NotFound, "no container %v", id)
}

// all are the containers in order.
func (e *engine) all() []*box {
	return slices.SortedFunc(maps.Values(e.boxes), func(a, b *box) int { return compareIDs(a.seen.ContainerID, b.seen.ContainerID) })
}

func compareIDs(a, b agent.ContainerID) int {
	return cmp.Or(cmp.Compare(a.Task, b.Task), cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.Container, b.Container))
}

// running are the containers that run, in order.
func (e *engine) running() []*box {
	return slices.DeleteFunc(e.all(), func(b *box) bool { return !b.seen.Running })
}

func (e *engine) list() []agent.Seen {
	var all []agent.Seen
	for _, b := range e.all() {
		all = append(all, b.seen)
	}
	return all
}

func (e *engine) watch(l *life, ctx context.Context) <-chan agent.Seen {
	s := &stream{life: l, ctx: ctx, to: make(chan agent.Seen, 256)}
	e.streams = append(e.streams, s)
	return s.to
}

// tell has every stream show something, after a moment, or loses it.
func (e *engine) tell(seen agent.Seen) {
	w := e.h.w
	for _, s := range e.streams {
		if w.chance(w.plan.eventLost) {
			w.count("engine event lost")
			continue
		}
		w.push(w.between(0, 40*time.Millisecond), 0, "engine event", func() {
			if s.cut || s.ctx.Err() != nil || s.life.dead.Load() {
				return
			}
			select {
			case s.to <- seen:
				s.life.touch()
			default:
				e.cutOne(s)
			}
		})
	}
	e.streams = slices.DeleteFunc(e.streams, func(s *stream) bool { return s.cut || s.ctx.Err() != nil || s.life.dead.Load() })
}

func (e *engine) cutOne(s *stream) {
	if !s.cut {
		s.cut = true
		close(s.to)
		s.life.touch()
	}
}

// cut breaks the streams.
func (e *engine) cut() {
	for _, s := range e.streams {
		e.cutOne(s)
	}
	e.streams = nil
}

// fall silences the engine for a while; if dies, every container ends with it.
func (e *engine) fall(for_ time.Duration, hangs, dies bool) {
	if !e.h.broken {
		e.silent, e.hangs = time.Now().Add(for_), hangs
	}
	if dies {
		for _, b := range e.running() {
			e.exit(b, 137)
		}
	}
	e.cut()
}
