package agent_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/edgeagent/agent/agenttest"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

func TestRestart_ARunningTaskIsTheSameContainerAndNoSecondStart(t *testing.T) {
	for name, end := range map[string]func(r *rig){"SIGTERM": (*rig).down, "SIGKILL": (*rig).kill} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.up()
				r.put(r.assign(1, 1))
				before := r.engine.Containers()[app(1, 1)]
				end(r)
				if now := r.engine.Containers()[app(1, 1)]; !now.Running {
					t.Fatal("the agent's end ended a container")
				}
				r.pass(time.Hour)
				r.up()
				r.pass(time.Minute)
				if now := r.engine.Containers()[app(1, 1)]; now.RuntimeID != before.RuntimeID || !now.StartedAt.Equal(before.StartedAt) {
					t.Errorf("the container is %+v, was %+v", now, before)
				}
				r.starts(1, 1, 1)
				r.expect(1, "RUNNING, RUNNING") // T12
				first, again := r.reports(1)[0], r.reports(1)[1]
				if first.N != again.N {
					t.Errorf("the snapshot had n %d and is told again with n %d", first.N, again.N)
				}
				if p := r.inventory()[id(1)[28:]+"/1"]; p != wire.PhaseRunning {
					t.Errorf("in the inventory it is %q", p)
				}
				r.down()
			})
		})
	}
}

func TestRestart_WhatEndedMeanwhileIsReportedOnceWithItsExitCode(t *testing.T) {
	bubble(t, func(r *rig) {
		r.up()
		r.put(r.assign(1, 1))
		r.kill()
		r.engine.Exit(app(1, 1), 3)
		r.up()
		r.pass(time.Minute)
		r.ended(1, "STOPPED 3")
		r.starts(1, 1, 1)
		r.down()
	})
}

func TestRestart_WhatWasRemovedMeanwhileVanished(t *testing.T) {
	bubble(t, func(r *rig) {
		r.up()
		r.put(r.assign(1, 1))
		r.kill()
		r.engine.Lose(app(1, 1))
		r.up()
		r.pass(time.Minute)
		r.ended(1, "STOPPED")
		if end := last[*wire.Report](r); end.Cause != task.VanishedCause || end.Containers[0].ExitCode != nil {
			t.Errorf("the end is %+v", end)
		}
		r.starts(1, 1, 1)
		r.down()
	})
}

func TestRestart_NothingIsStartedBeforeTheEpochIsConfirmed(t *testing.T) {
	bubble(t, func(r *rig) {
		r.engine.Script = func(_ context.Context, verb string, _ agent.ContainerID) error {
			if verb == "image" {
				return fault.New(fault.Unavailable, "no answer")
			}
			if verb == "ping" {
				return fault.New(fault.Unavailable, "no answer")
			}
			return nil
		}
		r.up()
		r.put(r.assign(1, 1))
		r.kill() // it was taken in, and nothing was started
		r.engine.Script = nil
		r.set(func() { r.mute = true })
		r.up()
		r.pass(time.Hour)
		r.starts(1, 1, 0)
		// The instance was given up meanwhile, and its task closed.
		r.put(&wire.Fence{Header: wire.Header{Instance: instance}, Incarnation: "first", Epoch: 200, Closed: []wire.Attempt{{Task: id(1), Attempt: 1}}})
		r.pass(time.Hour)
		r.starts(1, 1, 0)
		r.expect(1, "STOPPED")
		r.down()
	})
}

func TestRestart_ATaskOfAnOlderEpochIsNotStartedBeforeTheInventoryWasAnswered(t *testing.T) {
	bubble(t, func(r *rig) {
		silent := fault.New(fault.Unavailable, "no answer")
		r.engine.Script = func(_ context.Context, verb string, _ agent.ContainerID) error {
			if verb == "image" || verb == "ping" {
				return silent
			}
			return nil
		}
		r.up()
		r.put(r.assign(1, 1), r.assign(2, 1))
		r.kill()
		r.engine.Script = nil
		r.set(func() { r.epoch = 200 })
		r.up()
		r.pass(time.Minute)
		r.starts(1, 1, 0)
		r.put(r.stop(1, 1)) // what the control plane makes of the inventory
		r.pass(5 * time.Minute)
		r.expect(1, "STOPPED")
		r.starts(1, 1, 0)
		r.starts(2, 1, 1) // kept there: nobody stopped it
		r.down()
	})
}

func TestLostJournal_WhatRunsIsAdoptedBeforeTheFirstInventory(t *testing.T) {
	bubble(t, func(r *rig) {
		r.up()
		r.put(r.assign(1, 1), r.assign(2, 1))
		r.engine.OnStart = exits(0, 0)
		r.kill()
		r.engine.Exit(app(2, 1), 5)
		r.outbox.Forget()
		r.journal = agenttest.NewJournal("second", identity)
		r.set(func() { r.epoch, r.acks = 200, false })
		r.up()
		r.pass(time.Minute)
		beat := sent[*wire.Heartbeat](r)[0]
		if beat.Incarnation != "second" || beat.Epoch != 200 {
			t.Errorf("the first beat is %+v", beat)
		}
		epochs := map[string]int64{}
		for _, e := range beat.Inventory {
			epochs[e.Task] = e.Epoch // of the label
		}
		if len(epochs) != 2 || epochs[id(1)] != 100 || epochs[id(2)] != 100 {
			t.Errorf("the first inventory is %v", beat.Inventory)
		}
		if inv := r.inventory(); inv["a001/1"] != wire.PhaseRunning || inv["a002/1"] != wire.PhaseEnded {
			t.Errorf("the inventory is %v", inv)
		}
		r.set(func() { r.acks = true })
		r.ended(1, "RUNNING")
		r.ended(2, "STOPPED 5")
		r.put(r.stop(1, 1))
		r.pass(time.Minute)
		r.ended(1, "STOPPED 143")
		r.starts(1, 1, 1)
		r.pass(4 * time.Hour)
		if n := len(r.engine.Containers()); n != 0 {
			t.Errorf("%d containers are left", n)
		}
		r.down()
	})
}

