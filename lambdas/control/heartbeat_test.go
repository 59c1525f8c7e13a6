package control_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

// stored is all that is stored about one host and its tasks, but for its lease.
func stored(e *edge) string {
	b, err := json.Marshal([]any{e.w.Ledger(e.id), e.w.Memory.Tasks(), instanceOf(e.w, e.id)})
	if err != nil {
		panic(err)
	}
	return string(b)
}

func TestHeartbeat_AnUnchangedOneCostsOneWrite(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	id := e.running()
	list := e.lists(id, 1, wire.PhaseRunning)
	for e.beats(list); w.Lease(e.id).Beats%10 != 0; {
		e.beats(list)
	}
	for range 9 {
		w.Clock.Move(time.Minute)
		w.Memory.Calls.Reset()
		e.heard(e.beat(list))
		if n, names := w.Memory.Calls.Made(); n != 1 || names[0] != "Renew" {
			t.Fatalf("beat %d made %v", w.Lease(e.id).Beats, names)
		}
	}
	w.Clock.Move(time.Minute)
	w.Memory.Calls.Reset()
	e.heard(e.beat(list))
	if n, names := w.Memory.Calls.Made(); n < 2 || n > 6 {
		t.Fatalf("the tenth beat made %v", names)
	}
	if got := w.Lease(e.id); got.N != e.n {
		t.Fatalf("lease %+v", got)
	}
}

func TestHeartbeat_EveryLeaseIsRenewedBeforeAnyBodyIsLookedAt(t *testing.T) {
	w := controltest.NewWorld(t)
	a, b, c := host(t, w, "a"), host(t, w, "b"), host(t, w, "c")
	w.Clock.Move(time.Minute)
	unreadable := control.Beat{Sender: c.sender()}
	w.Memory.Calls.Reset()
	for i, err := range w.Heartbeats(ctx, []control.Beat{a.beat(a.lists(w.NewID(), 1, wire.PhaseRunning)), b.beat(), unreadable}) {
		if err != nil {
			t.Fatalf("%d: %v", i, err)
		}
	}
	_, names := w.Memory.Calls.Made()
	if !slices.Equal(names[:4], []string{"Renew", "Renew", "Load", "Renew"}) {
		t.Fatalf("calls %v", names)
	}
	for _, e := range []*edge{a, b, c} {
		if !w.Lease(e.id).Sent.Equal(w.Clock.Now()) {
			t.Errorf("lease of %s is not renewed", e.name)
		}
	}
}

func TestHeartbeat_ABodyThatFailsHoldsUpNoOther(t *testing.T) {
	w := controltest.NewWorld(t)
	a, b := host(t, w, "a"), host(t, w, "b")
	id := a.running()
	broken := w.Task(id)
	broken.Held = nil // no use case leaves a task so: to end it panics
	w.Memory.OnCommit = nil
	w.Put(&broken)
	w.Clock.Move(time.Minute)
	a.forget()
	w.Memory.CatchUp()
	b.docker = wire.DockerImpaired
	errs := w.Heartbeats(ctx, []control.Beat{a.beat(), b.beat()})
	if !fault.Is(errs[0], fault.Internal) || errs[1] != nil || w.Lease(b.id).Impaired.IsZero() {
		t.Fatalf("errors %v, lease %+v", errs, w.Lease(b.id))
	}
}

func TestHeartbeat_ADelayedOldOneChangesNothing(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	old := e.beat()
	w.Clock.Move(time.Second)
	id := e.running()
	e.beats(e.lists(id, 1, wire.PhaseRunning))
	before, lease := stored(e), w.Lease(e.id)
	e.heard(old)
	if stored(e) != before || !reflect.DeepEqual(w.Lease(e.id), lease) {
		t.Fatal("an old heartbeat changed something")
	}
}

func TestHeartbeat_AnOldOneThatStillRenewsDoesNotMakeLaterWorkVanish(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	w.Clock.Move(time.Second)
	old := e.beat() // an inventory without the task, on its way while …
	id := e.running()
	e.forget()
	e.heard(old)
	if got := w.Task(id); got.LastStatus != task.Running {
		t.Fatalf("task %+v", got)
	}
}

