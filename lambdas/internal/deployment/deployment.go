// Package deployment decides what a service needs next: which tasks to create
// and to stop, how its deployments go on, what to tell of it. It is pure: the
// same input gives the same output; it reads nothing and knows no clock.
// Package control imports it, acts on what it says, and asks again.
package deployment

import "time"

// Strategies of scheduling, in ECS's words.
const (
	Replica = "REPLICA"
	Daemon  = "DAEMON"
)

// Service is what its owner wants.
type Service struct {
	Name     string
	Strategy string // Replica or Daemon
	Desired  int    // of Replica; of Daemon it is the number of Hosts
	// Deleted services want nothing more; they are done when nothing of them lives.
	Deleted bool
	// MaximumPercent and MinimumPercent bound what lives and what is healthy,
	// rounded down and up, as in ECS.
	MaximumPercent int
	MinimumPercent int
	Breaker        bool // the deployment circuit breaker is on
	Rollback       bool // and it rolls back
}

// Rollout is how far a deployment is, in ECS's words.
type Rollout string

const (
	InProgress Rollout = "IN_PROGRESS"
	Completed  Rollout = "COMPLETED"
	Failed     Rollout = "FAILED"
)

// Deployment is one revision of a service that has, or is to have, tasks.
type Deployment struct {
	ID        string // "ecs-svc/" and digits
	Primary   bool
	Rollout   Rollout
	Reason    string // of the rollout state
	CreatedAt time.Time
	UpdatedAt time.Time
	// Reached says that a task of it has been RUNNING (and healthy, where it has a
	// health check): the breaker's first stage is over.
	Reached bool
	// Failures counts its tasks that ended without having been RUNNING, or because
	// they were unhealthy: all (Failures) and since one was last RUNNING (InARow).
	Failures   int
	InARow     int
	LastFailed time.Time
	// Rollback is the deployment to go back to, the last that was COMPLETED; "" for none.
	Rollback string
}

// Status is a task's, as far as a service cares.
type Status string

const (
	Waiting  Status = "PROVISIONING" // in the queue
	Pending  Status = "PENDING"
	Running  Status = "RUNNING"
	Stopping Status = "STOPPING"
)

// Task is one task of the service that is not STOPPED, as read strongly.
type Task struct {
	ID         string
	Deployment string
	Status     Status
	ToStop     bool   // its desired status is STOPPED
	Unhealthy  bool   // its health check says so
	Unproven   bool   // it has a health check, which has not answered yet
	Instance   string // "" while it waits; for a Daemon's the instance it is pinned to
	// Silent: its instance is not CONNECTED, or the task is kept from an earlier
	// epoch: it fills its place without counting as healthy (U7).
	Silent   bool
	Draining bool // its instance is to be emptied
	// ProtectedUntil holds off a stop by the service (task protection).
	ProtectedUntil time.Time
	CreatedAt      time.Time
	WaitingReason  string // why it waits, in ECS's words
}

// Host is an instance that a Daemon is to have a task on.
type Host struct{ ID string }

// Input is all that a decision rests on.
type Input struct {
	Now         time.Time
	Service     Service
	Deployments []Deployment // newest first; the one that is Primary is the first
	Tasks       []Task       // that were found; an index that lags may hide some
	Live        int          // how many there are in truth
	Hosts       []Host       // of a Daemon: the instances it belongs on
	Told        Told
}

// Told is what events have said already, so that they say it once.
type Told struct {
	Steady    bool      // "has reached a steady state", since the last change
	NoRoom    time.Time // last time "was unable to place a task"
	Throttled bool      // "is unable to consistently start tasks successfully"
	Stuck     bool      // that a drain or rollout can make no progress
}

// Creation is one task to create.
type Creation struct {
	Deployment string
	Instance   string // of a Daemon's: where it belongs
}

// Stop is one task to stop; Why is for the log.
type Stop struct{ Task, Why string }

// Event is something to tell, in ECS's wording; Name is the event's on the bus
// (SERVICE_STEADY_STATE …).
type Event struct {
	Name       string
	Message    string
	Deployment string
}

// Output is what to do now. Creations keep the number of tasks that live at or
// below the maximum; stops keep those that are healthy at or above the minimum.
type Output struct {
	Create []Creation
	Stop   []Stop
	// Deployments are all that remain, as they are to be; a rollback's new one has no ID.
	Deployments []Deployment
	Events      []Event
	Told        Told
	// Hidden: fewer tasks were found than live. Nothing is created; look again.
	Hidden bool
	// Next is when time alone may change the decision; zero for never.
	Next time.Time
	// Done: the service is deleted, and nothing of it lives.
	Done bool
}