func TestLostJournal_ATaskOfWhichNothingWasStartedIsRemoved(t *testing.T) {
	bubble(t, func(r *rig) {
		r.engine.Script = func(_ context.Context, verb string, _ agent.ContainerID) error {
			if verb == "start" || verb == "ping" {
				return fault.New(fault.Unavailable, "no answer")
			}
			return nil
		}
		r.up()
		r.put(r.assign(1, 1))
		r.kill()
		r.engine.Script = nil
		r.journal = agenttest.NewJournal("second", identity)
		r.set(func() { r.epoch = 200 })
		r.up()
		r.pass(time.Minute)
		if n := len(r.engine.Containers()); n != 0 {
			t.Errorf("%d containers are left", n)
		}
		if inv := r.inventory(); len(inv) != 0 {
			t.Errorf("the inventory is %v", inv)
		}
		r.starts(1, 1, 0)
		r.down()
	})
}

func TestLostJournal_NothingIsSaidBeforeTheEngineWasRead(t *testing.T) {
	bubble(t, func(r *rig) {
		r.up()
		r.put(r.assign(1, 1))
		r.kill()
		r.outbox.Forget()
		r.journal = agenttest.NewJournal("second", identity)
		r.engine.Die()
		r.up()
		r.pass(10 * time.Minute)
		if all := r.outbox.Sent(); len(all) != 0 {
			t.Errorf("%d messages were sent, the first a %T", len(all), all[0])
		}
		r.engine.Revive()
		r.set(func() { r.epoch = 200 })
		r.pass(time.Minute)
		if p := r.inventory()[id(1)[28:]+"/1"]; p != wire.PhaseRunning {
			t.Errorf("in the inventory it is %q", p)
		}
		r.down()
	})
}

// The whole of a few lives, with the agent killed between any two of its calls.
func TestKill_BetweenAnyTwoCallsNothingRunsTwiceAndNothingIsForgotten(t *testing.T) {
	calls := 0
	scenario(t, func(r *rig) {
		r.onCall = func(string, bool) {
			r.mu.Lock()
			defer r.mu.Unlock()
			calls++
		}
	})
	if calls < 100 {
		t.Fatalf("the scenario makes %d calls", calls)
	}
	for at := 1; at <= calls; at++ {
		if ok := t.Run(fmt.Sprint(at), func(t *testing.T) {
			scenario(t, func(r *rig) {
				r.killAt(at)
			})
		}); !ok {
			return
		}
	}
}

// scenario has one task end by itself, one stopped, one refused, one stopped
// before its assign comes, and a port taken.
func scenario(t *testing.T, prepare func(r *rig)) {
	t.Helper()
	bubble(t, func(r *rig) {
		r.setting.CleanupWait = time.Minute
		prepare(r)
		r.engine.OnStart = func(c agent.ContainerID) agenttest.Program {
			if c.Task == id(1) {
				return exits(7, 90*time.Second)(c)
			}
			return agenttest.Program{Deaf: c.Task == id(2)}
		}
		defer r.supervise()()
		garbled := r.assign(3, 1)
		garbled.Definition = []byte(`"no definition"`)
		r.inbox.Put(r.assign(1, 1), r.assign(2, 1), garbled, r.stop(4, 1))
		r.pass(time.Minute)
		r.inbox.Put(r.stop(2, 1), r.assign(4, 1), r.assign(1, 1))
		r.pass(5 * time.Minute)
		for n, code := range map[int]string{1: " 7", 2: " 137", 4: ""} {
			all := r.reports(n)
			if len(all) == 0 {
				t.Fatalf("task %d: nothing was reported", n)
			}
			if got := shortened(all[len(all)-1]); got != "STOPPED"+code {
				t.Errorf("task %d: the last report is %q, want STOPPED%s", n, got, code)
			}
			for i := 1; i < len(all); i++ {
				if all[i].N > all[i-1].N && all[i].Status.Rank() < all[i-1].Status.Rank() {
					t.Errorf("task %d: status went from %s back to %s", n, all[i-1].Status, all[i].Status)
				}
			}
		}
		if len(sent[*wire.Refused](r)) == 0 {
			t.Error("task 3: no refusal was sent")
		}
		r.starts(1, 1, 1)
		r.starts(2, 1, 1)
		r.starts(4, 1, 0)
		r.pass(r.setting.CleanupWait + 12*time.Minute)
		r.inbox.Put(r.assign(1, 1), r.assign(2, 1), r.assign(4, 1)) // at the end of their retention
		r.pass(time.Minute)
		r.starts(1, 1, 1)
		r.starts(2, 1, 1)
		if n := len(r.engine.Containers()); n != 0 {
			t.Errorf("%d containers are left", n)
		}
		for id, rec := range r.state().Tasks {
			if !rec.Tomb || !rec.Acked {
				t.Errorf("task %s is no tombstone: %+v", id[28:], rec)
			}
		}
		if n := r.inbox.Len(); n != 0 {
			t.Errorf("%d commands are left", n)
		}
	})
}
