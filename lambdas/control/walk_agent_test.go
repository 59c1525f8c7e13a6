package control_test

import (
	"fmt"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest/machine"
	"github.com/longshore-run/longshore/shared/wire"
)

// peer is a machine on a walk, with what was sent to it. What it says is on its
// way from then on.
type peer struct {
	*machine.Machine
	w  *walk
	in []wire.Message
	// notice is what it sees of its host's end.
	notice *wire.Notice
}

func (m *peer) sender() control.Sender {
	return control.Sender{Identity: m.Identity, SentAt: m.w.Clock.Now(), MessageID: m.w.NewID()}
}

func (m *peer) say(all ...wire.Message) {
	for _, msg := range all {
		l := letter{what: fmt.Sprintf("%s of %s", wire.TypeOf(msg), m.Name), sender: m.sender()}
		switch msg := msg.(type) {
		case *wire.Report:
			l.what = fmt.Sprintf("report %s/%d %s", short(msg.Task), msg.Attempt, msg.Status)
			l.deliver = func(s control.Sender) error { return m.w.IngestReport(ctx, s, msg) }
		case *wire.Refused:
			l.what = "refused " + short(msg.Task)
			l.deliver = func(s control.Sender) error { return m.w.IngestRefused(ctx, s, msg) }
		case *wire.Heartbeat:
			l.what = fmt.Sprintf("beat %s e%d n%d %d", m.Name, msg.Epoch, msg.N, len(msg.Inventory))
			l.deliver = func(s control.Sender) error {
				return m.w.Heartbeats(ctx, []control.Beat{{Sender: s, Instance: m.ID, Message: msg}})[0]
			}
		case *wire.Register:
			l.what = "register " + m.IncarnationName()
			l.deliver = func(s control.Sender) error { return m.w.IngestRegister(ctx, s, msg) }
		}
		m.w.out = append(m.w.out, l)
	}
}

func (m *peer) beat() {
	b := m.Beat()
	b.(*wire.Heartbeat).Notice = m.notice
	m.say(b)
}

func (m *peer) register() { m.say(m.Register()) }

func (m *peer) repeat() { m.say(m.Repeat(m.w.Clock.Now())...) }

// command deals with one command; an assign is refused now and then.
func (m *peer) command(c wire.Message) {
	m.say(m.Command(c, m.Takes(c) && m.w.chance(10), m.w.Clock.Now())...)
}

// work is one step of the engine or of its being seen, or false.
func (m *peer) work() bool {
	what, id, said := m.Work(m.w.Clock.Now())
	if what == "starts" {
		m.w.started(id)
	}
	m.say(said...)
	return what != ""
}
