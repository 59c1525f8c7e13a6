package agent_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/edgeagent/agent/agenttest"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

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

func TestWelcome_IsWaitedForBeforeAnythingIsReported(t *testing.T) {
	bubble(t, func(r *rig) {
		r.up()
		r.put(r.assign(1, 1))
		r.kill()
		r.outbox.Forget()
		r.journal = agenttest.NewJournal("second", identity)
		r.set(func() { r.mute = true })
		r.up()
		r.pass(10 * time.Minute)
		if n := len(sent[*wire.Report](r)); n != 0 {
			t.Errorf("%d reports of an incarnation that nobody knows", n)
		}
		r.put(r.welcome("second", 200))
		r.pass(time.Second)
		r.ended(1, "RUNNING")
		r.down()
	})
}

func TestFence_ThatIsTerminalAndOldEndsNothing(t *testing.T) {
	bubble(t, func(r *rig) {
		r.up()
		r.put(r.assign(1, 1))
		r.put(&wire.Fence{Header: wire.Header{Instance: instance}, Incarnation: "first", Epoch: 50, Terminal: true}) // of a life before
		r.pass(time.Minute)
		select {
		case err := <-r.done:
			t.Fatalf("the agent ended: %v", err)
		default:
		}
		r.down()
	})
}

// Whoever starts an agent after its end wants it registered: copies of the fence
// that ended it may still be in the queue.
func TestFence_ThatIsTerminalEndsTheAgentOnceAndNotWhenItIsStartedAgain(t *testing.T) {
	bubble(t, func(r *rig) {
		fence := func(epoch int64) *wire.Fence {
			return &wire.Fence{Header: wire.Header{Instance: instance}, Incarnation: "first", Epoch: epoch, Terminal: true}
		}
		r.up()
		r.put(fence(200))
		if err := <-r.done; !errors.Is(err, agent.ErrTerminal) {
			t.Fatalf("the agent ended with %v", err)
		}
		r.set(func() { r.epoch = 201 })
		r.inbox.Put(fence(200))
		r.up()
		r.put(fence(200))
		r.pass(time.Minute)
		select {
		case err := <-r.done:
			t.Fatalf("a copy of an old fence ended the agent: %v", err)
		default:
		}
		if epoch := r.state().Meta.Epoch; epoch != 201 {
			t.Errorf("it was not registered again: its epoch is %d", epoch)
		}
		r.put(fence(202))
		if err := <-r.done; !errors.Is(err, agent.ErrTerminal) {
			t.Errorf("deregistered again, the agent ended with %v", err)
		}
	})
}
