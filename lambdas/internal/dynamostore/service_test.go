//go:build emulator

package dynamostore_test

import (
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"

	"github.com/longshore-run/longshore/lambdas/control/controltest"
)

// serve lets services, admission and the agent do what there is to do, until
// nothing of service web is on its way.
func (p *plane) serve() *control.ServiceView {
	p.t.Helper()
	for range 20 {
		kicks := append(p.Sent.TakeServiceKicks(), control.Kick{Cluster: "default"})
		for _, k := range kicks {
			p.must("serve", p.Serve(p.t.Context(), k))
		}
		for _, k := range p.Sent.TakeKicks() {
			p.must("admit", p.Admit(p.t.Context(), k))
		}
		ids, _, err := p.Store.TaskIDs(p.t.Context(), control.TaskQuery{OnInstance: p.id}, control.Page{})
		p.must("list", err)
		moved := false
		for _, id := range ids {
			one := &control.Task{ID: id}
			p.must("load", p.Store.Load(p.t.Context(), one))
			switch {
			case one.LastStatus.Open() && one.DesiredStatus == task.DesiredStopped:
				p.must("ended", p.report(id, task.Stopped, task.Container{Name: "main", Status: task.ContainerStopped}))
				moved = true
			case one.LastStatus == task.Pending:
				p.must("running", p.report(id, task.Running, task.Container{Name: "main", Status: task.ContainerRunning}))
				moved = true
			}
		}
		found, missing, err := p.DescribeServices(p.t.Context(), "default", []string{"web"})
		if err != nil || len(missing) != 0 {
			p.t.Fatalf("describe: missing %v, %v", missing, err)
		}
		if v := &found[0]; !moved && (v.Status == control.ServiceInactive || len(v.Deployments) == 1 && v.Tasks.Running == v.Desired && v.Tasks.Pending == 0) {
			return v
		}
		p.Clock.Move(time.Second)
	}
	p.t.Fatal("the service does not settle")
	return nil
}

// What a decision writes is one transaction of DynamoDB's: no item twice, none
// that lacks its key, and what it deletes and checks is there.
func TestControl_OverDynamoDBAServicesWholeLife(t *testing.T) {
	p := newPlane(t)
	p.join()
	p.must("prepare", p.Store.Commit(t.Context(), control.Put(&control.Definition{Family: "app", Number: 2, Status: "ACTIVE",
		Definition: taskdef.Canonical(controltest.MinimalDefinition("app")), RegisteredAt: p.Clock.Now()})))
	_, err := p.CreateService(t.Context(), control.ServiceRequest{Cluster: "default", Name: "web", Definition: "app:1", Desired: new(3), Token: "token", Tags: map[string]string{"team": "a"}, PropagateTags: "SERVICE"})
	p.must("create", err)
	if v := p.serve(); v.Tasks.Running != 3 || v.Deployments[0].State != "COMPLETED" || len(v.Events) < 3 {
		t.Fatalf("made as %+v", v)
	}
	_, err = p.UpdateService(t.Context(), control.ServiceUpdate{Cluster: "default", Name: "web", Definition: "app:2"})
	p.must("update", err)
	if v := p.serve(); v.Number != 2 || v.Tasks.Running != 3 {
		t.Fatalf("rolled to %+v", v)
	}
	rows, _, err := p.ListServiceDeployments(t.Context(), control.ServiceDeploymentFilter{Cluster: "default", Service: "web"}, control.Cursor{}, 10)
	if err != nil || len(rows) != 2 || rows[0].Status != control.RolloutSuccessful || rows[0].CreatedAt.Before(rows[1].CreatedAt) {
		t.Fatalf("history %+v, %v", rows, err)
	}
	p.m.calls, p.m.write = 0, 0
	p.must("idle", p.Serve(t.Context(), control.Kick{Cluster: "default"}))
	if p.m.calls > 5 || p.m.write != 0 { // services, the service, its tasks' ids, the tasks, their instances
		t.Errorf("a steady service costs %d calls and %.0f write units a minute", p.m.calls, p.m.write)
	}
	_, err = p.DeleteService(t.Context(), "default", "web", true)
	p.must("delete", err)
	if v := p.serve(); v.Status != control.ServiceInactive {
		t.Fatalf("deleted, it is %+v", v)
	}
	if ids, _, err := p.ListTasks(t.Context(), control.TaskFilter{Cluster: "default", Service: "web", Desired: "STOPPED"}, control.Cursor{}, 100); err != nil || len(ids) != 6 {
		t.Errorf("lists %d stopped tasks of it, %v", len(ids), err)
	}
}
