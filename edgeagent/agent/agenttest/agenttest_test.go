package agenttest_test

import (
	"testing"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/edgeagent/agent/agenttest"
)

func TestJournal_InMemoryDoesWhatEveryJournalMust(t *testing.T) {
	agenttest.JournalSuite(t, func(*testing.T) func() agent.Journal {
		j := agenttest.NewJournal("first", "identity")
		return func() agent.Journal { return j }
	})
}
