package control_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

func instanceOf(w *controltest.World, id string) control.Instance {
	in := &control.Instance{ID: id}
	if err := w.Store.Load(ctx, in); err != nil {
		panic(err)
	}
	return *in
}

func TestRegister_DeliveredThreeTimesIsOneInstanceAndOneEpoch(t *testing.T) {
	w := controltest.NewWorld(t)
	e := newEdge(t, w, "i")
	s, m := e.sender(), e.register()
	for range 3 {
		if err := w.IngestRegister(ctx, s, m); err != nil {
			t.Fatal(err)
		}
		w.Clock.Move(time.Second)
	}
	l, lease := w.Ledger(e.id), w.Lease(e.id)
	if l.Epoch != s.SentAt.Unix() || l.SinceEpoch != l.Epoch || l.Connected || l.Status != control.Active || lease.Epoch != l.Epoch || lease.Stage != control.StageFenced {
		t.Fatalf("ledger %+v lease %+v", l, lease)
	}
	welcomes := inbox[*wire.Welcome](e)
	if len(welcomes) != 3 || !reflect.DeepEqual(welcomes[0], welcomes[2]) {
		t.Fatalf("welcomes %+v", welcomes)
	}
	if got := welcomes[0]; got.Epoch != l.Epoch || got.Incarnation != e.incarnation || got.HeartbeatEveryS != 60 ||
		got.ContainerInstanceARN != "arn:aws:ecs:us-east-1:000000000000:container-instance/default/"+e.id {
		t.Fatalf("welcome %+v", got)
	}
	if got := l.Registered; got.CPU != 1000 || got.MemoryMiB != 100 || !slices.Equal(got.GPUs, []string{"gpu0", "gpu1"}) || !slices.Equal(got.TCP, []int{22}) {
		t.Fatalf("registered %+v", got)
	}
}

func TestRegister_TheInboxIsThereBeforeTheWelcome(t *testing.T) {
	w := controltest.NewWorld(t)
	e := newEdge(t, w, "i")
	e.registers()
	_, names := w.Memory.Calls.Made()
	if at := slices.Index(names, "EnsureInbox"); at < 0 || at > slices.Index(names, "Commands") {
		t.Fatalf("calls %v", names)
	}
	if !slices.Equal(w.Sent.Inboxes(), []string{e.id}) {
		t.Fatalf("inboxes %v", w.Sent.Inboxes())
	}
}

func TestRegister_WithoutAnInboxComesAgain(t *testing.T) {
	w := controltest.NewWorld(t)
	e := newEdge(t, w, "i")
	s, m := e.sender(), e.register()
	w.Memory.Calls.FailAt(3, fault.Unavailable) // Load, Commit, EnsureInbox
	if err := w.IngestRegister(ctx, s, m); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("error %v", err)
	}
	w.Memory.Calls.Reset()
	if err := w.IngestRegister(ctx, s, m); err != nil || len(inbox[*wire.Welcome](e)) != 1 {
		t.Fatalf("error %v", err)
	}
}

func TestRegister_OfWhomItIsNot(t *testing.T) {
	for name, change := range map[string]func(w *controltest.World, s *control.Sender){
		"another's identity": func(_ *controltest.World, s *control.Sender) { s.Identity = "AROATEST:somebody" },
		"no identity":        func(_ *controltest.World, s *control.Sender) { s.Identity = "" },
		"a role not allowed": func(w *controltest.World, _ *control.Sender) { w.Setting.RegisterRoles = []string{"AROAOTHER", "AROA"} },
	} {
		t.Run(name, func(t *testing.T) {
			w := controltest.NewWorld(t)
			e := newEdge(t, w, "i")
			s := e.sender()
			change(w, &s)
			if err := w.IngestRegister(ctx, s, e.register()); err != nil {
				t.Fatal(err)
			}
			if n, _ := w.Counts.Last("RefusedSenders"); n != 1 || w.Ledger(e.id).Version != 0 || len(w.Sent.Inboxes()) != 0 {
				t.Errorf("counted %v, ledger %+v", n, w.Ledger(e.id))
			}
		})
	}
}

func TestRegister_OfAnAllowedRole(t *testing.T) {
	for _, roles := range [][]string{{"*"}, {"AROAOTHER", "AROATEST"}, {"AROATEST:i"}} {
		w := controltest.NewWorld(t)
		w.Setting.RegisterRoles = roles
		e := newEdge(t, w, "i")
		e.registers()
		e.welcomed()
	}
}

