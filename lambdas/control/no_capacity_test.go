package control_test

import (
	"context"
	"testing"

	"github.com/longshore-run/longshore/lambdas/control"
)

// Each reason that ECS would give is given, by RunTask that is not to wait and
// by StartTask alike, and nothing is stored of what could not be placed.
func TestNoCapacity_IsToldInECSsWords(t *testing.T) {
	for want, x := range map[string]struct {
		definition string
		world      func(r *apiRig, in string)
		constraint string
	}{
		"RESOURCE:CPU":    {definition: `"cpu":4096,"memory":16`},
		"RESOURCE:MEMORY": {definition: `"memory":4096`},
		"RESOURCE:GPU":    {definition: `"memory":16,"resourceRequirements":[{"type":"GPU","value":"1"}]`},
		"RESOURCE:PORTS":  {definition: `"memory":16,"portMappings":[{"containerPort":22,"hostPort":22}]`},
		"AGENT": {definition: `"memory":16`, world: func(r *apiRig, in string) {
			l := &control.Ledger{ID: in}
			if err := r.store.Load(context.Background(), l); err != nil {
				r.t.Fatal(err)
			}
			l.Connected = false
			r.must(l)
		}},
		"ATTRIBUTE": {definition: `"memory":16`, constraint: "attribute:disk == tape"},
	} {
		t.Run(want, func(t *testing.T) {
			r := newAPIRig(t)
			r.cluster()
			in := r.instance(1)
			if _, err := r.RegisterTaskDefinition(context.Background(), decode(t, `{"family":"x","containerDefinitions":[{"name":"main","image":"busybox",`+x.definition+`}]}`), ""); err != nil {
				t.Fatal(err)
			}
			if x.world != nil {
				x.world(r, in)
			}
			req := one(2)
			req.Definition, req.Tags = "x", map[string]string{"longshore:onNoCapacity": "fail"}
			if x.constraint != "" {
				req.Constraints = []control.Placement{{Type: "memberOf", Expression: x.constraint}}
			}
			run := r.run(req)
			if len(run.Tasks) != 0 || len(run.Failures) != 2 || run.Failures[0].Reason != want || run.Failures[1].Reason != want {
				t.Errorf("RunTask answers %+v", run)
			}
			started, err := r.StartTask(context.Background(), control.StartTaskRequest{TaskRequest: req.TaskRequest, Instances: []string{in}})
			if err != nil || len(started.Tasks) != 0 || len(started.Failures) != 1 || started.Failures[0].Reason != want || started.Failures[0].ARN != r.InstanceARN("default", in) {
				t.Errorf("StartTask answers %+v, %v", started, err)
			}
			if stored := r.store.Tasks(); len(stored) != 0 {
				t.Errorf("stored are %v", stored)
			}
		})
	}
}

// An instance that is gone for good is remembered for a week, and is none to ECS.
func TestNoCapacity_AClusterWhoseInstancesAreAllGoneHasNone(t *testing.T) {
	r := newAPIRig(t)
	r.cluster()
	in := r.instance(1)
	if _, err := r.DeregisterContainerInstance(context.Background(), "default", in, false); err != nil {
		t.Fatal(err)
	}
	r.store.CatchUp()
	req := one(1)
	req.Tags = map[string]string{"longshore:onNoCapacity": "fail"}
	_, err := r.RunTask(context.Background(), req)
	if f := coded(t, err, "InvalidParameterException"); f.Message != "No Container Instances were found in your cluster." {
		t.Errorf("message is %q", f.Message)
	}
}
