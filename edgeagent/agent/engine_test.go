package agent_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
)

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

func TestEngine_ThatPanicsOverOneTaskLeavesTheOthers(t *testing.T) {
	bubble(t, func(r *rig) {
		r.engine.Script = func(_ context.Context, verb string, c agent.ContainerID) error {
			if verb == "create" && c.Task == id(1) {
				panic("over this one")
			}
			return nil
		}
		r.up()
		r.put(r.assign(1, 1), r.assign(2, 1))
		r.pass(time.Minute)
		r.ended(1, "STOPPED")
		r.ended(2, "RUNNING")
		r.down()
	})
}

func TestContainer_ThatRunsAgainUnseenByTheStreamIsFoundByTheList(t *testing.T) {
	bubble(t, func(r *rig) {
		r.up()
		r.put(r.assign(1, 1))
		r.pass(time.Minute)
		r.engine.Exit(app(1, 1), 0)
		r.pass(time.Minute)
		r.kill()
		if err := r.engine.Run(app(1, 1)); err != nil {
			t.Fatal(err)
		}
		r.up()
		r.pass(time.Second)
		if r.engine.Containers()[app(1, 1)].Running {
			t.Error("it was not stopped")
		}
		r.down()
	})
}

func TestEngine_ThatIsBackIsNotWaitedFor(t *testing.T) {
	bubble(t, func(r *rig) {
		r.up()
		r.put(r.assign(1, 1))
		r.engine.Die()
		r.put(r.stop(1, 1), r.assign(2, 1))
		r.pass(time.Hour + 5*time.Second) // by now calls are tried every 30 s, the next in 26
		r.engine.Revive()
		for last[*wire.Heartbeat](r).Docker != wire.DockerOK {
			r.pass(100 * time.Millisecond)
		}
		r.pass(100 * time.Millisecond)
		r.ended(1, "STOPPED 143")
		r.starts(2, 1, 1)
		r.down()
	})
}

// A container that ends while its stop is under way is saved as ended before the
// stop's result is in. Who looks after the task next must not wait for that.
func TestEngine_AStopThatWasUnderWayAtTheEndIsNotWaitedForLater(t *testing.T) {
	bubble(t, func(r *rig) {
		r.setting.CleanupWait = time.Hour
		r.up()
		r.put(r.assign(0, 1))
		r.pass(time.Second)
		r.engine.Script = func(_ context.Context, verb string, id agent.ContainerID) error {
			if verb == "stop" {
				r.engine.Exit(id, 0)
				<-time.After(time.Second)
			}
			return nil
		}
		r.put(r.stop(0, 1))
		r.pass(time.Minute)
		r.ended(0, "STOPPED 0")
		if err := r.engine.Run(app(0, 1)); err != nil { // somebody starts it by hand
			t.Fatal(err)
		}
		r.pass(time.Minute)
		if r.engine.Containers()[app(0, 1)].Running {
			t.Error("it was not stopped again (T4)")
		}
		r.pass(2 * time.Hour)
		if n := len(r.engine.Containers()); n != 0 || !r.state().Tasks[id(0)].Tomb {
			t.Errorf("%d containers are left after the clean-up wait", n)
		}
		r.down()
	})
}
