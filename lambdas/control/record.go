package control

import (
	"encoding/json"
	"time"

	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// Record is one item of a table. It is read whole with Store.Load, changed by
// plain code, and written with Store.Commit on condition that nobody wrote it
// in between. Version 0 is an item that does not exist.
type Record interface {
	Kind() Kind
	// Key names the item within its kind.
	Key() string
	// Revision is the item's version, which Load and Commit keep.
	Revision() *int64
}

// Kind tells records apart.
type Kind string

const (
	TaskKind       Kind = "task"
	InstanceKind   Kind = "instance"
	LedgerKind     Kind = "ledger"
	LeaseKind      Kind = "lease"
	ProbeKind      Kind = "probe"
	GuardKind      Kind = "guard"
	BrakeKind      Kind = "brake"
	ClusterKind    Kind = "cluster"
	QueueStateKind Kind = "queuestate"
	SettingsKind   Kind = "settings"
	FamilyKind     Kind = "family"
	DefinitionKind Kind = "definition"
	TokenKind      Kind = "token"
	LiveKind       Kind = "live"
)

// Held is what a task took from its instance at admission, and gives back
// exactly once: ports and GPUs by identity.
type Held struct {
	CPU       int      `json:"cpu,omitempty"`
	MemoryMiB int      `json:"memory,omitempty"`
	TCP       []int    `json:"tcp,omitempty"`
	UDP       []int    `json:"udp,omitempty"`
	GPUs      []string `json:"gpus,omitempty"`
	// Distinct are the groups of its distinctInstance tasks: one of each.
	Distinct []string `json:"distinct,omitempty"`
}

// Placement is a placement constraint or strategy, in ECS's members.
type Placement struct {
	Type       string `json:"type"`
	Expression string `json:"expression,omitempty"` // constraints
	Field      string `json:"field,omitempty"`      // strategies
}

// Task is one task, from RunTask to its expiry after the end.
type Task struct {
	ID            string       `json:"id"`
	Version       int64        `json:"version"`
	Cluster       string       `json:"cluster"`
	LastStatus    task.Status  `json:"lastStatus"`
	DesiredStatus task.Desired `json:"desiredStatus"`
	Attempt       int          `json:"attempt"`

	Family     string            `json:"family"`
	Number     int               `json:"revision"`
	Overrides  json.RawMessage   `json:"overrides,omitempty"`
	Needs      taskdef.Resources `json:"needs"`
	Group      string            `json:"group"`
	StartedBy  string            `json:"startedBy,omitempty"`
	Service    string            `json:"service,omitempty"`
	Schedule   string            `json:"schedule,omitempty"` // whose run it is of
	Launch     string            `json:"launchType,omitempty"`
	Tags       map[string]string `json:"tags,omitempty"`
	Exec       bool              `json:"enableExecuteCommand,omitempty"`
	Containers []task.Container  `json:"containers,omitempty"`
	// Health is that of its essential containers, as the last report had it;
	// empty where none is checked.
	Health task.Health `json:"healthStatus,omitempty"`

	Constraints []Placement   `json:"constraints,omitempty"`
	Strategy    []Placement   `json:"strategy,omitempty"`
	Priority    int           `json:"priority"`
	MaxWait     time.Duration `json:"maxWait,omitempty"`
	// Pinned is the only instance the task may go to (StartTask, DAEMON).
	Pinned string `json:"pinned,omitempty"`
	// NoWait tasks end where others would wait (StartTask, onNoCapacity=fail).
	NoWait bool `json:"noWait,omitempty"`
	// ProtectedUntil is until when its service does not stop it of its own (task protection).
	ProtectedUntil time.Time `json:"protectedUntil,omitzero"`
	// WaitingReason is why it waits, in ECS's names (RESOURCE:MEMORY …).
	WaitingReason string `json:"waitingReason,omitempty"`

	// What follows is set while the task has an instance; Instance stays after
	// the end, for late reports.
	Instance    string    `json:"instance,omitempty"`
	Epoch       int64     `json:"epoch,omitempty"`
	Incarnation string    `json:"incarnation,omitempty"` // it was given to
	N           int64     `json:"n,omitempty"`           // of the last report accepted about this attempt
	Shown       bool      `json:"shown,omitempty"`       // a report or inventory has had it
	Kept        time.Time `json:"kept,omitzero"`         // the reaper kept it, since; an echoing inventory clears it
	Held        *Held     `json:"held,omitempty"`
	// Dispatched counts assigns and stops sent, DispatchAt when the sweep may send the next.
	Dispatched int       `json:"dispatched,omitempty"`
	DispatchAt time.Time `json:"dispatchAt,omitzero"`

	CreatedAt     time.Time `json:"createdAt"`
	AdmittedAt    time.Time `json:"admittedAt,omitzero"`
	PullStartedAt time.Time `json:"pullStartedAt,omitzero"`
	PullStoppedAt time.Time `json:"pullStoppedAt,omitzero"`
	StartedAt     time.Time `json:"startedAt,omitzero"`
	StoppingAt    time.Time `json:"stoppingAt,omitzero"`
	ExecStoppedAt time.Time `json:"executionStoppedAt,omitzero"`
	StoppedAt     time.Time `json:"stoppedAt,omitzero"`

	StopCause     task.Cause `json:"stopCause,omitempty"` // who asked for the stop, then why it ended
	StoppedReason string     `json:"stoppedReason,omitempty"`
	ExpiresAt     time.Time  `json:"expiresAt,omitzero"`
}

// Instance describes a container instance. It holds nothing that admission or
// a heartbeat writes.
type Instance struct {
	ID          string `json:"id"`
	Version     int64  `json:"version"`
	Cluster     string `json:"cluster"`
	Identity    string `json:"identity"`
	Incarnation string `json:"incarnation"`
	// Replacing is a newer incarnation that waits until this one has been silent.
	Replacing     string            `json:"replacing,omitempty"`
	EC2InstanceID string            `json:"ec2InstanceId,omitempty"`
	Zone          string            `json:"zone"`
	Attributes    map[string]string `json:"attributes,omitempty"` // as its agent says
	// Custom are attributes that PutAttributes set; they win, and outlive registrations.
	Custom map[string]string `json:"custom,omitempty"`
	Tags   map[string]string `json:"tags,omitempty"`
	// Foreign: registered through the API, without our agent. It gets no work and
	// has no lease, until an agent registers as it.
	Foreign       bool      `json:"foreign,omitempty"`
	WireVersions  []int     `json:"wireVersions"`
	AgentVersion  string    `json:"agentVersion,omitempty"`
	AgentHash     string    `json:"agentHash,omitempty"`
	DockerVersion string    `json:"dockerVersion,omitempty"`
	RegisteredAt  time.Time `json:"registeredAt"`
	// GoneAt is when it became INACTIVE; it is remembered for 7 days.
	GoneAt    time.Time `json:"goneAt,omitzero"`
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
}

// InstanceStatus is a container instance's status, in ECS's words.
type InstanceStatus string

const (
	Active   InstanceStatus = "ACTIVE"
	Draining InstanceStatus = "DRAINING"
	Inactive InstanceStatus = "INACTIVE"
)

// RaiseCause is why a ledger's epoch was raised (I8).
type RaiseCause string

const (
	NoCause          RaiseCause = ""
	ReapedCause      RaiseCause = "reaped"      // open tasks of older epochs are closed or kept
	IncarnationCause RaiseCause = "incarnation" // the first echoing inventory decides on them
)

// Ledger is what an instance has and has given away: the one place where
// resources are accounted.
type Ledger struct {
	ID         string         `json:"id"`
	Version    int64          `json:"version"`
	Cluster    string         `json:"cluster"`
	Status     InstanceStatus `json:"status"`
	Connected  bool           `json:"connected"`
	Epoch      int64          `json:"epoch"`
	SinceEpoch int64          `json:"sinceEpoch"` // the epoch the item was made with
	Stale      int            `json:"stale"`      // open tasks of older epochs
	Open       int            `json:"open"`
	Cause      RaiseCause     `json:"cause,omitempty"`
	RaisedAt   time.Time      `json:"raisedAt,omitzero"`
	// EndCause, when set, says that the host is confirmed gone: closing ends
	// every open task with it, whatever the policy.
	EndCause task.Cause `json:"endCause,omitempty"`
	// LostBy is why its tasks end, where EC2 said more than that it is silent; it
	// is no confirmed end: what was stopped may be started again.
	LostBy task.Cause `json:"lostBy,omitempty"`
	// KeptUntil is when the reaper looks at the kept tasks of a LOST instance next.
	KeptUntil time.Time `json:"keptUntil,omitzero"`
	// DrainingSince is when it was set DRAINING: its deadline is counted from then.
	DrainingSince time.Time `json:"drainingSince,omitzero"`
	// Leaving is what is known of the coming end of its host, nil for nothing.
	Leaving *Leaving `json:"leaving,omitempty"`
	// NoRoom says that its host's disk is full: it is given nothing, and what runs
	// there goes on and counts.
	NoRoom     bool      `json:"noRoom,omitempty"`
	Registered Held      `json:"registered"` // TCP and UDP hold the reserved ports
	Held       Held      `json:"held"`
	Refusals   []Refusal `json:"refusals,omitempty"` // ≤ 16, newest last
	ExpiresAt  time.Time `json:"expiresAt,omitzero"` // only INACTIVE with nothing open
}

// Refusal is what an instance refused lately and is not offered until then.
type Refusal struct {
	TCP   []int     `json:"tcp,omitempty"`
	UDP   []int     `json:"udp,omitempty"`
	Shape string    `json:"shape,omitempty"`
	Until time.Time `json:"until"`
}

// Stage is how an instance's liveness stands.
type Stage string

const (
	StageConnected Stage = "CONNECTED"
	StageSuspect   Stage = "SUSPECT"
	StageLost      Stage = "LOST"
	StageFenced    Stage = "FENCED" // to echo its epoch with a clean inventory
)

// Lease is when an instance was last heard, and the stage that follows from it.
type Lease struct {
	ID           string    `json:"id"`
	Version      int64     `json:"version"`
	Cluster      string    `json:"cluster"`
	Zone         string    `json:"zone"`
	EC2          string    `json:"ec2,omitempty"` // its EC2 instance id
	Sent         time.Time `json:"sent"`          // SentTimestamp of the last accepted heartbeat or register
	RegisterSent time.Time `json:"registerSent"`
	Epoch        int64     `json:"epoch"` // of the ledger
	Incarnation  string    `json:"incarnation"`
	Session      string    `json:"session"`               // of the last renewal
	PrevSession  string    `json:"prevSession,omitempty"` // the one before it
	// Sessions are those whose beats were looked at, newest last, ≤ 4; an older
	// one that comes back is an alternation: two machines in turn.
	Sessions     []string      `json:"sessions,omitempty"`
	Alternations int           `json:"alternations,omitempty"`
	AlternatedAt time.Time     `json:"alternatedAt,omitzero"`
	N            int64         `json:"n"`                   // of the last inventory applied
	Inventory    string        `json:"inventory,omitempty"` // its hash
	Beats        int64         `json:"beats"`
	Every        time.Duration `json:"every"` // interval told
	Stage        Stage         `json:"stage"`
	StageSince   time.Time     `json:"stageSince"`
	StageReason  string        `json:"stageReason,omitempty"`
	Impaired     time.Time     `json:"impaired,omitzero"`
	ImpairedWhy  string        `json:"impairedWhy,omitempty"`
	// NoRoom is since when its agent has said that the host has no room for a task
	// more, and NoRoomWhy what it says; the ledger is told the same.
	NoRoom    time.Time `json:"noRoom,omitzero"`
	NoRoomWhy string    `json:"noRoomWhy,omitempty"`
	// Draining says that the ledger is DRAINING or holds a termination, for the
	// reaper to find those in the scan it makes anyway; nothing rests on it.
	Draining bool `json:"draining,omitempty"`
	// Notice is what the last beat that was looked at said of its host's end.
	Notice string `json:"notice,omitempty"`
	// Losses counts how often it became LOST by its silence or its engine, a day or
	// less after the time before; LostAt is the last time.
	Losses int       `json:"losses,omitempty"`
	LostAt time.Time `json:"lostAt,omitzero"`
	// GroupTold is the epoch in which, it being LOST, its Auto Scaling group was
	// told that the host is unhealthy.
	GroupTold int64 `json:"groupTold,omitempty"`
	// CordonedUntil is until when a host that EC2 said is stopping takes no work.
	CordonedUntil time.Time `json:"cordonedUntil,omitzero"`
	ExpiresAt     time.Time `json:"expiresAt,omitzero"`
}

// Probe is one message the reaper sent through the heartbeat queue to see
// whether it delivers.
type Probe struct {
	ID        string    `json:"id"`
	Version   int64     `json:"version"`
	SentAt    time.Time `json:"sentAt"`
	SeenSent  time.Time `json:"seenSent,omitzero"` // its SentTimestamp, once it came through
	ExpiresAt time.Time `json:"expiresAt"`
}

// Guard is what the reaper remembers between its runs: the watermark, when it
// last moved, and when a guard began to hold.
type Guard struct {
	Version      int64     `json:"version"`
	Watermark    time.Time `json:"watermark,omitzero"`
	MovedAt      time.Time `json:"movedAt,omitzero"`
	StoodUntil   time.Time `json:"stoodUntil,omitzero"`   // until when the watermark stood still, last time it did for > 3 min
	HoldingSince time.Time `json:"holdingSince,omitzero"` // a guard has held back reaping since
}

// Brake is a zone's budget of reapings.
type Brake struct {
	Zone    string    `json:"zone"`
	Version int64     `json:"version"`
	Tokens  int       `json:"tokens"`
	SetAt   time.Time `json:"setAt,omitzero"`
	SlowAt  time.Time `json:"slowAt,omitzero"` // last token given at the slow rate
	Engaged bool      `json:"engaged,omitempty"`
}

// Cluster is a cluster as users see it.
type Cluster struct {
	Name      string            `json:"name"`
	Version   int64             `json:"version"`
	Status    string            `json:"status"` // ACTIVE or INACTIVE
	Tags      map[string]string `json:"tags,omitempty"`
	Settings  json.RawMessage   `json:"settings,omitempty"`
	CreatedAt time.Time         `json:"createdAt"`
}

// Settings are the account settings of one principal, or those that stand in for
// everybody who has none (DefaultPrincipal).
type Settings struct {
	Principal string            `json:"principal"`
	Version   int64             `json:"version"`
	Values    map[string]string `json:"values,omitempty"`
}

// QueueState is what admission remembers of a cluster between its passes.
type QueueState struct {
	Cluster string `json:"cluster"`
	Version int64  `json:"version"`
	// Cursor is where the next pass starts, if the last did not reach the end.
	Cursor string `json:"cursor,omitempty"`
	// An earmark keeps an instance's room for one starving task.
	EarmarkTask     string    `json:"earmarkTask,omitempty"`
	EarmarkInstance string    `json:"earmarkInstance,omitempty"`
	EarmarkUntil    time.Time `json:"earmarkUntil,omitzero"`
	// Restored: the tables were restored, and not every instance was heard since.
	Restored bool `json:"restored,omitempty"`
}

// Family counts the revisions of a task definition family.
type Family struct {
	Name    string `json:"name"`
	Version int64  `json:"version"`
	Latest  int    `json:"latest"`
	Active  int    `json:"active"` // number of ACTIVE revisions
	// Deleting and Deleted count its revisions of these statuses.
	Deleting int `json:"deleting,omitempty"`
	Deleted  int `json:"deleted,omitempty"`
}

// Definition is one revision of a task definition.
type Definition struct {
	Family         string            `json:"family"`
	Number         int               `json:"revision"`
	Version        int64             `json:"version"`
	Status         string            `json:"status"`     // ACTIVE, INACTIVE, DELETE_IN_PROGRESS or DefinitionDeleted
	Definition     json.RawMessage   `json:"definition"` // canonical form
	Tags           map[string]string `json:"tags,omitempty"`
	RegisteredAt   time.Time         `json:"registeredAt"`
	RegisteredBy   string            `json:"registeredBy,omitempty"`
	DeregisteredAt time.Time         `json:"deregisteredAt,omitzero"`
	DeleteAskedAt  time.Time         `json:"deleteAskedAt,omitzero"`
}

// Token makes a call idempotent: it holds the ids the call made.
type Token struct {
	Scope     string    `json:"scope"` // operation and cluster
	Token     string    `json:"token"`
	Version   int64     `json:"version"`
	Request   string    `json:"request"` // hash of the request
	IDs       []string  `json:"ids"`
	ExpiresAt time.Time `json:"expiresAt"`
	// Undecided is set while tasks that are not to wait are placed one by one;
	// Failures then tells why some were not, by id.
	Undecided bool              `json:"undecided,omitempty"`
	Failures  map[string]string `json:"failures,omitempty"`
}

// Live counts a service's tasks that are not STOPPED, the bound of I11, and those
// that failed by themselves, by deployment: each in the transaction that makes it
// STOPPED.
type Live struct {
	Cluster string   `json:"cluster"`
	Service string   `json:"service"`
	Version int64    `json:"version"`
	Live    int      `json:"live"`
	Failed  []Failed `json:"failed,omitempty"`
}

// Failed counts a deployment's tasks that failed, as deployment.Deployment has it.
type Failed struct {
	Deployment string    `json:"deployment"`
	All        int       `json:"all"`
	Unhealthy  int       `json:"unhealthy,omitempty"` // of them, those stopped for their health
	InARow     int       `json:"inARow"`              // ended without having been RUNNING, since one was
	Last       time.Time `json:"last"`
}

func (r *Task) Kind() Kind       { return TaskKind }
func (r *Instance) Kind() Kind   { return InstanceKind }
func (r *Ledger) Kind() Kind     { return LedgerKind }
func (r *Lease) Kind() Kind      { return LeaseKind }
func (r *Probe) Kind() Kind      { return ProbeKind }
func (r *Guard) Kind() Kind      { return GuardKind }
func (r *Brake) Kind() Kind      { return BrakeKind }
func (r *Cluster) Kind() Kind    { return ClusterKind }
func (r *QueueState) Kind() Kind { return QueueStateKind }
func (r *Settings) Kind() Kind   { return SettingsKind }
func (r *Family) Kind() Kind     { return FamilyKind }
func (r *Definition) Kind() Kind { return DefinitionKind }
func (r *Token) Kind() Kind      { return TokenKind }
func (r *Live) Kind() Kind       { return LiveKind }

func (r *Task) Revision() *int64       { return &r.Version }
func (r *Instance) Revision() *int64   { return &r.Version }
func (r *Ledger) Revision() *int64     { return &r.Version }
func (r *Lease) Revision() *int64      { return &r.Version }
func (r *Probe) Revision() *int64      { return &r.Version }
func (r *Guard) Revision() *int64      { return &r.Version }
func (r *Brake) Revision() *int64      { return &r.Version }
func (r *Cluster) Revision() *int64    { return &r.Version }
func (r *Settings) Revision() *int64   { return &r.Version }
func (r *QueueState) Revision() *int64 { return &r.Version }
func (r *Family) Revision() *int64     { return &r.Version }
func (r *Definition) Revision() *int64 { return &r.Version }
func (r *Token) Revision() *int64      { return &r.Version }
func (r *Live) Revision() *int64       { return &r.Version }

func (r *Task) Key() string       { return r.ID }
func (r *Instance) Key() string   { return r.ID }
func (r *Ledger) Key() string     { return r.ID }
func (r *Lease) Key() string      { return r.ID }
func (r *Probe) Key() string      { return r.ID }
func (r *Guard) Key() string      { return "guard" }
func (r *Brake) Key() string      { return r.Zone }
func (r *Cluster) Key() string    { return r.Name }
func (r *QueueState) Key() string { return r.Cluster }
func (r *Settings) Key() string   { return r.Principal }
func (r *Family) Key() string     { return r.Name }
func (r *Definition) Key() string { return DefinitionName(r.Family, r.Number) }
func (r *Token) Key() string      { return r.Scope + "#" + r.Token }
func (r *Live) Key() string       { return r.Cluster + "/" + r.Service }
