package controltest

import (
	"reflect"
	"sync"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/fault"
)

var leaseStart = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// leased stores a lease with every member set.
func (t *storeTest) leased() *control.Lease {
	t.Helper()
	l := &control.Lease{
		ID: newID(), Cluster: "c", Zone: "z", Sent: leaseStart, RegisterSent: leaseStart, Epoch: 7, Incarnation: "inc", Session: "one",
		N: 5, Inventory: "h", Beats: 3, Every: time.Minute, Stage: control.StageSuspect, StageSince: leaseStart, StageReason: "late",
		Impaired: leaseStart, ImpairedWhy: "docker",
	}
	t.put(l)
	return l
}

func (t *storeTest) renew(l *control.Lease, session string, after time.Duration) (*control.Lease, bool) {
	t.Helper()
	got, renewed, err := t.Renew(t.ctx, control.Renewal{ID: l.ID, Incarnation: "inc", Session: session, Sent: leaseStart.Add(after)})
	if err != nil {
		t.Fatalf("renew: %v", err)
	}
	again := &control.Lease{ID: l.ID}
	t.load(again)
	if !reflect.DeepEqual(got, again) {
		t.Fatalf("renew returned %+v, stored is %+v", got, again)
	}
	return got, renewed
}

var renewTests = []suiteTest{
	{"Renew_ChangesWhenItWasSentAndTheCountAndNothingElse", func(t *storeTest) {
		l := t.leased()
		got, renewed := t.renew(l, "one", time.Millisecond)
		want := *l
		want.Sent, want.Beats, want.Version = leaseStart.Add(time.Millisecond), 4, 2
		if !renewed || !reflect.DeepEqual(*got, want) {
			t.Fatalf("renewed %v: %+v, want %+v", renewed, *got, want)
		}
	}},
	{"Renew_OfAMissingLeaseIsNotFoundAndMakesNone", func(t *storeTest) {
		id := newID()
		_, renewed, err := t.Renew(t.ctx, control.Renewal{ID: id, Incarnation: "inc", Session: "s", Sent: leaseStart})
		if !fault.Is(err, fault.NotFound) || renewed {
			t.Fatalf("gave %v, %v", renewed, err)
		}
		l := &control.Lease{ID: id}
		t.load(l)
		if l.Version != 0 {
			t.Fatal("a renewal made a lease")
		}
	}},
	{"Renew_WithAnOlderOrEqualHeartbeatChangesNothing", func(t *storeTest) {
		l := t.leased()
		for _, after := range []time.Duration{0, -1, -time.Second, -time.Hour} {
			for _, session := range []string{"one", "two"} {
				if got, renewed := t.renew(l, session, after); renewed || got.Version != 1 || got.Beats != 3 || got.Session != "one" {
					t.Fatalf("%s later: renewed %v, %+v", after, renewed, got)
				}
			}
		}
	}},
	{"Renew_ComparesTimesToTheNanosecond", func(t *storeTest) {
		l := t.leased()
		for _, after := range []time.Duration{1, 10, 100 * time.Millisecond, time.Second - 1, time.Second, 10 * time.Second} {
			if _, renewed := t.renew(l, "one", after); !renewed {
				t.Fatalf("%s later did not renew", after)
			}
			if _, renewed := t.renew(l, "one", after-1); renewed {
				t.Fatalf("%s later renewed after %s", after-1, after)
			}
		}
		zoned := leaseStart.Add(time.Minute).In(time.FixedZone("behind", -8*3600))
		got, renewed, err := t.Renew(t.ctx, control.Renewal{ID: l.ID, Incarnation: "inc", Session: "one", Sent: zoned})
		if err != nil || !renewed || !got.Sent.Equal(zoned) {
			t.Fatalf("from another zone: %v, %v, %+v", renewed, err, got)
		}
	}},
	{"Renew_ByAnotherIncarnationChangesNothing", func(t *storeTest) {
		l := t.leased()
		got, renewed, err := t.Renew(t.ctx, control.Renewal{ID: l.ID, Incarnation: "other", Session: "one", Sent: leaseStart.Add(time.Hour)})
		if err != nil || renewed || got.Version != 1 || got.Incarnation != "inc" || got.Epoch != 7 {
			t.Fatalf("renewed %v, %v: %+v", renewed, err, got)
		}
	}},
	{"Renew_RemembersTheSessionBefore", func(t *storeTest) {
		l := t.leased()
		for i, step := range []struct{ session, previous string }{
			{"one", ""}, {"two", "one"}, {"two", "one"}, {"one", "two"}, {"two", "one"}, {"three", "two"}, {"three", "two"}, {"one", "three"},
		} {
			got, renewed := t.renew(l, step.session, time.Duration(i+1)*time.Minute)
			if !renewed || got.Session != step.session || got.PrevSession != step.previous {
				t.Fatalf("step %d by %s: %+v", i, step.session, got)
			}
			if got.Version != int64(i)+2 || got.Beats != int64(i)+4 {
				t.Fatalf("step %d: version %d, beats %d", i, got.Version, got.Beats)
			}
		}
	}},
	{"Renew_WorksOnALeaseWithNothingSetAndWithoutASession", func(t *storeTest) {
		l := &control.Lease{ID: newID()}
		t.put(l)
		for i, session := range []string{"", "", "one", "", "one"} {
			got, renewed, err := t.Renew(t.ctx, control.Renewal{ID: l.ID, Session: session, Sent: leaseStart.Add(time.Duration(i))})
			if err != nil || !renewed || got.Session != session || got.Beats != int64(i+1) {
				t.Fatalf("step %d: %v, %v, %+v", i, renewed, err, got)
			}
		}
	}},
	{"Renew_MakesACommitOnTheLeaseFromBeforeConflict", func(t *storeTest) {
		l := t.leased()
		judged := *l
		got, _ := t.renew(l, "one", time.Minute)
		judged.Stage = control.StageLost
		t.refuses(fault.Conflict, control.Put(&judged))
		t.refuses(fault.Conflict, control.Check(&judged), control.Put(&control.Ledger{ID: l.ID}))
		got.Stage = control.StageConnected
		t.put(got)
		t.load(got)
		if got.Stage != control.StageConnected || got.Version != 3 || !got.Sent.Equal(leaseStart.Add(time.Minute)) {
			t.Fatalf("the lease is %+v", got)
		}
	}},
	{"Renew_KeepsWhatACommitJustWrote", func(t *storeTest) {
		l := t.leased()
		l.Stage, l.Epoch = control.StageLost, 8
		t.put(l)
		got, renewed := t.renew(l, "one", time.Minute)
		if !renewed || got.Stage != control.StageLost || got.Epoch != 8 || got.Version != 3 {
			t.Fatalf("the lease is %+v", got)
		}
	}},
	{"Renew_AndCommitAtOnceLoseNothing", renewAndCommitAtOnce},
	{"Renew_ByManyAtOnceKeepsTheNewest", renewAtOnce},
}

