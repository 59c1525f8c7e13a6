package control_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// subscribed is a world with a bus, and a form of events that tests can read.
func subscribed(t *testing.T) (*controltest.World, *controltest.Bus) {
	w, bus := controltest.NewWorld(t), &controltest.Bus{}
	w.Bus = bus
	w.Shape = func(n control.Notice) (control.Event, error) {
		switch {
		case n.Task != nil:
			return control.Event{Resources: []string{n.Task.ID}, At: n.At, Detail: fmt.Appendf(nil, `"v%d %s %s %s"`, n.Task.Version, n.Task.LastStatus, n.Task.StopCause, n.Task.Zone)}, nil
		case n.Service != nil:
			return control.Event{Resources: []string{n.Service.Service}, At: n.At, Detail: fmt.Appendf(nil, `%q`, n.Service.Event.Name)}, nil
		}
		v := n.Instance
		return control.Event{Resources: []string{v.Instance.ID}, At: n.At, Detail: fmt.Appendf(nil, `"v%d %s %v %s %d %s"`, v.Revision(), v.Ledger.Status, v.Ledger.Connected, v.AgentVersion, v.Ledger.Held.MemoryMiB, v.Lease.Stage)}, nil
	}
	return w, bus
}

// announce publishes all that was committed, and fails on any error.
func announce(t *testing.T, w *controltest.World) {
	t.Helper()
	if err := errors.Join(w.Announce(ctx, w.Memory.TakeChanges())...); err != nil {
		t.Fatal(err)
	}
}

// told is what the bus got about something.
func told(bus *controltest.Bus, id string) []string {
	var out []string
	for _, e := range bus.Take() {
		var s string
		if err := json.Unmarshal(e.Detail, &s); err == nil && e.Resources[0] == id {
			out = append(out, s)
		}
	}
	return out
}

// What ecs-agent#573 asks for: the end of a task on a host that died is told,
// whoever decided it, with its reason.
func TestAnnounce_TellsTheReapersEndOfATask(t *testing.T) {
	w, bus := subscribed(t)
	i := w.AddInstance("i", room)
	job := running(w, i, 1)[0]
	announce(t, w)
	if got, want := told(bus, job), []string{"v2 PENDING  local-a"}; !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
	minutes(t, w, 20)
	announce(t, w)
	events := bus.Take()
	var ofTask, ofInstance []string
	for _, e := range events {
		var s string
		if err := json.Unmarshal(e.Detail, &s); err != nil {
			t.Fatal(err)
		}
		if e.Resources[0] == job {
			ofTask = append(ofTask, s)
		} else {
			ofInstance = append(ofInstance, s)
		}
	}
	if want := fmt.Sprintf("v%d STOPPED lost local-a", w.Task(job).Version); len(ofTask) != 1 || ofTask[0] != want {
		t.Errorf("told %q of the task, want %q", ofTask, want)
	}
	// Disconnected, lost, and empty: three states, and the last shows the room again.
	if len(ofInstance) != 3 || !strings.Contains(ofInstance[0], "ACTIVE false  1 ") || !strings.HasSuffix(ofInstance[2], " 0 LOST") {
		t.Errorf("told %q of the instance", ofInstance)
	}
}

