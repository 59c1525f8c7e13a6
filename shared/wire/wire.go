// Package wire holds the messages between agents and the control plane: their
// shapes, versions, strict decoding and bounds. It sends nothing. Anybody may
// import it. Every message ever shipped stays readable: testdata holds one of
// each, and none of those files may change.
package wire

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"time"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
)

// Version is the version this code writes.
const Version = 1

// Versions lists the versions this code reads.
func Versions() []int { return []int{1} }

// MaxBytes bounds any message either way.
const MaxBytes = 256 * 1024

// Type names a message.
type Type string

const (
	RegisterType  Type = "register"
	ReportType    Type = "report"
	RefusedType   Type = "refused"
	HeartbeatType Type = "heartbeat"
	ProbeType     Type = "probe"
	AssignType    Type = "assign"
	StopType      Type = "stop"
	AckType       Type = "ack"
	WelcomeType   Type = "welcome"
	FenceType     Type = "fence"
	ResyncType    Type = "resync"
)

// Header opens every message. Instance is the container instance's id: the
// sender's in messages of an agent, the addressee's in commands.
type Header struct {
	Version  int    `json:"v"`
	Type     Type   `json:"type"`
	Instance string `json:"instance"`
}

// Origin is what every message of an agent says about its sender.
type Origin struct {
	Incarnation string `json:"incarnation"`
	N           int64  `json:"n"`
}

// Register asks for admission to the fleet; repeated until welcomed.
type Register struct {
	Header
	Origin
	// Identity is the sender's aws:userid, the text whose hash Instance is.
	Identity      string            `json:"identity"`
	Session       string            `json:"session"`
	Cluster       string            `json:"cluster"`
	Epoch         int64             `json:"epoch,omitempty"` // the last epoch this agent knew
	WireVersions  []int             `json:"wireVersions"`
	AgentVersion  string            `json:"agentVersion,omitempty"`
	AgentHash     string            `json:"agentHash,omitempty"`
	DockerVersion string            `json:"dockerVersion,omitempty"`
	EC2InstanceID string            `json:"ec2InstanceId,omitempty"`
	Zone          string            `json:"zone,omitempty"`
	CPU           int               `json:"cpu"`
	MemoryMiB     int               `json:"memory"`
	ReservedTCP   []int             `json:"reservedTcp,omitempty"`
	ReservedUDP   []int             `json:"reservedUdp,omitempty"`
	GPUs          []string          `json:"gpus,omitempty"`
	Attributes    map[string]string `json:"attributes,omitempty"`
}

// Snapshot is a task as its agent sees it, with all its containers.
type Snapshot struct {
	Task          string           `json:"task"`
	Attempt       int              `json:"attempt"`
	Epoch         int64            `json:"epoch"`
	Status        task.Status      `json:"status"`
	Cause         task.Cause       `json:"cause,omitempty"`
	Reason        string           `json:"reason,omitempty"`
	Health        task.Health      `json:"healthStatus,omitempty"` // empty: nothing checks an essential container
	Containers    []task.Container `json:"containers,omitempty"`
	PullStartedAt time.Time        `json:"pullStartedAt,omitzero"`
	PullStoppedAt time.Time        `json:"pullStoppedAt,omitzero"`
	StartedAt     time.Time        `json:"startedAt,omitzero"`
	StoppingAt    time.Time        `json:"stoppingAt,omitzero"`
	StoppedAt     time.Time        `json:"stoppedAt,omitzero"`
}

// Report tells one task's state.
type Report struct {
	Header
	Origin
	Snapshot
}

// RefusalCode is why an agent could not run a task it had started nothing of.
type RefusalCode string

const (
	RefusedPort   RefusalCode = "RESOURCE:PORTS"
	RefusedMemory RefusalCode = "RESOURCE:MEMORY"
	RefusedGPU    RefusalCode = "RESOURCE:GPU"
	RefusedAgent  RefusalCode = "AGENT" // engine down, or a message it can not read
)

// Refused ends an attempt that never ran.
type Refused struct {
	Header
	Origin
	Task    string      `json:"task"`
	Attempt int         `json:"attempt"`
	Epoch   int64       `json:"epoch"`
	Code    RefusalCode `json:"code"`
	Reason  string      `json:"reason"`
	TCP     []int       `json:"tcp,omitempty"` // ports a stranger has
	UDP     []int       `json:"udp,omitempty"`
}

