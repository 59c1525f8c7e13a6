package agent

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/longshore-run/longshore/edgeagent/internal/supervise"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
)

// Record is one task in the journal, from its assign (or a stop that came
// before it) until its tombstone expires. State is written by the goroutine of
// the task alone, the rest by commands and loops.
type Record struct {
	Epoch      int64            `json:"epoch"` // of the assign
	TaskARN    string           `json:"taskArn,omitempty"`
	Cluster    string           `json:"cluster,omitempty"`
	Family     string           `json:"family,omitempty"`
	Revision   int              `json:"revision,omitempty"`
	Definition json.RawMessage  `json:"definition,omitempty"`
	GPUs       []string         `json:"gpus,omitempty"`
	State      supervise.Task   `json:"state"`
	Stop       *supervise.Order `json:"stop,omitempty"` // what a command asked for
	// N is that of the latest snapshot, drawn in the transaction that wrote it;
	// 0 if there is nothing to say yet.
	N     int64 `json:"n,omitempty"`
	Acked bool  `json:"acked,omitempty"` // the control plane knows the end
	// EndedAt, and ForgetAt of a tombstone, are times of Meta.Clock.
	EndedAt   time.Duration `json:"endedAt,omitempty"`
	Tomb      bool          `json:"tomb,omitempty"` // cleaned up: only the end is remembered
	ForgetAt  time.Duration `json:"forgetAt,omitempty"`
	Abandoned bool          `json:"abandoned,omitempty"` // waited too long for an acknowledgement
	// ServiceName is that of the service which the task is of, if it is of one.
	ServiceName string `json:"serviceName,omitempty"`
}

// ID is the task's.
func (r *Record) ID() string { return r.State.ID }

// Attempt is the attempt this record is about.
func (r *Record) Attempt() int { return r.State.Attempt }

func (r *Record) ended() bool { return r.State.Ended() }

// clone shares nothing that changes with r.
func (r Record) clone() Record {
	r.State = r.State.Clone()
	return r
}

// message is the record's latest report or refusal.
func (r *Record) message(instance, incarnation string) wire.Message {
	h := wire.Header{Instance: instance}
	o := wire.Origin{Incarnation: incarnation, N: r.N}
	s := &r.State
	if f := s.Refusal; f != nil {
		m := &wire.Refused{Header: h, Origin: o, Task: s.ID, Attempt: s.Attempt, Epoch: r.Epoch, Code: f.Code, Reason: clip(f.Reason)}
		for _, p := range f.Ports {
			if p.Protocol == "udp" {
				m.UDP = append(m.UDP, p.Number)
			} else {
				m.TCP = append(m.TCP, p.Number)
			}
		}
		m.TCP, m.UDP = m.TCP[:min(len(m.TCP), wire.MaxPorts)], m.UDP[:min(len(m.UDP), wire.MaxPorts)]
		return m
	}
	m := &wire.Report{Header: h, Origin: o, Snapshot: wire.Snapshot{
		Task: s.ID, Attempt: s.Attempt, Epoch: r.Epoch, Status: s.Status, Cause: s.Cause, Reason: clip(s.Reason), Health: s.Health(),
		PullStartedAt: s.PullStartedAt, PullStoppedAt: s.PullStoppedAt,
		StartedAt: s.StartedAt, StoppingAt: s.StoppingAt, StoppedAt: s.StoppedAt,
	}}
	for _, c := range s.Containers {
		if c.Pause() {
			continue
		}
		shown := c.Shown
		shown.Reason = clip(shown.Reason)
		shown.Bindings = shown.Bindings[:min(len(shown.Bindings), wire.MaxPorts)]
		m.Containers = append(m.Containers, shown)
	}
	return m
}

// clip bounds a text by whole characters: half of one grows on the wire, past
// the bound, and what tells of an end would never be understood.
func clip(text string) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= wire.MaxReason {
		return text
	}
	n := wire.MaxReason
	for !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// entry is the record's line in an inventory; false for what is not listed.
func (r *Record) entry() (wire.Entry, bool) {
	e := wire.Entry{Task: r.State.ID, Attempt: r.State.Attempt, Epoch: r.Epoch, Phase: wire.PhasePending, GPUs: r.devices()}
	switch {
	case r.State.Alive(): // T4: it ended, and runs all the same
		e.Phase = wire.PhaseRunning
	case r.ended() && r.Acked:
		return e, false
	case r.ended():
		e.Phase = wire.PhaseEnded
	case r.State.Started():
		e.Phase = wire.PhaseRunning
	}
	return e, true
}