func TestAnnounce_TellsEveryEndWhoeverDecidedIt(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, w *controltest.World, instance, id string){
		"a user's stop of a waiting task": func(t *testing.T, w *controltest.World, _, _ string) {
			waiting := w.AddTask(taskdef.Resources{MemoryMiB: 1 << 20})
			if _, err := w.StopTask(ctx, "default", waiting.ID, ""); err != nil {
				t.Fatal(err)
			}
		},
		"a forced deregistration": func(t *testing.T, w *controltest.World, instance, _ string) {
			if _, err := w.DeregisterContainerInstance(ctx, "default", instance, true); err != nil {
				t.Fatal(err)
			}
		},
		"the end of its host": func(t *testing.T, w *controltest.World, instance, _ string) {
			w.Clock.Move(time.Minute)
			if err := w.IngestHostState(ctx, control.HostState{EC2InstanceID: "i-1", State: "terminated", At: w.Clock.Now()}); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, bus := subscribed(t)
			i := w.AddInstance("i", room, func(in *control.Instance, _ *control.Ledger, l *control.Lease) {
				in.EC2InstanceID, l.EC2 = "i-1", "i-1"
			})
			job := running(w, i, 1)[0]
			w.Memory.CatchUp()
			end(t, w, i, job)
			announce(t, w)
			stopped := 0
			for _, e := range bus.Take() {
				if strings.Contains(string(e.Detail), string(task.Stopped)) {
					stopped++
				}
			}
			want := 0
			for _, k := range w.Memory.Tasks() {
				if k.LastStatus == task.Stopped {
					want++
				}
			}
			if want == 0 || stopped != want {
				t.Errorf("%d ends are told, %d tasks have stopped", stopped, want)
			}
		})
	}
}

func TestAnnounce_ToldTwiceSaysTheSameTwice(t *testing.T) {
	w, bus := subscribed(t)
	i := w.AddInstance("i", room)
	running(w, i, 2)
	changes := w.Memory.TakeChanges()
	texts := func() (out []string) {
		if err := errors.Join(w.Announce(ctx, changes)...); err != nil {
			t.Fatal(err)
		}
		for _, e := range bus.Take() {
			out = append(out, e.Resources[0]+string(e.Detail))
		}
		return out
	}
	if first, second := texts(), texts(); len(first) == 0 || !slices.Equal(first, second) {
		t.Errorf("first %q\nthen %q", first, second)
	}
}

func TestAnnounce_AnErrorIsItsOwnChanges(t *testing.T) {
	w, bus := subscribed(t)
	i := w.AddInstance("i", room)
	ids := running(w, i, 2)
	changes := w.Memory.TakeChanges() // the ledger, and both tasks
	bus.Fail = func(e control.Event) error {
		if e.Resources[0] == ids[0] {
			return fault.New(fault.Unavailable, "not now")
		}
		return nil
	}
	for k, err := range w.Announce(ctx, changes) {
		mine := changes[k].New.Kind() == control.TaskKind && changes[k].New.Key() == ids[0]
		if mine != fault.Is(err, fault.Unavailable) {
			t.Errorf("%s %s: %v", changes[k].New.Kind(), changes[k].New.Key(), err)
		}
	}
}

func TestAnnounce_WhatHasNoFormIsInvalidAndHoldsUpNothing(t *testing.T) {
	for name, fail := range map[string]func(control.Notice) (control.Event, error){
		"an error": func(control.Notice) (control.Event, error) { return control.Event{}, errors.New("no") },
		"a panic":  func(control.Notice) (control.Event, error) { panic("no") },
	} {
		t.Run(name, func(t *testing.T) {
			w, bus := subscribed(t)
			i := w.AddInstance("i", room)
			ids := running(w, i, 2)
			plain := w.Shape
			w.Shape = func(n control.Notice) (control.Event, error) {
				if n.Task != nil && n.Task.ID == ids[0] {
					return fail(n)
				}
				return plain(n)
			}
			var bad int
			for _, err := range w.Announce(ctx, w.Memory.TakeChanges()) {
				if err != nil {
					if bad++; !fault.Is(err, fault.Invalid) {
						t.Error(err)
					}
				}
			}
			if got := told(bus, ids[1]); bad != 1 || len(got) != 1 {
				t.Errorf("%d faults, told %q of the other", bad, got)
			}
		})
	}
}

func TestAnnounce_WithoutTheStoreNothingIsDoneWith(t *testing.T) {
	w, bus := subscribed(t)
	i := w.AddInstance("i", room)
	running(w, i, 1)
	changes := w.Memory.TakeChanges()
	w.Memory.Calls.Reset()
	w.Memory.Calls.KillAt(1, false)
	for k, err := range w.Announce(ctx, changes) {
		if err == nil || fault.Is(err, fault.Invalid) {
			t.Errorf("change %d: %v", k, err)
		}
	}
	if got := bus.Take(); len(got) != 0 {
		t.Errorf("published %v", got)
	}
}

