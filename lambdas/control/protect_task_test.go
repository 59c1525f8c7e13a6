package control_test

import (
	"context"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/task"
)

// serviceTask stores a waiting task of a service, and its count.
func (r *apiRig) serviceTask(id, service string) {
	r.t.Helper()
	r.must(
		&control.Task{ID: id, Cluster: "default", LastStatus: task.Provisioning, DesiredStatus: task.DesiredRunning, Attempt: 1, Family: "web", Number: 1, Group: "service:" + service, Service: service, CreatedAt: r.now},
		&control.Live{Cluster: "default", Service: service, Live: 1},
	)
}

func TestProtectTasks_LastsForItsTimeAndBeginsAnewAtEachCall(t *testing.T) {
	r := newAPIRig(t)
	r.cluster()
	r.serviceTask("a", "web")
	ctx := context.Background()
	found, failures, err := r.ProtectTasks(ctx, "default", []string{"a"}, true, 0)
	if err != nil || len(failures) > 0 || len(found) != 1 || !found[0].Until.Equal(r.now.Add(2*time.Hour)) {
		t.Fatalf("found %v, failures %v, %v; the default is two hours", found, failures, err)
	}
	r.now = r.now.Add(time.Hour)
	if _, _, err := r.ProtectTasks(ctx, "default", []string{"a"}, true, 30*time.Minute); err != nil {
		t.Fatal(err)
	}
	if got := r.task("a").ProtectedUntil; !got.Equal(r.now.Add(30 * time.Minute)) {
		t.Errorf("protected until %s", got)
	}
	r.now = r.now.Add(30 * time.Minute)
	if found, _, err = r.TaskProtection(ctx, "default", []string{"a"}); err != nil || !found[0].Until.IsZero() {
		t.Errorf("a protection that is over is told as %v, %v", found, err)
	}
}

func TestProtectTasks_EndsWhenToldAndLetsTheServiceGoOn(t *testing.T) {
	r := newAPIRig(t)
	r.cluster()
	r.serviceTask("a", "web")
	ctx := context.Background()
	for _, on := range []bool{true, false} {
		if _, _, err := r.ProtectTasks(ctx, "default", []string{"a"}, on, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.task("a").ProtectedUntil; !got.IsZero() {
		t.Errorf("still protected until %s", got)
	}
	if kicks := r.queue.TakeServiceKicks(); len(kicks) != 1 || kicks[0].Service != "web" {
		t.Errorf("kicks %v: the service may stop it now", kicks)
	}
}

func TestProtectTasks_SaysWhyATaskCanNotBeProtected(t *testing.T) {
	r := newAPIRig(t)
	r.cluster()
	alone := r.run(one(1)).Tasks[0].ID
	r.must(&control.Task{ID: "over", Cluster: "default", LastStatus: task.Stopped, DesiredStatus: task.DesiredStopped, Service: "web"})
	ctx := context.Background()
	ids := []string{alone, "over", "nobody"}
	found, failures, err := r.ProtectTasks(ctx, "default", ids, true, 0)
	if err != nil || len(found) > 0 {
		t.Fatalf("found %v, %v", found, err)
	}
	var reasons []string
	for i, f := range failures {
		reasons = append(reasons, f.Reason)
		if f.ARN != r.TaskARN("default", ids[i]) {
			t.Errorf("failure of %s names %s", ids[i], f.ARN)
		}
	}
	if want := []string{"TASK_NOT_VALID", "TASK_NOT_VALID", "MISSING"}; len(reasons) != 3 || reasons[0] != want[0] || reasons[1] != want[1] || reasons[2] != want[2] {
		t.Errorf("reasons %v", reasons)
	}
	if _, _, err := r.ProtectTasks(ctx, "default", []string{alone}, true, 49*time.Hour); err == nil {
		t.Error("49 hours are allowed")
	}
	if _, _, err := r.ProtectTasks(ctx, "elsewhere", []string{alone}, true, 0); err == nil {
		t.Error("a cluster that is not there is not told")
	}
}
