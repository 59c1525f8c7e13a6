package search

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest/machine"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

// kind is one of the things that happen, of which a search combines some.
type kind string

const (
	submit     kind = "submit"
	stop       kind = "stop"
	admit      kind = "admit"
	report     kind = "report"
	refuse     kind = "refuse"
	heartbeat  kind = "heartbeat"
	register   kind = "register"
	reap       kind = "reap"
	closeOlder kind = "close"
	endKept    kind = "end kept"
	sweep      kind = "sweep"
	impaired   kind = "impaired"
	newJournal kind = "new journal"
	newDisk    kind = "new disk"
	revertN    kind = "n reverted"
	restart    kind = "agent restarts"
	die        kind = "host dies"
	comeBack   kind = "return"
	expire     kind = "item expires"
	restore    kind = "restore"
	terminated kind = "host terminated"
	off        kind = "confirmed off"
	deregister kind = "deregister"
	drain      kind = "drain"
	serve      kind = "serve"
	redeliver  kind = "redeliver" // a letter that was delivered already
	crash      kind = "crash"     // of a use case between two of its calls
	see        kind = "probe"     // only settles and scripts deliver it
)

// kinds are all that a search combines.
var kinds = []kind{submit, stop, admit, report, refuse, heartbeat, register, reap, closeOlder, endKept, sweep, impaired, newJournal, newDisk, revertN,
	restart, die, comeBack, expire, restore, terminated, off, deregister, drain, serve, redeliver, crash}

// begin is one way to begin an operation: a use case, or a stroke of fate that is
// over at once.
type begin struct {
	kind   kind
	label  string
	call   *call
	letter uint32
	again  bool                   // the letter stays on its way
	before func(s *state)         // what happens first
	needs  func(l *budget) *uint8 // what it costs beside an operation
}

const cluster = "default"

// begins are all operations that may begin in a state.
func (x *search) begins(s *state) (out []begin) {
	add := func(all ...begin) {
		for _, o := range all {
			if x.allowed == nil || x.allowed[o.kind] {
				out = append(out, o)
			}
		}
	}
	b := x.book
	add(x.submits(s), begin{kind: admit, label: "admit", call: x.admission(s)},
		begin{kind: reap, label: "reap", call: x.call(s, reap, "reap", func(ctx context.Context, c *control.Control) error { return c.Tick(ctx) })},
		begin{kind: sweep, label: "sweep", call: x.call(s, sweep, "sweep", func(ctx context.Context, c *control.Control) error { return c.Sweep(ctx) })})
	for _, t := range recordsOf[*control.Task](b, s.items) {
		switch {
		case t.LastStatus == task.Stopped:
			add(x.expiry(t))
		case t.DesiredStatus == task.DesiredRunning:
			id := t.ID
			add(begin{kind: stop, label: "stop " + short(id), call: x.call(s, stop, "stop "+short(id), func(ctx context.Context, c *control.Control) error {
				_, err := c.StopTask(ctx, cluster, id, "enough")
				return err
			})})
		}
	}
	for _, r := range recordsOf[*control.Service](b, s.items) {
		add(begin{kind: serve, label: "serve " + r.Name, call: x.service(s, r.Name), before: func(s *state) { s.made++ }})
	}
	for i := range s.machines {
		add(x.onMachine(s, i)...)
	}
	last := uint32(0)
	for _, id := range s.letters {
		if l := &b.letters[id]; l.to < 0 && id != last {
			last = id
			add(x.delivery(s, id, false), x.delivery(s, id, true))
		}
	}
	if x.backup != nil && !s.restored && len(s.runs) == 0 { // nothing runs while tables are restored
		add(begin{kind: restore, label: "restore", before: x.restore})
	}
	return out
}

// call is a use case that begins now.
func (x *search) call(s *state, k kind, name string, run func(context.Context, *control.Control) error) *call {
	c := &call{kind: k, name: name, at: s.clock, run: run}
	if k == reap { // what makes ids: no two at one moment make the same
		c.ids = fmt.Sprintf("f%02x%08x", len(recordsOf[*control.Probe](x.book, s.items)), s.clock)
	}
	return c
}

func (x *search) submits(s *state) begin {
	id := int(s.made)
	name := fmt.Sprintf("submit t%d", id+1)
	c := x.call(s, submit, name, func(ctx context.Context, c *control.Control) error {
		made := 0
		again := *c
		again.NewID = func() string { made++; return fmt.Sprintf("%032x", id+made) }
		_, err := again.RunTask(ctx, control.RunTaskRequest{TaskRequest: control.TaskRequest{Cluster: cluster, Definition: "app:1"}, Count: 1})
		return err
	})
	return begin{kind: submit, label: name, call: c, before: func(s *state) { s.made++ }}
}

