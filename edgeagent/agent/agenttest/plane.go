package agenttest

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

// Plane is the control plane of one instance in as few words as a test of an
// agent needs: it welcomes, merges what is reported, acknowledges ends, and takes
// a new incarnation's first inventory for what is there. The real one is
// lambdas/control, which edgeagent may not know; sim has both.
type Plane struct {
	Inbox *Inbox
	// Deaf keeps it from answering.
	Deaf func() bool

	mu          sync.Mutex
	instance    string
	epoch       int64
	incarnation string
	settling    bool // the first inventory of this epoch has not come yet
	tasks       map[string]Told
}

// Told is a task as the control plane knows it.
type Told struct {
	Attempt int
	Status  task.Status
	Refused bool
	Reason  string
	Codes   []int // exit codes, by container
	Ends    int   // how many different ends were told: never more than one
	n       int64
}

// Over says whether the task has ended.
func (t Told) Over() bool { return t.Status == task.Stopped || t.Refused }

// NewPlane is a control plane that begins with this epoch.
func NewPlane(instance string, epoch int64, inbox *Inbox) *Plane {
	return &Plane{Inbox: inbox, instance: instance, epoch: epoch, tasks: map[string]Told{}}
}

// Copy is another that knows the same, with a queue of its own.
func (p *Plane) Copy(inbox *Inbox) *Plane {
	p.mu.Lock()
	defer p.mu.Unlock()
	return &Plane{Inbox: inbox, instance: p.instance, epoch: p.epoch, incarnation: p.incarnation, tasks: maps.Clone(p.tasks)}
}

// Assign gives the instance a task.
func (p *Plane) Assign(m *wire.Assign) {
	p.mu.Lock()
	p.tasks[m.Task] = Told{Attempt: m.Attempt, Status: task.Pending}
	p.mu.Unlock()
	p.Inbox.Put(m)
}

// Epoch is the newest, and of which incarnation it is.
func (p *Plane) Epoch() (int64, string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.epoch, p.incarnation
}

// Tasks are all that it knows.
func (p *Plane) Tasks() map[string]Told {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.tasks)
}

// Hear takes in what an agent sent; an Outbox's OnSend.
func (p *Plane) Hear(m wire.Message) {
	if p.Deaf != nil && p.Deaf() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	h := wire.Header{Instance: p.instance}
	switch m := m.(type) {
	case *wire.Register:
		if p.incarnation != m.Incarnation && p.incarnation != "" {
			p.epoch, p.settling = p.epoch+1, true
		}
		p.incarnation = m.Incarnation
		p.Inbox.Put(&wire.Welcome{Header: h, Incarnation: m.Incarnation, Cluster: "default", Epoch: p.epoch, HeartbeatEveryS: 60})
	case *wire.Report:
		p.report(m)
		if m.Status == task.Stopped {
			p.Inbox.Put(&wire.Ack{Header: h, Task: m.Task, Attempt: m.Attempt})
		}
	case *wire.Refused:
		t := p.tasks[m.Task]
		if !t.Over() {
			t.Refused, t.Reason, t.Ends = true, m.Reason, t.Ends+1
			p.tasks[m.Task] = t
		}
		p.Inbox.Put(&wire.Ack{Header: h, Task: m.Task, Attempt: m.Attempt})
	case *wire.Heartbeat:
		if m.Incarnation == p.incarnation && m.Epoch == p.epoch {
			p.inventory(m)
		}
	}
}

func (p *Plane) report(m *wire.Report) {
	t, known := p.tasks[m.Task]
	switch {
	case known && t.Attempt != m.Attempt, m.Incarnation != p.incarnation:
		return
	case t.Over() || m.N <= t.n && m.Status != task.Stopped:
		return
	}
	t.Attempt, t.Status, t.n, t.Reason = m.Attempt, task.Merge(t.Status, m.Status), max(t.n, m.N), m.Reason
	if t.Codes = nil; t.Over() {
		t.Ends++
	}
	for _, c := range m.Containers {
		if c.ExitCode != nil {
			t.Codes = append(t.Codes, *c.ExitCode)
		}
	}
	p.tasks[m.Task] = t
}

// inventory is the part of the protocol that a lost journal needs: what the first
// one of an epoch lacks vanished, and what has ended on both sides is acknowledged.
func (p *Plane) inventory(m *wire.Heartbeat) {
	listed := map[string]wire.Entry{}
	for _, e := range m.Inventory {
		listed[e.Task] = e
		if t := p.tasks[e.Task]; e.Phase == wire.PhaseEnded && t.Over() {
			p.Inbox.Put(&wire.Ack{Header: wire.Header{Instance: p.instance}, Task: e.Task, Attempt: e.Attempt})
		}
	}
	if !p.settling {
		return
	}
	p.settling = false
	for id, t := range p.tasks {
		if e, ok := listed[id]; !t.Over() && (!ok || e.Attempt != t.Attempt) {
			t.Status, t.Reason, t.Ends = task.Stopped, "vanished", t.Ends+1
			p.tasks[id] = t
		}
		if t.n > 0 {
			t.n = 0 // another incarnation counts anew
			p.tasks[id] = t
		}
	}
}

// Differs says where the control plane, a journal and an engine do not say the
// same of any task, once all is at rest; empty where they agree.
func (p *Plane) Differs(journal agent.State, engine map[agent.ContainerID]agent.Seen) (wrong []string) {
	say := func(id, format string, args ...any) {
		wrong = append(wrong, fmt.Sprintf("task %s: ", id[max(0, len(id)-4):])+fmt.Sprintf(format, args...))
	}
	runs := map[string]bool{}
	for id, c := range engine {
		if c.Running {
			runs[id.Task] = true
		}
		if r, ok := journal.Tasks[id.Task]; !ok || r.Attempt() != id.Attempt {
			say(id.Task, "the engine has its container %s, and the journal does not know it", id.Container)
		}
	}
	told := p.Tasks()
	for id, t := range told {
		r, known := journal.Tasks[id]
		switch {
		case t.Ends > 1:
			say(id, "%d ends were told", t.Ends)
		case t.Over() && runs[id]:
			say(id, "it is over for the control plane, and runs")
		case t.Over() && known && !r.State.Ended():
			say(id, "it is over for the control plane, and %s in the journal", r.State.Status)
		case !t.Over() && !known:
			say(id, "it is %q for the control plane, and the journal does not know it", t.Status)
		case !t.Over() && t.Status != r.State.Status:
			say(id, "it is %q for the control plane, and %s in the journal", t.Status, r.State.Status)
		case t.Status == task.Running && !runs[id]:
			say(id, "it is RUNNING for the control plane, and the engine runs nothing of it")
		}
	}
	for id, r := range journal.Tasks {
		if _, ok := told[id]; !ok && !r.State.Ended() {
			say(id, "the journal has it as %s, and the control plane does not know it", r.State.Status)
		}
	}
	slices.Sort(wrong)
	return wrong
}
