package agenttest

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/edgeagent/internal/supervise"
	"github.com/longshore-run/longshore/shared/task"
)

// JournalSuite is what every journal must do. open opens the journal of one
// test; opened again it is the same journal, as a new process would find it
// after the old one was killed.
func JournalSuite(t *testing.T, open func(t *testing.T) (reopen func() agent.Journal)) {
	record := func(n int) agent.Record {
		code := n
		return agent.Record{
			Epoch: 7, Family: "web", Revision: n, Definition: []byte(`{"a":1}`), GPUs: []string{"g"}, N: int64(n), EndedAt: time.Duration(n),
			Stop: &supervise.Order{Cause: task.UserCause, Reason: "because"},
			State: supervise.Task{
				ID: fmt.Sprintf("%032x", n), Attempt: 1, Status: task.Stopped, Desired: task.DesiredStopped, StoppedAt: time.Unix(int64(n), 5).UTC(),
				Containers: []supervise.Container{{Name: "app", Phase: supervise.Stopped, Ran: true, Shown: task.Container{Name: "app", ExitCode: &code}}},
			},
		}
	}
	load := func(t *testing.T, j agent.Journal) agent.State {
		t.Helper()
		s, err := j.Load()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	commit := func(t *testing.T, j agent.Journal, c agent.Change) {
		t.Helper()
		if err := j.Commit(c); err != nil {
			t.Fatal(err)
		}
	}

	t.Run("a new one has an incarnation and no tasks", func(t *testing.T) {
		reopen := open(t)
		s := load(t, reopen())
		if s.Meta.Incarnation == "" || s.Meta.N != 0 || s.Meta.Epoch != 0 || s.Meta.Rebuilt || len(s.Tasks) != 0 {
			t.Errorf("a new journal holds %+v", s)
		}
		if again := load(t, reopen()); again.Meta.Incarnation != s.Meta.Incarnation {
			t.Errorf("opened again it is another incarnation")
		}
	})
	t.Run("a change is there at once and after every reopening, whole", func(t *testing.T) {
		reopen := open(t)
		j := reopen()
		want := load(t, j)
		for n := range 20 {
			c := agent.Change{}
			if n%3 != 0 { // not every change is about the agent itself
				meta := want.Meta
				meta.N, meta.Epoch, meta.Clock, meta.Rebuilt = int64(n), int64(100+n), time.Duration(n)*time.Second, true
				c.Meta, want.Meta = &meta, meta
			}
			for _, r := range []agent.Record{record(n), record(n + 100)} {
				c.Put = append(c.Put, r)
				want.Tasks[r.ID()] = r
			}
			if n%4 == 0 {
				c.Images = []agent.ImageUse{{ID: fmt.Sprint(n), Refs: []string{"busybox:1"}, Needed: time.Duration(n)}}
				want.Images = c.Images
			}
			if n > 0 {
				id := record(n + 99).State.ID
				c.Drop = append(c.Drop, id)
				delete(want.Tasks, id)
			}
			commit(t, j, c)
			if got := load(t, j); !reflect.DeepEqual(got, want) {
				t.Fatalf("after change %d:\n%+v\nwant\n%+v", n, got, want)
			}
			j = reopen()
			if got := load(t, j); !reflect.DeepEqual(got, want) {
				t.Fatalf("after change %d and reopening:\n%+v\nwant\n%+v", n, got, want)
			}
		}
	})
	t.Run("what is loaded is not what is kept", func(t *testing.T) {
		j := open(t)()
		commit(t, j, agent.Change{Put: []agent.Record{record(1)}})
		s := load(t, j)
		s.Tasks[record(1).State.ID].State.Containers[0].Name = "changed"
		if got := load(t, j); got.Tasks[record(1).State.ID].State.Containers[0].Name != "app" {
			t.Error("a change of what was loaded changed the journal")
		}
	})
	t.Run("dropping what is not there is nothing", func(t *testing.T) {
		j := open(t)()
		commit(t, j, agent.Change{Drop: []string{"nothing"}})
		commit(t, j, agent.Change{Put: []agent.Record{record(1)}})
		if s := load(t, j); len(s.Tasks) != 1 {
			t.Errorf("%d tasks", len(s.Tasks))
		}
	})
}