// service is a run for one service, woken by a kick that names its tasks.
func (x *search) service(s *state, name string) *call {
	var ids []string
	label := []string{"serve", name}
	for _, t := range recordsOf[*control.Task](x.book, s.items) {
		if t.Service == name && len(ids) < 10 {
			ids = append(ids, t.ID)
			label = append(label, short(t.ID))
		}
	}
	c := x.call(s, serve, strings.Join(label, " "), func(ctx context.Context, c *control.Control) error {
		return c.Serve(ctx, control.Kick{Cluster: cluster, Service: name, Tasks: ids})
	})
	c.ids = fmt.Sprintf("e%02x", s.made) // no two make the same
	return c
}

// admission is a pass woken by a kick that names what waits.
func (x *search) admission(s *state) *call {
	var ids []string
	label := []string{"admit"}
	for _, t := range recordsOf[*control.Task](x.book, s.items) {
		if t.LastStatus == task.Provisioning {
			ids = append(ids, t.ID)
			label = append(label, short(t.ID))
		}
	}
	return x.call(s, admit, strings.Join(label, " "), func(ctx context.Context, c *control.Control) error {
		return c.Admit(ctx, control.Kick{Cluster: cluster, Tasks: ids})
	})
}

func (x *search) expiry(t *control.Task) begin {
	return begin{kind: expire, label: "item of " + short(t.ID) + " expires", before: func(s *state) {
		s.items = x.book.without(s.items, x.book.key(t))
	}}
}

// change is a stroke of fate on one machine.
func (x *search) change(k kind, i int, label string, do func(m *machine.Machine)) begin {
	return begin{kind: k, label: label, before: func(s *state) {
		s.withMachine(i, x.move(s, i, label, 0, func(m *machine.Machine) (string, string, []wire.Message) {
			do(m)
			return label, "", nil
		}).after)
	}}
}

func (x *search) onMachine(s *state, i int) (out []begin) {
	m := x.book.machines[s.machines[i]]
	id, name := m.ID, m.Name
	use := func(k kind, label string, run func(context.Context, *control.Control) error) {
		out = append(out, begin{kind: k, label: label, call: x.call(s, k, label, run)})
	}
	use(closeOlder, "close on "+name, func(ctx context.Context, c *control.Control) error { return c.CloseOlder(ctx, id) })
	if x.keepsOn(s, id) {
		use(endKept, "end kept on "+name, func(ctx context.Context, c *control.Control) error { return c.EndKept(ctx, id) })
	}
	use(deregister, "deregister "+name, func(ctx context.Context, c *control.Control) error {
		_, err := c.DeregisterContainerInstance(ctx, cluster, id, true)
		return err
	})
	use(drain, "drain "+name, func(ctx context.Context, c *control.Control) error {
		_, _, err := c.UpdateContainerInstancesState(ctx, cluster, []string{id}, control.Draining)
		return err
	})
	if !m.Host {
		at := time.Unix(s.clock, 0).UTC()
		use(terminated, name+" terminated", func(ctx context.Context, c *control.Control) error {
			return c.IngestHostState(ctx, control.HostState{EC2InstanceID: name, State: "terminated", At: at})
		})
		out[len(out)-1].call.argument = fmt.Sprint(s.clock)
		use(off, name+" confirmed off", func(ctx context.Context, c *control.Control) error {
			_, err := c.FenceContainerInstance(ctx, cluster, id)
			return err
		})
		return append(out, x.change(comeBack, i, name+" returns", (*machine.Machine).Return))
	}
	out = append(out, x.change(die, i, name+" dies", (*machine.Machine).Die), x.change(newDisk, i, name+" loses its disk", (*machine.Machine).LoseDisk))
	if !m.Up {
		return append(out, x.change(restart, i, name+" agent restarts", (*machine.Machine).Restart))
	}
	out = append(out, x.change(newJournal, i, name+" loses its journal", (*machine.Machine).LoseJournal),
		x.change(revertN, i, name+" n reverted", (*machine.Machine).RevertN), x.change(restart, i, name+" agent restarts", (*machine.Machine).Restart))
	if !m.Welcomed {
		return append(out, x.sent(s, register, i, name+" registers", (*machine.Machine).Register))
	}
	out = append(out, x.sent(s, heartbeat, i, name+" beats", (*machine.Machine).Beat))
	if !m.Impaired {
		out = append(out, x.sent(s, impaired, i, name+" beats impaired", func(m *machine.Machine) wire.Message { m.Impaired = true; return m.Beat() }))
	}
	return out
}