func TestAnnounce_AChangeOfEitherHalfOfAnInstanceRaisesItsVersion(t *testing.T) {
	w, bus := subscribed(t)
	i := w.AddInstance("i", room)
	in, l := &control.Instance{ID: i}, &control.Ledger{ID: i}
	if err := w.Store.Load(ctx, in, l); err != nil {
		t.Fatal(err)
	}
	in.AgentVersion = "1.2.4"
	if err := w.Store.Commit(ctx, control.Put(in)); err != nil {
		t.Fatal(err)
	}
	announce(t, w)
	l.Status = control.Draining
	if err := w.Store.Commit(ctx, control.Put(l)); err != nil {
		t.Fatal(err)
	}
	announce(t, w)
	if got, want := told(bus, i), []string{"v3 ACTIVE true 1.2.4 0 CONNECTED", "v4 DRAINING true 1.2.4 0 CONNECTED"}; !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
	found, _, err := w.DescribeContainerInstances(ctx, "default", []string{i})
	if err != nil || found[0].Revision() != 4 {
		t.Errorf("described with version %d (%v)", found[0].Revision(), err)
	}
}

func TestAnnounce_TellsWhatAServiceTold(t *testing.T) {
	w, bus := subscribed(t)
	s := &control.ServiceEvents{Cluster: "default", Service: "web"}
	put := func(id, name string) {
		s.Events = slices.Insert(s.Events, 0, control.ServiceEvent{ID: id, Name: name, At: w.Clock.Now()})
		if err := w.Store.Commit(ctx, control.Put(s)); err != nil {
			t.Fatal(err)
		}
	}
	put("1", "SERVICE_DEPLOYMENT_IN_PROGRESS")
	put("2", "")
	put("3", "SERVICE_STEADY_STATE")
	announce(t, w)
	if got, want := told(bus, "web"), []string{"SERVICE_DEPLOYMENT_IN_PROGRESS", "SERVICE_STEADY_STATE"}; !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
}

// Subscribers drop what has no higher version than they have seen.
func TestAnnounce_EachThingThatAServiceTellsHasAHigherVersion(t *testing.T) {
	w, _ := subscribed(t)
	var versions []int64
	w.Shape = func(n control.Notice) (control.Event, error) {
		switch {
		case n.Service != nil:
			versions = append(versions, n.Service.Version)
		case n.Missed != nil:
			versions = append(versions, n.Missed.Version)
		}
		return control.Event{Resources: []string{"x"}, At: n.At}, nil
	}
	s, r := &control.ServiceEvents{Cluster: "default", Service: "web"}, &control.Schedule{Name: "nightly"}
	for round := range 2 {
		for k := range 2 {
			at := w.Clock.Now().Add(time.Duration(2*round+k) * time.Minute)
			s.Events = slices.Insert(s.Events, 0, control.ServiceEvent{ID: fmt.Sprint(round, k), Name: "SERVICE_STEADY_STATE", At: at})
			r.Runs = slices.Insert(r.Runs, 0, control.ScheduledRun{At: at, Outcome: control.OutcomeMissed})
		}
		for _, record := range []control.Record{s, r} {
			versions = nil
			for range 2 { // the same again, as a stream delivers it, has the same versions
				if err := w.Store.Commit(ctx, control.Put(record)); err != nil {
					t.Fatal(err)
				}
				changes := w.Memory.TakeChanges()
				w.Announce(ctx, changes)
				w.Announce(ctx, changes)
			}
			if len(versions) != 4 || versions[0] >= versions[1] || versions[2] != versions[0] || versions[3] != versions[1] {
				t.Errorf("versions %v", versions)
			}
		}
	}
}