func TestRegister_OnTheLocalStackTheBodyVouches(t *testing.T) {
	w := controltest.NewWorld(t)
	w.Setting.SenderFromBody = true
	e := newEdge(t, w, "i")
	if err := w.IngestRegister(ctx, control.Sender{Identity: "000000000000", SentAt: w.Clock.Now()}, e.register()); err != nil {
		t.Fatal(err)
	}
	e.welcomed()
	if instanceOf(w, e.id).Identity != e.identity {
		t.Error("the identity is not the agent's")
	}
}

func TestRegister_InNoOrAnInactiveCluster(t *testing.T) {
	w := controltest.NewWorld(t)
	w.Put(&control.Cluster{Name: "old", Status: "INACTIVE"})
	for _, cluster := range []string{"missing", "old"} {
		e := newEdge(t, w, cluster)
		e.cluster = cluster
		e.registers()
		if n, _ := w.Counts.Last("RefusedRegistrations"); n != 1 || w.Ledger(e.id).Version != 0 {
			t.Errorf("%s: %+v", cluster, w.Ledger(e.id))
		}
	}
}

func TestRegister_TheFirstInstanceMakesTheDefaultCluster(t *testing.T) {
	w := controltest.NewWorld(t)
	k := &control.Cluster{Name: "default"}
	if err := w.Store.Load(ctx, k); err != nil {
		t.Fatal(err)
	}
	if err := w.Store.Commit(ctx, control.Delete(k)); err != nil {
		t.Fatal(err)
	}
	host(t, w, "i")
	host(t, w, "j")
	if err := w.Store.Load(ctx, k); err != nil || k.Status != "ACTIVE" {
		t.Fatalf("cluster %+v, %v", k, err)
	}
}

func TestRegister_ElsewhereOnlyAfterDeregistration(t *testing.T) {
	w := controltest.NewWorld(t)
	w.Put(&control.Cluster{Name: "other", Status: "ACTIVE"})
	e := host(t, w, "i")
	e.cluster = "other"
	e.registers()
	if w.Ledger(e.id).Cluster != "default" {
		t.Fatal("an instance left its cluster by itself")
	}
}

func TestRegister_OlderThanTheLastIsDropped(t *testing.T) {
	w := controltest.NewWorld(t)
	e := newEdge(t, w, "i")
	old, oldSender := e.register(), e.sender()
	old.CPU = 1
	w.Clock.Move(time.Second)
	e.join()
	if err := w.IngestRegister(ctx, oldSender, old); err != nil {
		t.Fatal(err)
	}
	if w.Ledger(e.id).Registered.CPU != 1000 || len(inbox[*wire.Welcome](e)) != 0 {
		t.Fatal("an old register was taken")
	}
}

func TestRegister_RenewsTheLeaseAndNeverWritesWhatIsHeld(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	e.running()
	before := w.Ledger(e.id)
	w.Clock.Move(time.Minute)
	m := e.register()
	m.CPU, m.GPUs = 150, nil // a host that shrank may be over what it has: 100 are held
	if err := w.IngestRegister(ctx, e.sender(), m); err != nil {
		t.Fatal(err)
	}
	l := w.Ledger(e.id)
	if l.Registered.CPU != 150 || !reflect.DeepEqual(l.Held, before.Held) || l.Open != 1 || l.Epoch != before.Epoch || !l.Connected {
		t.Fatalf("ledger %+v", l)
	}
	if got := w.Lease(e.id); !got.Sent.Equal(w.Clock.Now()) || !got.RegisterSent.Equal(w.Clock.Now()) || got.Stage != control.StageConnected {
		t.Fatalf("lease %+v", got)
	}
	other := w.AddTask(small).ID
	w.MustAdmit(other)
	if w.Task(other).LastStatus != task.Provisioning {
		t.Fatal("it took work beyond what it has now")
	}
}

func TestRegister_ADrainByAPersonSurvives(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	l := w.Ledger(e.id)
	l.Status = control.Draining
	w.Put(&l)
	e.lost()
	e.incarnation = "inc-2"
	e.registers()
	e.welcomed()
	e.beats()
	if got := w.Ledger(e.id); got.Status != control.Draining || !got.Connected {
		t.Fatalf("ledger %+v", got)
	}
}

