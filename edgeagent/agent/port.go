package agent

import (
	"context"
	"time"

	"github.com/longshore-run/longshore/shared/wire"
)

// Command is a message of the control plane as it was received.
type Command struct {
	Message wire.Message // nil if it could not be read
	Fault   error        // why not
	Receipt string       // to delete it by
}

// Inbox is the instance's command queue. A command that is not deleted comes
// again. Errors: NotFound or Denied (there is no such queue, or not for us),
// Unavailable (try again).
type Inbox interface {
	// Receive waits, up to about 20 s, for up to ten commands.
	Receive(ctx context.Context) ([]Command, error)
	Delete(ctx context.Context, receipts []string) error
}

// MaxBatch is how many messages one SendReports takes.
const MaxBatch = 10

// Outbox sends to the control plane. That it sent says nothing about whether
// anybody has read it. Errors are Unavailable, Denied or NotFound (try again),
// or Invalid (this message can never be sent).
type Outbox interface {
	// SendReports sends up to MaxBatch reports, refusals or a register, and
	// returns an error for each, in order.
	SendReports(ctx context.Context, messages []wire.Message) []error
	SendHeartbeat(ctx context.Context, beat *wire.Heartbeat) error
}

// Journal is what an agent must not forget. One process has it open at a time.
type Journal interface {
	// Load reads everything. It is called once, first.
	Load() (State, error)
	// Commit writes a change, all or nothing; when it returns nil the change
	// survives a crash of the machine.
	Commit(Change) error
}

// State is all that a journal holds.
type State struct {
	Meta   Meta
	Tasks  map[string]Record
	Images []ImageUse // those that this agent pulled
}

// Change is one journal transaction.
type Change struct {
	Meta *Meta // nil: as it is
	Put  []Record
	Drop []string // tasks that are forgotten
	// Images are all that are remembered from now on; nil: as they are.
	Images []ImageUse
}

// Meta is what an agent knows of itself.
type Meta struct {
	// Incarnation is made with the journal, Hardware and Identity are whose it
	// is. A journal found elsewhere is not used.
	Incarnation string `json:"incarnation"`
	Hardware    string `json:"hardware,omitempty"`
	Identity    string `json:"identity"`
	// Rebuilt says that what the engine held when the journal was made is in it.
	Rebuilt bool `json:"rebuilt"`

	N              int64         `json:"n"` // of the last message
	Epoch          int64         `json:"epoch"`
	EndedEpoch     int64         `json:"endedEpoch,omitempty"` // in which a terminal fence was obeyed
	InstanceARN    string        `json:"instanceArn,omitempty"`
	HeartbeatEvery time.Duration `json:"heartbeatEvery,omitempty"`
	// Clock is how long agents with this journal have run, summed: waits are
	// measured by it, so no host's clock shortens them.
	Clock  time.Duration `json:"clock"`
	Engine EngineInfo    `json:"engine"` // as last seen
}
