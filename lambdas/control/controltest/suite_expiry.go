package controltest

import (
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
)

// expiring makes a record of each kind that can expire, at a time.
func expiring(at time.Time) []control.Record {
	var out []control.Record
	for _, r := range Every() {
		if expires := control.ExpiresAt(r); expires != nil {
			*expires = at
			out = append(out, r)
		}
	}
	return out
}

var expiryTests = []suiteTest{
	{"Expiry_MakesARecordMissing", func(t *storeTest) {
		for _, r := range expiring(time.Now().Add(-2 * time.Second)) {
			t.put(r)
			t.load(r)
			if *r.Revision() != 0 || !control.ExpiresAt(r).IsZero() {
				t.Errorf("an expired %s was loaded as %+v", r.Kind(), r)
			}
		}
	}},
	{"Expiry_ToComeLeavesARecordAlone", func(t *storeTest) {
		for _, r := range expiring(time.Now().Add(time.Hour)) {
			t.put(r)
			t.load(r)
			if *r.Revision() != 1 {
				t.Errorf("%s that expires in an hour is missing", r.Kind())
			}
			t.put(r)
			t.commit(control.Delete(r))
		}
	}},
	{"Expiry_LetsARecordBeWrittenAsIfItWereNotThere", func(t *storeTest) {
		for _, inTransaction := range []bool{false, true} {
			for _, r := range expiring(time.Now().Add(-time.Minute)) {
				writes := func(w control.Write) []control.Write {
					if inTransaction {
						return []control.Write{w, control.Put(&control.Task{ID: newID()})}
					}
					return []control.Write{w}
				}
				t.put(r)
				t.refuses(fault.Conflict, writes(control.Put(r))...) // version 1: of what is missing
				t.refuses(fault.Conflict, writes(control.Check(r))...)
				t.refuses(fault.Conflict, writes(control.Delete(r))...)
				*r.Revision() = 0
				t.commit(writes(control.Check(r))...)
				*control.ExpiresAt(r) = time.Now().Add(time.Hour)
				t.commit(writes(control.Put(r))...)
				t.load(r)
				if *r.Revision() != 1 {
					t.Errorf("%s written over an expired one has version %d", r.Kind(), *r.Revision())
				}
			}
		}
	}},
	{"Expiry_LeavesNothingOfWhatWasThereBefore", func(t *storeTest) {
		old := &control.Task{ID: newID(), Cluster: "c", StoppedReason: "old", Tags: map[string]string{"a": "b"}, ExpiresAt: time.Now().Add(-time.Minute)}
		t.put(old)
		fresh := &control.Task{ID: old.ID, Cluster: "d"}
		t.put(fresh)
		t.load(fresh)
		if fresh.StoppedReason != "" || fresh.Tags != nil || fresh.Cluster != "d" || fresh.Version != 1 || !fresh.ExpiresAt.IsZero() {
			t.Fatalf("the new task is %+v", fresh)
		}
	}},
	{"Expiry_LetsAnExpiredRecordBeDeleted", func(t *storeTest) {
		for _, r := range expiring(time.Now().Add(-time.Minute)) {
			t.put(r)
			*r.Revision() = 0
			t.commit(control.Delete(r))
			t.put(r)
		}
	}},
	{"Expiry_HidesLeasesAndProbesFromTheScan", func(t *storeTest) {
		past, future := time.Now().Add(-time.Minute), time.Now().Add(time.Hour)
		t.put(&control.Lease{ID: "a"}, &control.Lease{ID: "b", ExpiresAt: past}, &control.Lease{ID: "c", ExpiresAt: future},
			&control.Probe{ID: "p", ExpiresAt: past}, &control.Probe{ID: "q", ExpiresAt: future})
		scan, err := t.Leases(t.ctx)
		if err != nil {
			t.Fatal(err)
		}
		if len(scan.Leases) != 2 || scan.Leases[0].ID != "a" || scan.Leases[1].ID != "c" || len(scan.Probes) != 1 || scan.Probes[0].ID != "q" {
			t.Fatalf("the scan found %+v", scan)
		}
	}},
	{"Expiry_EndsRenewals", func(t *storeTest) {
		l := &control.Lease{ID: newID(), Incarnation: "i", ExpiresAt: time.Now().Add(-time.Minute)}
		t.put(l)
		_, _, err := t.Renew(t.ctx, control.Renewal{ID: l.ID, Incarnation: "i", Session: "s", Sent: time.Now()})
		if !fault.Is(err, fault.NotFound) {
			t.Fatalf("renewing an expired lease gave %v", err)
		}
	}},
	{"Expiry_IsKeptInWholeSecondsAndNeverEarly", func(t *storeTest) {
		at := time.Now().Add(time.Hour).Truncate(time.Second)
		for _, exact := range []time.Time{at, at.Add(1), at.Add(time.Second - 1)} {
			r := &control.Task{ID: newID(), LastStatus: task.Stopped, ExpiresAt: exact}
			t.put(r)
			t.load(r)
			if r.ExpiresAt.Before(exact) || r.ExpiresAt.Sub(exact) >= time.Second || r.ExpiresAt.Nanosecond() != 0 {
				t.Errorf("expiry %s came back as %s", exact, r.ExpiresAt)
			}
		}
	}},
}
