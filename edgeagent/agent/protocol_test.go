package agent_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
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

// The trigger of design §4 R: reports held up for an hour, clean-up wait 1 s,
// the start delivered again.
func TestReports_HeldBackForAnHourNothingRunsTwiceAndNothingIsForgotten(t *testing.T) {
	for name, hold := range map[string]func(r *rig, on bool){
		"SQS cannot be reached": func(r *rig, on bool) {
			if on {
				r.outbox.Fail(fault.New(fault.Unavailable, "no route"))
			} else {
				r.outbox.Fail(nil)
			}
		},
		"nobody reads the queue": func(r *rig, on bool) { r.set(func() { r.acks = !on }) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.setting.CleanupWait = time.Second
				r.engine.OnStart = exits(7, 10*time.Second)
				r.up()
				hold(r, true)
				const tasks = 25 // more than one batch
				for n := range tasks {
					r.put(r.assign(n, 1))
				}
				for range 2 {
					r.pass(20 * time.Minute)
					for n := range tasks {
						r.put(r.assign(n, 1))
					}
				}
				r.pass(20 * time.Minute)
				if n := len(r.engine.Containers()); n != tasks {
					t.Errorf("%d containers while no end is acknowledged, want all %d", n, tasks)
				}
				if len(r.state().Tasks) != tasks {
					t.Errorf("%d of %d tasks are remembered", len(r.state().Tasks), tasks)
				}
				hold(r, false)
				r.pass(15 * time.Minute)
				for n := range tasks {
					r.ended(n, "STOPPED 7")
					r.starts(n, 1, 1)
					if rec := r.state().Tasks[id(n)]; !rec.Tomb || !rec.Acked {
						t.Errorf("task %d is not cleaned up: %+v", n, rec)
					}
				}
				if n := len(r.engine.Containers()); n != 0 {
					t.Errorf("%d containers are left", n)
				}
				r.down()
			})
		})
	}
}

func TestReports_GoInOrderOfTheirNAndEndsAreRepeatedEverMoreRarely(t *testing.T) {
	bubble(t, func(r *rig) {
		r.set(func() { r.acks = false })
		r.engine.OnStart = exits(0, time.Second)
		r.up()
		for n := range 30 {
			r.put(r.assign(n, 1))
		}
		r.pass(10 * time.Second)
		var before int64
		for _, m := range sent[*wire.Report](r) {
			if m.N <= before {
				t.Fatalf("n %d was sent after n %d", m.N, before)
			}
			before = m.N
		}
		r.outbox.Forget()
		r.pass(time.Hour)
		if got := len(r.reports(1)); got < 6 || got > 12 {
			t.Errorf("an end was repeated %d times in an hour", got)
		}
		for _, m := range sent[*wire.Report](r) {
			if m.Status != task.Stopped {
				t.Errorf("a report of %s was repeated", m.Status)
			}
		}
		r.down()
	})
}

func TestReports_AllEndsAreRepeatedAtOnceWhenTheLinkIsBack(t *testing.T) {
	bubble(t, func(r *rig) {
		r.set(func() { r.acks = false })
		r.engine.OnStart = exits(0, time.Second)
		r.up()
		for n := range 25 {
			r.put(r.assign(n, 1))
		}
		r.pass(time.Hour)
		r.inbox.Fail(fault.New(fault.Unavailable, "no route"))
		r.pass(5 * time.Minute)
		r.outbox.Forget()
		r.inbox.Fail(nil)
		r.pass(time.Minute) // the receive loop's own pause
		for n := range 25 {
			if len(r.reports(n)) == 0 {
				t.Errorf("task %d: its end was not repeated", n)
			}
		}
		r.down()
	})
}

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

func TestEngine_ThatIsSilentIsReportedAndNothingEndsByIt(t *testing.T) {
	bubble(t, func(r *rig) {
		r.up()
		r.put(r.assign(1, 1), r.assign(2, 1))
		r.engine.Die()
		r.pass(10 * time.Minute)
		b := last[*wire.Heartbeat](r)
		if b.Docker != wire.DockerImpaired || b.DockerReason == "" || len(b.Inventory) != 2 {
			t.Errorf("the beat is %+v", b)
		}
		r.put(r.assign(3, 1), r.stop(2, 1))
		r.pass(time.Hour)
		r.expect(1, "RUNNING")
		r.expect(2, "RUNNING, STOPPING")
		r.expect(3, "")
		r.engine.Exit(app(1, 1), 9) // unseen
		r.engine.Revive()
		r.pass(time.Minute)
		if b := last[*wire.Heartbeat](r); b.Docker != wire.DockerOK {
			t.Errorf("the beat is %+v", b)
		}
		r.ended(1, "STOPPED 9")
		r.ended(2, "STOPPED 143")
		r.starts(3, 1, 1)
		r.down()
	})
}

