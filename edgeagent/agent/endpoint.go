package agent

import (
	"encoding/json"
	"maps"
	"net/netip"
	"time"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
)

// RegionVariable says where AWS SDKs are. What a definition says of it, be it by a
// file, counts more than what an Endpoint does.
const RegionVariable = "AWS_REGION"

// Endpoint is where containers of this instance find their task's metadata and
// credentials.
type Endpoint interface {
	// Environment is what a container is to find them by, nothing for one that cannot
	// reach it. Unavailable: its task has a role and it would not find it now.
	Environment(id ContainerID, def *taskdef.TaskDefinition) (map[string]string, error)
	// Capabilities are the attributes that say what is served, by ECS's names. They
	// may change while the agent runs.
	Capabilities() []string
}

// Detail is a container as the engine has it, for the containers of its own task.
// What of it is secret (environment, options of log drivers) is not there.
type Detail struct {
	RuntimeID   string
	Name        string // the engine's
	Image       string
	ImageID     string
	Labels      map[string]string // without ours
	Running     bool
	HostNetwork bool
	// Addresses are those by which it reaches others, none on the host's network.
	Addresses  []netip.Addr
	LogDriver  string
	CreatedAt  time.Time
	StartedAt  time.Time
	FinishedAt time.Time
	Mounts     []Mount
	Health     *HealthCheck // of a health check, its own or its image's
	// TaskRole is the role that its task was given when it was made.
	TaskRole string
}

// Mount is a volume of a container.
type Mount struct{ Name, Source, Destination string }

// HealthCheck is what a health check found last.
type HealthCheck struct {
	Status   string // of Docker: starting, healthy, unhealthy
	ExitCode int
	Output   string
	At       time.Time
}

// Served is a task as its own containers may see it. Nothing in it changes later.
type Served struct {
	TaskLook
	Cluster       string
	ServiceName   string
	Definition    *taskdef.TaskDefinition // nil if it is not known here any more
	Restarts      map[string]int          // of containers with a restart policy
	PullStartedAt time.Time
	PullStoppedAt time.Time
}

// Served shows a task that has not ended here, with its definition.
func (a *Agent) Served(id string) (Served, bool) {
	var (
		s      Served
		stored json.RawMessage
		found  bool
	)
	a.book.view(func(p *page) {
		r, ok := p.task(id)
		if !ok || r.ended() {
			return
		}
		found, stored = true, r.Definition
		s = Served{TaskLook: r.look(), Cluster: r.Cluster, ServiceName: r.ServiceName, Restarts: map[string]int{},
			PullStartedAt: r.State.PullStartedAt, PullStoppedAt: r.State.PullStoppedAt}
		for _, c := range r.State.Containers {
			if c.Policy != nil {
				s.Restarts[c.Name] = c.Restarts
			}
		}
	})
	if found && len(stored) > 0 {
		if def, err := taskdef.ParseStored(stored); err == nil {
			s.Definition = &def
		}
	}
	return s, found
}

var errNoRole = fault.New(fault.Unavailable, "CannotCreateContainerError: the task has a role, and this machine gives it none: LONGSHORE_TASK_ENDPOINT is off")

// furnish adds what a container finds its task's metadata and credentials by.
func (a *Agent) furnish(s *Spec) error {
	if a.Endpoint == nil {
		if s.Definition.TaskRoleArn != "" && Reaches(s.Definition, s.Container) {
			return errNoRole
		}
		return nil
	}
	env, err := a.Endpoint.Environment(s.ContainerID, s.Definition)
	if err != nil {
		return err
	}
	if len(env) > 0 {
		s.Environment = maps.Clone(s.Environment)
		if s.Environment == nil {
			s.Environment = map[string]string{}
		}
		for name, value := range env {
			if _, given := s.Environment[name]; !given || name != RegionVariable {
				s.Environment[name] = value
			}
		}
	}
	return nil
}

// Reaches says whether a container has a network by which it reaches its host.
func Reaches(def *taskdef.TaskDefinition, container string) bool {
	c, ok := def.Container(container)
	return ok && def.Network() != taskdef.NetworkNone && (c.DisableNetworking == nil || !*c.DisableNetworking)
}

// Offer has what can be done here compared with what was registered.
func (a *Agent) Offer() { a.registers.ring() }

// compareOffer voids the welcome where what can be done here is not what was
// registered last: it may have changed also between a register and its welcome, and
// what an earlier session has registered is not known.
func (a *Agent) compareOffer(now *wire.Register) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.welcomed || maps.Equal(a.offered, now.Attributes) {
		return
	}
	a.welcomed = false
	if a.offered != nil {
		a.Log.Info("what tasks may ask of this machine has changed: register again")
	}
}

// capabilities are the attributes by which the agent tells what it can do.
func (a *Agent) capabilities() []string {
	all := taskdef.Capabilities()
	if a.Endpoint != nil {
		all = append(all, a.Endpoint.Capabilities()...)
	}
	if a.Provider != nil {
		all = append(all, a.Provider.Capabilities()...)
	}
	return all
}