// keepsOn says whether an instance has a kept task.
func (x *search) keepsOn(s *state, id string) bool {
	return slices.ContainsFunc(recordsOf[*control.Task](x.book, s.items), func(t *control.Task) bool { return t.Instance == id && !t.Kept.IsZero() })
}

// sent is a message that a machine sends now and that is delivered at once.
func (x *search) sent(s *state, k kind, i int, label string, say func(m *machine.Machine) wire.Message) begin {
	after := s.clone()
	after.clock++
	said := x.move(after, i, label, 0, func(m *machine.Machine) (string, string, []wire.Message) {
		return label, "", []wire.Message{say(m)}
	})
	id := said.said[0]
	return begin{kind: k, label: label, letter: id, call: x.deliver(after, id), before: func(s *state) {
		s.clock++
		s.withMachine(i, said.after)
	}}
}

// kindOf is the kind of a letter's delivery.
func kindOf(m wire.Message) kind {
	switch m.(type) {
	case *wire.Report:
		return report
	case *wire.Refused:
		return refuse
	case *wire.Heartbeat:
		return heartbeat
	case *wire.Register:
		return register
	}
	return see
}

func (x *search) delivery(s *state, id uint32, again bool) begin {
	l := &x.book.letters[id]
	b := begin{kind: kindOf(l.message), label: "deliver " + l.name, letter: id, call: x.deliver(s, id), again: again}
	if again {
		b.kind, b.label = redeliver, b.label+", to come again"
		b.needs = func(l *budget) *uint8 { return &l.Again }
	} else {
		b.before = func(s *state) { s.withoutLetter(id) }
	}
	return b
}

// deliver is the use case that takes a letter in.
func (x *search) deliver(s *state, id uint32) *call {
	l := &x.book.letters[id]
	from := control.Sender{Identity: l.identity, SentAt: time.Unix(l.sent, 0).UTC(), MessageID: "m"}
	name := l.name
	switch m := l.message.(type) {
	case *wire.Report:
		return x.taking(s, id, report, name, func(ctx context.Context, c *control.Control) error { return c.IngestReport(ctx, from, m) })
	case *wire.Refused:
		return x.taking(s, id, refuse, name, func(ctx context.Context, c *control.Control) error { return c.IngestRefused(ctx, from, m) })
	case *wire.Heartbeat:
		return x.taking(s, id, heartbeat, name, func(ctx context.Context, c *control.Control) error {
			return c.Heartbeats(ctx, []control.Beat{{Sender: from, Instance: m.Instance, Message: m}})[0]
		})
	case *wire.Register:
		return x.taking(s, id, register, name, func(ctx context.Context, c *control.Control) error { return c.IngestRegister(ctx, from, m) })
	case *wire.Probe:
		return x.taking(s, id, see, name, func(ctx context.Context, c *control.Control) error { return c.IngestProbe(ctx, from, m) })
	}
	panic("search: no use case takes a " + nameOf(l.message))
}

// taking is a use case about a letter.
func (x *search) taking(s *state, id uint32, k kind, name string, run func(context.Context, *control.Control) error) *call {
	c := x.call(s, k, name, run)
	c.letter = id
	return c
}

// restore sets the tables back to the backup and raises every epoch above any
// that was ever given, as the runbook says.
func (x *search) restore(s *state) {
	b := x.book
	top := int64(0)
	for _, l := range recordsOf[*control.Ledger](b, s.items) {
		top = max(top, l.Epoch)
	}
	s.items, s.restored = slices.Clone(x.backup), true
	s.reaped = 0 // in these tables nobody was: the same one may be reaped again
	now := time.Unix(s.clock, 0).UTC()
	q := &control.QueueState{Cluster: cluster}
	b.fill(q, b.find(s, b.key(q)))
	q.Restored = true
	q.Version += 1000 // a restored table's versions are not those of before
	s.items = b.with(s.items, b.item(q))
	for _, was := range recordsOf[*control.Ledger](b, x.backup) {
		l, lease := &control.Ledger{ID: was.ID}, &control.Lease{ID: was.ID}
		b.fill(l, b.find(s, b.key(l)))
		b.fill(lease, b.find(s, b.key(lease)))
		l.Epoch = max(top, now.Unix()) + 1
		l.SinceEpoch, l.Stale, l.Cause, l.Connected, l.EndCause = l.Epoch, l.Open, control.IncarnationCause, false, ""
		lease.Epoch, lease.Stage, lease.StageSince, lease.StageReason = l.Epoch, control.StageFenced, now, "RESTORED: to echo its epoch"
		l.Version += 1000
		lease.Version += 1000
		s.items = b.with(b.with(s.items, b.item(l)), b.item(lease))
	}
}