func TestEngine_WhatItsStreamMissedIsFound(t *testing.T) {
	bubble(t, func(r *rig) {
		r.up()
		r.put(r.assign(1, 1), r.assign(2, 1), r.assign(3, 1))
		r.engine.CutStreams()
		r.engine.Exit(app(1, 1), 4)
		r.engine.Lose(app(2, 1))
		r.pass(time.Minute)
		r.ended(1, "STOPPED 4")
		r.ended(2, "STOPPED")
		r.expect(3, "RUNNING")
		r.down()
	})
}

func TestContainer_KnownStoppedThatRunsAgainIsStoppedOnceThenLeftAlone(t *testing.T) {
	bubble(t, func(r *rig) {
		r.up()
		r.put(r.assign(1, 1))
		r.pass(time.Minute)
		r.engine.Exit(app(1, 1), 0)
		r.pass(time.Minute)
		if err := r.engine.Run(app(1, 1)); err != nil {
			t.Fatal(err)
		}
		r.pass(time.Minute)
		if r.engine.Containers()[app(1, 1)].Running {
			t.Fatal("it was not stopped again")
		}
		if err := r.engine.Run(app(1, 1)); err != nil {
			t.Fatal(err)
		}
		r.pass(4 * time.Hour)
		if !r.engine.Containers()[app(1, 1)].Running {
			t.Error("it was stopped a second time")
		}
		if inv := r.inventory(); inv["a001/1"] != wire.PhaseRunning {
			t.Errorf("the inventory is %v: it must show what runs", inv)
		}
		r.ended(1, "STOPPED 0")
		r.engine.Exit(app(1, 1), 0)
		r.pass(10 * time.Minute)
		if inv := r.inventory(); len(inv) != 0 {
			t.Errorf("the inventory is %v", inv)
		}
		if n := len(r.engine.Containers()); n != 0 {
			t.Errorf("%d containers are left", n)
		}
		r.down()
	})
}

func TestReportWait_PastItEverythingIsKeptAndSaid(t *testing.T) {
	bubble(t, func(r *rig) {
		r.set(func() { r.acks = false })
		r.setting.CleanupWait, r.setting.ReportWait = time.Second, 3*time.Hour
		r.engine.OnStart = exits(1, time.Second)
		r.up()
		r.put(r.assign(1, 1))
		r.pass(2 * time.Hour)
		r.down()
		r.up()
		r.pass(50 * time.Minute)
		const text = "its clean-up is given up"
		if strings.Contains(r.logs.String(), text) {
			t.Error("given up before its time")
		}
		r.pass(24 * time.Hour)
		if got := strings.Count(r.logs.String(), text); got != 1 {
			t.Errorf("said %d times", got)
		}
		if len(r.engine.Containers()) != 1 || len(r.state().Tasks) != 1 {
			t.Error("it was not kept")
		}
		r.set(func() { r.acks = true })
		r.pass(15 * time.Minute)
		if len(r.engine.Containers()) != 0 {
			t.Error("an acknowledgement that came after all was not used")
		}
		r.down()
	})
}

func TestTombstone_IsKeptForRunningTimeAlone(t *testing.T) {
	bubble(t, func(r *rig) {
		r.setting.CleanupWait = time.Second
		r.engine.OnStart = exits(1, time.Second)
		r.up()
		r.put(r.assign(1, 1))
		r.pass(time.Hour)
		r.down()
		r.pass(48 * time.Hour) // the machine was off; the command queue kept its messages as long
		r.up()
		r.pass(30 * time.Minute)
		r.put(r.assign(1, 1))
		r.pass(time.Minute)
		r.starts(1, 1, 1)
		r.ended(1, "STOPPED 1")
		r.down()
	})
}

// waiting puts ends that nobody has acknowledged into the journal.
func (r *rig) waiting(from, to int) {
	r.t.Helper()
	meta := r.state().Meta
	c := agent.Change{Meta: &meta}
	meta.Epoch, meta.Rebuilt = 100, true
	for n := from; n < to; n++ {
		meta.N++
		var rec agent.Record
		rec.N, rec.Epoch = meta.N, 100
		rec.State.ID, rec.State.Attempt, rec.State.Status, rec.State.Desired = id(n), 1, task.Stopped, task.DesiredStopped
		c.Put = append(c.Put, rec)
	}
	if err := r.journal.Commit(c); err != nil {
		r.t.Fatal(err)
	}
}

