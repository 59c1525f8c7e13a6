package control_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
)

func decode(t *testing.T, body string) taskdef.Input {
	t.Helper()
	in, err := taskdef.Decode([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func TestCreateCluster_IsIdempotentAndRevivesADeletedOne(t *testing.T) {
	r, ctx := newAPIRig(t), context.Background()
	k, err := r.CreateCluster(ctx, control.ClusterRequest{Name: "blue", Tags: map[string]string{"team": "a"}})
	if err != nil || k.Status != control.ClusterActive {
		t.Fatalf("%+v, %v", k, err)
	}
	again, err := r.CreateCluster(ctx, control.ClusterRequest{Name: "blue", Tags: map[string]string{"team": "b"}})
	if err != nil || again.Tags["team"] != "a" || again.Version != k.Version {
		t.Errorf("again: %+v, %v: want the one there is", again, err)
	}
	if k, err = r.DeleteCluster(ctx, "blue"); err != nil || k.Status != control.ClusterInactive {
		t.Fatalf("%+v, %v", k, err)
	}
	if _, err := r.DeleteCluster(ctx, "blue"); err != nil {
		t.Errorf("deleted twice: %v", err)
	}
	if names, _, err := r.ListClusters(ctx, control.Cursor{}, 10); err != nil || len(names) != 0 {
		t.Errorf("lists %v, %v", names, err)
	}
	if k, err = r.CreateCluster(ctx, control.ClusterRequest{Name: "blue"}); err != nil || k.Status != control.ClusterActive {
		t.Errorf("revived: %+v, %v", k, err)
	}
	for _, name := range []string{"", "with space", "ä"} {
		_, err := r.CreateCluster(ctx, control.ClusterRequest{Name: name})
		wantCode(t, err, "InvalidParameterException")
	}
	for tag, value := range map[string]string{"longshore:onDisconnect": "maybe", "longshore:keepFor": "1s", "longshore:replaceAfter": "confirmed", "longshore:reapAfter": "3m59s"} {
		_, err = r.CreateCluster(ctx, control.ClusterRequest{Name: "red", Tags: map[string]string{tag: value}})
		wantCode(t, err, "InvalidParameterException")
	}
}

func TestDeleteCluster_RefusesWhatIsNotEmptyAndEndsWhatWaits(t *testing.T) {
	r, ctx := newAPIRig(t), context.Background()
	r.cluster()
	_, err := r.DeleteCluster(ctx, "nowhere")
	wantCode(t, err, "ClusterNotFoundException")
	in := r.instance(1)
	waiting := r.run(one(2))
	_, err = r.DeleteCluster(ctx, "default")
	wantCode(t, err, "ClusterContainsContainerInstancesException")
	l := r.store.Ledgers()[in]
	l.Status = control.Inactive
	r.must(&l)
	for _, status := range []control.ServiceStatus{control.ServiceActive, control.ServiceDraining, control.ServiceInactive} {
		of := &control.Service{Cluster: "default", Name: string(status), Status: status}
		r.must(of)
		if status == control.ServiceInactive {
			break
		}
		_, err = r.DeleteCluster(ctx, "default")
		wantCode(t, err, "ClusterContainsServicesException")
		if err := r.store.Commit(ctx, control.Delete(of)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.DeleteCluster(ctx, "default"); err != nil {
		t.Fatal(err)
	}
	for _, v := range waiting.Tasks {
		if got := r.task(v.ID); got.LastStatus != task.Stopped || got.StopCause != task.ClusterGoneCause {
			t.Errorf("task is %s by %s", got.LastStatus, got.StopCause)
		}
	}
}

func TestDeleteCluster_OpenTasksOfAGoneInstanceKeepIt(t *testing.T) {
	r, ctx := newAPIRig(t), context.Background()
	r.cluster()
	in := r.instance(1)
	r.run(one(1))
	r.admit()
	l := r.store.Ledgers()[in]
	l.Status = control.Inactive
	r.must(&l)
	_, err := r.DeleteCluster(ctx, "default")
	wantCode(t, err, "ClusterContainsTasksException")
}

func TestDescribeClusters_CountsWhatIsNotLost(t *testing.T) {
	r, ctx := newAPIRig(t), context.Background()
	r.cluster()
	a, b := r.instance(1), r.instance(2)
	r.run(one(9))
	r.admit() // four on each of the two, one waits
	for _, got := range r.store.Tasks() {
		if got.Instance == a {
			got.LastStatus = task.Running
			r.must(&got)
			break
		}
	}
	r.store.CatchUp()
	views, missing, err := r.DescribeClusters(ctx, []string{"default", "nowhere", "default"})
	if err != nil || len(views) != 1 || !slices.Equal(missing, []string{"nowhere"}) {
		t.Fatalf("%+v, missing %v, %v", views, missing, err)
	}
	if v := views[0]; v.Instances != 2 || v.Tasks != (control.TaskCount{Running: 1, Pending: 8}) {
		t.Errorf("view is %+v", v)
	}
	lease := &control.Lease{ID: b}
	if err := r.store.Load(ctx, lease); err != nil {
		t.Fatal(err)
	}
	lease.Stage = control.StageLost
	r.must(lease)
	views, _, _ = r.DescribeClusters(ctx, []string{"default"})
	if v := views[0]; v.Instances != 1 || v.Tasks != (control.TaskCount{Running: 1, Pending: 4}) {
		t.Errorf("with one lost: %+v", v)
	}
	_, _, err = r.DescribeClusters(ctx, make([]string, 101))
	wantCode(t, err, "InvalidParameterException")
}

func TestTaskDefinitions_RevisionsRiseAndTheNewestActiveOneIsMeant(t *testing.T) {
	r, ctx := newAPIRig(t), context.Background()
	for n := 1; n <= 3; n++ {
		v := r.register("web")
		if v.Revision != n || v.TaskDefinitionArn != fmt.Sprintf("arn:aws:ecs:eu-central-1:123456789012:task-definition/web:%d", n) || v.Status != "ACTIVE" || v.RegisteredBy == "" {
			t.Errorf("registered %+v", v)
		}
	}
	for _, gone := range []string{"web:3", "arn:aws:ecs:eu-central-1:123456789012:task-definition/web:2", "web:3"} {
		v, err := r.DeregisterTaskDefinition(ctx, gone)
		if err != nil || v.Status != "INACTIVE" || v.DeregisteredAt == 0 {
			t.Fatalf("%s: %+v, %v", gone, v, err)
		}
	}
	if v, err := r.DescribeTaskDefinition(ctx, "web"); err != nil || v.Revision != 1 {
		t.Errorf("newest active is %+v, %v", v, err)
	}
	if v, err := r.DescribeTaskDefinition(ctx, "web:3"); err != nil || v.Status != "INACTIVE" {
		t.Errorf("a deregistered one is %+v, %v", v, err)
	}
	if v := r.register("web"); v.Revision != 4 {
		t.Errorf("a number was given twice: %d", v.Revision)
	}
	for _, name := range []string{"web:9", "other"} {
		_, err := r.DescribeTaskDefinition(ctx, name)
		if f := coded(t, err, "ClientException"); f.Message != "Unable to describe task definition." {
			t.Errorf("%s: says %q", name, f.Message)
		}
	}
	_, err := r.DeregisterTaskDefinition(ctx, "web")
	wantCode(t, err, "InvalidParameterException")
	_, err = r.DeregisterTaskDefinition(ctx, "web:9")
	wantCode(t, err, "ClientException")
}

func TestTaskDefinitions_KilledAtAnyCallLeavesNoGapInTheCount(t *testing.T) {
	in := decode(t, `{"family":"web","containerDefinitions":[{"name":"main","image":"busybox","memory":16}]}`)
	for effect := range 2 {
		for n := 1; ; n++ {
			r := newAPIRig(t)
			r.store.Calls.KillAt(n, effect == 1)
			_, err := r.RegisterTaskDefinition(context.Background(), in, "")
			made, _ := r.store.Calls.Made()
			r.store.Calls.Reset()
			v := r.register("web")
			names, _, listErr := r.ListTaskDefinitions(context.Background(), control.DefinitionFilter{}, control.Cursor{}, 100)
			if listErr != nil || len(names) != v.Revision {
				t.Fatalf("killed at %d: newest %d of %v, %v", n, v.Revision, names, listErr)
			}
			if err == nil && made < n {
				break
			}
		}
	}
}

func TestTaskDefinitions_TwoAtOnceGetTwoNumbers(t *testing.T) {
	r := newAPIRig(t)
	r.store.Calls.FailAt(2, fault.Conflict) // the commit: another was first
	if v := r.register("web"); v.Revision != 1 {
		t.Errorf("revision is %d", v.Revision)
	}
}

func TestListTaskDefinitions_PagesInOrderBothWays(t *testing.T) {
	r, ctx := newAPIRig(t), context.Background()
	var want []string
	for _, family := range []string{"a", "b", "c"} {
		for n := range 5 {
			r.register(family)
			want = append(want, fmt.Sprintf("%s:%d", family, n+1))
		}
	}
	if _, err := r.DeregisterTaskDefinition(ctx, "b:2"); err != nil {
		t.Fatal(err)
	}
	want = slices.DeleteFunc(want, func(n string) bool { return n == "b:2" })
	for limit := 1; limit <= 20; limit++ {
		list := func(f control.DefinitionFilter) []string {
			return pages(t, func(c control.Cursor) ([]string, control.Cursor, error) {
				return r.ListTaskDefinitions(ctx, f, c, limit)
			})
		}
		if got := list(control.DefinitionFilter{}); !slices.Equal(got, want) {
			t.Fatalf("by %d: %v", limit, got)
		}
		back := slices.Clone(want)
		slices.Reverse(back)
		if got := list(control.DefinitionFilter{Descending: true}); !slices.Equal(got, back) {
			t.Fatalf("backwards by %d: %v", limit, got)
		}
		if got := list(control.DefinitionFilter{Family: "b", Status: "INACTIVE"}); !slices.Equal(got, []string{"b:2"}) {
			t.Fatalf("inactive by %d: %v", limit, got)
		}
	}
}

func TestListTaskDefinitionFamilies_ByPrefixAndStatus(t *testing.T) {
	r, ctx := newAPIRig(t), context.Background()
	for _, family := range []string{"api", "app", "web"} {
		r.register(family)
	}
	if _, err := r.DeregisterTaskDefinition(ctx, "app:1"); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		prefix, status string
		want           []string
	}{
		{"", "", []string{"api", "app", "web"}},
		{"ap", "", []string{"api", "app"}},
		{"", "ACTIVE", []string{"api", "web"}},
		{"", "INACTIVE", []string{"app"}},
	} {
		got := pages(t, func(c control.Cursor) ([]string, control.Cursor, error) {
			return r.ListTaskDefinitionFamilies(ctx, x.prefix, x.status, c, 1)
		})
		if !slices.Equal(got, x.want) {
			t.Errorf("%q %q: %v, want %v", x.prefix, x.status, got, x.want)
		}
	}
}

// pages reads a list to its end.
func pages(t *testing.T, list func(control.Cursor) ([]string, control.Cursor, error)) (all []string) {
	t.Helper()
	var c control.Cursor
	for range 1000 {
		page, next, err := list(c)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page...)
		if next == (control.Cursor{}) {
			return all
		}
		c = next
	}
	t.Fatal("the list does not end")
	return nil
}
