package control_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

// What somebody can do who has stolen an agent's credential: IAM lets them send to
// the two queues of the control plane, and SQS says who they are. SECURITY.md has
// the list, and names these tests.

// belongings is all that is stored of an instance and one of its tasks.
func belongings(w *controltest.World, id, job string) string {
	b, _ := json.Marshal([]any{w.Task(job), w.Ledger(id), w.Lease(id), instanceOf(w, id)})
	return string(b)
}

// robbed is a victim with a running task, and a thief who is registered too.
func robbed(t *testing.T) (victim, thief *edge, job string) {
	w := controltest.NewWorld(t)
	victim, thief = host(t, w, "victim"), host(t, w, "thief")
	job = victim.running()
	w.Clock.Move(time.Second)
	w.Sent.TakeKicks()
	return victim, thief, job
}

// messages are all that an agent can send, about a task, as the edge says them.
func messages(as *edge, job string) map[string]wire.Message {
	return map[string]wire.Message{
		"a report that it runs":             as.report(job, 1, task.Running),
		"a report that it stops":            as.report(job, 1, task.Stopping),
		"a report of its end":               as.report(job, 1, task.Stopped),
		"a report of a later attempt":       as.report(job, 2, task.Stopped),
		"a refusal":                         as.refusal(job, 1),
		"an inventory that has it":          as.beat(as.lists(job, 1, wire.PhaseRunning)).Message,
		"an inventory in which it is ended": as.beat(as.lists(job, 1, wire.PhaseEnded)).Message,
		"an inventory without it":           as.beat().Message,
		"an inventory of a later life":      func() wire.Message { m := as.beat().Message; m.Epoch += 1000; return m }(),
		"a registration":                    as.register(),
		"a registration of a new life":      func() wire.Message { m := as.register(); m.Incarnation = "mine"; m.Epoch += 1000; return m }(),
	}
}

// deliver hands a message over as the queue does, and says what came of it.
func deliver(w *controltest.World, s control.Sender, m wire.Message) error {
	w.Memory.CatchUp()
	switch m := m.(type) {
	case *wire.Report:
		return w.IngestReport(ctx, s, m)
	case *wire.Refused:
		return w.IngestRefused(ctx, s, m)
	case *wire.Register:
		return w.IngestRegister(ctx, s, m)
	case *wire.Heartbeat:
		return w.Heartbeats(ctx, []control.Beat{{Sender: s, Instance: m.Instance, Message: m}})[0]
	case *wire.Probe:
		return w.IngestProbe(ctx, s, m)
	}
	return fmt.Errorf("no agent sends a %T", m)
}

func TestAttack_WhatIsForgedInAnothersNameIsDroppedAndCounted(t *testing.T) {
	for name := range messages(newEdge(t, controltest.NewWorld(t), "x"), "") {
		t.Run(name, func(t *testing.T) {
			victim, thief, job := robbed(t)
			w := victim.w
			before := belongings(w, victim.id, job)
			forged := messages(victim, job)[name] // word for word what the victim would say
			if err := deliver(w, thief.sender(), forged); err != nil {
				t.Fatal(err)
			}
			if n, _ := w.Counts.Last("RefusedSenders"); n != 1 {
				t.Errorf("counted %v", n)
			}
			if after := belongings(w, victim.id, job); after != before {
				t.Errorf("before %s\nafter  %s", before, after)
			}
			if got := w.Sent.TakeCommands(victim.id); len(got) > 0 {
				t.Errorf("the victim is sent %v", got)
			}
		})
	}
}

func TestAttack_WhatIsSaidOfAnothersTaskInOnesOwnNameChangesNothingOfIt(t *testing.T) {
	for name := range messages(newEdge(t, controltest.NewWorld(t), "x"), "") {
		t.Run(name, func(t *testing.T) {
			victim, thief, job := robbed(t)
			w := victim.w
			before := belongings(w, victim.id, job)
			if err := deliver(w, thief.sender(), messages(thief, job)[name]); err != nil {
				t.Fatal(err)
			}
			if after := belongings(w, victim.id, job); after != before {
				t.Errorf("before %s\nafter  %s", before, after)
			}
			if got := w.Sent.TakeCommands(victim.id); len(got) > 0 {
				t.Errorf("the victim is sent %v", got)
			}
			for _, m := range w.Sent.TakeCommands(thief.id) {
				if _, assigned := m.(*wire.Assign); assigned {
					t.Error("the thief is given the task")
				}
			}
		})
	}
}