// Phase is a task's state in an inventory.
type Phase string

const (
	PhasePending Phase = "pending" // accepted, nothing seen running
	PhaseRunning Phase = "running" // has run and has not ended (RUNNING or STOPPING)
	PhaseEnded   Phase = "ended"   // ended or refused, not yet acknowledged
)

// Entry is one task of an inventory.
type Entry struct {
	Task    string `json:"task"`
	Attempt int    `json:"attempt"`
	Epoch   int64  `json:"epoch"`
	Phase   Phase  `json:"phase"`
	// GPUs are the devices it was given: tables that were restored may not know.
	GPUs []string `json:"gpus,omitempty"`
}

// Heartbeat renews the lease and lists everything not acknowledged as ended.
type Heartbeat struct {
	Header
	Origin
	Session       string  `json:"session"`
	Epoch         int64   `json:"epoch"`
	Docker        string  `json:"docker"` // OK or IMPAIRED
	DockerReason  string  `json:"dockerReason,omitempty"`
	FreeDiskMiB   int64   `json:"freeDisk,omitempty"`
	Inventory     []Entry `json:"inventory"`
	UnknownLabels int     `json:"unknown,omitempty"` // containers with our label but no readable task
	// Notice says that the host is about to be taken away; absent: nothing is known
	// to come. The beat sent last counts.
	Notice *Notice `json:"notice,omitempty"`
	// NoRoom is why the host has no room for a task more though its engine works, as
	// its disk is full; absent: it has. What runs there is not touched by it.
	NoRoom string `json:"noRoom,omitempty"`
}

// Notice is what a host's metadata says of its end.
type Notice struct {
	Kind   string    `json:"kind"`             // one of the words below
	Action string    `json:"action,omitempty"` // in the words of EC2 or Auto Scaling: terminate, stop, Terminated …
	At     time.Time `json:"at,omitzero"`      // when, where that is known
}

// Kinds of notices.
const (
	NoticeSpot        = "spot"        // EC2 interrupts the Spot instance
	NoticeAutoScaling = "autoscaling" // its Auto Scaling group is about to take it out of service
	NoticeRebalance   = "rebalance"   // EC2 says that an interruption is likely
)

// Docker health words.
const (
	DockerOK       = "OK"
	DockerImpaired = "IMPAIRED"
)

// Probe is the reaper's own message through the heartbeat queue.
type Probe struct {
	Header
	ID string `json:"id"`
}

// Assign gives a task to an instance.
type Assign struct {
	Header
	Epoch       int64           `json:"epoch"`
	Task        string          `json:"task"`
	Attempt     int             `json:"attempt"`
	TaskARN     string          `json:"taskArn"`
	Cluster     string          `json:"cluster"`
	Family      string          `json:"family"`
	Revision    int             `json:"revision"`
	Definition  json.RawMessage `json:"definition"` // with the overrides applied
	GPUs        []string        `json:"gpus,omitempty"`
	Group       string          `json:"group,omitempty"`
	StartedBy   string          `json:"startedBy,omitempty"`
	ServiceName string          `json:"serviceName,omitempty"`
}

// Stop asks for the end of one attempt.
type Stop struct {
	Header
	Task    string `json:"task"`
	Attempt int    `json:"attempt"`
	Reason  string `json:"reason,omitempty"`
}

// Ack says that an attempt's end is known.
type Ack struct {
	Header
	Task    string `json:"task"`
	Attempt int    `json:"attempt"`
}

// Welcome answers an accepted Register.
type Welcome struct {
	Header
	Incarnation          string `json:"incarnation"`
	ContainerInstanceARN string `json:"containerInstanceArn"`
	Cluster              string `json:"cluster"`
	Epoch                int64  `json:"epoch"`
	N                    int64  `json:"n"` // this agent goes on above it
	HeartbeatEveryS      int    `json:"heartbeatEvery"`
}

// Attempt names one attempt of a task.
type Attempt struct {
	Task    string `json:"task"`
	Attempt int    `json:"attempt"`
}

