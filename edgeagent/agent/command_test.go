package agent_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/edgeagent/agent/agenttest"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
)

func TestAssign_AfterItsStopIsAnsweredWithTheEndAndNeverRun(t *testing.T) {
	bubble(t, func(r *rig) {
		r.up()
		r.put(r.stop(1, 1))
		r.expect(1, "STOPPED")
		r.put(r.assign(1, 1))
		r.pass(time.Minute)
		r.expect(1, "STOPPED, STOPPED")
		r.starts(1, 1, 0)
		for range 11 { // as long as the command queue keeps it, and after the clean-up
			r.pass(10 * time.Minute)
			r.put(r.assign(1, 1))
		}
		r.starts(1, 1, 0)
		r.ended(1, "STOPPED")
		r.down()
	})
}

func TestAssign_OfAHigherEpochWaitsAndIsNeverLost(t *testing.T) {
	for name, raise := range map[string]func(r *rig) wire.Message{
		"welcome": func(r *rig) wire.Message { return r.welcome("first", 300) },
		"fence": func(*rig) wire.Message {
			return &wire.Fence{Header: wire.Header{Instance: instance}, Incarnation: "first", Epoch: 300}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.up()
				early := r.assign(1, 1)
				early.Epoch = 300
				r.put(early)
				r.pass(10 * time.Minute)
				r.starts(1, 1, 0)
				if n := r.inbox.Len(); n != 1 {
					t.Fatalf("%d commands are in the queue, want the one that waits", n)
				}
				r.kill()
				r.up()
				r.pass(time.Minute) // it comes again
				r.put(raise(r))
				r.starts(1, 1, 1) // at once, from memory
				r.pass(2 * time.Minute)
				if n := r.inbox.Len(); n != 0 {
					t.Errorf("%d commands are left", n)
				}
				r.starts(1, 1, 1)
				r.down()
			})
		})
	}
}

func TestAssign_OfALowerEpochOrAttemptIsDropped(t *testing.T) {
	bubble(t, func(r *rig) {
		r.up()
		old := r.assign(1, 1)
		old.Epoch = 99
		garbled := r.assign(2, 2)
		garbled.Definition = []byte(`[]`)
		r.put(old, garbled)
		r.put(r.assign(2, 1))
		r.pass(10 * time.Minute)
		r.starts(1, 1, 0)
		r.starts(2, 1, 0)
		if _, there := r.state().Tasks[id(1)]; there {
			t.Error("a task of an older epoch was taken in")
		}
		r.expect(1, "")
		r.expect(2, "REFUSED AGENT tcp[] udp[]")
		if n := r.inbox.Len(); n != 0 {
			t.Errorf("%d commands are left", n)
		}
		r.down()
	})
}

func TestAssign_OfTheNextAttemptFollowsARefusal(t *testing.T) {
	bubble(t, func(r *rig) {
		var taken []int
		r.taken = func(tcp, _ []int) ([]int, []int) {
			if len(taken) > 0 && len(tcp) > 0 {
				return taken, nil
			}
			return nil, nil
		}
		web := taskdef.ContainerDefinition{Name: "app", Image: "busybox", PortMappings: []taskdef.PortMapping{{ContainerPort: new(80), HostPort: new(8080)}}}
		r.up()
		taken = []int{8080}
		r.set(func() { r.acks = false })
		r.put(r.assign(1, 1, web))
		r.pass(10 * time.Second)
		r.expect(1, "REFUSED RESOURCE:PORTS tcp[8080] udp[]")
		r.starts(1, 1, 0)
		if inv := r.inventory(); inv["a001/1"] != "" && inv["a001/1"] != wire.PhaseEnded {
			t.Errorf("the inventory is %v", inv)
		}
		taken = nil
		r.put(r.assign(1, 2, web))
		r.pass(time.Minute)
		r.starts(1, 1, 0)
		r.starts(1, 2, 1)
		r.put(&wire.Ack{Header: wire.Header{Instance: instance}, Task: id(1), Attempt: 1}) // late, of the refusal
		r.pass(time.Minute)
		if inv := r.inventory(); inv["a001/2"] != wire.PhaseRunning {
			t.Errorf("the inventory is %v", inv)
		}
		r.down()
	})
}

func TestResync_SaysTheSnapshotAgainAsNews(t *testing.T) {
	bubble(t, func(r *rig) {
		r.up()
		r.put(r.assign(1, 1))
		r.put(&wire.Resync{Header: wire.Header{Instance: instance}, Tasks: []string{id(1), id(2)}})
		r.expect(1, "RUNNING, RUNNING")
		if a, b := r.reports(1)[0], r.reports(1)[1]; b.N <= a.N {
			t.Errorf("n went from %d to %d", a.N, b.N)
		}
		n := len(sent[*wire.Register](r))
		r.put(&wire.Resync{Header: wire.Header{Instance: instance}}) // by one who does not know us
		r.pass(time.Second)
		if len(sent[*wire.Register](r)) != n+1 {
			t.Error("it did not register again")
		}
		r.down()
	})
}

