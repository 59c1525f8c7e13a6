// Package agenttest holds what agents are tested with: a scripted engine, an
// inbox, an outbox and a journal in memory, and the conformance suites that
// these and the real adapters both pass. Tests of the agent, of its adapters
// and of sim may import it; no program does.
package agenttest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// Engine is a container engine in memory. It outlives agents, as Docker does.
// A container runs until Exit ends it, or a Stop does.
type Engine struct {
	// Script is asked before each call, and may wait, fail or look the other
	// way; nil is no script. For calls without a container id is empty.
	Script func(ctx context.Context, verb string, id agent.ContainerID) error
	// OnStart is what a container does when it is started; nil: it goes on.
	OnStart func(id agent.ContainerID) Program
	Facts   agent.EngineInfo

	mu         sync.Mutex
	dead       bool
	containers map[agent.ContainerID]*box
	streams    map[int]chan agent.Seen
	next       int
	calls      []string
	starts     map[agent.ContainerID]int
	clock      func() time.Time
	twist      func(agent.Seen) []agent.Seen
	logins     []agent.Login
	store
}

// Program is what a container does.
type Program struct {
	Exit  *int          // it ends by itself with this code …
	After time.Duration // … after this long
	Deaf  bool          // SIGTERM does nothing: a stop takes its whole time-out
	Code  *int          // it ends with this code on SIGTERM; nil: 143
}

type box struct {
	seen    agent.Seen
	spec    agent.Spec
	checked bool // it has a health check
	joins   bool // it is in the namespaces of its task's pause container
	program Program
}

// NewEngine is an engine with nothing on it.
func NewEngine() *Engine {
	return &Engine{
		Facts:      agent.EngineInfo{Version: "99.0", CPUs: 4, MemoryMiB: 8192, Arch: "x86_64", OSType: "linux", HardwareID: "hardware"},
		containers: map[agent.ContainerID]*box{}, streams: map[int]chan agent.Seen{}, starts: map[agent.ContainerID]int{},
		store: newStore(),
	}
}

// errSilent is what a dead engine answers.
var errSilent = fault.New(fault.Unavailable, "the engine does not answer")

func (e *Engine) call(ctx context.Context, verb string, id agent.ContainerID) error {
	e.mu.Lock()
	if verb != "observe" && verb != "ping" && verb != "list" && verb != "info" && verb != "watch" && verb != "images" && verb != "disk" {
		e.calls = append(e.calls, fmt.Sprintf("%s %s/%s", verb, id.Task[:min(len(id.Task), 4)], id.Container))
	}
	dead, script := e.dead, e.Script
	e.mu.Unlock()
	if dead {
		return errSilent
	}
	if script != nil {
		if err := script(ctx, verb, id); err != nil {
			return err
		}
	}
	return fault.Wrap(fault.Unavailable, ctx.Err(), "%s", verb)
}

