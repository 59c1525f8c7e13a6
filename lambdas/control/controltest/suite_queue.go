package controltest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/wire"
)

// Receiver takes out of a queue's other end what was sent.
type Receiver interface {
	TakeCommands(instance string) []wire.Message
	TakeKicks() []control.Kick
	TakeServiceKicks() []control.Kick
	TakeProbes() []wire.Probe
	Inboxes() []string
}

// QueueSuite is what every control.Queue must do. open makes empty queues, with
// their other end; it is called once for each test.
func QueueSuite(t *testing.T, open func(t *testing.T) (control.Queue, Receiver)) {
	for _, test := range queueTests {
		t.Run(test.says, func(t *testing.T) {
			q, r := open(t)
			test.run(&queueTest{T: t, Queue: q, Receiver: r, ctx: t.Context()})
		})
	}
}

// queueTest is a test with its queue.
type queueTest struct {
	*testing.T
	control.Queue
	Receiver
	ctx context.Context
}

// inbox makes an instance's command queue.
func (t *queueTest) inbox() string {
	t.Helper()
	id := newID()
	if err := t.EnsureInbox(t.ctx, id, "AROAEXAMPLE:"+id); err != nil {
		t.Fatalf("ensure inbox: %v", err)
	}
	t.Cleanup(func() {
		if err := t.RemoveInbox(context.Background(), id); err != nil {
			t.Errorf("remove inbox: %v", err)
		}
	})
	return id
}

// receives takes commands until want are there, and wants no others: queues
// deliver in any order.
func (t *queueTest) receives(instance string, want ...string) {
	t.Helper()
	var got []string
	t.until(func() bool {
		for _, m := range t.TakeCommands(instance) {
			stop, ok := m.(*wire.Stop)
			if !ok || stop.Instance != instance {
				t.Fatalf("instance %s received %#v", instance, m)
			}
			got = append(got, stop.Task)
		}
		return len(got) >= len(want)
	})
	slices.Sort(got)
	want = slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		t.Fatalf("instance %s received %v, want %v", instance, got, want)
	}
}

// until polls until done or a minute is over; who calls it says what is
// wrong then.
func (t *queueTest) until(done func() bool) {
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-deadline.C:
			return
		}
	}
}

func stopFor(instance, task string) *wire.Stop {
	return &wire.Stop{Header: wire.Header{Instance: instance}, Task: task, Attempt: 1}
}