func TestAttack_AReplayOfOldMessagesChangesNothing(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	var tape []wire.Message
	record := func(m wire.Message) wire.Message { tape = append(tape, m); return m }
	say := func(m wire.Message) {
		t.Helper()
		w.Clock.Move(time.Second)
		if err := deliver(w, e.sender(), record(m)); err != nil {
			t.Fatal(err)
		}
	}
	first := e.given()
	say(e.report(first, 1, task.Running))
	say(e.beat(e.lists(first, 1, wire.PhaseRunning)).Message)
	say(e.report(first, 1, task.Stopped))
	say(e.beat().Message)
	second := e.given()
	say(e.refusal(second, 1)) // and it waits again
	w.MustAdmit(second)
	if got := w.Task(second); got.Attempt != 2 {
		t.Fatalf("the second attempt is %d", got.Attempt)
	}
	w.Clock.Move(6 * time.Minute) // the refusal is forgotten
	w.MustAdmit(second)
	e.looked(e.lists(second, 2, wire.PhaseRunning))
	e.reports(second, 2, task.Running)
	before := fmt.Sprint(belongingsWithoutLease(w, e.id, first), belongingsWithoutLease(w, e.id, second))
	w.Sent.TakeCommands(e.id)
	for range 2 {
		for _, m := range tape {
			w.Clock.Move(time.Second)
			if err := deliver(w, e.sender(), m); err != nil {
				t.Fatal(err)
			}
		}
	}
	if after := fmt.Sprint(belongingsWithoutLease(w, e.id, first), belongingsWithoutLease(w, e.id, second)); after != before {
		t.Errorf("before %s\nafter  %s", before, after)
	}
	for _, m := range w.Sent.TakeCommands(e.id) {
		switch m.(type) {
		case *wire.Assign, *wire.Stop, *wire.Fence:
			t.Errorf("a replay is answered with %T", m)
		}
	}
}

// belongingsWithoutLease leaves out the lease, which any beat of its own renews.
func belongingsWithoutLease(w *controltest.World, id, job string) string {
	b, _ := json.Marshal([]any{w.Task(job), w.Ledger(id), instanceOf(w, id)})
	return string(b)
}

func TestAttack_AnothersHostIsNotClaimed(t *testing.T) {
	for _, c := range []struct {
		session, said, taken string
		fromBody             bool
	}{
		{session: "i-0123456789abcdef0", said: "i-0123456789abcdef0", taken: "i-0123456789abcdef0"},
		{session: "i-0123456789abcdef0", said: "i-0victim"},
		{session: "mi-0123456789abcdef0", said: "i-0victim"},
		{session: "a-user", said: "i-0victim"},
		{session: "a-user", said: "i-0victim", taken: "i-0victim", fromBody: true}, // an emulator vouches for nobody
	} {
		w := controltest.NewWorld(t)
		w.Setting.SenderFromBody = c.fromBody
		e := newEdge(t, w, c.session)
		m := e.register()
		m.EC2InstanceID = c.said
		if err := deliver(w, e.sender(), m); err != nil {
			t.Fatal(err)
		}
		if got := instanceOf(w, e.id).EC2InstanceID; got != c.taken || w.Lease(e.id).EC2 != c.taken {
			t.Errorf("%+v: taken for %q", c, got)
		}
	}
}

func TestAttack_AGuessedProbeMovesNoWatermark(t *testing.T) {
	_, thief, _ := robbed(t)
	w := thief.w
	if err := w.Tick(ctx); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"x", "probe", strings.Repeat("0", 32), thief.id} {
		w.Clock.Move(time.Second)
		if err := deliver(w, thief.sender(), &wire.Probe{ID: id}); err != nil {
			t.Fatal(err)
		}
		if n, _ := w.Counts.Last("RefusedSenders"); n != 1 {
			t.Errorf("probe %q: counted %v", id, n)
		}
	}
}