func TestRegister_ANewIncarnationWaitsUntilTheOldOneIsSilent(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	id := e.running()
	old := w.Ledger(e.id)
	w.Sent.TakeCommands(e.id)
	e.beats(e.lists(id, 1, wire.PhaseRunning))
	heard := w.Clock.Now()
	e.incarnation, e.n, e.epoch = "inc-2", 0, 0
	w.Clock.Move(3*time.Minute - time.Second)
	e.registers()
	if got := w.Ledger(e.id); !reflect.DeepEqual(got, old) {
		t.Fatalf("ledger %+v, was %+v", got, old)
	}
	if n, _ := w.Counts.Last("DuplicateIdentities"); n != 1 || instanceOf(w, e.id).Replacing != "inc-2" || !w.Lease(e.id).Sent.Equal(heard) {
		t.Fatalf("counted %v, instance %+v", n, instanceOf(w, e.id))
	}
	fences := inbox[*wire.Fence](e)
	if len(fences) != 1 || fences[0].Incarnation != "inc-2" || fences[0].Reason != wire.DuplicateIdentity || fences[0].Epoch != 1 || len(fences[0].Closed) != 0 || fences[0].Terminal {
		t.Fatalf("told %+v", fences)
	}
	w.Clock.Move(time.Second)
	e.registers()
	l, got := w.Ledger(e.id), w.Task(id)
	if l.Epoch <= old.Epoch || l.Cause != control.IncarnationCause || l.Stale != 1 || l.Connected || got.LastStatus != task.Running || got.Epoch != old.Epoch {
		t.Fatalf("ledger %+v task %+v: it closes nothing", l, got)
	}
	if in := instanceOf(w, e.id); in.Incarnation != "inc-2" || in.Replacing != "" {
		t.Fatalf("instance %+v", in)
	}
	if e.welcomed().Epoch != l.Epoch {
		t.Fatal("welcomed to another epoch")
	}
}

func TestRegister_ALateRegisterOfTheOldIncarnationDoesNotComeBack(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	w.Clock.Move(5 * time.Minute)
	late, sender := e.register(), e.sender()
	w.Clock.Move(time.Second)
	e.incarnation = "inc-2"
	e.registers()
	epoch := e.welcomed().Epoch
	if err := w.IngestRegister(ctx, sender, late); err != nil {
		t.Fatal(err)
	}
	if instanceOf(w, e.id).Incarnation != "inc-2" || w.Ledger(e.id).Epoch != epoch || len(inbox[*wire.Welcome](e)) != 0 {
		t.Fatal("the older incarnation was welcomed")
	}
}

func TestRegister_AWelcomeNamesTheIncarnationItIsFor(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	w.Clock.Move(5 * time.Minute)
	e.registers() // its welcome lies in the inbox when the journal is lost
	w.Clock.Move(5 * time.Minute)
	e.incarnation, e.n, e.epoch = "inc-2", 0, 0
	e.registers()
	var got []string
	for _, m := range inbox[*wire.Welcome](e) {
		got = append(got, m.Incarnation)
	}
	if !slices.Equal(got, []string{"inc-i", "inc-2"}) {
		t.Fatalf("welcomes for %v", got)
	}
}

func TestRegister_ALostInstanceKeepsItsRaisedEpochAndIsFencedUntilItIsClean(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	id := e.running()
	e.lost()
	raised := w.Ledger(e.id).Epoch
	e.registers()
	if got := e.welcomed(); got.Epoch != raised || w.Lease(e.id).Stage != control.StageFenced || w.Ledger(e.id).Connected {
		t.Fatalf("welcome %+v lease %+v", got, w.Lease(e.id))
	}
	running := wire.Entry{Task: id, Attempt: 1, Epoch: raised - 1, Phase: wire.PhaseRunning}
	e.beats(running)
	if stops := inbox[*wire.Stop](e); len(stops) != 1 || stops[0].Task != id || w.Ledger(e.id).Connected {
		t.Fatalf("stops %+v ledger %+v", stops, w.Ledger(e.id))
	}
	e.beats(wire.Entry{Task: id, Attempt: 1, Epoch: raised - 1, Phase: wire.PhaseEnded})
	if !w.Ledger(e.id).Connected || w.Lease(e.id).Stage != control.StageConnected || w.Ledger(e.id).Cause != control.NoCause {
		t.Fatalf("ledger %+v lease %+v", w.Ledger(e.id), w.Lease(e.id))
	}
}

