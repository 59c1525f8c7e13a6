// Package control is the control plane's front door: the use cases as plain
// Go, one file each, over a store and a queue that it declares. It knows
// neither AWS nor JSON over HTTP. Mains, adapters and sim may import it.
//
// Every use case reads records strongly, decides with plain code, and commits
// on condition that none of what it read has changed (Store.Commit). So each
// rule of the protocol is a condition in Go on records that were true together
// at the moment of the commit, whatever else ran meanwhile.
package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/setting"
	"github.com/longshore-run/longshore/shared/wire"
)

// Store keeps the records. Both implementations pass controltest.StoreSuite.
type Store interface {
	// Load fills the given records, found by kind and key, from strongly
	// consistent reads; those that do not exist keep only their key and have
	// version 0. Each read is strong, all together are not one snapshot.
	Load(ctx context.Context, records ...Record) error

	// Commit makes all writes or none. Each is conditional on its record's
	// stored version being the record's; then the version is raised by one, in
	// the store and in the record. If a condition failed or another transaction
	// was in the way nothing is written and the error is of kind Conflict. An
	// error of kind Unavailable leaves open whether it was written. At most 100
	// writes, each record once.
	Commit(ctx context.Context, writes ...Write) error

	// Renew is the one write that is not conditional on a version: it renews a
	// lease that exists, is of r's incarnation and was last sent before r, as
	// Lease.Renew says, and returns the lease as it then is. Commits that rest on
	// the lease from before conflict. A lease that does not exist is a fault of
	// kind NotFound.
	Renew(ctx context.Context, r Renewal) (lease *Lease, renewed bool, err error)

	// The rest may lag: what they return must be confirmed by Load, and what
	// they lack may exist.
	TaskIDs(ctx context.Context, q TaskQuery, page Page) (ids []string, next string, err error)
	InstanceIDs(ctx context.Context, cluster string, page Page) (ids []string, next string, err error)

	// Leases scans every lease, strongly consistent item by item, with probes and brakes.
	Leases(ctx context.Context) (*LeaseScan, error)

	// ScanLedgers and ScanLiveTasks (those not STOPPED) read the base tables, each
	// item strongly consistent, in no order: for audits, which read everything.
	ScanLedgers(ctx context.Context, page Page) (ledgers []Ledger, next string, err error)
	ScanLiveTasks(ctx context.Context, page Page) (tasks []Task, next string, err error)

	// The catalog's lists are strongly consistent.
	Clusters(ctx context.Context, page Page) (names []string, next string, err error)
	Families(ctx context.Context, prefix string, page Page) (families []Family, next string, err error)
	// Services lists the names of a cluster's services, INACTIVE ones too.
	Services(ctx context.Context, cluster string, page Page) (names []string, next string, err error)
	// ServiceDeployments lists the ids of a service's history, newest first.
	ServiceDeployments(ctx context.Context, cluster, service string, page Page) (ids []string, next string, err error)
	// Revisions lists a family's definitions without their bodies, by number.
	Revisions(ctx context.Context, family string, descending bool, page Page) (all []Definition, next string, err error)
}

// Page is where a list goes on and how much of it is wanted (0: the store's choice, at most 1000).
type Page struct {
	After string
	Limit int
}

// TaskQuery names one index and one key of it; exactly one field is set,
// Cluster apart, which goes with Group and Waiting, and Stopped, which goes with
// Group.
type TaskQuery struct {
	Cluster    string
	OnInstance string  // open tasks of an instance
	Group      string  // a cluster's tasks of a group that are not STOPPED …
	Stopped    bool    // … or those that are: the many do not lie among the few
	Waiting    Waiting // a cluster's tasks that the control plane waits for
}

// Waiting says what the control plane waits for about a task.
type Waiting string

const (
	NotWaiting Waiting = ""
	ForRoom    Waiting = "room"   // PROVISIONING
	ForSign    Waiting = "sign"   // PENDING, and no report or inventory has shown it
	ForEnd     Waiting = "ending" // desired STOPPED, held, not STOPPED
)

// WaitingFor is the waiting index's key of a task.
func (r *Task) WaitingFor() Waiting { return waitingFor(r) }

// LeaseScan is everything in the leases table.
type LeaseScan struct {
	Leases []Lease
	Probes []Probe
	Brakes []Brake
	Guard  Guard
}

// Renewal is what a heartbeat does to its lease, first and alone.
type Renewal struct {
	ID          string
	Sent        time.Time
	Incarnation string
	Session     string
}

// Write is one write of a commit.
type Write struct {
	Record Record
	Op     Op
}

// Op is what a Write does.
type Op string

const (
	PutOp    Op = "put"   // write the whole record
	CheckOp  Op = "check" // only the condition
	DeleteOp Op = "delete"
)

// Put writes a record.
func Put(r Record) Write { return Write{r, PutOp} }