func TestHeartbeat_DeliveredAgainIsNothingNew(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	id := e.running()
	w.Clock.Move(time.Second)
	b := e.beat(e.lists(id, 1, wire.PhaseRunning))
	e.heard(b)
	before, lease := stored(e), w.Lease(e.id)
	w.Sent.TakeCommands(e.id)
	e.heard(b)
	if stored(e) != before || !reflect.DeepEqual(w.Lease(e.id), lease) || len(w.Sent.TakeCommands(e.id)) != 0 {
		t.Fatal("something changed")
	}
}

func TestHeartbeat_ASuspectThatIsHeardIsConnectedAgain(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	minutes(t, w, 5)
	if w.Lease(e.id).Stage != control.StageSuspect || w.Ledger(e.id).Connected {
		t.Fatalf("lease %+v", w.Lease(e.id))
	}
	epoch := w.Ledger(e.id).Epoch
	w.Sent.TakeKicks()
	e.beats()
	if l := w.Ledger(e.id); !l.Connected || l.Epoch != epoch || w.Lease(e.id).Stage != control.StageConnected {
		t.Fatalf("ledger %+v lease %+v", l, w.Lease(e.id))
	}
	if kicks := w.Sent.TakeKicks(); len(kicks) != 1 || kicks[0].Instance != e.id {
		t.Fatalf("kicks %+v", kicks)
	}
}

func TestHeartbeat_ALostInstanceIsFencedThenClean(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	ran, ended := e.running(), e.running()
	e.lost()
	l := w.Ledger(e.id)
	e.beats(e.lists(ran, 1, wire.PhaseRunning), e.lists(ended, 1, wire.PhaseEnded))
	if w.Lease(e.id).Stage != control.StageFenced || w.Ledger(e.id).Connected {
		t.Fatalf("lease %+v", w.Lease(e.id))
	}
	fences := inbox[*wire.Fence](e)
	if len(fences) != 1 || fences[0].Epoch != l.Epoch || fences[0].Incarnation != e.incarnation || fences[0].Terminal ||
		!slices.Equal(fences[0].Closed, []wire.Attempt{{Task: ran, Attempt: 1}}) {
		t.Fatalf("fence %+v", fences)
	}
	old := e.epoch
	e.epoch = l.Epoch
	entry := func(id string, p wire.Phase) wire.Entry {
		return wire.Entry{Task: id, Attempt: 1, Epoch: old, Phase: p}
	}
	e.beats(entry(ran, wire.PhaseRunning), entry(ended, wire.PhaseEnded))
	if w.Ledger(e.id).Connected || !strings.HasPrefix(w.Lease(e.id).StageReason, "RETURNED: 1 closed") {
		t.Fatalf("schedulable while a closed task runs: %+v", w.Lease(e.id))
	}
	var stops, resyncs int
	for _, m := range w.Sent.TakeCommands(e.id) {
		switch m.(type) {
		case *wire.Stop:
			stops++
		case *wire.Resync:
			resyncs++
		}
	}
	if stops != 1 || resyncs != 1 { // what ended there is still to be told
		t.Fatalf("%d stops, %d resyncs", stops, resyncs)
	}
	w.Sent.TakeKicks()
	e.beats(entry(ran, wire.PhaseEnded))
	if l := w.Ledger(e.id); !l.Connected || l.Cause != control.NoCause || w.Lease(e.id).Stage != control.StageConnected {
		t.Fatalf("ledger %+v", l)
	}
	if kicks := w.Sent.TakeKicks(); len(kicks) == 0 || kicks[0].Instance != e.id {
		t.Fatalf("kicks %+v", kicks)
	}
	id := e.given()
	if w.Task(id).Instance != e.id {
		t.Fatal("it takes no work")
	}
}

