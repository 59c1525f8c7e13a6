// Package task is THE state machine of tasks and containers: which statuses
// there are, how they rank, and which event moves which status where. Both
// sides go by this one table. It stores nothing and decides nothing about
// resources. Anybody may import it.
package task

// Status is a task's lastStatus, in ECS's words.
type Status string

const (
	Provisioning Status = "PROVISIONING" // waits for an instance
	Pending      Status = "PENDING"      // has an instance, nothing seen running yet
	Running      Status = "RUNNING"
	Stopping     Status = "STOPPING" // the agent is bringing it down
	Stopped      Status = "STOPPED"
)

// ranks are spaced so that a status can be added between two others.
var ranks = map[Status]int{Provisioning: 10, Pending: 20, Running: 30, Stopping: 40, Stopped: 50}

// Statuses lists every status, lowest first.
func Statuses() []Status { return []Status{Provisioning, Pending, Running, Stopping, Stopped} }

// Rank orders statuses: within an attempt a task's status only rises. An
// unknown status ranks 0.
func (s Status) Rank() int { return ranks[s] }

// Known says whether s is a status at all.
func (s Status) Known() bool { return ranks[s] > 0 }

// Open says whether a task of this status holds resources on an instance.
func (s Status) Open() bool { return s == Pending || s == Running || s == Stopping }

// Terminal says whether nothing follows s.
func (s Status) Terminal() bool { return s == Stopped }

// Desired is a task's desiredStatus: RUNNING, or STOPPED and never back.
type Desired string

const (
	DesiredRunning Desired = "RUNNING"
	DesiredStopped Desired = "STOPPED"
)

// Event is what happens to a task.
type Event string

const (
	Admitted         Event = "admitted"       // an instance was chosen and the ledger charged
	Refused          Event = "refused"        // the agent could not run it and started nothing of it
	Shown            Event = "shown"          // a report or inventory has it as PENDING
	SeenRunning      Event = "seen_running"   // a report has it as RUNNING
	SeenStopping     Event = "seen_stopping"  // a report has it as STOPPING
	Ended            Event = "ended"          // a report has it as STOPPED
	StopRequested    Event = "stop_requested" // desired status becomes STOPPED
	Withdrawn        Event = "withdrawn"      // left the queue: stopped or expired while waiting
	Vanished         Event = "vanished"       // absent from an inventory that should list it
	Closed           Event = "closed"         // its instance was fenced, or is confirmed gone
	DispatchRepeated Event = "dispatch_repeated"
)

// Role is the part of the system that may cause an event.
type Role string

const (
	API         Role = "api"
	Admission   Role = "admission"
	StateChange Role = "statechange"
	Reaper      Role = "reaper"
)

// Transition is one row of the table.
type Transition struct {
	From Status
	On   Event
	To   Status
	By   []Role
}

var table = []Transition{
	{Provisioning, Admitted, Pending, []Role{Admission, API}},
	{Provisioning, Withdrawn, Stopped, []Role{API, Admission, Reaper}},

	{Pending, StopRequested, Pending, []Role{API, Reaper}},
	{Pending, DispatchRepeated, Pending, []Role{Reaper, StateChange}},
	{Pending, Shown, Pending, []Role{StateChange}},
	{Pending, SeenRunning, Running, []Role{StateChange}},
	{Pending, SeenStopping, Stopping, []Role{StateChange}},
	{Pending, Ended, Stopped, []Role{StateChange}},
	{Pending, Refused, Provisioning, []Role{StateChange}},
	{Pending, Vanished, Stopped, []Role{StateChange}},
	{Pending, Closed, Stopped, []Role{Reaper, API}},

	{Running, StopRequested, Running, []Role{API, Reaper}},
	{Running, SeenStopping, Stopping, []Role{StateChange}},
	{Running, Ended, Stopped, []Role{StateChange}},
	{Running, Vanished, Stopped, []Role{StateChange}},
	{Running, Closed, Stopped, []Role{Reaper, API}},

	{Stopping, StopRequested, Stopping, []Role{API, Reaper}},
	{Stopping, Ended, Stopped, []Role{StateChange}},
	{Stopping, Vanished, Stopped, []Role{StateChange}},
	{Stopping, Closed, Stopped, []Role{Reaper, API}},
}

// Table is a copy of every legal transition; what it lacks does not happen.
func Table() []Transition { return append([]Transition(nil), table...) }

// Next is where an event takes a status; ok is false where the event changes
// nothing or is not legal.
func Next(from Status, on Event) (to Status, ok bool) {
	for _, t := range table {
		if t.From == from && t.On == on {
			return t.To, true
		}
	}
	return from, false
}

// SeenAs is the event that a report of a status is.
func SeenAs(s Status) (Event, bool) {
	switch s {
	case Pending:
		return Shown, true
	case Running:
		return SeenRunning, true
	case Stopping:
		return SeenStopping, true
	case Stopped:
		return Ended, true
	case Provisioning:
		return "", false
	}
	return "", false
}

// Merge is the status of an attempt after a report of it: the higher of both,
// so that a lost, repeated or late report cannot hurt.
func Merge(known, reported Status) Status {
	if reported.Rank() > known.Rank() {
		return reported
	}
	return known
}
