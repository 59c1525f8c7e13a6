// Package endpoint serves, on an address of this machine that its containers reach,
// what a container asks of its own task: credentials of the task's role at ECS's
// credentials address, and task metadata, version 4. A container is known by an
// unguessable id in the URL it was given, and by the address it asks from. The package
// assumes no role itself and runs no container. The agent's main imports it.
package endpoint

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// Off is the address that is none.
const Off = "off"

// Standard is where AWS SDKs look for credentials by a relative URI.
const Standard = "169.254.170.2:80"

// Credentials are a session of a role.
type Credentials struct {
	AccessKeyID     string
	SecretAccessKey string
	SessionToken    string
	Expires         time.Time
}

// Assume gives credentials of a role that are valid for some time yet. It may be
// called at any time by any number of goroutines, so it keeps what it got. Errors:
// Denied (not this role) and Unavailable (try again).
type Assume func(ctx context.Context, roleARN, session string) (Credentials, error)

// Engine is what is asked of the engine.
type Engine interface {
	Detail(ctx context.Context, id agent.ContainerID) (agent.Detail, error)
	Stats(ctx context.Context, id agent.ContainerID) (json.RawMessage, error)
}

// Config is what a Server is made of.
type Config struct {
	Address string // ip:port
	Key     []byte // as Key reads it
	Assume  Assume // nil: no roles are served
	// HostNetwork has containers on the host's network get roles, too.
	HostNetwork bool
	Rate, Burst int // requests of one task in a second
	Region      string
	Zone        string
	Engine      Engine
	// Served shows a task that has not ended.
	Served func(task string) (agent.Served, bool)
	// Own says whether an address is one of this machine's.
	Own func(netip.Addr) bool
	Log *slog.Logger
	Now func() time.Time
}

// Server is the endpoint of one agent. It serves once Serve runs and has its address.
type Server struct {
	Config
	limits  *limits
	details *details
	samples *samples

	mu     sync.Mutex
	why    string // it does not serve, "" if it does
	server *http.Server
}

var _ agent.Endpoint = (*Server)(nil)

// New makes a server that does not serve yet.
func New(c Config) *Server {
	if c.Now == nil {
		c.Now = time.Now
	}
	s := &Server{Config: c, why: "it has not begun"}
	s.limits = newLimits(c.Rate, c.Burst, c.Now)
	s.details = newDetails(c.Engine, c.Now)
	s.samples = newSamples(c.Engine)
	return s
}

// Health says whether it serves, and if not, why.
func (s *Server) Health() agent.Health {
	s.mu.Lock()
	defer s.mu.Unlock()
	return agent.Health{OK: s.why == "", Why: s.why}
}

func (s *Server) setHealth(why string) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed = s.why != why
	s.why = why
	return changed
}

// Capabilities implements agent.Endpoint.
func (s *Server) Capabilities() []string {
	switch {
	case s.Assume == nil || !s.Health().OK:
		return nil
	case !s.HostNetwork:
		return []string{taskdef.CapabilityTaskRole}
	}
	return []string{taskdef.CapabilityTaskRole, taskdef.CapabilityTaskRoleHost}
}

// Environment implements agent.Endpoint.
func (s *Server) Environment(id agent.ContainerID, def *taskdef.TaskDefinition) (map[string]string, error) {
	if !agent.Reaches(def, id.Container) {
		return nil, nil
	}
	health := s.Health()
	if role := def.TaskRoleArn; role != "" {
		if why := s.withholds(def, health); why != "" {
			return nil, fault.New(fault.Unavailable, "CannotCreateContainerError: the task has a role, and this machine gives it none: %s", why)
		}
	}
	if !health.OK {
		return nil, nil
	}
	base := "http://" + s.Address
	if s.Address == Standard {
		base = "http://169.254.170.2"
	}
	env := map[string]string{"ECS_CONTAINER_METADATA_URI_V4": base + "/v4/" + s.id(metadataIDs, id)}
	if def.TaskRoleArn == "" {
		return env, nil
	}
	path := "/v2/credentials/" + s.id(credentialsIDs, id)
	if s.Address == Standard {
		env["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"] = path
	} else {
		env["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = base + path
	}
	// SDKs would ask the instance metadata service, which containers do not reach.
	if s.Region != "" && !names(def, id.Container, agent.RegionVariable) {
		env[agent.RegionVariable] = s.Region
	}
	return env, nil
}

// withholds says why a task's role is not to be had, "" if it is.
func (s *Server) withholds(def *taskdef.TaskDefinition, health agent.Health) string {
	switch {
	case s.Assume == nil:
		return "LONGSHORE_TASK_ROLES is false"
	case def.Network() == taskdef.NetworkHost && !s.HostNetwork:
		return "LONGSHORE_TASK_ROLES_NETWORK_HOST is false"
	case !health.OK:
		return fmt.Sprintf("its task endpoint does not serve: %s", health.Why)
	}
	return ""
}

// names says whether a container's definition gives a variable its value.
func names(def *taskdef.TaskDefinition, container, variable string) bool {
	c, _ := def.Container(container)
	for _, e := range c.Environment {
		if e.Name == variable {
			return true
		}
	}
	for _, e := range c.Secrets {
		if e.Name == variable {
			return true
		}
	}
	return false
}