func TestHeartbeat_ATerminalFenceForADeregisteredInstance(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	l, in := w.Ledger(e.id), instanceOf(w, e.id)
	l.Status, l.Connected, in.GoneAt = control.Inactive, false, w.Clock.Now()
	l.Epoch++
	lease := w.Lease(e.id)
	lease.Epoch, lease.Stage = l.Epoch, control.StageLost
	w.Put(&l, &in, &lease)
	e.beats()
	if fences := inbox[*wire.Fence](e); len(fences) != 1 || !fences[0].Terminal {
		t.Fatalf("fences %+v", fences)
	}
	e.epoch = l.Epoch
	e.beats()
	if fences := inbox[*wire.Fence](e); len(fences) != 1 || !fences[0].Terminal || w.Ledger(e.id).Connected {
		t.Fatalf("fences %+v ledger %+v", fences, w.Ledger(e.id))
	}
}

func TestHeartbeat_ImpairedTakesNoWorkUntilItRecovers(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	id := e.running()
	list := e.lists(id, 1, wire.PhaseRunning)
	e.docker = wire.DockerImpaired
	e.beats(list)
	since := w.Clock.Now()
	e.beats(list)
	if lease := w.Lease(e.id); !lease.Impaired.Equal(since) || w.Ledger(e.id).Connected || w.Task(id).LastStatus != task.Running {
		t.Fatalf("lease %+v", lease)
	}
	waits := w.AddTask(small).ID
	w.MustAdmit(waits)
	if w.Task(waits).LastStatus != task.Provisioning {
		t.Fatal("it took work")
	}
	e.docker = wire.DockerOK
	e.beats(list)
	if lease := w.Lease(e.id); !lease.Impaired.IsZero() || !w.Ledger(e.id).Connected || lease.Stage != control.StageConnected {
		t.Fatalf("lease %+v", lease)
	}
}

func TestHeartbeat_ClonesAreFoundAndNothingIsRepairedFromEither(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	id := e.running()
	list := e.lists(id, 1, wire.PhaseRunning)
	for n := range 5 {
		e.session = []string{"session-1", "session-2"}[n%2]
		e.beats(list)
	}
	if n, _ := w.Counts.Last("DuplicateIdentities"); n != 1 || w.Ledger(e.id).Connected || !strings.HasPrefix(w.Lease(e.id).StageReason, "DUPLICATE_IDENTITY") {
		t.Fatalf("counted %v, lease %+v", n, w.Lease(e.id))
	}
	e.session = "session-2"
	e.beats() // without the task: were it judged, the task would vanish
	if w.Task(id).LastStatus != task.Running {
		t.Fatal("repaired from a clone")
	}
	w.Sent.TakeCommands(e.id)
	for range 7 { // one of them is gone
		w.Clock.Move(time.Minute)
		e.beats(list)
	}
	if !w.Ledger(e.id).Connected || w.Lease(e.id).Alternations != 0 {
		t.Fatalf("lease %+v", w.Lease(e.id))
	}
}

func TestHeartbeat_RestartsAreNotClones(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	for n := range 10 {
		e.session = fmt.Sprintf("session-%d", n+2)
		e.beats()
		e.beats()
		if !w.Ledger(e.id).Connected {
			t.Fatalf("restart %d: %+v", n, w.Lease(e.id))
		}
	}
	if got := len(w.Lease(e.id).Sessions); got != 4 {
		t.Fatalf("%d sessions are kept", got)
	}
}

func TestHeartbeat_AJournalThatWentBackIsTakenForward(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	id := e.running()
	e.beats(e.lists(id, 1, wire.PhaseRunning))
	applied := w.Lease(e.id).N
	e.n = 0
	before := stored(e)
	e.beats() // an old copy, which does not have the task
	if stored(e) != before {
		t.Fatal("an inventory of the past was applied")
	}
	if got := inbox[*wire.Welcome](e); len(got) != 1 || got[0].N != applied {
		t.Fatalf("told %+v", got)
	}
}

func TestHeartbeat_AnUnknownSenderIsToldToRegister(t *testing.T) {
	w := controltest.NewWorld(t)
	e := newEdge(t, w, "i")
	if err := w.Sent.EnsureInbox(t.Context(), e.id, e.identity); err != nil { // left from before its lease was forgotten
		t.Fatal(err)
	}
	e.beats()
	got := inbox[*wire.Resync](e)
	if n, _ := w.Counts.Last("UnknownSenders"); n != 1 || len(got) != 1 || len(got[0].Tasks) != 0 || w.Lease(e.id).Version != 0 {
		t.Fatalf("told %+v", got)
	}
}

