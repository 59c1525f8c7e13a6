package control_test

import (
	"fmt"
	"testing"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/internal/deployment"
)

func TestServe_RollsWithinItsBounds(t *testing.T) {
	for name, rules := range map[string]struct{ minimum, maximum, least, most int }{
		"as ECS does by default": {100, 200, 3, 6},
		"in place":               {34, 100, 2, 3},
		"some of both":           {67, 134, 3, 4},
	} {
		t.Run(name, func(t *testing.T) {
			f := newYard(t, "i", "j")
			f.create(func(r *control.ServiceRequest) {
				r.Deployment = control.DeploymentRules{MaximumPercent: &rules.maximum, MinimumPercent: &rules.minimum}
			})
			f.settle("at first")
			f.least, f.most = rules.least, rules.most
			if name == "in place" || name == "some of both" {
				f.least = (3*rules.minimum + 99) / 100
			}
			v := f.update(func(r *control.ServiceUpdate) { r.Definition = "app:2" })
			if len(v.Deployments) != 2 || v.Deployments[0].Number != 2 || v.Deployments[1].Primary {
				t.Fatalf("rolls with %+v", v.Deployments)
			}
			f.settle("rolled")
			for _, one := range f.living() {
				if one.Number != 2 || one.StartedBy != v.Deployments[0].ID {
					t.Errorf("task %s is of revision %d", one.ID, one.Number)
				}
			}
		})
	}
}

// Two runs of a rollout whose reads are as far apart as can be.
func TestServe_TwoRunsOfARolloutStopNoMoreThanOne(t *testing.T) {
	for call := 1; call <= 8; call++ {
		for _, kind := range []string{"Load", "Commit"} {
			f := newYard(t, "i", "j")
			f.create(func(r *control.ServiceRequest) {
				r.Deployment = control.DeploymentRules{MaximumPercent: new(134), MinimumPercent: new(67)}
			})
			f.settle("at first")
			f.least, f.most = 3, 4
			f.least = 2 + 1 - 1
			f.update(func(r *control.ServiceUpdate) { r.Definition = "app:2" })
			store := f.Store
			f.Store = &between{Store: store, call: kind, nth: call, do: func() {
				f.Store = store
				f.step()
				f.step()
			}}
			if err := f.Serve(ctx, control.Kick{Cluster: "default", Service: "web"}); err != nil {
				t.Fatal(err)
			}
			f.Store = store
			f.bounds()
			f.settle("rolled")
		}
	}
}

func TestServe_ABadRevisionTripsTheBreakerAndGoesBack(t *testing.T) {
	yes := true
	f := newYard(t, "i", "j")
	f.create(func(r *control.ServiceRequest) { r.Deployment = control.DeploymentRules{Breaker: &yes, Rollback: &yes} })
	f.settle("at first")
	first := f.view().Deployments[0].ID
	f.least, f.most = 3, 6
	bad := f.update(func(r *control.ServiceUpdate) { r.Definition = "bad:1" }).Deployments[0].ID
	f.settle("rolled back")
	v := f.view()
	if d := v.Deployments[0]; d.ID != first || d.Family != "app" || d.State != deployment.Completed || v.Deployments[0].RollingBack {
		t.Errorf("after the rollback %+v", v.Deployments)
	}
	if v.Family != "app" || v.Number != 1 {
		t.Errorf("the service is described with %s:%d", v.Family, v.Number)
	}
	if !f.heard("(service web) (deployment "+bad+") deployment failed: tasks failed to start.") || !f.heard("rolling back to deployment "+first) {
		t.Errorf("events are %+v", v.Events)
	}
	rows := f.history()
	if len(rows) != 2 || rows[0].Status != control.RolloutRollbackSuccessful || rows[1].Status != control.RolloutSuccessful || rows[0].Failures < 3 || rows[0].Threshold != 3 || !rows[0].Tripped {
		t.Errorf("history is %+v", rows)
	}
}

func TestServe_WithoutRollbackABadRevisionEndsAndTheOldGoOn(t *testing.T) {
	yes := true
	f := newYard(t, "i", "j")
	f.create(func(r *control.ServiceRequest) { r.Deployment = control.DeploymentRules{Breaker: &yes} })
	f.settle("at first")
	f.least, f.most = 3, 6
	f.update(func(r *control.ServiceUpdate) { r.Definition = "bad:1" })
	for range 30 {
		f.step()
	}
	v := f.view()
	if d := v.Deployments; len(d) != 2 || d[0].State != deployment.Failed || d[0].Desired != 0 || d[0].Failed < 3 || d[1].Tasks.Running != 3 {
		t.Errorf("deployments are %+v", v.Deployments)
	}
	if rows := f.history(); rows[0].Status != control.RolloutStopped || !rows[0].Tripped {
		t.Errorf("history is %+v", rows)
	}
	f.update(func(r *control.ServiceUpdate) { r.Definition = "app:2" })
	f.settle("mended")
}

// The reason why this product is there: a host dies in the middle, without a word.
func TestServe_ARolloutAndARollbackFinishThoughAHostDies(t *testing.T) {
	yes := true
	for _, to := range []string{"app:2", "bad:1"} {
		for at := range 8 {
			t.Run(fmt.Sprint(to, " killed at step ", at), func(t *testing.T) {
				f := newYard(t, "i", "j", "k")
				f.create(func(r *control.ServiceRequest) { r.Deployment = control.DeploymentRules{Breaker: &yes, Rollback: &yes} })
				f.settle("at first")
				f.most = 6
				f.update(func(r *control.ServiceUpdate) { r.Definition = to })
				for range at {
					f.step()
				}
				f.kill("i")
				for range 10 {
					f.step()
				}
				f.reap("i")
				f.settle("without the host")
				want := 2
				if to == "bad:1" {
					want = 1
				}
				for _, one := range f.living() {
					if one.Family != "app" || one.Number != want {
						t.Errorf("task of %s:%d lives", one.Family, one.Number)
					}
				}
			})
		}
	}
}