// renewAndCommitAtOnce races heartbeats with decisions on one lease. Each
// decision counts in N; none may be lost, and no renewal either.
func renewAndCommitAtOnce(t *storeTest) {
	const beats, decisions = 40, 20
	l := t.leased()
	var wg sync.WaitGroup
	errs := make(chan error, 2)
	wg.Go(func() {
		for i := range beats {
			_, renewed, err := t.Renew(t.ctx, control.Renewal{ID: l.ID, Incarnation: "inc", Session: "one", Sent: leaseStart.Add(time.Duration(i+1) * time.Second)})
			if err != nil || !renewed {
				errs <- fault.New(fault.Internal, "beat %d: renewed %v, %v", i, renewed, err)
				return
			}
		}
	})
	wg.Go(func() {
		for done := 0; done < decisions; {
			mine := &control.Lease{ID: l.ID}
			if err := t.Load(t.ctx, mine); err != nil {
				errs <- err
				return
			}
			mine.N++
			switch err := t.Commit(t.ctx, control.Put(mine)); {
			case err == nil:
				done++
			case !fault.Is(err, fault.Conflict):
				errs <- err
				return
			}
		}
	})
	wg.Wait()
	close(errs)
	for err := range errs {
		t.Fatal(err)
	}
	got := &control.Lease{ID: l.ID}
	t.load(got)
	if got.Beats != 3+beats || got.N != 5+decisions || got.Version != 1+beats+decisions || !got.Sent.Equal(leaseStart.Add(beats*time.Second)) {
		t.Fatalf("the lease is %+v", got)
	}
}

// renewAtOnce delivers heartbeats of two sessions in no order.
func renewAtOnce(t *storeTest) {
	const beats = 30
	l := t.leased()
	var wg sync.WaitGroup
	var mu sync.Mutex
	accepted := 0
	for i := range beats {
		wg.Go(func() {
			session := []string{"one", "two"}[i%2]
			_, renewed, err := t.Renew(t.ctx, control.Renewal{ID: l.ID, Incarnation: "inc", Session: session, Sent: leaseStart.Add(time.Duration(i+1) * time.Second)})
			if err != nil && !fault.Is(err, fault.Unavailable) {
				t.Error(err)
			}
			if renewed {
				mu.Lock()
				defer mu.Unlock()
				accepted++
			}
		})
	}
	wg.Wait()
	got := &control.Lease{ID: l.ID}
	t.load(got)
	if got.Beats != int64(3+accepted) || got.Version != int64(1+accepted) || accepted == 0 {
		t.Fatalf("%d accepted: %+v", accepted, got)
	}
}