func TestRegister_AfterDeregistrationIsANewLife(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	l, lease, in := w.Ledger(e.id), w.Lease(e.id), instanceOf(w, e.id)
	before := l.Epoch
	late, sender := e.register(), e.sender()
	w.Clock.Move(time.Minute)
	l.Status, l.Connected, l.EndCause, in.GoneAt = control.Inactive, false, task.ForcedDrainCause, w.Clock.Now()
	lease.Stage = control.StageLost
	w.Put(&l, &lease, &in)
	if err := w.IngestRegister(ctx, sender, late); err != nil || w.Ledger(e.id).Status != control.Inactive {
		t.Fatalf("a register sent before it was deregistered brought it back: %v", err)
	}
	w.Clock.Move(time.Second)
	e.registers()
	if got := w.Ledger(e.id); got.Status != control.Active || got.Epoch <= before || got.EndCause != "" || got.SinceEpoch != before {
		t.Fatalf("ledger %+v", got)
	}
	if got := instanceOf(w, e.id); !got.GoneAt.IsZero() {
		t.Fatalf("instance %+v", got)
	}
	e.welcomed()
	e.beats()
	if !w.Ledger(e.id).Connected {
		t.Fatalf("ledger %+v lease %+v", w.Ledger(e.id), w.Lease(e.id))
	}
}

func TestRegister_WaitsUntilTheLastLifeIsClosed(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	e.running()
	l, in := w.Ledger(e.id), instanceOf(w, e.id)
	l.Status, l.Connected, in.GoneAt = control.Inactive, false, w.Clock.Now()
	w.Put(&l, &in)
	w.Clock.Move(time.Minute)
	e.registers()
	if got := w.Ledger(e.id); got.Status != control.Inactive || len(inbox[*wire.Welcome](e)) != 0 {
		t.Fatalf("ledger %+v", got)
	}
}

func TestRegister_AnAgentAheadOfRestoredTablesIsRaisedPastIt(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	id := e.running()
	e.epoch += 100
	w.Clock.Move(time.Hour)
	e.registers()
	l := w.Ledger(e.id)
	if l.Epoch != w.Clock.Now().Unix() || l.SinceEpoch != l.Epoch || l.Cause != control.IncarnationCause || l.Stale != 1 {
		t.Fatalf("ledger %+v", l)
	}
	e.welcomed()
	e.beats(e.lists(id, 1, wire.PhaseRunning))
	if got := w.Task(id); got.LastStatus != task.Running || got.Epoch != l.Epoch || !w.Ledger(e.id).Connected {
		t.Fatalf("task %+v", got)
	}
}

func TestRegister_ANewJournalAheadOfRestoredTablesLosesNothing(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	w.Clock.Move(time.Hour)
	e.incarnation, e.n = "inc-later", 0 // it was taken in after the backup, in an epoch of its own
	e.epoch = w.Clock.Now().Unix() - 60
	e.registers()
	e.welcomed()
	l := w.Ledger(e.id)
	if l.SinceEpoch != l.Epoch {
		t.Errorf("what it runs counts as closed for want of an item: %+v", l)
	}
	unknown := e.lists(w.NewID(), 1, wire.PhaseRunning)
	unknown.Epoch = w.Clock.Now().Unix() - 60
	e.beats(unknown)
	if stops := inbox[*wire.Stop](e); len(stops) != 0 {
		t.Errorf("stopped %+v", stops)
	}
}

func TestRegister_ARaisedEpochIsAlwaysAboveTheAgents(t *testing.T) {
	for name, change := range map[string]func(e *edge){
		"the same incarnation": func(*edge) {},
		"another incarnation":  func(e *edge) { e.incarnation = "inc-later" },
		"another life": func(e *edge) {
			if _, err := e.w.DeregisterContainerInstance(ctx, "default", e.id, false); err != nil {
				e.t.Fatal(err)
			}
			e.w.Clock.Move(time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := controltest.NewWorld(t)
			e := host(t, w, "i")
			w.Clock.Move(time.Hour)
			change(e)
			e.epoch = w.Clock.Now().Unix() + 100 // clocks differ, or many raises fell into one second
			before := e.epoch
			e.registers()
			if got := e.welcomed(); got.Epoch <= before {
				t.Errorf("an agent of epoch %d is told %d, which it ignores for ever", before, got.Epoch)
			}
		})
	}
}