// devices are the GPUs the task was given; without its assign, those its containers
// have.
func (r *Record) devices() []string {
	if len(r.GPUs) > 0 || r.ended() {
		return r.GPUs
	}
	var ids []string
	for _, c := range r.State.Containers {
		for _, id := range c.Shown.GPUs {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// tells says whether the control plane should hear of next after prev.
func tells(prev, next *supervise.Task) bool {
	switch {
	case next.Ended() != prev.Ended(), next.Status != prev.Status:
		return true
	case next.Status == task.Pending:
		return false
	}
	return !slices.EqualFunc(prev.Containers, next.Containers, func(a, b supervise.Container) bool {
		return a.Pause() && b.Pause() || a.Shown.Status == b.Shown.Status && (a.Shown.ExitCode == nil) == (b.Shown.ExitCode == nil) &&
			a.Shown.Health == b.Shown.Health && slices.Equal(a.Shown.Bindings, b.Shown.Bindings)
	})
}

// newRecord is the record of an assign; one that cannot be understood is
// refused from the start.
func newRecord(m *wire.Assign, stopTimeout time.Duration) Record {
	r := Record{
		Epoch: m.Epoch, TaskARN: m.TaskARN, Cluster: m.Cluster, Family: m.Family, Revision: m.Revision,
		Definition: m.Definition, GPUs: m.GPUs, ServiceName: m.ServiceName,
	}
	def, err := r.definition()
	if err == nil {
		err = tellable(def)
	}
	if err != nil {
		r.refuse(m.Task, m.Attempt, err.Error())
		return r
	}
	r.State = supervise.New(m.Task, m.Attempt, def, stopTimeout)
	return r
}

func (r *Record) refuse(id string, attempt int, reason string) {
	r.State = supervise.Task{
		ID: id, Attempt: attempt, Status: task.Pending, Desired: task.DesiredStopped,
		Refusal: &supervise.Refusal{Code: wire.RefusedAgent, Reason: reason},
	}
	r.Definition = nil
}

func (r *Record) definition() (*taskdef.TaskDefinition, error) {
	def, err := taskdef.ParseStored(r.Definition)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "task definition")
	}
	if len(def.ContainerDefinitions) == 0 {
		return nil, fault.New(fault.Invalid, "task definition has no container")
	}
	return &def, nil
}

// tellable says whether a task of the definition can be reported. One that cannot would
// be here, and end, without anybody's knowing.
func tellable(def *taskdef.TaskDefinition) error {
	if n := len(def.ContainerDefinitions); n > wire.MaxContainers {
		return fault.New(fault.Invalid, "task definition has %d containers; at most %d can be reported", n, wire.MaxContainers)
	}
	seen := map[string]bool{}
	for i, c := range def.ContainerDefinitions {
		if !wire.IsContainerName(c.Name) || seen[c.Name] {
			return fault.New(fault.Invalid, "task definition: containerDefinitions[%d].name is %.100q; allowed are 1 to 255 letters, digits, underscores and hyphens, each name once", i, c.Name)
		}
		seen[c.Name] = true
	}
	return nil
}

// stopped is the record of a task whose stop came before anything else.
func stopped(m *wire.Stop, epoch int64, now time.Time) Record {
	return Record{Epoch: epoch, State: supervise.Task{
		ID: m.Task, Attempt: m.Attempt, Status: task.Stopped, Desired: task.DesiredStopped,
		Reason: m.Reason, StoppingAt: now, StoppedAt: now,
	}}
}

// spec is what a container of the task is created from.
func (r *Record) spec(def *taskdef.TaskDefinition, container string) Spec {
	s := Spec{
		ContainerID: ContainerID{Task: r.State.ID, Attempt: r.State.Attempt, Container: container},
		Epoch:       r.Epoch, TaskARN: r.TaskARN, Cluster: r.Cluster, Family: r.Family, Revision: r.Revision, Definition: def,
		Labels: map[string]string{LabelSupervision: supervise.Kept(def, container)},
	}
	free := r.GPUs
	for _, d := range def.ContainerDefinitions { // in the definition's order
		n := min(d.GPUs(), len(free))
		if d.Name == container {
			s.GPUs = free[:n]
		}
		free = free[n:]
	}
	return s
}

// taken reads which ports an engine's error is about.
func taken(err error) []supervise.Port {
	p, ok := errors.AsType[*PortsTaken](err)
	if !ok {
		return nil
	}
	var all []supervise.Port
	for _, n := range p.TCP {
		all = append(all, supervise.Port{Number: n, Protocol: "tcp"})
	}
	for _, n := range p.UDP {
		all = append(all, supervise.Port{Number: n, Protocol: "udp"})
	}
	return all
}