// Check holds a commit to a record that it does not write.
func Check(r Record) Write { return Write{r, CheckOp} }

// Delete removes a record.
func Delete(r Record) Write { return Write{r, DeleteOp} }

// Queue sends messages. A send that fails after a commit is logged, never an
// error of the use case: a sweep makes it up.
type Queue interface {
	// Commands sends to instances' command queues; each message's header names its instance.
	Commands(ctx context.Context, commands ...wire.Message) error
	KickAdmission(ctx context.Context, k Kick) error
	KickServices(ctx context.Context, k Kick) error
	Probe(ctx context.Context, p wire.Probe) error
	// EnsureInbox makes an instance's command queue readable by identity alone.
	EnsureInbox(ctx context.Context, instance, identity string) error
	RemoveInbox(ctx context.Context, instance string) error
	// Backlog is about how many heartbeats wait.
	Backlog(ctx context.Context) (int, error)
}

// Kick wakes admission or services: what it is about, so that a lagging index
// can not hide it. At most 10 task ids.
type Kick struct {
	Cluster  string   `json:"cluster"`
	Tasks    []string `json:"tasks,omitempty"`
	Instance string   `json:"instance,omitempty"`
	Service  string   `json:"service,omitempty"` // "" for all of the cluster
	// Others are further instances, where kicks were merged; it is never sent.
	Others []string `json:"-"`
}

// Metrics takes values for alarms and dashboards; dimensions are name, value pairs.
type Metrics interface {
	Count(name string, value float64, dimensions ...string)
}

// Control is the use cases.
type Control struct {
	Store   Store
	Queue   Queue
	Metrics Metrics
	Log     *slog.Logger
	Now     func() time.Time
	// NewID makes random ids: 32 lower-case hex digits.
	NewID   func() string
	Setting setting.Control
	// Fleet, if not nil, is what admission remembers between its passes.
	Fleet *Fleet
	// Shape and Bus are Announce's, and nobody else's: the form of events, and
	// where they go.
	Shape func(Notice) (Event, error)
	Bus   Bus
	// Groups is for the reaper alone; nil where nothing is told to Auto Scaling.
	Groups Groups
	// Pause waits between tries; nil means a jittered wait that ends with ctx.
	Pause func(ctx context.Context, try int)
}

// errGiveUp ends a decision without an error and without a write.
var errGiveUp = errors.New("nothing to write")

const tries = 8

// decide runs one read-decide-commit until the commit is not in conflict.
// decision loads what it needs and returns the writes; with none, nothing is
// committed. It is run again from the start after a conflict.
func (c *Control) decide(ctx context.Context, what string, decision func() ([]Write, error)) error {
	var err error
	for try := range tries {
		if try > 0 {
			c.pause(ctx, try)
		}
		var writes []Write
		if writes, err = decision(); errors.Is(err, errGiveUp) {
			return nil
		} else if err == nil && len(writes) > 0 {
			err = c.Store.Commit(ctx, writes...)
		}
		if !fault.Is(err, fault.Conflict) {
			break
		}
		if ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func (c *Control) pause(ctx context.Context, try int) {
	if c.Pause != nil {
		c.Pause(ctx, try)
		return
	}
	wait := time.Duration(rand.Int64N(int64(5*time.Millisecond) << min(try, 6)))
	select {
	case <-time.After(wait):
	case <-ctx.Done():
	}
}

// endsBefore is how long before its deadline a call stops beginning new work.
const endsBefore = 5 * time.Second

// outOfTime says whether too little of the call's time is left to begin more.
func outOfTime(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && time.Until(deadline) < endsBefore
}

// send delivers commands; a failure is logged and left to the sweep.
func (c *Control) send(ctx context.Context, commands ...wire.Message) {
	if len(commands) == 0 {
		return
	}
	if err := c.Queue.Commands(ctx, commands...); err != nil {
		c.Log.WarnContext(ctx, "commands not sent; the sweep repeats what matters", "error", err)
	}
}

// kick wakes admission; a failure is logged and left to the sweep.
func (c *Control) kick(ctx context.Context, k Kick) {
	if err := c.Queue.KickAdmission(ctx, k); err != nil {
		c.Log.WarnContext(ctx, "admission not woken; the sweep wakes it", "error", err)
	}
}

func (c *Control) kickServices(ctx context.Context, k Kick) {
	if err := c.Queue.KickServices(ctx, k); err != nil {
		c.Log.WarnContext(ctx, "services not woken; the sweep wakes it", "error", err)
	}
}

// kickServicesOf wakes each service that tasks belong to, once.
func (c *Control) kickServicesOf(ctx context.Context, tasks []*Task) {
	var kicks []Kick
	for _, t := range tasks {
		if t.Service != "" {
			kicks = addTo(kicks, t)
		}
	}
	for _, k := range kicks {
		c.kickServices(ctx, k)
	}
}
