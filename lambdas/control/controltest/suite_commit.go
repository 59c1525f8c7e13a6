package controltest

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
)

var commitTests = []suiteTest{
	{"Commit_RaisesTheVersionInRecordAndStore", func(t *storeTest) {
		for _, r := range Every() {
			for want := range int64(3) {
				if got := *r.Revision(); got != want {
					t.Fatalf("%s has version %d before write %d", r.Kind(), got, want+1)
				}
				t.put(r)
				t.load(r)
			}
		}
	}},
	{"Commit_OfARecordThatExistsAsIfItDidNotConflicts", func(t *storeTest) {
		for _, r := range Every() {
			t.put(r)
			*r.Revision() = 0
			t.refuses(fault.Conflict, control.Put(r))
			t.refuses(fault.Conflict, control.Check(r))
			t.refuses(fault.Conflict, control.Delete(r))
		}
	}},
	{"Commit_OfARecordThatDoesNotExistAsIfItDidConflicts", func(t *storeTest) {
		for _, r := range Every() {
			*r.Revision() = 3
			t.refuses(fault.Conflict, control.Put(r))
			t.refuses(fault.Conflict, control.Check(r))
			t.refuses(fault.Conflict, control.Delete(r))
		}
	}},
	{"Commit_WithAnOlderVersionConflictsAndWritesNothing", func(t *storeTest) {
		old := &control.Ledger{ID: newID(), Open: 1}
		t.put(old)
		stale := *old
		old.Open = 2
		t.put(old)
		stale.Open = 99
		t.refuses(fault.Conflict, control.Put(&stale))
		t.refuses(fault.Conflict, control.Delete(&stale))
		got := &control.Ledger{ID: old.ID}
		t.load(got)
		if got.Open != 2 || got.Version != 2 {
			t.Fatalf("the ledger is %+v", got)
		}
	}},
	{"Commit_WithOneConditionThatFailsWritesNoneOfAnyKind", func(t *storeTest) {
		for _, op := range []func(control.Record) control.Write{control.Put, control.Check, control.Delete} {
			var writes []control.Write
			for _, r := range Every() {
				writes = append(writes, control.Put(r))
			}
			lost := &control.Task{ID: newID(), Version: 5}
			t.refuses(fault.Conflict, append(writes, op(lost))...)
			for _, w := range writes {
				t.load(w.Record)
				if *w.Record.Revision() != 0 {
					t.Fatalf("%s was written by a commit that failed", w.Record.Kind())
				}
			}
		}
	}},
	{"Commit_OfEveryKindTogetherIsOneCommit", func(t *storeTest) {
		records := Every()
		t.put(records...)
		t.load(records...)
		for _, r := range records {
			if *r.Revision() != 1 {
				t.Fatalf("%s has version %d", r.Kind(), *r.Revision())
			}
		}
	}},
	{"Commit_WithACheckHoldsToWhatItReliesOn", func(t *storeTest) {
		relied, absent := &control.Cluster{Name: "relied-" + newID()}, &control.Token{Scope: "s", Token: newID()}
		t.put(relied)
		one := &control.Task{ID: newID()}
		t.commit(control.Check(relied), control.Check(absent), control.Put(one))
		if relied.Version != 1 || absent.Version != 0 {
			t.Fatalf("a check raised a version: %d, %d", relied.Version, absent.Version)
		}
		stale := *relied
		t.put(relied)
		t.refuses(fault.Conflict, control.Check(&stale), control.Put(&control.Task{ID: newID()}))
		t.put(absent)
		t.refuses(fault.Conflict, control.Check(&control.Token{Scope: "s", Token: absent.Token}), control.Put(&control.Task{ID: newID()}))
	}},
	{"Commit_OfAChecksAloneWritesNothing", func(t *storeTest) {
		r := &control.Guard{MovedAt: leaseStart}
		t.commit(control.Check(r))
		t.put(r)
		t.commit(control.Check(r))
		t.load(r)
		if r.Version != 1 {
			t.Fatalf("version %d after checks", r.Version)
		}
	}},
	{"Commit_OfADeleteRemoves", func(t *storeTest) {
		for _, r := range Every() {
			t.put(r)
			t.commit(control.Delete(r))
			t.load(r)
			if *r.Revision() != 0 {
				t.Fatalf("%s is there after its deletion", r.Kind())
			}
			t.commit(control.Delete(r)) // of what is not there: as expected
			t.put(r)
			other := &control.Task{ID: newID()}
			t.commit(control.Delete(r), control.Put(other))
			t.load(r, other)
			if *r.Revision() != 0 || other.Version != 1 {
				t.Fatalf("%s in a transaction: versions %d, %d", r.Kind(), *r.Revision(), other.Version)
			}
		}
	}},
	{"Commit_OfAHundredWritesIsOneAndOfMoreIsRefused", func(t *storeTest) {
		var writes []control.Write
		for i := range 100 {
			writes = append(writes, control.Put(&control.Task{ID: newID(), Cluster: "c", Group: fmt.Sprint("g", i)}))
		}
		t.refuses(fault.Invalid, append(writes, control.Put(&control.Task{ID: newID()}))...)
		t.commit(writes...)
		if err := t.Commit(t.ctx); !fault.Is(err, fault.Invalid) {
			t.Fatalf("a commit of nothing gave %v", err)
		}
	}},
	{"Commit_OfOneRecordTwiceIsRefused", func(t *storeTest) {
		id := newID()
		for _, other := range []control.Write{
			control.Put(&control.Task{ID: id}), control.Check(&control.Task{ID: id}), control.Delete(&control.Task{ID: id}),
		} {
			t.refuses(fault.Invalid, control.Put(&control.Task{ID: id}), other)
		}
		t.commit(control.Put(&control.Instance{ID: id}), control.Put(&control.Ledger{ID: id}), control.Put(&control.Lease{ID: id}))
	}},
	{"Commit_OfARecordWithoutAKeyIsRefused", func(t *storeTest) {
		for _, r := range []control.Record{
			&control.Task{}, &control.Instance{}, &control.Ledger{}, &control.Lease{}, &control.Probe{}, &control.Brake{},
			&control.Cluster{}, &control.QueueState{}, &control.Family{},
		} {
			t.refuses(fault.Invalid, control.Put(r))
			if err := t.Load(t.ctx, r); !fault.Is(err, fault.Invalid) {
				t.Fatalf("load of a %s without a key gave %v", r.Kind(), err)
			}
		}
	}},
	{"Commit_WithoutTimeLeftIsUnavailable", func(t *storeTest) {
		ctx, cancel := context.WithCancel(t.ctx)
		cancel()
		one, two := &control.Task{ID: newID()}, &control.Task{ID: newID()}
		for _, err := range []error{
			t.Commit(ctx, control.Put(one)), t.Commit(ctx, control.Put(one), control.Put(two)), t.Load(ctx, one), t.Load(ctx, one, two),
		} {
			if !fault.Is(err, fault.Unavailable) {
				t.Fatalf("a cancelled call gave %v", err)
			}
		}
	}},
	{"Commit_OfMembersThatWereClearedForgetsThem", func(t *storeTest) {
		r := &control.Task{ID: newID(), Cluster: "c", Group: "g", Tags: map[string]string{"a": "b"}, Instance: newID(), LastStatus: task.Running, Held: &control.Held{CPU: 3}}
		t.put(r)
		*r = control.Task{ID: r.ID, Version: r.Version, Priority: 4}
		t.put(r)
		got := &control.Task{ID: r.ID}
		t.load(got)
		if got.Cluster != "" || got.Tags != nil || got.Held != nil || got.Instance != "" || got.Priority != 4 || got.Version != 2 {
			t.Fatalf("the task is %+v", got)
		}
	}},
	{"Commit_ByManyAtOnceLosesNoUpdate", func(t *storeTest) { incrementAtOnce(t, false) }},
	{"Commit_ByManyAtOnceInTransactionsLosesNoUpdate", func(t *storeTest) { incrementAtOnce(t, true) }},
}