// Whoever knows an epoch at the very end of what is a number must not stand where
// the next one is none, nor keep others from being served.
func TestAttack_AnEpochAtTheEndOfNumbersHurtsOnlyItsOwnInstance(t *testing.T) {
	victim, thief, _ := robbed(t)
	w := victim.w
	m := thief.register()
	m.Epoch = 1<<53 - 1
	if err := deliver(w, thief.sender(), m); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		minutes(t, w, 1, victim.id)
	}
	if got := w.Lease(victim.id).Stage; got != control.StageConnected {
		t.Errorf("the victim is %s", got)
	}
	if id := victim.given(); w.Task(id).Instance != victim.id {
		t.Error("nothing is given to the victim")
	}
	minutes(t, w, 30, victim.id)
	if got := w.Lease(thief.id).Stage; got != control.StageLost {
		t.Errorf("the silent thief is %s", got)
	}
}

func TestAttack_ALieAboutCapacityIsBounded(t *testing.T) {
	w := controltest.NewWorld(t)
	e := newEdge(t, w, "i")
	for name, lie := range map[string]func(*wire.Register){
		"cpu":         func(m *wire.Register) { m.CPU = wire.MaxCPU + 1 },
		"memory":      func(m *wire.Register) { m.MemoryMiB = wire.MaxMemoryMiB + 1 },
		"gpus":        func(m *wire.Register) { m.GPUs = make([]string, 65) },
		"zone":        func(m *wire.Register) { m.Zone = "a\x1b[2J" },
		"reservedTcp": func(m *wire.Register) { m.ReservedTCP = make([]int, 201) },
	} {
		m := e.register()
		lie(m)
		if _, err := wire.Encode(m); !fault.Is(err, fault.Invalid) || !strings.HasPrefix(err.Error(), name+": ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	m := e.register()
	m.CPU, m.MemoryMiB = wire.MaxCPU, wire.MaxMemoryMiB
	if err := deliver(w, e.sender(), m); err != nil {
		t.Fatal(err)
	}
	e.welcomed()
	e.beats()
	if id := e.given(); w.Ledger(e.id).Open != 1 || w.Task(id).Instance != e.id {
		t.Errorf("ledger %+v", w.Ledger(e.id))
	}
}

func TestAttack_GarbageAttributesAreRefusedByName(t *testing.T) {
	e := newEdge(t, controltest.NewWorld(t), "i")
	many := map[string]string{}
	for n := range 101 {
		many[fmt.Sprint("a", n)] = ""
	}
	for name, attributes := range map[string]map[string]string{
		"too many": many, "no name": {"": "x"}, "a long name": {strings.Repeat("n", 129): "x"}, "a long value": {"n": strings.Repeat("v", 129)},
		"a control character": {"n": "\x1b[2J"}, "a name with a blank": {"a b": ""}, "another line": {"n": "a\nb"}, "a null": {"\x00": ""},
	} {
		m := e.register()
		m.Attributes = attributes
		if _, err := wire.Encode(m); !fault.Is(err, fault.Invalid) || !strings.HasPrefix(err.Error(), "attributes") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAttack_NoAgentSetsWhatOperatorsOrTheInstanceItselfSay(t *testing.T) {
	w := controltest.NewWorld(t)
	e := newEdge(t, w, "i")
	m := e.register()
	m.Attributes = map[string]string{"longshore.pool": "prod", "ecs.availability-zone": "elsewhere", "ecs.instance-id": "i-0victim", "disk": "ssd"}
	if err := deliver(w, e.sender(), m); err != nil {
		t.Fatal(err)
	}
	e.welcomed()
	w.Memory.CatchUp()
	all, _, err := w.ListAttributes(ctx, control.AttributeFilter{Cluster: "default"}, control.Cursor{}, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if a.Name == "longshore.pool" || a.Value == "elsewhere" || a.Value == "i-0victim" {
			t.Errorf("%s is %q", a.Name, a.Value)
		}
	}
}
