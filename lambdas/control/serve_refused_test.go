package control_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// tagged gives definition app:3 as many tags as there may be.
func (f *yard) tagged() {
	d := &control.Definition{Family: "app", Number: 3, Status: "ACTIVE", Definition: taskdef.Canonical(controltest.MinimalDefinition("app")),
		RegisteredAt: f.Clock.Now(), Tags: map[string]string{}}
	for n := range 50 {
		d.Tags[fmt.Sprint("t", n)] = "x"
	}
	f.Put(d)
}

// A service whose tasks have too many tags, with one that was added to it since,
// can make none: its owner is told so once, and all else of it and of other
// services goes on.
func TestServe_WhatCanNotBeMadeAnyMoreIsToldAndHoldsUpNothingElse(t *testing.T) {
	f := newYard(t, "i")
	f.tagged()
	f.create(func(r *control.ServiceRequest) { r.Definition, r.PropagateTags = "app:3", "TASK_DEFINITION" })
	f.settle("at first")
	service := control.Resource{Kind: control.ServiceResource, Cluster: "default", Name: "web"}
	if err := f.TagResource(ctx, service, map[string]string{"longshore:priority": "60"}); err != nil {
		t.Fatal(err)
	}
	one := f.living()[0]
	if _, err := f.StopTask(ctx, "default", one.ID, "a person"); err != nil {
		t.Fatal(err)
	}
	f.agent("i")
	for range 5 {
		for _, k := range []control.Kick{{Cluster: "default", Service: "web"}, {Cluster: "default"}} {
			if err := f.Serve(ctx, k); err != nil {
				t.Fatal(err)
			}
		}
	}
	told := 0
	for _, e := range f.view().Events {
		if e.Name == "SERVICE_TASK_CONFIGURATION_FAILURE" {
			told++
		}
	}
	if n := len(f.living()); n != 2 || told != 1 {
		t.Errorf("%d tasks live, want 2; told %d times, want once: %+v", n, told, f.view().Events)
	}
	f.update(func(r *control.ServiceUpdate) { r.Desired = new(1) })
	f.settle("scaled down meanwhile")
	f.update(func(r *control.ServiceUpdate) { r.PropagateTags, r.Desired = "NONE", new(3) })
	f.settle("mended")
}

// What the tasks of a service could not be made from is refused, whatever of it
// an update changes.
func TestUpdateService_RefusesTagsThatAreTooManyForItsTasks(t *testing.T) {
	f := newYard(t, "i")
	f.tagged()
	f.create(func(r *control.ServiceRequest) {
		r.Definition, r.Tags = "app:3", map[string]string{"longshore:priority": "60"}
	})
	if _, err := f.UpdateService(ctx, control.ServiceUpdate{Cluster: "default", Name: "web", PropagateTags: "TASK_DEFINITION"}); err == nil {
		t.Error("accepted")
	}
	if _, err := f.UpdateService(ctx, control.ServiceUpdate{Cluster: "default", Name: "web", Desired: new(2)}); err != nil {
		t.Error(err)
	}
}

// panicky is a store that can not bear one service.
type panicky struct{ control.Store }

func (p *panicky) Load(ctx context.Context, records ...control.Record) error {
	if slices.ContainsFunc(records, func(r control.Record) bool { return r.Kind() == control.ServiceKind && r.Key() == "default/broken" }) {
		panic("broken")
	}
	return p.Store.Load(ctx, records...)
}

func TestServe_AServiceThatPanicsHoldsUpNoOtherOfItsCluster(t *testing.T) {
	f := newYard(t, "i")
	for n := range 10 {
		f.create(func(r *control.ServiceRequest) { r.Name, r.Desired = fmt.Sprint("well-", n), new(1) })
	}
	f.create(func(r *control.ServiceRequest) { r.Name = "broken" })
	f.Store = &panicky{f.Store}
	err := f.Serve(ctx, control.Kick{Cluster: "default"})
	if err == nil || !strings.Contains(err.Error(), "serve service broken") {
		t.Errorf("the error is %v", err)
	}
	if n := len(f.Memory.Tasks()); n != 10 {
		t.Errorf("%d tasks were made, want 10", n)
	}
}
