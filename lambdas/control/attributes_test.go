package control_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
)

func TestPutAttributes_LetATaskThatWaitedForThemRun(t *testing.T) {
	r := newAPIRig(t)
	r.cluster()
	in := r.instance(1)
	req := one(1)
	req.Constraints = []control.Placement{{Type: "memberOf", Expression: "attribute:longshore.pool == blue"}}
	id := r.run(req).Tasks[0].ID
	r.admit()
	if got := r.task(id); got.Instance != "" || got.WaitingReason != "ATTRIBUTE" {
		t.Fatalf("task is %+v", got)
	}
	r.queue.TakeKicks()
	if err := r.PutAttributes(context.Background(), "default", []control.Attribute{{"longshore.pool", "blue", in}}); err != nil {
		t.Fatal(err)
	}
	if kicks := r.queue.TakeKicks(); len(kicks) != 1 || kicks[0].Instance != in {
		t.Errorf("kicks are %v", kicks)
	}
	r.admit()
	if got := r.task(id); got.Instance != in {
		t.Errorf("task is %+v", got)
	}
}

func TestPutAttributes_OutliveTheAgentsRegistrationAndWinOverWhatItSays(t *testing.T) {
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	if err := w.PutAttributes(ctx, "default", []control.Attribute{{"longshore.pool", "a", e.id}, {"rack", "8", e.id}}); err != nil {
		t.Fatal(err)
	}
	w.Clock.Move(time.Second)
	m := e.register()
	m.Attributes = map[string]string{"longshore.pool": "b", "longshore.more": "c", "rack": "7", "disk": "ssd"}
	if err := w.IngestRegister(ctx, e.sender(), m); err != nil {
		t.Fatal(err)
	}
	shown := (&control.InstanceView{Instance: instanceOf(w, e.id)}).ShownAttributes()
	if shown["longshore.pool"] != "a" || shown["rack"] != "8" || shown["disk"] != "ssd" || shown["longshore.more"] != "" {
		t.Errorf("attributes are %v", shown)
	}
	if err := w.DeleteAttributes(ctx, "default", []control.Attribute{{Name: "longshore.pool", Instance: e.id}, {Name: "rack", Instance: e.id}}); err != nil {
		t.Fatal(err)
	}
	shown = (&control.InstanceView{Instance: instanceOf(w, e.id)}).ShownAttributes()
	if _, there := shown["longshore.pool"]; there || shown["rack"] != "" || shown["disk"] != "ssd" {
		t.Errorf("attributes are %v after they were deleted", shown)
	}
}

func TestPutAttributes_RefuseByName(t *testing.T) {
	r := newAPIRig(t)
	r.cluster()
	in := r.instance(1)
	var eleven []control.Attribute
	for i := range 11 {
		eleven = append(eleven, control.Attribute{fmt.Sprint("a", i), "", in})
	}
	ctx := context.Background()
	for name, x := range map[string]struct {
		cluster string
		all     []control.Attribute
		code    string
	}{
		"none":              {"default", nil, "InvalidParameterException"},
		"eleven":            {"default", eleven, "InvalidParameterException"},
		"name":              {"default", []control.Attribute{{"a b", "", in}}, "InvalidParameterException"},
		"built in":          {"default", []control.Attribute{{"ecs.availability-zone", "x", in}}, "InvalidParameterException"},
		"a capability":      {"default", []control.Attribute{{"com.amazonaws.ecs.capability.x", "", in}}, "InvalidParameterException"},
		"value":             {"default", []control.Attribute{{"a", "x=y", in}}, "InvalidParameterException"},
		"value with blanks": {"default", []control.Attribute{{"a", " x", in}}, "InvalidParameterException"},
		"no such instance":  {"default", []control.Attribute{{"a", "", "nobody"}}, "TargetNotFoundException"},
		"no such cluster":   {"none", []control.Attribute{{"a", "", in}}, "ClusterNotFoundException"},
	} {
		t.Run(name, func(t *testing.T) { wantCode(t, r.PutAttributes(ctx, x.cluster, x.all), x.code) })
	}
	if err := r.PutAttributes(ctx, "default", eleven[:10]); err != nil {
		t.Fatal(err)
	}
	if err := r.PutAttributes(ctx, "default", []control.Attribute{{"a1", "again", in}}); err != nil {
		t.Errorf("one that is there gets no other value: %v", err)
	}
	wantCode(t, r.PutAttributes(ctx, "default", eleven[10:]), "AttributeLimitExceededException")
}

func TestListAttributes_ShowsThoseOfItsOwnAndTheBuiltInPageByPage(t *testing.T) {
	r := newAPIRig(t)
	r.cluster()
	a, b := r.instance(1), r.instance(2)
	gone := r.instance(3)
	ctx := context.Background()
	if _, err := r.DeregisterContainerInstance(ctx, "default", gone, false); err != nil {
		t.Fatal(err)
	}
	if err := r.PutAttributes(ctx, "default", []control.Attribute{{"pool", "blue", b}}); err != nil {
		t.Fatal(err)
	}
	r.store.CatchUp()
	list := func(f control.AttributeFilter, limit int) (all []string) {
		f.Cluster = "default"
		for cur := (control.Cursor{}); ; {
			page, next, err := r.ListAttributes(ctx, f, cur, limit)
			if err != nil {
				t.Fatal(err)
			}
			if len(page) > limit {
				t.Errorf("a page of %d has %d", limit, len(page))
			}
			for _, x := range page {
				all = append(all, x.Instance[30:]+" "+x.Name+" "+x.Value)
			}
			if cur = next; next == (control.Cursor{}) {
				return all
			}
		}
	}
	want := []string{
		a[30:] + " disk ssd", a[30:] + " ecs.availability-zone z1", a[30:] + " ecs.instance-id " + a,
		b[30:] + " disk ssd", b[30:] + " ecs.availability-zone z1", b[30:] + " ecs.instance-id " + b, b[30:] + " pool blue",
	}
	for _, limit := range []int{1, 3, 100} {
		if got := list(control.AttributeFilter{}, limit); !slices.Equal(got, want) {
			t.Errorf("by %d: %q", limit, got)
		}
	}
	if got := list(control.AttributeFilter{Name: "pool"}, 1); !slices.Equal(got, want[6:]) {
		t.Errorf("named: %q", got)
	}
	if got := list(control.AttributeFilter{Name: "disk", Value: "hdd"}, 1); len(got) > 0 {
		t.Errorf("of a value that none has: %q", got)
	}
}
