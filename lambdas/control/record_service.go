package control

import (
	"time"

	"github.com/longshore-run/longshore/lambdas/internal/deployment"
)

const (
	ServiceKind           Kind = "service"
	ServiceEventsKind     Kind = "serviceevents"
	ServiceRevisionKind   Kind = "servicerevision"
	ServiceDeploymentKind Kind = "servicedeployment"
)

// ServiceStatus is a service's status, in ECS's words.
type ServiceStatus string

const (
	ServiceActive   ServiceStatus = "ACTIVE"
	ServiceDraining ServiceStatus = "DRAINING" // deleted, and something of it lives
	ServiceInactive ServiceStatus = "INACTIVE" // deleted; forgotten after a day
)

// Service is what its owner wants, and the deployments by which it gets there.
// It stays small: what a service tells is in ServiceEvents, how many tasks it has
// in Live, how it came to be in ServiceRevision and ServiceDeployment.
type Service struct {
	Cluster  string        `json:"cluster"`
	Name     string        `json:"name"`
	Version  int64         `json:"version"`
	Status   ServiceStatus `json:"status"`
	Strategy string        `json:"schedulingStrategy"` // deployment.Replica or deployment.Daemon
	Desired  int           `json:"desiredCount"`       // of Daemon: on how many instances it belongs, as last seen
	Family   string        `json:"family"`
	Number   int           `json:"revision"`
	Launch   string        `json:"launchType"`

	MaximumPercent int  `json:"maximumPercent"`
	MinimumPercent int  `json:"minimumHealthyPercent"`
	Breaker        bool `json:"breaker,omitempty"`
	Rollback       bool `json:"rollback,omitempty"`

	Constraints    []Placement       `json:"constraints,omitempty"`
	Placement      []Placement       `json:"strategy,omitempty"`
	Tags           map[string]string `json:"tags,omitempty"`
	PropagateTags  string            `json:"propagateTags,omitempty"` // TASK_DEFINITION, SERVICE, NONE or ""
	ManagedTags    bool              `json:"managedTags,omitempty"`
	HealthGrace    time.Duration     `json:"healthGrace,omitempty"`
	HasHealthGrace bool              `json:"hasHealthGrace,omitempty"` // it was given: 0 is shown then, too
	Rebalancing    string            `json:"rebalancing,omitempty"`    // availabilityZoneRebalancing

	CreatedAt time.Time `json:"createdAt"`
	CreatedBy string    `json:"createdBy,omitempty"`
	DeletedAt time.Time `json:"deletedAt,omitzero"`
	ExpiresAt time.Time `json:"expiresAt,omitzero"` // only INACTIVE

	// Deployments are those that have, or are to have, tasks: newest first, the
	// first is PRIMARY, at most maxDeployments.
	Deployments []Deployment `json:"deployments"`
	// Rollout is the ServiceDeployment that is under way, "" for none.
	Rollout   string    `json:"rollout,omitempty"`
	Announced Announced `json:"announced"`
}

// maxDeployments bounds how many deployments of a service may have tasks.
const maxDeployments = 20

// Deployment is one revision of a service that has, or is to have, tasks: what
// is kept of a deployment.Deployment. Its failures are in Live.
type Deployment struct {
	ID          string             `json:"id"` // "ecs-svc/" and the digits of its revision
	Family      string             `json:"family"`
	Number      int                `json:"revision"`
	State       deployment.Rollout `json:"rolloutState"`
	Reason      string             `json:"rolloutStateReason,omitempty"`
	CreatedAt   time.Time          `json:"createdAt"`
	UpdatedAt   time.Time          `json:"updatedAt"`
	Reached     bool               `json:"reached,omitempty"`
	Rollback    string             `json:"rollback,omitempty"` // the deployment to go back to
	RollingBack bool               `json:"rollingBack,omitempty"`
}

// Announced is what events have said already, so that they say it once.
type Announced struct {
	Steady    bool      `json:"steady,omitempty"`
	NoRoom    time.Time `json:"noRoom,omitzero"`
	Throttled bool      `json:"throttled,omitempty"`
	Stuck     string    `json:"stuck,omitempty"`
}

// ServiceEvents is what a service has told lately: newest first, at most maxEvents.
type ServiceEvents struct {
	Cluster   string         `json:"cluster"`
	Service   string         `json:"service"`
	Version   int64          `json:"version"`
	Events    []ServiceEvent `json:"events"`
	ExpiresAt time.Time      `json:"expiresAt,omitzero"` // with its service
}

const maxEvents = 100