func TestWaiting_AThousandEndsNeedNoGoroutineOrTimerEach(t *testing.T) {
	goroutines := func(waiting int) (n int) {
		bubble(t, func(r *rig) {
			r.set(func() { r.acks = false })
			r.engine.OnStart = exits(0, time.Second)
			r.waiting(0, waiting)
			r.up()
			for n := range 50 {
				r.inbox.Put(r.assign(2000+n, 1))
			}
			r.pass(5 * time.Minute)
			if got := len(r.state().Tasks); got != waiting+50 {
				t.Fatalf("%d tasks", got)
			}
			if got := len(last[*wire.Heartbeat](r).Inventory); got != waiting+50 {
				t.Errorf("an inventory of %d", got)
			}
			n = runtime.NumGoroutine()
			r.down()
		})
		return n
	}
	few, many := goroutines(0), goroutines(950)
	if many > few+1 {
		t.Errorf("%d goroutines with 50 waiting ends, %d with 1000", few, many)
	}
}

func TestInventory_IsNeverTooLong(t *testing.T) {
	bubble(t, func(r *rig) {
		r.set(func() { r.acks = false })
		r.waiting(0, wire.MaxInventory-1)
		r.up()
		r.put(r.assign(5000, 1), r.assign(5001, 1))
		r.pass(2 * time.Minute)
		if n := r.engine.Starts(app(5000, 1)) + r.engine.Starts(app(5001, 1)); n != 1 {
			t.Errorf("%d of two tasks run, and there is room for one", n)
		}
		r.down()
	})
}

func TestStop_DuringAPullDoesNotWaitForIt(t *testing.T) {
	bubble(t, func(r *rig) {
		r.engine.Script = func(ctx context.Context, verb string, _ agent.ContainerID) error {
			if verb == "image" {
				<-ctx.Done()
				return fault.Wrap(fault.Unavailable, ctx.Err(), "pull")
			}
			return nil
		}
		r.up()
		r.put(r.assign(1, 1))
		r.pass(time.Hour)
		r.put(r.stop(1, 1))
		r.expect(1, "STOPPED")
		if c := fmt.Sprint(r.engine.Calls()); c != "[image /busybox]" {
			t.Errorf("calls: %s", c)
		}
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

func TestEngine_ThatHangsWhileItIsReadIsReported(t *testing.T) {
	bubble(t, func(r *rig) {
		var hang atomic.Bool
		r.engine.Script = func(ctx context.Context, verb string, _ agent.ContainerID) error {
			if hang.Load() && (verb == "list" || verb == "ping") {
				deadline := 10 * time.Minute
				if verb == "ping" {
					deadline = 10 * time.Second
				}
				select {
				case <-ctx.Done():
				case <-time.After(deadline):
				}
				return fault.New(fault.Unavailable, "no answer")
			}
			return nil
		}
		r.up()
		r.put(r.assign(1, 1))
		hang.Store(true)
		r.engine.CutStreams()
		r.pass(time.Minute)
		if b := last[*wire.Heartbeat](r); b.Docker != wire.DockerImpaired {
			t.Errorf("the beat is %+v", b)
		}
		hang.Store(false)
		r.pass(11 * time.Minute) // the list that hangs ends by its deadline
		if b := last[*wire.Heartbeat](r); b.Docker != wire.DockerOK {
			t.Errorf("the beat is %+v", b)
		}
		r.expect(1, "RUNNING")
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

// A task of two containers, one of which is not essential: what is told of each.
func TestTask_WithAHelperTellsOfEachContainer(t *testing.T) {
	bubble(t, func(r *rig) {
		r.up()
		r.put(r.assign(1, 1,
			taskdef.ContainerDefinition{Name: "app", Image: "busybox"},
			taskdef.ContainerDefinition{Name: "helper", Image: "busybox", Essential: new(false)}))
		helper := app(1, 1)
		helper.Container = "helper"
		r.engine.Exit(helper, 3)
		r.pass(time.Second)
		r.ended(1, "RUNNING 3")
		r.engine.Exit(app(1, 1), 0)
		r.pass(time.Second)
		r.ended(1, "STOPPED 0 3")
		r.down()
	})
}
