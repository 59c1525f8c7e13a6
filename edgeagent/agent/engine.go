// Package agent is the edge agent's front door: its loops (commands, reports,
// heartbeats, recovery), over an engine, an inbox, an outbox and a journal that
// it declares. It knows neither AWS nor Docker. The agent's main, its adapters
// and sim may import it.
package agent

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/longshore-run/longshore/edgeagent/internal/supervise"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// Engine runs containers. Every verb is idempotent: "already so" is success.
// Every call ends by its context or a deadline of its own. An engine serves one
// instance: it neither shows nor touches containers of others.
//
// Errors carry fault kinds: Invalid (this can never run here), Conflict (a port
// is taken by a stranger), NotFound (no such image), Unavailable (the engine is
// silent or broken: try again).
type Engine interface {
	// Image makes the image present by the pull policy and returns its digest or id.
	// A pull is made with the login and shared between equal ones alone. PauseImage
	// comes from no registry: the engine has it made.
	Image(ctx context.Context, ref string, login Login) (digest string, err error)
	// Create makes the container and the volumes it needs, not started.
	Create(ctx context.Context, spec Spec) (runtimeID string, err error)
	// Start runs a created container. One that has ever run is left as it is: a
	// second run would be a second execution of the task.
	Start(ctx context.Context, id ContainerID) error
	// Restart runs a container once more whose run that began then has ended. One
	// that has run again since, or does, is left as it is.
	Restart(ctx context.Context, id ContainerID, began time.Time) error
	// Stop asks the container to end, and after timeout makes it.
	Stop(ctx context.Context, id ContainerID, timeout time.Duration) error
	// Remove deletes a container that does not run.
	Remove(ctx context.Context, id ContainerID) error
	// RemoveTask deletes what a task owned besides containers (task-scoped volumes).
	RemoveTask(ctx context.Context, taskID string, attempt int) error
	// Observe shows one container; a fault of kind NotFound if it is not there.
	Observe(ctx context.Context, id ContainerID) (Seen, error)
	// List shows every container of this instance.
	List(ctx context.Context) ([]Seen, error)
	// Watch sends what changes until ctx ends or the stream breaks, then closes
	// the channel. Opened before List, it leaves no gap.
	Watch(ctx context.Context) (<-chan Seen, error)
	// Ping says whether the engine answers, and Info what it is.
	Ping(ctx context.Context) error
	Info(ctx context.Context) (EngineInfo, error)
}

// Login is who pulls an image from its registry; the zero value is nobody in
// particular. It is never printed.
type Login struct{ Username, Password string }

// Format keeps a login out of every text that is made with fmt, however it is asked for.
func (Login) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "(login)") }

// MarshalText keeps it out of JSON, and so out of logs and the journal.
func (Login) MarshalText() ([]byte, error) { return []byte("(login)"), nil }

// EngineInfo is what the host and its engine are.
type EngineInfo struct {
	Version    string
	CPUs       int
	MemoryMiB  int
	Arch       string // x86_64 or arm64
	OSType     string
	HardwareID string // stable for this machine
	TaskLimits bool   `json:",omitempty"` // it keeps a task's size for its containers together
}

// ContainerID names a container by what it is for.
type ContainerID struct {
	Task      string
	Attempt   int
	Container string
}

// PauseImage is the image of the container that holds a task's namespaces. The
// number goes up when what it does changes: images of earlier ones stay as long as
// containers have them.
const PauseImage = "longshore.internal/pause:1"

// PauseContainer is what that container is called, as in ECS.
const PauseContainer = supervise.PauseName

// LabelSupervision is the label with what a lost journal would be missed for.
const LabelSupervision = supervise.KeptLabel

// Spec is all that a container is created from.
type Spec struct {
	ContainerID
	Epoch       int64
	TaskARN     string
	Cluster     string
	Family      string
	Revision    int
	Definition  *taskdef.TaskDefinition // overrides applied
	GPUs        []string                // of this container
	Environment map[string]string       // beyond the definition's
	Labels      map[string]string       // of the agent, beyond the engine's own
	LogOptions  map[string]string       // of the log driver, beyond the definition's
}

// Seen is a container as the engine has it.
type Seen struct {
	ContainerID
	Epoch      int64
	RuntimeID  string
	Running    bool
	Created    bool // made and never started
	ExitCode   *int // when it ended
	OOMKilled  bool
	Error      string
	Image      string
	Digest     string
	Bindings   []task.Binding
	Health     task.Health // of one that runs, if its definition has a health check
	HealthAt   time.Time   // when that was found; zero before the first outcome
	StartedAt  time.Time
	FinishedAt time.Time
	Gone       bool // a Watch message: the container was removed
	// From the labels, to rebuild a lost journal.
	TaskARN  string
	Cluster  string
	Family   string
	Revision int
	Labels   map[string]string
}

// PortsTaken is the cause inside a Conflict of Create or Start: the ports of the
// host that somebody else has, as far as the engine says.
type PortsTaken struct {
	TCP, UDP []int
	Cause    error
}

func (e *PortsTaken) Error() string { return e.Cause.Error() }

func (e *PortsTaken) Unwrap() error { return e.Cause }
