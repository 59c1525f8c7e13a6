package agent_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/edgeagent/agent/agenttest"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
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
		r.pass(time.Minute)
		r.starts(1, 1, 0)
		r.starts(2, 1, 0)
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

func TestWelcome_OfAnotherIncarnationIsIgnoredAndTheEpochNeverGoesDown(t *testing.T) {
	bubble(t, func(r *rig) {
		r.set(func() { r.mute = true })
		r.up()
		r.put(r.welcome("an-older-one", 900))
		r.pass(time.Second)
		if n := len(sent[*wire.Heartbeat](r)); n != 0 {
			t.Errorf("%d heartbeats after another's welcome", n)
		}
		r.put(r.welcome("first", 100))
		r.put(r.welcome("first", 50))
		r.put(&wire.Fence{Header: wire.Header{Instance: instance}, Incarnation: "first", Epoch: 60})
		r.put(&wire.Fence{Header: wire.Header{Instance: instance}, Incarnation: "an-older-one", Epoch: 900})
		r.pass(2 * time.Minute)
		if b := last[*wire.Heartbeat](r); b.Epoch != 100 {
			t.Errorf("the epoch is %d", b.Epoch)
		}
		if n := r.inbox.Len(); n != 1 { // the first one may still be for another machine of this name
			t.Logf("%d commands are left", n)
		}
		r.down()
	})
}

func TestWelcome_WithAHigherNIsGoneOnAboveAndWhatRunsIsSaidAgain(t *testing.T) {
	bubble(t, func(r *rig) {
		r.up()
		r.put(r.assign(1, 1))
		w := r.welcome("first", 100)
		w.N = 5000
		r.put(w)
		r.pass(time.Minute)
		r.expect(1, "RUNNING, RUNNING")
		if n := r.reports(1)[1].N; n <= 5000 {
			t.Errorf("said again with n %d", n)
		}
		if n := last[*wire.Heartbeat](r).N; n <= 5000 {
			t.Errorf("a beat with n %d", n)
		}
		r.down()
	})
}

func TestFence_StopsWhatIsClosedAndOnlyThatAndABeatFollows(t *testing.T) {
	bubble(t, func(r *rig) {
		r.up()
		r.put(r.assign(1, 1), r.assign(2, 1))
		r.put(&wire.Fence{Header: wire.Header{Instance: instance}, Incarnation: "first", Epoch: 200, Closed: []wire.Attempt{{Task: id(1), Attempt: 1}, {Task: id(2), Attempt: 9}, {Task: id(3), Attempt: 1}}})
		r.pass(time.Second)
		if b := last[*wire.Heartbeat](r); b.Epoch != 200 {
			t.Errorf("the beat has epoch %d", b.Epoch)
		}
		r.ended(1, "STOPPED 143")
		if c := r.reports(1)[len(r.reports(1))-1].Cause; c != task.FencedCause {
			t.Errorf("it ended for cause %q", c)
		}
		if !r.engine.Containers()[app(2, 1)].Running {
			t.Error("a task that was not closed was stopped")
		}
		r.down()
	})
}

func TestFence_ThatIsTerminalStopsWhatIsClosedReportsItAndEndsTheAgent(t *testing.T) {
	bubble(t, func(r *rig) {
		r.engine.OnStart = func(agent.ContainerID) agenttest.Program { return agenttest.Program{Deaf: true} }
		r.up()
		r.put(r.assign(1, 1), r.assign(2, 1))
		r.put(&wire.Fence{Header: wire.Header{Instance: instance}, Incarnation: "first", Epoch: 200, Closed: []wire.Attempt{{Task: id(1), Attempt: 1}}, Terminal: true})
		late := r.assign(3, 1)
		late.Epoch = 200
		r.put(late)
		select {
		case <-r.done:
			t.Fatal("the agent ended before what was closed")
		default:
		}
		r.pass(time.Minute)
		if err := <-r.done; !errors.Is(err, agent.ErrTerminal) {
			t.Errorf("the agent ended with %v", err)
		}
		r.ended(1, "STOPPED 137")
		r.starts(3, 1, 0)
		if !r.engine.Containers()[app(2, 1)].Running {
			t.Error("a task that was not closed was stopped")
		}
	})
}

func TestFence_OfADuplicateIdentityIsSaidLoudlyAndRegisterGoesOn(t *testing.T) {
	bubble(t, func(r *rig) {
		r.set(func() { r.mute = true })
		r.up()
		r.put(&wire.Fence{Header: wire.Header{Instance: instance}, Incarnation: "first", Epoch: 900, Reason: wire.DuplicateIdentity},
			r.stop(1, 1), r.assign(2, 1)) // for the other machine
		r.pass(10 * time.Minute)
		if !strings.Contains(r.logs.String(), "another machine is registered with this identity") {
			t.Error("it was not said")
		}
		if n := len(sent[*wire.Register](r)); n < 10 {
			t.Errorf("%d registers in 10 min", n)
		}
		if n := len(sent[*wire.Report](r)) + len(sent[*wire.Heartbeat](r)); n != 0 {
			t.Errorf("%d reports and heartbeats", n)
		}
		if n := r.inbox.Len(); n != 2 {
			t.Errorf("%d commands are left for the other machine, want 2", n)
		}
		r.down()
	})
}

func TestQueue_ThatVanishesMeansRegisterAgain(t *testing.T) {
	bubble(t, func(r *rig) {
		r.up()
		r.pass(time.Hour)
		n := len(sent[*wire.Register](r))
		r.inbox.Fail(fault.New(fault.NotFound, "no such queue"))
		r.pass(time.Minute)
		if len(sent[*wire.Register](r)) <= n {
			t.Fatal("no register after the queue was gone")
		}
		r.set(func() { r.mute = true })
		r.pass(10 * time.Minute)
		if !strings.Contains(r.logs.String(), "not registered: the command queue does not answer") {
			t.Error("after minutes it was not named as a fault")
		}
		r.inbox.Fail(nil)
		r.set(func() { r.mute = false })
		r.pass(2 * time.Minute)
		n = len(sent[*wire.Register](r))
		r.pass(time.Hour)
		if got := len(sent[*wire.Register](r)); got != n {
			t.Errorf("%d registers after the welcome", got-n)
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

func TestRegister_WithNothingToOfferSaysSo(t *testing.T) {
	bubble(t, func(r *rig) {
		r.setting.ReservedMemoryMiB = 1 << 20
		r.up()
		r.pass(time.Minute)
		if n := len(sent[*wire.Register](r)); n != 0 {
			t.Errorf("%d registers", n)
		}
		if !strings.Contains(r.logs.String(), "LONGSHORE_RESERVED_MEMORY") {
			t.Error("it was not said")
		}
		r.down()
	})
}
