package control_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/internal/deployment"
)

// sweeps runs the reaper at the next full ten minutes after a while.
func (r *apiRig) sweeps() {
	r.t.Helper()
	r.now = r.now.Add(20 * time.Minute).Truncate(10 * time.Minute)
	r.store.CatchUp()
	if err := r.Tick(context.Background()); err != nil {
		r.t.Fatal(err)
	}
}

func (r *apiRig) statusOf(name string) string {
	r.t.Helper()
	v, err := r.DescribeTaskDefinition(context.Background(), name)
	if err != nil {
		wantCode(r.t, err, "ClientException")
		return ""
	}
	return v.Status
}

func TestDeleteTaskDefinitions_GoneWhenNothingUsesThem(t *testing.T) {
	r := newAPIRig(t)
	r.cluster()
	r.register("idle")
	r.register("served")
	r.must(&control.Service{Cluster: "default", Name: "s", Status: control.ServiceActive, Strategy: deployment.Replica, Family: "served", Number: 1})
	ctx := context.Background()
	id := r.run(one(1)).Tasks[0].ID
	names := []string{"web:1", "idle:1", "served:1"}
	for _, n := range names {
		if _, err := r.DeregisterTaskDefinition(ctx, n); err != nil {
			t.Fatal(err)
		}
	}
	found, failures, err := r.DeleteTaskDefinitions(ctx, names)
	if err != nil || len(found) != 3 || len(failures) > 0 || found[0].Status != "DELETE_IN_PROGRESS" || found[0].DeleteRequestedAt == 0 {
		t.Fatalf("found %v, failures %v, %v", found, failures, err)
	}
	_, err = r.RunTask(ctx, one(1))
	wantCode(t, err, "ClientException")
	r.sweeps()
	if a, b, c := r.statusOf("web:1"), r.statusOf("idle:1"), r.statusOf("served:1"); a != "DELETE_IN_PROGRESS" || b != "" || c != "DELETE_IN_PROGRESS" {
		t.Errorf("used by a task: %q, by nothing: %q, by a service: %q", a, b, c)
	}
	if views, _, err := r.DescribeTasks(ctx, "default", []string{id}); err != nil || len(views[0].ShownContainers()) != 1 {
		t.Errorf("the task that waits is shown as %v, %v", views, err)
	}
	if _, err := r.StopTask(ctx, "default", id, ""); err != nil {
		t.Fatal(err)
	}
	r.sweeps()
	if got := r.statusOf("web:1"); got != "" {
		t.Errorf("its last task has ended, and it is %q", got)
	}
	if views, _, err := r.DescribeTasks(ctx, "default", []string{id}); err != nil || len(views) != 1 || len(views[0].ShownContainers()) != 1 {
		t.Errorf("the task that has ended is shown as %v, %v: its definition is hidden, not lost", views, err)
	}
}

func TestDeleteTaskDefinitions_HideTheFamilyAndKeepItsNumbers(t *testing.T) {
	r := newAPIRig(t)
	r.cluster()
	ctx := context.Background()
	families := func() []string {
		names, _, err := r.ListTaskDefinitionFamilies(ctx, "", "", control.Cursor{}, 10)
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	if _, err := r.DeregisterTaskDefinition(ctx, "web:1"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.DeleteTaskDefinitions(ctx, []string{"web:1"}); err != nil {
		t.Fatal(err)
	}
	listed, _, err := r.ListTaskDefinitions(ctx, control.DefinitionFilter{Status: "DELETE_IN_PROGRESS"}, control.Cursor{}, 10)
	if err != nil || !slices.Equal(listed, []string{"web:1"}) || !slices.Equal(families(), []string{"web"}) {
		t.Errorf("listed %v, families %v, %v", listed, families(), err)
	}
	r.sweeps()
	for _, status := range []string{"ACTIVE", "INACTIVE", "DELETE_IN_PROGRESS"} {
		if listed, _, _ := r.ListTaskDefinitions(ctx, control.DefinitionFilter{Status: status}, control.Cursor{}, 10); len(listed) > 0 {
			t.Errorf("still listed as %s: %v", status, listed)
		}
	}
	if got := families(); len(got) > 0 {
		t.Errorf("the family is still listed: %v", got)
	}
	_, err = r.DeregisterTaskDefinition(ctx, "web:1")
	wantCode(t, err, "ClientException")
	if v := r.register("web"); v.Revision != 2 || !slices.Equal(families(), []string{"web"}) {
		t.Errorf("the next revision is %d, families %v", v.Revision, families())
	}
}

func TestDeleteTaskDefinitions_SayWhatTheyCanNotDelete(t *testing.T) {
	r := newAPIRig(t)
	r.cluster()
	found, failures, err := r.DeleteTaskDefinitions(context.Background(), []string{"web:1", "web", "none:1"})
	if err != nil || len(found) > 0 || len(failures) != 3 {
		t.Fatalf("found %v, failures %v, %v", found, failures, err)
	}
	for i, want := range []control.Failure{
		{ARN: r.DefinitionARN("web", 1), Reason: "The specified task definition is still in ACTIVE status. Please deregister the target and try again."},
		{ARN: "web", Reason: "The specified task definition identifier is invalid. Specify a valid name or ARN and try again."},
		{ARN: r.DefinitionARN("none", 1), Reason: "The specified task definition does not exist. Specify a valid account, family, revision and try again."},
	} {
		if failures[i] != want {
			t.Errorf("failure %d is %+v", i, failures[i])
		}
	}
	_, _, err = r.DeleteTaskDefinitions(context.Background(), make([]string, 11))
	wantCode(t, err, "InvalidParameterException")
}

// What was asked a moment ago may still be read as ACTIVE by a call under way.
func TestDeleteTaskDefinitions_AreNotGoneBeforeTenMinutes(t *testing.T) {
	r := newAPIRig(t)
	r.cluster()
	r.now = r.now.Truncate(time.Hour).Add(-time.Minute)
	ctx := context.Background()
	if _, err := r.DeregisterTaskDefinition(ctx, "web:1"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.DeleteTaskDefinitions(ctx, []string{"web:1"}); err != nil {
		t.Fatal(err)
	}
	r.now = r.now.Add(time.Minute)
	if err := r.Tick(ctx); err != nil {
		t.Fatal(err)
	}
	if got := r.statusOf("web:1"); got != "DELETE_IN_PROGRESS" {
		t.Errorf("it is %q a minute later", got)
	}
}