// incrementAtOnce lets several workers add one to the same records many times,
// as control's decide does: load, change, commit, again after a conflict.
func incrementAtOnce(t *storeTest, both bool) {
	const workers, times = 5, 10
	id := newID()
	var wg sync.WaitGroup
	errs := make(chan error, workers)
	for range workers {
		wg.Go(func() {
			for range times {
				if err := increment(t, id, both); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		t.Fatal(err)
	}
	l, live := &control.Ledger{ID: id}, &control.Live{Cluster: "c", Service: id}
	t.load(l, live)
	want := workers * times
	if l.Open != want || l.Version != int64(want) || both && live.Live != want {
		t.Fatalf("%d increments gave %d (version %d) and %d", want, l.Open, l.Version, live.Live)
	}
}

func increment(t *storeTest, id string, both bool) error {
	for range 1000 {
		l, live := &control.Ledger{ID: id}, &control.Live{Cluster: "c", Service: id}
		if err := t.Load(t.ctx, l, live); err != nil {
			return err
		}
		l.Open++
		live.Live++
		writes := []control.Write{control.Put(l)}
		if both {
			writes = append(writes, control.Put(live))
		}
		err := t.Commit(t.ctx, writes...)
		if !fault.Is(err, fault.Conflict) {
			return err
		}
		if strings.TrimSpace(err.Error()) == "" {
			return fmt.Errorf("a conflict says nothing")
		}
	}
	return fmt.Errorf("conflicts never end")
}