// Image finds every image, if there is room for it, for everybody.
func (e *Engine) Image(ctx context.Context, ref string, login agent.Login) (string, error) {
	e.mu.Lock()
	e.logins = append(e.logins, login)
	e.mu.Unlock()
	if err := e.call(ctx, "image", agent.ContainerID{Container: ref}); err != nil {
		return "", err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return "sha256:" + ref, e.pull(ref)
}

// Create makes a container.
func (e *Engine) Create(ctx context.Context, spec agent.Spec) (string, error) {
	if err := e.call(ctx, "create", spec.ContainerID); err != nil {
		return "", err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if b := e.containers[spec.ContainerID]; b != nil {
		return b.seen.RuntimeID, nil
	}
	c, _ := spec.Definition.Container(spec.Container)
	if _, there := e.images["sha256:"+c.Image]; !there && c.Image != "" { // a pause container brings its own
		return "", fault.New(fault.NotFound, "CannotCreateContainerError: no such image: %s", c.Image)
	}
	e.next++
	labels := map[string]string{}
	maps.Copy(labels, c.DockerLabels)
	maps.Copy(labels, spec.Labels)
	if !c.IsEssential() {
		labels["run.longshore.essential"] = "false"
	}
	joins := spec.Container != agent.PauseContainer && (spec.Definition.PidMode == taskdef.NamespaceTask || spec.Definition.IpcMode == taskdef.NamespaceTask)
	b := &box{spec: spec, checked: c.HealthCheck.Checks(), joins: joins, seen: agent.Seen{
		ContainerID: spec.ContainerID, Epoch: spec.Epoch, RuntimeID: fmt.Sprintf("c%d", e.next), Created: true, Image: c.Image, Digest: "sha256:" + c.Image,
		TaskARN: spec.TaskARN, Cluster: spec.Cluster, Family: spec.Family, Revision: spec.Revision, Labels: labels,
	}}
	e.containers[spec.ContainerID] = b
	e.tell(b.seen)
	return b.seen.RuntimeID, nil
}

// Start starts a container that was never started; one that was is left alone.
func (e *Engine) Start(ctx context.Context, id agent.ContainerID) error {
	if err := e.call(ctx, "start", id); err != nil {
		return err
	}
	e.mu.Lock()
	b := e.containers[id]
	ran := b != nil && !b.seen.Created
	e.mu.Unlock()
	if ran {
		return nil
	}
	return e.Run(id)
}

// Restart starts a container again whose run that began then has ended.
func (e *Engine) Restart(ctx context.Context, id agent.ContainerID, began time.Time) error {
	if err := e.call(ctx, "restart", id); err != nil {
		return err
	}
	e.mu.Lock()
	b := e.containers[id]
	done := b != nil && (b.seen.Running || !b.seen.StartedAt.Equal(began))
	e.mu.Unlock()
	if done {
		return nil
	}
	return e.Run(id)
}

// Feel has the health check of a running container come to a result.
func (e *Engine) Feel(id agent.ContainerID, h task.Health) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if b := e.containers[id]; b != nil && b.seen.Running {
		b.seen.Health, b.seen.HealthAt = h, e.now()
		e.tell(b.seen)
	}
}

// Run starts a container as somebody with a shell on the machine would.
func (e *Engine) Run(id agent.ContainerID) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	b := e.containers[id]
	if b == nil {
		return fault.New(fault.NotFound, "no container %v", id)
	}
	if b.seen.Running {
		return nil
	}
	pause := e.containers[agent.ContainerID{Task: id.Task, Attempt: id.Attempt, Container: agent.PauseContainer}]
	if b.joins && (pause == nil || !pause.seen.Running) {
		return fault.New(fault.Invalid, "CannotStartContainerError: cannot join the namespaces of a container that does not run")
	}
	e.starts[id]++
	if e.OnStart != nil {
		b.program = e.OnStart(id)
	}
	b.seen.Running, b.seen.Created, b.seen.ExitCode = true, false, nil
	b.seen.StartedAt, b.seen.FinishedAt = e.now(), time.Time{}
	if b.checked {
		b.seen.Health, b.seen.HealthAt = task.HealthUnknown, time.Time{}
	}
	e.tell(b.seen)
	if code := b.program.Exit; code != nil {
		began := b.seen.StartedAt
		end := func() {
			e.mu.Lock()
			defer e.mu.Unlock()
			if b.seen.Running && b.seen.StartedAt.Equal(began) {
				e.end(b, *code)
			}
		}
		if b.program.After == 0 {
			e.end(b, *code)
		} else {
			time.AfterFunc(b.program.After, end)
		}
	}
	return nil
}

// Exit has a running container end.
func (e *Engine) Exit(id agent.ContainerID, code int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if b := e.containers[id]; b != nil && b.seen.Running {
		e.end(b, code)
	}
}

func (e *Engine) end(b *box, code int) {
	b.seen.Running, b.seen.ExitCode, b.seen.FinishedAt, b.seen.Health = false, &code, e.now(), ""
	e.tell(b.seen)
}

