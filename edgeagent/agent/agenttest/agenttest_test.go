package agenttest_test

import (
	"testing"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/edgeagent/agent/agenttest"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/wire"
)

func TestJournal_InMemoryDoesWhatEveryJournalMust(t *testing.T) {
	agenttest.JournalSuite(t, func(*testing.T) func() agent.Journal {
		j := agenttest.NewJournal("first", "identity")
		return func() agent.Journal { return j }
	})
}

func TestInbox_InMemoryDoesWhatEveryInboxMust(t *testing.T) {
	agenttest.InboxSuite(t, func(*testing.T) agenttest.InboxRig {
		q := agenttest.NewInbox()
		q.Fail(fault.New(fault.NotFound, "there is no queue"))
		return agenttest.InboxRig{Inbox: q, Create: func() { q.Fail(nil) }, Put: q.PutRaw, Return: q.Return}
	})
}

func TestOutbox_InMemoryDoesWhatEveryOutboxMust(t *testing.T) {
	agenttest.OutboxSuite(t, func(*testing.T) agenttest.OutboxRig {
		o := agenttest.NewOutbox()
		o.Fail(fault.New(fault.NotFound, "there is no queue"))
		of := func(beats bool) func(int) []wire.Message {
			return func(int) (all []wire.Message) {
				for _, m := range o.Sent() {
					if _, beat := m.(*wire.Heartbeat); beat == beats {
						all = append(all, m)
					}
				}
				return all
			}
		}
		return agenttest.OutboxRig{Outbox: o, Create: func() { o.Fail(nil) }, Reports: of(false), Heartbeats: of(true)}
	})
}