var queueTests = []struct {
	says string
	run  func(t *queueTest)
}{
	{"Commands_ReachTheirInstances", func(t *queueTest) {
		var commands []wire.Message
		want := map[string][]string{}
		for range 11 {
			want[t.inbox()] = nil
		}
		for instance := range want {
			for range 1 + len(commands)%3 {
				id := newID()
				want[instance] = append(want[instance], id)
				commands = append(commands, stopFor(instance, id))
			}
		}
		if err := t.Commands(t.ctx, commands...); err != nil {
			t.Fatal(err)
		}
		for instance, tasks := range want {
			t.receives(instance, tasks...)
		}
		if err := t.Commands(t.ctx); err != nil {
			t.Fatalf("no commands gave %v", err)
		}
	}},
	{"Commands_OfMoreThanOneBatchAllArrive", func(t *queueTest) {
		instance := t.inbox()
		var want []string
		var commands []wire.Message
		for range 37 {
			want = append(want, newID())
			commands = append(commands, stopFor(instance, want[len(want)-1]))
		}
		if err := t.Commands(t.ctx, commands...); err != nil {
			t.Fatal(err)
		}
		t.receives(instance, want...)
	}},
	{"Commands_TooBigForOneBatchAllArriveWhole", func(t *queueTest) {
		instance := t.inbox()
		big := json.RawMessage(`{"a":"` + strings.Repeat("x<&>ü", 8_000) + `"}`)
		want := map[string]bool{}
		var commands []wire.Message
		for range 4 {
			id := newID()
			want[id] = true
			commands = append(commands, &wire.Assign{
				Header: wire.Header{Instance: instance}, Epoch: 1, Task: id, Attempt: 1, TaskARN: "arn:aws:ecs:us-east-1:000000000000:task/c/" + id,
				Cluster: "c", Family: "f", Revision: 1, Definition: big,
			})
		}
		if err := t.Commands(t.ctx, commands...); err != nil {
			t.Fatal(err)
		}
		t.until(func() bool {
			for _, m := range t.TakeCommands(instance) {
				a, ok := m.(*wire.Assign)
				if !ok || !want[a.Task] || !sameJSON(a.Definition, big) {
					t.Fatalf("received %T, whole %v", m, ok && sameJSON(a.Definition, big))
				}
				delete(want, a.Task)
			}
			return len(want) == 0
		})
		if len(want) != 0 {
			t.Fatalf("did not arrive: %v", want)
		}
	}},
	{"Commands_ToAnInstanceWithoutAQueueFailForItAlone", func(t *queueTest) {
		a, b, gone, never := t.inbox(), t.inbox(), t.inbox(), newID()
		if err := t.RemoveInbox(t.ctx, gone); err != nil {
			t.Fatal(err)
		}
		one, two := newID(), newID()
		err := t.Commands(t.ctx, stopFor(a, one), stopFor(gone, newID()), stopFor(never, newID()), stopFor(never, newID()), stopFor(b, two))
		if !fault.Is(err, fault.NotFound) || !strings.Contains(err.Error(), gone) || !strings.Contains(err.Error(), never) || strings.Contains(err.Error(), a) {
			t.Fatalf("error is %v", err)
		}
		t.receives(a, one)
		t.receives(b, two)
	}},
	{"Commands_ThatNoAgentCouldReadAreRefusedAlone", func(t *queueTest) {
		a := t.inbox()
		one := newID()
		err := t.Commands(t.ctx, stopFor(a, "not an id"), stopFor(a, one))
		f, ok := errors.AsType[*fault.Error](err)
		if !ok || f.Kind != fault.Invalid || f.Field != "task" {
			t.Fatalf("error is %v", err)
		}
		t.receives(a, one)
	}},
	{"Kick_ArrivesAsOftenAsItWasSent", func(t *queueTest) {
		kick := control.Kick{Cluster: "default", Tasks: []string{newID(), newID()}, Instance: newID(), Service: "s"}
		for range 3 {
			for _, send := range []func(context.Context, control.Kick) error{t.KickAdmission, t.KickServices} {
				if err := send(t.ctx, kick); err != nil {
					t.Fatal(err)
				}
			}
		}
		want := []control.Kick{kick, kick, kick}
		for _, take := range []func() []control.Kick{t.TakeKicks, t.TakeServiceKicks} {
			var got []control.Kick
			t.until(func() bool {
				got = append(got, take()...)
				return len(got) >= len(want)
			})
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("kicks are %+v", got)
			}
		}
	}},
	{"Kick_OfNoClusterIsRefused", func(t *queueTest) {
		for _, err := range []error{t.KickAdmission(t.ctx, control.Kick{}), t.KickServices(t.ctx, control.Kick{})} {
			if !fault.Is(err, fault.Invalid) {
				t.Fatalf("gave %v", err)
			}
		}
	}},
	{"Probe_Arrives", func(t *queueTest) {
		p := wire.Probe{ID: "probe-1"}
		if err := t.Probe(t.ctx, p); err != nil {
			t.Fatal(err)
		}
		var got []wire.Probe
		t.until(func() bool {
			got = append(got, t.TakeProbes()...)
			return len(got) > 0
		})
		if len(got) != 1 || got[0].ID != "probe-1" {
			t.Fatalf("probes are %+v", got)
		}
	}},
	{"Inbox_CanBeEnsuredAndRemovedAgainAndAgain", func(t *queueTest) {
		id := t.inbox()
		for range 2 {
			if err := t.EnsureInbox(t.ctx, id, "AROAEXAMPLE:other"); err != nil {
				t.Fatal(err)
			}
		}
		if got := t.Inboxes(); !slices.Contains(got, id) {
			t.Fatalf("inboxes are %v", got)
		}
		for range 2 {
			if err := t.RemoveInbox(t.ctx, id); err != nil {
				t.Fatal(err)
			}
		}
		if got := t.Inboxes(); slices.Contains(got, id) {
			t.Fatalf("inboxes are %v", got)
		}
	}},
	{"Inbox_WithoutAnOwnerIsRefused", func(t *queueTest) {
		if err := t.EnsureInbox(t.ctx, newID(), ""); !fault.Is(err, fault.Invalid) {
			t.Fatalf("gave %v", err)
		}
	}},
	{"Calls_WithoutTimeLeftAreUnavailable", func(t *queueTest) {
		id := t.inbox()
		ctx, cancel := context.WithCancel(t.ctx)
		cancel()
		_, backlog := t.Backlog(ctx)
		for i, err := range []error{
			t.Commands(ctx, stopFor(id, newID())), t.KickAdmission(ctx, control.Kick{Cluster: "c"}), t.KickServices(ctx, control.Kick{Cluster: "c"}),
			t.Probe(ctx, wire.Probe{ID: "p"}), t.EnsureInbox(ctx, id, "a"), t.RemoveInbox(ctx, id), backlog,
		} {
			if !fault.Is(err, fault.Unavailable) {
				t.Errorf("call %d gave %v", i, err)
			}
		}
	}},
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && fmt.Sprint(x) == fmt.Sprint(y)
}
