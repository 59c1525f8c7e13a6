package agenttest

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/longshore-run/longshore/edgeagent/agent"
)

// Journal is a journal in memory. It outlives agents; what it holds has been
// through JSON, as on disk.
type Journal struct {
	// OnCommit is asked before (done false) and after (done true) each change;
	// an error before means that the change was not written.
	OnCommit func(c agent.Change, done bool) error

	mu      sync.Mutex
	meta    []byte
	tasks   map[string][]byte
	images  []byte
	commits int
}

// NewJournal is a new one with a new incarnation.
func NewJournal(incarnation, identity string) *Journal {
	j := &Journal{tasks: map[string][]byte{}}
	j.meta = encode(agent.Meta{Incarnation: incarnation, Identity: identity})
	return j
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("agenttest: %v", err))
	}
	return b
}

func decode(b []byte, v any) {
	if err := json.Unmarshal(b, v); err != nil {
		panic(fmt.Sprintf("agenttest: %v", err))
	}
}

// Load is agent.Journal's.
func (j *Journal) Load() (agent.State, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := agent.State{Tasks: map[string]agent.Record{}}
	decode(j.meta, &s.Meta)
	if j.images != nil {
		decode(j.images, &s.Images)
	}
	for id, b := range j.tasks {
		var r agent.Record
		decode(b, &r)
		s.Tasks[id] = r
	}
	return s, nil
}

// Commit is agent.Journal's.
func (j *Journal) Commit(c agent.Change) error {
	if j.OnCommit != nil {
		if err := j.OnCommit(c, false); err != nil {
			return err
		}
	}
	j.mu.Lock()
	if c.Meta != nil {
		j.meta = encode(*c.Meta)
	}
	for _, r := range c.Put {
		j.tasks[r.ID()] = encode(r)
	}
	if c.Images != nil {
		j.images = encode(c.Images)
	}
	for _, id := range c.Drop {
		delete(j.tasks, id)
	}
	j.commits++
	j.mu.Unlock()
	if j.OnCommit != nil {
		return j.OnCommit(c, true)
	}
	return nil
}

// Commits is how many changes were written.
func (j *Journal) Commits() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.commits
}
