package control_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/task"
)

// says lets EC2 speak of the instance with id i-0abc.
func says(t *testing.T, w *controltest.World, state string) {
	t.Helper()
	w.Clock.Move(time.Second)
	if err := w.IngestHostState(ctx, control.HostState{EC2InstanceID: "i-0abc", State: state, At: w.Clock.Now()}); err != nil {
		t.Fatal(err)
	}
}

// onHost is an edge that runs on EC2 instance i-0abc.
func onHost(t *testing.T, w *controltest.World) *edge {
	t.Helper()
	w.AddInstance("i-0abc", room, onEC2)
	e := newEdge(t, w, "i-0abc")
	e.epoch = w.Ledger(e.id).Epoch
	return e
}

func TestIngestHostState_AHostThatIsNotConnectedIsCordonedToo(t *testing.T) {
	for _, state := range []string{"stopping", "shutting-down"} {
		for _, stage := range []control.Stage{control.StageSuspect, control.StageFenced} {
			t.Run(fmt.Sprint(state, stage), func(t *testing.T) {
				w := controltest.NewWorld(t)
				e := onHost(t, w)
				l, lease := w.Ledger(e.id), w.Lease(e.id)
				l.Connected, lease.Stage = false, stage
				w.Put(&l, &lease)
				says(t, w, state)
				e.beats()
				if w.Ledger(e.id).Connected {
					t.Fatalf("a beat of a host that is shutting down made it take work: %+v", w.Lease(e.id))
				}
				w.Clock.Move(w.Setting.ReapAfter) // it did not stop after all
				e.beats()
				if !w.Ledger(e.id).Connected {
					t.Errorf("it goes on, and takes no work: %+v", w.Lease(e.id))
				}
			})
		}
	}
}

func TestIngestHostState_TasksAreToldWhatEC2Said(t *testing.T) {
	for state, want := range map[string]string{
		"terminated": "Host EC2 (instance i-0abc) terminated.", "stopped": "Host EC2 (instance i-0abc) stopped.",
	} {
		w := controltest.NewWorld(t)
		e := onHost(t, w)
		job := e.running()
		w.Memory.CatchUp()
		says(t, w, state)
		if got := w.Task(job); got.LastStatus != task.Stopped || got.StoppedReason != want || task.EndOf(got.StopCause).Code != task.InfrastructureHealth {
			t.Errorf("%s: %s %q", state, got.LastStatus, got.StoppedReason)
		}
	}
}

func TestIngestHostState_AStopThatIsForgottenIsNotToldOfALaterSilence(t *testing.T) {
	w := controltest.NewWorld(t)
	e := onHost(t, w)
	says(t, w, "stopped")
	w.Clock.Move(time.Second)
	e.registers()
	e.welcomed()
	e.beats()
	job := e.running()
	e.lost()
	if got := w.Task(job); got.StopCause != task.LostCause {
		t.Errorf("%+v", got)
	}
}

func TestIngestHostState_KilledAnywhereGoesOn(t *testing.T) {
	for _, state := range []string{"stopped", "terminated"} {
		var id, job string
		controltest.KillEverywhere(t, func(t *testing.T) *controltest.World {
			w := controltest.NewWorld(t)
			e := onHost(t, w)
			id, job = e.id, e.running()
			w.Memory.CatchUp()
			w.Clock.Move(time.Second)
			return w
		}, func(w *controltest.World) error {
			err := w.IngestHostState(ctx, control.HostState{EC2InstanceID: "i-0abc", State: state, At: w.Clock.Now()})
			if err == nil && w.Ledger(id).Stale > 0 { // what a killed run left is the reaper's
				err = w.CloseOlder(ctx, id)
			}
			return err
		}, func(t *testing.T, w *controltest.World) {
			if got := w.Task(job); got.LastStatus != task.Stopped || w.Lease(id).Stage != control.StageLost {
				t.Errorf("%s: %+v", state, got)
			}
		})
	}
}

// A beat that the host sent before it went, taken in while EC2's word is, does not
// make that word void: nobody says it again.
func TestIngestHostState_ALastBeatThatIsTakenInMeanwhileDoesNotHideTheEnd(t *testing.T) {
	for _, state := range []string{"stopping", "stopped", "terminated", "terminated, and it is LOST"} {
		t.Run(state, func(t *testing.T) {
			w := controltest.NewWorld(t)
			e := onHost(t, w)
			job := e.running(confirmed)
			w.Memory.CatchUp()
			word, lost := strings.CutSuffix(state, ", and it is LOST")
			if lost {
				e.lost()
			}
			w.Clock.Move(time.Second)
			last := control.Renewal{ID: e.id, Sent: w.Clock.Now(), Incarnation: e.incarnation, Session: e.session}
			w.Clock.Move(time.Second)
			e.meanwhile("Load", 1, func() {
				if _, renewed, err := w.Memory.Renew(ctx, last); err != nil || !renewed {
					t.Fatalf("the last beat: renewed %v, %v", renewed, err)
				}
			})
			if err := w.IngestHostState(ctx, control.HostState{EC2InstanceID: "i-0abc", State: word, At: w.Clock.Now()}); err != nil {
				t.Fatal(err)
			}
			lease, ledger := w.Lease(e.id), w.Ledger(e.id)
			switch word {
			case "stopping":
				if ledger.Connected || lease.CordonedUntil.IsZero() {
					t.Errorf("it takes work: %+v", lease)
				}
			case "stopped":
				if lease.Stage != control.StageLost {
					t.Errorf("%+v", lease)
				}
			case "terminated":
				if got := w.Task(job); lease.Stage != control.StageLost || got.LastStatus != task.Stopped {
					t.Errorf("its singleton, which is replaced after its end alone, is %s on a host that is %s", got.LastStatus, lease.Stage)
				}
			}
		})
	}
}

// One that was sent after EC2 spoke is of a later run of the host.
func TestIngestHostState_ABeatThatIsSentLaterAndTakenInMeanwhileCounts(t *testing.T) {
	for _, state := range []string{"stopping", "stopped", "terminated"} {
		w := controltest.NewWorld(t)
		e := onHost(t, w)
		w.Clock.Move(time.Second)
		at := w.Clock.Now()
		w.Clock.Move(time.Second)
		e.meanwhile("Load", 1, func() {
			if _, renewed, err := w.Memory.Renew(ctx, control.Renewal{ID: e.id, Sent: w.Clock.Now(), Incarnation: e.incarnation, Session: e.session}); err != nil || !renewed {
				t.Fatalf("%v %v", renewed, err)
			}
		})
		if err := w.IngestHostState(ctx, control.HostState{EC2InstanceID: "i-0abc", State: state, At: at}); err != nil {
			t.Fatal(err)
		}
		if lease := w.Lease(e.id); lease.Stage != control.StageConnected || !lease.CordonedUntil.IsZero() {
			t.Errorf("%s: %+v", state, lease)
		}
	}
}
