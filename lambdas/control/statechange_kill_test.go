package control_test

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

// again is the edge of a world that KillEverywhere built: what it says is the
// same however often it is asked, as a message delivered again is.
func again(t *testing.T, w *controltest.World) *edge {
	e := newEdge(t, w, "i")
	e.n, e.epoch = 1000, w.Lease(e.id).Epoch
	return e
}

func taskIDs(w *controltest.World) []string { return slices.Sorted(maps.Keys(w.Memory.Tasks())) }

// TestStatechange_KilledBetweenAnyTwoCalls kills every use case at each of its
// calls, with and without that call's effect, delivers the message again, and
// looks at what came of it. The invariants are checked after every commit.
func TestStatechange_KilledBetweenAnyTwoCalls(t *testing.T) {
	for name, c := range map[string]struct {
		build func(e *edge)
		run   func(e *edge) error
		check func(t *testing.T, e *edge)
	}{
		"register": {
			func(*edge) {},
			func(e *edge) error { return e.w.IngestRegister(ctx, e.sender(), e.register()) },
			func(t *testing.T, e *edge) {
				if got := e.welcomed(); got.Epoch != e.w.Ledger(e.id).Epoch || e.w.Ledger(e.id).SinceEpoch != got.Epoch || len(e.w.Sent.Inboxes()) != 1 {
					t.Errorf("welcome %+v ledger %+v", got, e.w.Ledger(e.id))
				}
			},
		},
		"reports of a service's tasks": {
			func(e *edge) { e.join(); e.service(3) },
			func(e *edge) error {
				ids := taskIDs(e.w)
				return errors.Join(e.w.IngestReports(ctx, []control.Told{
					{Sender: e.sender(), Report: e.report(ids[0], 1, task.Stopped)}, {Sender: e.sender(), Report: e.report(ids[1], 1, task.Running)},
					{Sender: e.sender(), Report: e.report(ids[2], 1, task.Stopped)},
				})...)
			},
			func(t *testing.T, e *edge) {
				ids, live := taskIDs(e.w), &control.Live{Cluster: "default", Service: "web"}
				if err := e.w.Store.Load(ctx, live); err != nil || live.Live != 1 || e.w.Ledger(e.id).Open != 1 {
					t.Errorf("live %+v ledger %+v", live, e.w.Ledger(e.id))
				}
				if e.w.Task(ids[0]).LastStatus != task.Stopped || e.w.Task(ids[1]).LastStatus != task.Running {
					t.Errorf("tasks %+v", e.w.Memory.Tasks())
				}
				if got := said(e); got["ack "+ids[0]+"/1"] == 0 || got["ack "+ids[2]+"/1"] == 0 {
					t.Errorf("said %v", got)
				}
			},
		},
		"a refusal": {
			func(e *edge) { e.join(); e.service(1) },
			func(e *edge) error { return e.w.IngestRefused(ctx, e.sender(), e.refusal(taskIDs(e.w)[0], 1)) },
			func(t *testing.T, e *edge) {
				id := taskIDs(e.w)[0]
				if got := e.w.Task(id); got.LastStatus != task.Provisioning || got.Attempt != 2 || said(e)["ack "+id+"/1"] == 0 || len(e.w.Ledger(e.id).Refusals) != 1 {
					t.Errorf("task %+v", got)
				}
			},
		},
		"a heartbeat of a lost instance": {
			func(e *edge) { e.join(); e.running(); e.lost() },
			func(e *edge) error {
				e.epoch--
				return e.w.Heartbeats(ctx, []control.Beat{e.beat(e.lists(taskIDs(e.w)[0], 1, wire.PhaseRunning))})[0]
			},
			func(t *testing.T, e *edge) {
				if got := said(e); e.w.Lease(e.id).Stage != control.StageFenced || got["fence"] == 0 {
					t.Errorf("lease %+v, said %v", e.w.Lease(e.id), got)
				}
			},
		},
		"a clean echo": {
			func(e *edge) { e.join(); e.lost(); e.w.Clock.Move(time.Second) },
			func(e *edge) error { return e.w.Heartbeats(ctx, []control.Beat{e.beat()})[0] },
			func(t *testing.T, e *edge) {
				if l := e.w.Ledger(e.id); !l.Connected || l.Cause != control.NoCause || e.w.Lease(e.id).Stage != control.StageConnected {
					t.Errorf("ledger %+v lease %+v", l, e.w.Lease(e.id))
				}
			},
		},
		"a suspect that is heard": {
			func(e *edge) { e.join(); minutes(e.t, e.w, 5); e.w.Clock.Move(time.Second) },
			func(e *edge) error { return e.w.Heartbeats(ctx, []control.Beat{e.beat()})[0] },
			func(t *testing.T, e *edge) {
				if !e.w.Ledger(e.id).Connected || e.w.Lease(e.id).Stage != control.StageConnected {
					t.Errorf("lease %+v", e.w.Lease(e.id))
				}
			},
		},
		"an engine that breaks": {
			func(e *edge) { e.join() },
			func(e *edge) error {
				e.docker = wire.DockerImpaired
				return e.w.Heartbeats(ctx, []control.Beat{e.beat()})[0]
			},
			func(t *testing.T, e *edge) {
				if e.w.Ledger(e.id).Connected || e.w.Lease(e.id).Impaired.IsZero() {
					t.Errorf("lease %+v", e.w.Lease(e.id))
				}
			},
		},
		"the first inventory of a new journal": {
			func(e *edge) {
				e.join()
				ids, _ := e.service(2)
				e.reports(ids[0], 1, task.Running)
				e.w.Clock.Move(5 * time.Minute)
				e.incarnation = "inc-2"
				e.registers()
				e.w.Sent.TakeCommands(e.id)
				e.w.Clock.Move(time.Second)
				e.w.Memory.CatchUp()
			},
			func(e *edge) error {
				e.incarnation = "inc-2"
				return e.w.Heartbeats(ctx, []control.Beat{e.beat(wire.Entry{Task: taskIDs(e.w)[0], Attempt: 1, Epoch: 1, Phase: wire.PhaseRunning})})[0]
			},
			func(t *testing.T, e *edge) {
				ids, live := taskIDs(e.w), &control.Live{Cluster: "default", Service: "web"}
				if err := e.w.Store.Load(ctx, live); err != nil || live.Live != 1 {
					t.Errorf("live %+v", live)
				}
				l := e.w.Ledger(e.id)
				if got := e.w.Task(ids[0]); got.LastStatus != task.Running || got.Epoch != l.Epoch || got.Incarnation != "inc-2" || !l.Connected || l.Open != 1 || l.Stale != 0 {
					t.Errorf("task %+v ledger %+v", got, l)
				}
				if got := e.w.Task(ids[1]); got.LastStatus != task.Stopped || got.StopCause != task.VanishedCause {
					t.Errorf("task %+v", got)
				}
			},
		},
		"a probe": {
			func(e *edge) { e.w.Put(&control.Probe{ID: "p", SentAt: e.w.Clock.Now()}) },
			func(e *edge) error { return e.w.IngestProbe(ctx, e.sender(), &wire.Probe{ID: "p"}) },
			func(t *testing.T, e *edge) {
				p := &control.Probe{ID: "p"}
				if err := e.w.Store.Load(ctx, p); err != nil || !p.SeenSent.Equal(e.w.Clock.Now()) {
					t.Errorf("probe %+v", p)
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			controltest.KillEverywhere(t,
				func(t *testing.T) *controltest.World {
					w := controltest.NewWorld(t)
					c.build(newEdge(t, w, "i"))
					w.Memory.CatchUp()
					return w
				},
				func(w *controltest.World) error { return c.run(again(t, w)) },
				func(t *testing.T, w *controltest.World) { c.check(t, again(t, w)) })
		})
	}
}

func TestStatechange_ConflictsAreRetriedAndBusyStoresGiveTheMessageBack(t *testing.T) {
	build := func() *edge {
		w := controltest.NewWorld(t)
		e := host(t, w, "i")
		e.running()
		return e
	}
	end := func(e *edge) error {
		return e.w.IngestReport(ctx, e.sender(), e.report(taskIDs(e.w)[0], 1, task.Stopped))
	}
	for call := 1; call <= 2; call++ { // Load, Commit
		e := build()
		e.w.Memory.Calls.FailAt(call, fault.Conflict)
		if err := end(e); err != nil || e.w.Task(taskIDs(e.w)[0]).LastStatus != task.Stopped {
			t.Errorf("conflict at call %d: %v", call, err)
		}
		e = build()
		e.w.Memory.Calls.FailAt(call, fault.Unavailable)
		if err := end(e); !fault.Is(err, fault.Unavailable) {
			t.Errorf("busy at call %d: %v", call, err)
		}
		e.w.Memory.Calls.Reset()
		if err := end(e); err != nil || e.w.Ledger(e.id).Open != 0 {
			t.Errorf("delivered again after call %d was busy: %v", call, err)
		}
	}
}