func TestStop_OfSomethingUnknownWaitsWhileTheEngineIsRead(t *testing.T) {
	bubble(t, func(r *rig) {
		r.up()
		r.put(r.assign(1, 1))
		r.kill()
		r.engine.Die()
		r.up()
		r.put(r.stop(9, 1), r.assign(8, 1), r.stop(1, 1))
		r.pass(2 * time.Minute)
		r.expect(9, "")
		r.starts(8, 1, 0)
		if n := r.inbox.Len(); n != 2 {
			t.Errorf("%d commands wait in the queue, want 2", n)
		}
		r.engine.Revive()
		r.pass(time.Minute)
		r.ended(9, "STOPPED")
		r.starts(8, 1, 1)
		r.ended(1, "STOPPED 143")
		r.down()
	})
}

func TestJournal_ThatCannotBeWrittenStopsEverythingAndLosesNothing(t *testing.T) {
	bubble(t, func(r *rig) {
		full := errors.New("no space left on device")
		var fail atomic.Bool
		r.journal.OnCommit = func(_ agent.Change, done bool) error {
			if fail.Load() && !done {
				return full
			}
			return nil
		}
		r.up()
		fail.Store(true)
		r.put(r.assign(1, 1))
		r.pass(2 * time.Minute)
		r.starts(1, 1, 0)
		if n := r.inbox.Len(); n != 1 {
			t.Errorf("%d commands are in the queue", n)
		}
		fail.Store(false)
		r.pass(2 * time.Minute)
		r.starts(1, 1, 1)
		r.down()
	})
}

func TestGarbage_IsDroppedAndHoldsUpNothing(t *testing.T) {
	bubble(t, func(r *rig) {
		r.up()
		r.inbox.PutRaw([]byte("garbage"))
		r.inbox.PutRaw([]byte(`{"v":99,"type":"assign","instance":"` + instance + `"}`))
		other := r.assign(2, 1)
		other.Instance = strings.Repeat("0", 32)
		r.put(other, r.assign(1, 1))
		r.pass(time.Second)
		r.starts(1, 1, 1)
		r.starts(2, 1, 0)
		if n := r.inbox.Len(); n != 0 {
			t.Errorf("%d commands are left", n)
		}
		r.down()
	})
}

// A command that waits in memory outlives neither its copy in the queue nor the
// tombstone that would answer it.
func TestAssign_ThatWaitedTooLongInMemoryIsForgotten(t *testing.T) {
	bubble(t, func(r *rig) {
		r.up()
		early := r.assign(1, 1)
		early.Epoch = 300
		r.put(early)
		r.pass(time.Minute)
		r.inbox.Purge() // its retention is over
		r.put(r.stop(1, 1))
		r.pass(6 * time.Hour)
		if n := len(r.state().Tasks); n != 0 {
			t.Fatalf("%d records: the tombstone should be forgotten by now", n)
		}
		r.put(r.welcome("first", 300))
		r.pass(time.Minute)
		r.starts(1, 1, 0)
		r.down()
	})
}

// It cannot happen while each attempt ends before the next: so if it does, what
// is older goes first, and nothing is lost.
func TestAttempt_ThatIsNewerThanOneWhichRunsWaitsForItsEnd(t *testing.T) {
	for name, command := range map[string]func(r *rig) wire.Message{
		"assign": func(r *rig) wire.Message { return r.assign(1, 2) },
		"stop":   func(r *rig) wire.Message { return r.stop(1, 2) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.engine.OnStart = func(agent.ContainerID) agenttest.Program { return agenttest.Program{Deaf: true} }
				r.up()
				r.put(r.assign(1, 1))
				r.put(command(r))
				r.pass(5 * time.Second)
				if n := r.inbox.Len(); n != 1 {
					t.Errorf("%d commands in the queue while the older attempt is stopped, want 1", n)
				}
				r.starts(1, 2, 0)
				r.pass(time.Minute)
				if r.engine.Containers()[app(1, 1)].Running {
					t.Error("the older attempt runs")
				}
				if rec := r.state().Tasks[id(1)]; rec.Attempt() != 2 {
					t.Errorf("the journal has attempt %d", rec.Attempt())
				}
				if n := r.inbox.Len(); n != 0 {
					t.Errorf("%d commands are left", n)
				}
				r.down()
			})
		})
	}
}

func TestAck_OfWhatRunsIsNothing(t *testing.T) {
	bubble(t, func(r *rig) {
		r.set(func() { r.acks = false })
		r.up()
		r.put(r.assign(1, 1))
		r.put(&wire.Ack{Header: wire.Header{Instance: instance}, Task: id(1), Attempt: 1}, &wire.Ack{Header: wire.Header{Instance: instance}, Task: id(2), Attempt: 1})
		r.engine.Exit(app(1, 1), 0)
		r.pass(r.setting.CleanupWait + time.Hour)
		if inv := r.inventory(); inv["a001/1"] != wire.PhaseEnded || len(r.engine.Containers()) != 1 {
			t.Errorf("the inventory is %v: its end was not acknowledged", inv)
		}
		r.down()
	})
}