func TestHeartbeat_OfNobodyRenewsNothing(t *testing.T) {
	w := controltest.NewWorld(t)
	i := w.AddInstance("i", room)
	before := w.Lease(i)
	w.Clock.Move(time.Second)
	for name, local := range map[string]bool{"guard": true, "": true, i: false} { // the last: a body that vouches for itself
		w.Setting.SenderFromBody = local
		calls, _ := w.Memory.Calls.Made()
		for _, err := range w.Heartbeats(t.Context(), []control.Beat{{Sender: control.Sender{SentAt: w.Clock.Now()}, Instance: name}}) {
			if err != nil {
				t.Errorf("%q: %v", name, err)
			}
		}
		if now, _ := w.Memory.Calls.Made(); now != calls || !w.Lease(i).Sent.Equal(before.Sent) {
			t.Errorf("a beat of nobody that names %q made %d calls, and the lease is of %s", name, now-calls, w.Lease(i).Sent)
		}
	}
}

func TestHeartbeat_OfAnotherIncarnationChangesNothing(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	id := e.running()
	late := e.beat()
	w.Clock.Move(10 * time.Minute)
	e.incarnation = "inc-2"
	e.registers()
	w.Clock.Move(time.Second)
	before, lease := stored(e), w.Lease(e.id)
	e.heard(late)
	if n, counted := w.Counts.Last("DuplicateIdentities"); counted {
		t.Fatalf("a heartbeat from before is no duplicate: %v", n)
	}
	e.incarnation = "inc-i"
	e.beats()
	if n, _ := w.Counts.Last("DuplicateIdentities"); n != 1 || stored(e) != before || !reflect.DeepEqual(w.Lease(e.id), lease) || w.Task(id).LastStatus != task.Running {
		t.Fatalf("counted %v", n)
	}
}

func TestHeartbeat_AnAgentAheadOfRestoredTablesLosesNothing(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	e.epoch += 10
	unknown := e.lists(w.NewID(), 1, wire.PhaseRunning)
	w.Clock.Move(time.Hour)
	e.beats(unknown)
	l := w.Ledger(e.id)
	if l.Epoch != w.Clock.Now().Unix() || l.SinceEpoch != l.Epoch || l.Connected {
		t.Fatalf("ledger %+v", l)
	}
	if fences := inbox[*wire.Fence](e); len(fences) != 1 || len(fences[0].Closed) != 0 || fences[0].Epoch != l.Epoch {
		t.Fatalf("fences %+v", fences)
	}
	e.epoch = l.Epoch
	e.beats(unknown)
	if len(inbox[*wire.Stop](e)) != 0 {
		t.Fatal("what runs was stopped for want of an item")
	}
}

func TestHeartbeat_AnIntervalSetLaterIsTold(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	w.Setting.HeartbeatEvery = 5 * time.Second
	for range 11 {
		e.beats()
	}
	got := inbox[*wire.Welcome](e)
	if len(got) != 1 || got[0].HeartbeatEveryS != 5 || w.Lease(e.id).Every != 5*time.Second {
		t.Fatalf("told %+v", got)
	}
}

func TestHeartbeat_ASuspectOfAnOldEpochOrWithTasksOfOneIsNotConnectedByBeingHeard(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	id := e.running()
	e.raised(control.ReapedCause)
	suspect := func() {
		lease := w.Lease(e.id)
		lease.Stage = control.StageSuspect
		w.Put(&lease)
	}
	suspect()
	e.beats(e.lists(id, 1, wire.PhaseRunning)) // of the old epoch
	if w.Ledger(e.id).Connected || len(inbox[*wire.Fence](e)) != 1 {
		t.Fatalf("lease %+v", w.Lease(e.id))
	}
	suspect()
	e.epoch++
	e.beats(wire.Entry{Task: id, Attempt: 1, Epoch: e.epoch - 1, Phase: wire.PhaseRunning})
	if l := w.Ledger(e.id); l.Connected || l.Stale != 1 {
		t.Fatalf("ledger %+v", l)
	}
}