// Fence raises the agent's epoch and names what it is to stop.
type Fence struct {
	Header
	Incarnation string    `json:"incarnation"`
	Epoch       int64     `json:"epoch"`
	Closed      []Attempt `json:"closed,omitempty"`
	Terminal    bool      `json:"terminal,omitempty"` // deregistered: stop, exit 5
	Reason      string    `json:"reason,omitempty"`   // e.g. DUPLICATE_IDENTITY
}

// DuplicateIdentity is the reason of a fence that keeps a second machine, or a
// second agent, of one identity out: it changes nothing of whom it is for.
const DuplicateIdentity = "DUPLICATE_IDENTITY"

// Resync asks for the snapshots of some tasks again. One that names none comes
// from a control plane that does not know the instance: it is to register.
type Resync struct {
	Header
	Tasks []string `json:"tasks"`
}

// Message is any of the above.
type Message interface{ header() *Header }

func (h *Header) header() *Header { return h }

func empty(t Type) Message {
	switch t {
	case RegisterType:
		return &Register{}
	case ReportType:
		return &Report{}
	case RefusedType:
		return &Refused{}
	case HeartbeatType:
		return &Heartbeat{}
	case ProbeType:
		return &Probe{}
	case AssignType:
		return &Assign{}
	case StopType:
		return &Stop{}
	case AckType:
		return &Ack{}
	case WelcomeType:
		return &Welcome{}
	case FenceType:
		return &Fence{}
	case ResyncType:
		return &Resync{}
	}
	return nil
}

// TypeOf is the type that a message's Go type says.
func TypeOf(m Message) Type {
	switch m.(type) {
	case *Register:
		return RegisterType
	case *Report:
		return ReportType
	case *Refused:
		return RefusedType
	case *Heartbeat:
		return HeartbeatType
	case *Probe:
		return ProbeType
	case *Assign:
		return AssignType
	case *Stop:
		return StopType
	case *Ack:
		return AckType
	case *Welcome:
		return WelcomeType
	case *Fence:
		return FenceType
	case *Resync:
		return ResyncType
	}
	return ""
}

// HeaderOf is a message's header, to fill in or read.
func HeaderOf(m Message) *Header { return m.header() }

// Encode fills in version and type and writes the message. A message that
// Decode would refuse is an error here.
func Encode(m Message) ([]byte, error) {
	h := m.header()
	h.Version, h.Type = Version, TypeOf(m)
	if err := check(m); err != nil {
		return nil, err
	}
	b, err := json.Marshal(m)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "encode %s", h.Type)
	}
	if len(b) > MaxBytes {
		return nil, fault.New(fault.Invalid, "message %s has %d bytes; at most %d are allowed", h.Type, len(b), MaxBytes)
	}
	return b, nil
}

// Decode reads one message strictly: size, version, type, members and their
// bounds. Its errors are of kind Invalid and name the member. Where the header
// could be read the message is returned beside the error with only the header
// filled in, as an *Unreadable.
func Decode(b []byte) (Message, error) {
	if len(b) > MaxBytes {
		return nil, fault.New(fault.Invalid, "message has %d bytes; at most %d are allowed", len(b), MaxBytes)
	}
	var h Header
	if err := json.Unmarshal(b, &h); err != nil {
		return nil, fault.Malformed(err, "message is not a JSON object with a header")
	}
	if !slices.Contains(Versions(), h.Version) {
		return &Unreadable{h}, fault.Field("v", "version %d is not one this program reads (%v)", h.Version, Versions())
	}
	m := empty(h.Type)
	if m == nil {
		return &Unreadable{h}, fault.Field("type", "%.64q is not a message type", h.Type)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(m); err != nil {
		return &Unreadable{h}, fault.Malformed(err, "decode %s", h.Type)
	}
	if _, err := d.Token(); err != io.EOF {
		return &Unreadable{h}, fault.New(fault.Invalid, "decode %s: something follows the message", h.Type)
	}
	if err := check(m); err != nil {
		return &Unreadable{h}, err
	}
	return m, nil
}

// Unreadable stands for a message of which only the header could be read.
type Unreadable struct{ Header }
