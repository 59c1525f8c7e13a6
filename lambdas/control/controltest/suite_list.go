package controltest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/task"
)

var listTests = []suiteTest{
	{"InstanceIDs_AreOfOneClusterEachOnce", func(t *storeTest) {
		var want []string
		for range 7 {
			id := newID()
			t.put(&control.Instance{ID: id, Cluster: "c"}, &control.Ledger{ID: id, Cluster: "c"}, &control.Lease{ID: id, Cluster: "c"})
			want = append(want, id)
		}
		t.put(&control.Instance{ID: newID(), Cluster: "d"}, &control.Ledger{ID: newID(), Cluster: "c"})
		slices.Sort(want)
		for _, limit := range []int{0, 1, 3} {
			t.eventually(func() string {
				got := pages(t, limit, func(p control.Page) ([]string, string, error) { return t.InstanceIDs(t.ctx, "c", p) })
				if !slices.Equal(got, want) {
					return fmt.Sprintf("pages of %d give %v, want %v", limit, got, want)
				}
				return ""
			})
		}
		_, _, err := t.InstanceIDs(t.ctx, "c", control.Page{After: "nonsense"})
		t.refusesToken("nonsense", err)
	}},
	{"InstanceIDs_FollowAnInstanceToAnotherCluster", func(t *storeTest) {
		in := &control.Instance{ID: newID(), Cluster: "c"}
		t.put(in)
		in.Cluster = "d"
		t.put(in)
		t.eventually(func() string {
			c, _, _ := t.InstanceIDs(t.ctx, "c", control.Page{})
			d, _, _ := t.InstanceIDs(t.ctx, "d", control.Page{})
			if len(c) != 0 || !slices.Equal(d, []string{in.ID}) {
				return fmt.Sprintf("c holds %v, d holds %v", c, d)
			}
			return ""
		})
	}},
	{"Clusters_AreAllSortedAndAtOnce", func(t *storeTest) {
		for _, name := range []string{"b", "default", "a-2", "A", "a"} {
			t.put(&control.Cluster{Name: name}, &control.QueueState{Cluster: name}, &control.Live{Cluster: name, Service: "s"})
			got, _, err := t.Clusters(t.ctx, control.Page{})
			if err != nil || !slices.Contains(got, name) {
				t.Fatalf("right after %s was made there are %v, %v", name, got, err)
			}
		}
		for _, limit := range []int{0, 1, 2, 5} {
			got := pages(t, limit, func(p control.Page) ([]string, string, error) { return t.Clusters(t.ctx, p) })
			if want := []string{"A", "a", "a-2", "b", "default"}; !slices.Equal(got, want) {
				t.Fatalf("pages of %d give %v, want %v", limit, got, want)
			}
		}
		_, _, err := t.Clusters(t.ctx, control.Page{After: "nonsense"})
		t.refusesToken("nonsense", err)
	}},
	{"Services_AreThoseOfOneClusterSortedAndAtOnce", func(t *storeTest) {
		for _, name := range []string{"web", "b", "A", "a-2", "a"} {
			t.put(&control.Service{Cluster: "c", Name: name}, &control.Service{Cluster: "d", Name: name}, &control.Live{Cluster: "c", Service: name},
				&control.ServiceEvents{Cluster: "c", Service: name}, &control.ServiceRevision{Cluster: "c", Service: name, ID: "1"})
			got, _, err := t.Services(t.ctx, "c", control.Page{})
			if err != nil || !slices.Contains(got, name) {
				t.Fatalf("right after %s was made there are %v, %v", name, got, err)
			}
		}
		for _, limit := range []int{0, 1, 2, 5} {
			got := pages(t, limit, func(p control.Page) ([]string, string, error) { return t.Services(t.ctx, "c", p) })
			if want := []string{"A", "a", "a-2", "b", "web"}; !slices.Equal(got, want) {
				t.Fatalf("pages of %d give %v, want %v", limit, got, want)
			}
		}
		if got, next, err := t.Services(t.ctx, "nobody", control.Page{}); err != nil || next != "" || len(got) != 0 {
			t.Fatalf("of a cluster without services there are %v, %q, %v", got, next, err)
		}
		_, next, _ := t.Services(t.ctx, "c", control.Page{Limit: 1})
		_, _, err := t.Services(t.ctx, "d", control.Page{After: next})
		t.refusesToken(next, err)
	}},
	{"ServiceDeployments_AreThoseOfOneServiceInTheOrderOfTheirIDs", func(t *storeTest) {
		for _, id := range []string{"3", "1", "2"} {
			t.put(&control.ServiceDeployment{Cluster: "c", Service: "web", ID: id}, &control.ServiceDeployment{Cluster: "c", Service: "web-2", ID: id},
				&control.ServiceDeployment{Cluster: "d", Service: "web", ID: id}, &control.ServiceRevision{Cluster: "c", Service: "web", ID: id + "9"})
		}
		for _, limit := range []int{0, 1, 2} {
			got := pages(t, limit, func(p control.Page) ([]string, string, error) { return t.ServiceDeployments(t.ctx, "c", "web", p) })
			if want := []string{"1", "2", "3"}; !slices.Equal(got, want) {
				t.Fatalf("pages of %d give %v, want %v", limit, got, want)
			}
		}
		_, next, _ := t.ServiceDeployments(t.ctx, "c", "web", control.Page{Limit: 1})
		_, _, err := t.ServiceDeployments(t.ctx, "c", "web-2", control.Page{After: next})
		t.refusesToken(next, err)
	}},
	{"Families_AreThoseThatBeginSoWithTheirCounts", func(t *storeTest) {
		for i, name := range []string{"web", "web-2", "batch", "we", "wec", "Web"} {
			t.put(&control.Family{Name: name, Latest: i + 10, Active: i}, &control.Definition{Family: name, Number: 1})
		}
		for prefix, want := range map[string][]string{
			"": {"Web", "batch", "we", "web", "web-2", "wec"}, "we": {"we", "web", "web-2", "wec"}, "web": {"web", "web-2"}, "web-2": {"web-2"}, "x": nil,
		} {
			for _, limit := range []int{0, 1, 2} {
				got := pages(t, limit, func(p control.Page) ([]control.Family, string, error) { return t.Families(t.ctx, prefix, p) })
				var names []string
				for _, f := range got {
					names = append(names, f.Name)
				}
				if !slices.Equal(names, want) {
					t.Fatalf("prefix %q in pages of %d gives %v, want %v", prefix, limit, names, want)
				}
			}
		}
		got, _, err := t.Families(t.ctx, "batch", control.Page{})
		if err != nil || !reflect.DeepEqual(got, []control.Family{{Name: "batch", Version: 1, Latest: 12, Active: 2}}) {
			t.Fatalf("batch is %+v, %v", got, err)
		}
		_, next, _ := t.Families(t.ctx, "we", control.Page{Limit: 1})
		_, _, err = t.Families(t.ctx, "web", control.Page{After: next})
		t.refusesToken(next, err)
	}},
	{"Revisions_AreSortedByNumberBothWaysWithoutBodies", func(t *storeTest) {
		numbers := []int{1, 2, 9, 10, 11, 100, 2147483647}
		for _, n := range numbers {
			t.put(&control.Definition{
				Family: "f", Number: n, Status: "ACTIVE", Definition: json.RawMessage(`{"a":1}`), Tags: map[string]string{"k": "v"}, RegisteredAt: leaseStart,
			}, &control.Definition{Family: "f2", Number: n}, &control.Definition{Family: "g", Number: n})
		}
		for _, descending := range []bool{false, true} {
			want := slices.Clone(numbers)
			if descending {
				slices.Reverse(want)
			}
			for _, limit := range []int{0, 1, 3} {
				var got []int
				for _, d := range pages(t, limit, func(p control.Page) ([]control.Definition, string, error) {
					return t.Revisions(t.ctx, "f", descending, p)
				}) {
					got = append(got, d.Number)
					whole := control.Definition{Family: "f", Number: d.Number, Version: 1, Status: "ACTIVE", Tags: map[string]string{"k": "v"}, RegisteredAt: leaseStart}
					if !reflect.DeepEqual(d, whole) {
						t.Fatalf("revision is %+v, want %+v", d, whole)
					}
				}
				if !slices.Equal(got, want) {
					t.Fatalf("descending %v in pages of %d: %v, want %v", descending, limit, got, want)
				}
			}
		}
		_, next, _ := t.Revisions(t.ctx, "f", true, control.Page{Limit: 1})
		_, _, err := t.Revisions(t.ctx, "f", false, control.Page{After: next})
		t.refusesToken(next, err)
	}},
	{"Leases_AreAllOfThemWithProbesBrakesAndTheGuard", func(t *storeTest) {
		scan, err := t.Leases(t.ctx)
		if err != nil || !reflect.DeepEqual(scan, &control.LeaseScan{}) {
			t.Fatalf("an empty table gives %+v, %v", scan, err)
		}
		want := &control.LeaseScan{Guard: control.Guard{Version: 1, MovedAt: leaseStart.AddDate(0, 0, 1), Watermark: leaseStart}}
		for i := range 30 {
			want.Leases = append(want.Leases, control.Lease{ID: fmt.Sprintf("%032x", i), Version: 1, Sent: leaseStart, Zone: "z", Every: 7})
		}
		for i := range 3 {
			want.Probes = append(want.Probes, control.Probe{ID: fmt.Sprint("p", i), Version: 1, SentAt: leaseStart})
			want.Brakes = append(want.Brakes, control.Brake{Zone: fmt.Sprint("zone#", i), Version: 1, Tokens: i})
		}
		for _, l := range want.Leases {
			l.Version = 0
			t.put(&l)
		}
		for i := range 3 {
			p, b := want.Probes[i], want.Brakes[i]
			p.Version, b.Version = 0, 0
			t.put(&p, &b)
		}
		guard := want.Guard
		guard.Version = 0
		t.put(&guard)
		if scan, err = t.Leases(t.ctx); err != nil || !reflect.DeepEqual(scan, want) {
			t.Fatalf("the scan gives %+v, %v, want %+v", scan, err, want)
		}
	}},
	{"ScanLedgers_AreAllOfThemAtOnce", func(t *storeTest) {
		want := map[string]int{}
		for i := range 7 {
			id := newID()
			t.put(&control.Instance{ID: id, Cluster: "c"}, &control.Ledger{ID: id, Cluster: "c", Open: i + 1})
			want[id] = i + 1
		}
		for _, limit := range []int{0, 1, 3} {
			got := map[string]int{}
			for _, l := range pages(t, limit, func(p control.Page) ([]control.Ledger, string, error) { return t.ScanLedgers(t.ctx, p) }) {
				if l.Cluster != "c" || l.Version != 1 {
					t.Fatalf("ledger is %+v", l)
				}
				got[l.ID] = l.Open
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("pages of %d give %v, want %v", limit, got, want)
			}
		}
	}},
	{"ScanLiveTasks_AreThoseNotStoppedAtOnce", func(t *storeTest) {
		want := map[string]task.Status{}
		for _, status := range []task.Status{task.Provisioning, task.Pending, task.Running, task.Stopping, task.Stopped} {
			r := &control.Task{ID: newID(), Cluster: "c", LastStatus: status, Held: &control.Held{CPU: 5, TCP: []int{80}}}
			t.put(r)
			if status != task.Stopped {
				want[r.ID] = status
			}
		}
		for _, limit := range []int{0, 1, 2} {
			got := map[string]task.Status{}
			for _, r := range pages(t, limit, func(p control.Page) ([]control.Task, string, error) { return t.ScanLiveTasks(t.ctx, p) }) {
				if r.Cluster != "c" || r.Held == nil || r.Held.CPU != 5 || !slices.Equal(r.Held.TCP, []int{80}) {
					t.Fatalf("task is %+v", r)
				}
				got[r.ID] = r.LastStatus
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("pages of %d give %v, want %v", limit, got, want)
			}
		}
		_, _, err := t.ScanLiveTasks(t.ctx, control.Page{After: "nonsense"})
		t.refusesToken("nonsense", err)
	}},
}