func TestHeartbeat_ARaisedEpochIsAlwaysAboveTheAgents(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	e.epoch = w.Clock.Now().Unix() + 100
	e.beats()
	if fences := inbox[*wire.Fence](e); len(fences) != 1 || fences[0].Epoch <= e.epoch {
		t.Errorf("an agent of epoch %d is told %+v", e.epoch, fences)
	}
}

func TestHeartbeat_ADeregisteredInstanceAheadOfRestoredTablesIsToldToEnd(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	if _, err := w.DeregisterContainerInstance(ctx, "default", e.id, false); err != nil {
		t.Fatal(err)
	}
	w.Sent.TakeCommands(e.id)
	e.epoch = w.Ledger(e.id).Epoch + 100
	e.beats()
	if fences := inbox[*wire.Fence](e); len(fences) != 1 || !fences[0].Terminal || fences[0].Epoch < e.epoch {
		t.Errorf("fences %+v: an agent takes none below its epoch", fences)
	}
}

func TestHeartbeat_WithoutTimeLeftLeasesAreRenewedAndBodiesLeftToTheNextBeat(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	unknown := e.lists(w.NewID(), 1, wire.PhaseRunning)
	w.Clock.Move(time.Minute)
	b := e.beat(unknown)
	if err := w.Heartbeats(hurried, []control.Beat{b})[0]; err != nil {
		t.Fatal(err)
	}
	if lease := w.Lease(e.id); !lease.Sent.Equal(b.Sender.SentAt) || lease.N >= b.Message.N {
		t.Errorf("lease %+v", lease)
	}
	e.beats(unknown)
	if s := w.Lease(e.id).Stage; s != control.StageFenced {
		t.Errorf("the next beat was not looked at: %s", s)
	}
}

// After a restore from before its register an incarnation believes itself
// registered, and the tables know only the one before it.
func TestHeartbeat_AnIncarnationNobodyKnowsRegistersOnceTheKnownOneIsSilent(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	e.incarnation, e.n = "inc-restored", 7
	e.beats()
	if told := inbox[*wire.Resync](e); len(told) != 0 {
		t.Fatalf("told %+v while the one we know is heard", told)
	}
	w.Clock.Move(5 * time.Minute)
	e.beats()
	if told := inbox[*wire.Resync](e); len(told) != 1 || len(told[0].Tasks) != 0 {
		t.Fatalf("it is not told to register: %+v", told)
	}
	e.registers()
	e.welcomed()
	e.beats()
	if l := w.Ledger(e.id); !l.Connected {
		t.Fatalf("it registered, and takes no work: %+v", l)
	}
}

// The report of an end may be lost while the inventory that lists it comes through:
// acknowledged by that, its exit code would be forgotten for good.
func TestHeartbeat_AnEndThatWasNeverToldIsAskedForAndNotAcknowledged(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	told, lost := e.running(), e.running()
	e.reports(told, 1, task.Stopped)
	e.lost()
	e.epoch = w.Ledger(e.id).Epoch
	entry := func(id string) wire.Entry {
		return wire.Entry{Task: id, Attempt: 1, Epoch: e.epoch - 1, Phase: wire.PhaseEnded}
	}
	e.looked(entry(told), entry(lost))
	var acked, asked []string
	for _, m := range w.Sent.TakeCommands(e.id) {
		switch m := m.(type) {
		case *wire.Ack:
			acked = append(acked, m.Task)
		case *wire.Resync:
			asked = append(asked, m.Tasks...)
		}
	}
	if !slices.Equal(acked, []string{told}) || !slices.Equal(asked, []string{lost}) {
		t.Fatalf("acknowledged %v, asked for %v", acked, asked)
	}
	e.reports(lost, 1, task.Stopped)
	if got := w.Task(lost); got.StopCause != task.LostCause || got.Containers[0].ExitCode == nil || *got.Containers[0].ExitCode != 7 {
		t.Errorf("%+v", got)
	}
	if acks := inbox[*wire.Ack](e); len(acks) != 1 || acks[0].Task != lost {
		t.Errorf("acknowledged %+v", acks)
	}
	e.looked(entry(lost)) // the acknowledgement was lost
	if acks := inbox[*wire.Ack](e); len(acks) != 1 {
		t.Errorf("acknowledged %+v", acks)
	}
}