// Stop ends a container, after the time-out if it is deaf.
func (e *Engine) Stop(ctx context.Context, id agent.ContainerID, timeout time.Duration) error {
	if err := e.call(ctx, "stop", id); err != nil {
		return err
	}
	e.mu.Lock()
	b := e.containers[id]
	if b == nil {
		e.mu.Unlock()
		return nil
	}
	program := b.program
	e.mu.Unlock()
	code := 143
	if program.Code != nil {
		code = *program.Code
	}
	if program.Deaf {
		code = 137
		select {
		case <-time.After(timeout):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	e.Exit(id, code)
	return nil
}

// Remove deletes a container that does not run.
func (e *Engine) Remove(ctx context.Context, id agent.ContainerID) error {
	if err := e.call(ctx, "remove", id); err != nil {
		return err
	}
	e.mu.Lock()
	b := e.containers[id]
	running := b != nil && b.seen.Running
	e.mu.Unlock()
	if running {
		return fault.New(fault.Conflict, "container %v runs", id)
	}
	e.Lose(id)
	return nil
}

// Lose removes a container behind the agent's back.
func (e *Engine) Lose(id agent.ContainerID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if b := e.containers[id]; b != nil {
		delete(e.containers, id)
		gone := b.seen
		gone.Running, gone.Gone = false, true
		e.tell(gone)
	}
}

// RemoveTask deletes what a task owned besides.
func (e *Engine) RemoveTask(ctx context.Context, taskID string, _ int) error {
	return e.call(ctx, "removetask", agent.ContainerID{Task: taskID})
}

// Observe shows one container.
func (e *Engine) Observe(ctx context.Context, id agent.ContainerID) (agent.Seen, error) {
	if err := e.call(ctx, "observe", id); err != nil {
		return agent.Seen{}, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if b := e.containers[id]; b != nil {
		return b.seen, nil
	}
	return agent.Seen{}, fault.New(fault.NotFound, "no container %v", id)
}

// List shows all containers.
func (e *Engine) List(ctx context.Context) ([]agent.Seen, error) {
	if err := e.call(ctx, "list", agent.ContainerID{}); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []agent.Seen
	for _, b := range e.containers {
		all = append(all, b.seen)
	}
	return all, nil
}

// Watch streams changes.
func (e *Engine) Watch(ctx context.Context) (<-chan agent.Seen, error) {
	if err := e.call(ctx, "watch", agent.ContainerID{}); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.next++
	key, stream := e.next, make(chan agent.Seen, 4096)
	e.streams[key] = stream
	context.AfterFunc(ctx, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.cut(key)
	})
	return stream, nil
}

func (e *Engine) cut(key int) {
	if stream, ok := e.streams[key]; ok {
		delete(e.streams, key)
		close(stream)
	}
}

func (e *Engine) tell(s agent.Seen) {
	shown := []agent.Seen{s}
	if e.twist != nil {
		shown = e.twist(s)
	}
	for _, stream := range e.streams {
		for _, s := range shown {
			stream <- s
		}
	}
}

// Ping answers unless the engine is dead.
func (e *Engine) Ping(ctx context.Context) error { return e.call(ctx, "ping", agent.ContainerID{}) }

// Info tells the facts.
func (e *Engine) Info(ctx context.Context) (agent.EngineInfo, error) {
	if err := e.call(ctx, "info", agent.ContainerID{}); err != nil {
		return agent.EngineInfo{}, err
	}
	return e.Facts, nil
}

// Die makes the engine silent until Revive; its containers live on.
func (e *Engine) Die() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.dead = true
	for key := range e.streams {
		e.cut(key)
	}
}

// CutStreams breaks the event streams; what happens until they are reopened is
// shown by none.
func (e *Engine) CutStreams() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for key := range e.streams {
		e.cut(key)
	}
}

// Revive has the engine answer again.
func (e *Engine) Revive() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.dead = false
}

// Calls are the verbs that were called, as "verb task/container" with four
// digits of the task.
func (e *Engine) Calls() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.calls)
}

// Starts is how often a container was started.
func (e *Engine) Starts(id agent.ContainerID) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.starts[id]
}

// Containers are those that are there.
func (e *Engine) Containers() map[agent.ContainerID]agent.Seen {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := map[agent.ContainerID]agent.Seen{}
	for id, b := range e.containers {
		all[id] = b.seen
	}
	return all
}
