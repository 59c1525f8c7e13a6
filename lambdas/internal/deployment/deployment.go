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
	// Confirmed: no task is created before the end of the one it replaces is
	// confirmed. So no more live than are desired, and one may be missing.
	Confirmed bool
	Breaker   bool // the deployment circuit breaker is on
	Rollback  bool // and it rolls back
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
	// Reached says that a task of it has been RUNNING and healthy for a minute: the
	// breaker's first stage is over. Decide sets it.
	Reached bool
	// Failures are its tasks that failed while it was IN_PROGRESS. Whoever sees an
	// end counts those that ended without having been RUNNING, or by themselves; not
	// those that were stopped, or lost with their instance: that is not the
	// revision's fault. Decide counts those it stops because they are unhealthy
	// (in Unhealthy too), and takes all back when one has proven healthy.
	Failures  int
	Unhealthy int
	// InARow are those that ended without having been RUNNING since one last was
	// (Decide zeroes it when it sees one), whatever the rollout state: they slow
	// creations down. LastFailed is when the last failure of any kind was.
	InARow     int
	LastFailed time.Time
	// Rollback is the deployment to go back to, the last that was COMPLETED; "" for
	// none. That one stays among the deployments for as long.
	Rollback string
	// RollingBack: it is what a failed deployment went back to, until it is COMPLETED.
	RollingBack bool
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
	ToStop     bool      // its desired status is STOPPED
	Unhealthy  bool      // its health check says so
	Unproven   bool      // it has a health check, which has not answered yet
	Instance   string    // "" while it waits; for a Daemon's the instance it is pinned to
	Zone       string    // of its instance, to keep the spread
	Since      time.Time // RUNNING since
	// Silent: its instance is not CONNECTED, or the task is kept from an earlier
	// epoch: it fills its place without counting as healthy (U7).
	Silent   bool
	Kept     bool // of those, the ones whose instance is LOST
	Draining bool // its instance is to be emptied
	// Busy: its instance is to be emptied, and has tasks of others than Daemons: a
	// Daemon's is the last to be stopped.
	Busy bool
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
	Hosts       []Host       // of a Daemon: the instances it belongs on: ACTIVE, and fit for it
	Told        Told
	// Limit is how many creations and stops there may be at once, 0 for all: more
	// does not fit into a transaction.
	Limit int
}

// Told is what events have said already, so that they say it once.
type Told struct {
	Steady    bool      // "has reached a steady state", since the last change
	NoRoom    time.Time // last time "was unable to place a task"
	Throttled bool      // "is unable to consistently start tasks successfully"
	Stuck     string    // on what a drain or rollout can make no progress
}

// Creation is one task to create.
type Creation struct {
	Deployment string
	Instance   string // of a Daemon's: where it belongs
}

// Stop is one task to stop; Why is for the log.
type Stop struct{ Task, Why string }

// Event is something to tell, in ECS's wording; Name is the event's on the bus
// (SERVICE_STEADY_STATE …), "" for what only the service's list of events has.
// That tasks were started is told by Started, for only the caller knows their ids.
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
	// Deployments are all that remain, as they are to be, the primary first. A
	// rollback makes the one it goes back to primary again under its ID, as ECS does.
	Deployments []Deployment
	Events      []Event
	Told        Told
	// Replaces is how many of the creations stand in for unhealthy tasks (see Started).
	Replaces int
	// Hidden: fewer tasks were found than live. Nothing is created; look again.
	Hidden bool
	// More: Limit cut it short; decide again once this is written.
	More bool
	// Next is when time alone may change the decision; zero for never.
	Next time.Time
	// Done: the service is deleted, and nothing of it lives.
	Done bool
}