// ServiceEvent is one thing a service told, in ECS's wording. Name is the
// event's on the bus (SERVICE_STEADY_STATE …).
type ServiceEvent struct {
	ID         string    `json:"id"`
	At         time.Time `json:"at"`
	Name       string    `json:"name,omitempty"`
	Message    string    `json:"message"`
	Deployment string    `json:"deployment,omitempty"`
}

// ServiceRevision is one revision of a service as it was when its deployment
// began. It is never written again.
type ServiceRevision struct {
	Cluster   string            `json:"cluster"`
	Service   string            `json:"service"`
	ID        string            `json:"id"` // digits
	Version   int64             `json:"version"`
	Family    string            `json:"family"`
	Number    int               `json:"revision"`
	Launch    string            `json:"launchType"`
	Images    map[string]string `json:"images,omitempty"` // by container
	CreatedAt time.Time         `json:"createdAt"`
	ExpiresAt time.Time         `json:"expiresAt,omitzero"`
}

// RolloutStatus is a ServiceDeployment's status, in ECS's words.
type RolloutStatus string

const (
	RolloutPending            RolloutStatus = "PENDING"
	RolloutInProgress         RolloutStatus = "IN_PROGRESS"
	RolloutSuccessful         RolloutStatus = "SUCCESSFUL"
	RolloutStopped            RolloutStatus = "STOPPED"
	RolloutStopRequested      RolloutStatus = "STOP_REQUESTED"
	RolloutRollbackRequested  RolloutStatus = "ROLLBACK_REQUESTED"
	RolloutRollbackInProgress RolloutStatus = "ROLLBACK_IN_PROGRESS"
	RolloutRollbackSuccessful RolloutStatus = "ROLLBACK_SUCCESSFUL"
	RolloutRollbackFailed     RolloutStatus = "ROLLBACK_FAILED"
)

// Over says whether a rollout has come to its end.
func (s RolloutStatus) Over() bool {
	return s == RolloutSuccessful || s == RolloutStopped || s == RolloutRollbackSuccessful || s == RolloutRollbackFailed
}

// ServiceDeployment is one row of a service's history: how it came, or did not
// come, from its former revisions to another.
type ServiceDeployment struct {
	Cluster string        `json:"cluster"`
	Service string        `json:"service"`
	ID      string        `json:"id"` // sorts newest first
	Version int64         `json:"version"`
	Status  RolloutStatus `json:"status"`
	Reason  string        `json:"statusReason,omitempty"`
	Target  string        `json:"target"`           // revision
	Sources []string      `json:"source,omitempty"` // revisions
	// Deployment is the one by which the target, or after that a rollback, is
	// brought about.
	Deployment     string    `json:"deployment"`
	RolledBackTo   string    `json:"rolledBackTo,omitempty"` // revision
	RollbackReason string    `json:"rollbackReason,omitempty"`
	RollbackAt     time.Time `json:"rollbackAt,omitzero"`
	MaximumPercent int       `json:"maximumPercent"`
	MinimumPercent int       `json:"minimumHealthyPercent"`
	Breaker        bool      `json:"breaker,omitempty"`
	Rollback       bool      `json:"rollback,omitempty"`
	Tripped        bool      `json:"tripped,omitempty"` // the breaker has ended it
	Failures       int       `json:"failures,omitempty"`
	Threshold      int       `json:"threshold,omitempty"`
	Requested      int       `json:"requested,omitempty"` // tasks of the target
	CreatedAt      time.Time `json:"createdAt"`
	StartedAt      time.Time `json:"startedAt,omitzero"`
	FinishedAt     time.Time `json:"finishedAt,omitzero"`
	StoppedAt      time.Time `json:"stoppedAt,omitzero"`
	UpdatedAt      time.Time `json:"updatedAt,omitzero"`
	ExpiresAt      time.Time `json:"expiresAt,omitzero"`
}

func (r *Service) Kind() Kind           { return ServiceKind }
func (r *ServiceEvents) Kind() Kind     { return ServiceEventsKind }
func (r *ServiceRevision) Kind() Kind   { return ServiceRevisionKind }
func (r *ServiceDeployment) Kind() Kind { return ServiceDeploymentKind }

func (r *Service) Revision() *int64           { return &r.Version }
func (r *ServiceEvents) Revision() *int64     { return &r.Version }
func (r *ServiceRevision) Revision() *int64   { return &r.Version }
func (r *ServiceDeployment) Revision() *int64 { return &r.Version }

func (r *Service) Key() string           { return r.Cluster + "/" + r.Name }
func (r *ServiceEvents) Key() string     { return r.Cluster + "/" + r.Service }
func (r *ServiceRevision) Key() string   { return r.Cluster + "/" + r.Service + "/" + r.ID }
func (r *ServiceDeployment) Key() string { return r.Cluster + "/" + r.Service + "/" + r.ID }
