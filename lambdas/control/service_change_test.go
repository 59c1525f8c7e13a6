package control_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/fault"
)

func TestDeleteService_IsDoneWhenNothingLivesAndDescribableForADay(t *testing.T) {
	f := newYard(t, "i", "j")
	f.create()
	f.settle("at first")
	if _, err := f.DeleteService(ctx, "default", "web", false); err == nil || !strings.Contains(err.Error(), "The service cannot be stopped while it is scaled above 0.") {
		t.Fatalf("without force: %v", err)
	}
	v, err := f.DeleteService(ctx, "default", "web", true)
	if err != nil || v.Status != control.ServiceDraining || v.Desired != 0 || v.Tasks.Running != 3 {
		t.Fatalf("%+v, %v", v, err)
	}
	if _, err := f.CreateService(ctx, control.ServiceRequest{Cluster: "default", Name: "web", Definition: "app", Desired: new(1)}); err == nil || !strings.Contains(err.Error(), "still Draining") {
		t.Errorf("created again while it drains: %v", err)
	}
	for range 6 {
		f.step()
	}
	if v := f.view(); v.Status != control.ServiceInactive || len(v.Deployments) != 0 || v.Tasks != (control.TaskCount{}) {
		t.Fatalf("after all have ended it is %+v", v)
	}
	if _, err := f.UpdateService(ctx, control.ServiceUpdate{Cluster: "default", Name: "web", Desired: new(1)}); codeOf(err) != control.ServiceNotActiveException {
		t.Errorf("update: %v", err)
	}
	f.Clock.Move(23 * time.Hour)
	f.view()
	f.create()
	f.settle("made again")
	if _, err := f.DeleteService(ctx, "default", "web", true); err != nil {
		t.Fatal(err)
	}
	for range 6 {
		f.step()
	}
	f.Clock.Move(25 * time.Hour)
	if _, missing, err := f.DescribeServices(ctx, "default", []string{"web"}); err != nil || len(missing) != 1 {
		t.Errorf("a day later: missing %v, %v", missing, err)
	}
}

func codeOf(err error) string {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f.Code
	}
	return fmt.Sprint(err)
}

func TestCreateService_OfAClusterThatIsDeletedMeanwhileOneOfBothFails(t *testing.T) {
	for _, first := range []string{"create", "delete"} {
		w := controltest.NewWorld(t)
		create := func() error {
			_, err := w.CreateService(ctx, control.ServiceRequest{Cluster: "default", Name: "web", Definition: "app:1", Desired: new(1)})
			return err
		}
		remove := func() error { _, err := w.DeleteCluster(ctx, "default"); return err }
		store, outer, inner := w.Store, create, remove
		if first == "delete" {
			outer, inner = remove, create
		}
		var within error
		w.Store = &between{Store: store, call: "Commit", nth: 1, do: func() {
			w.Store = store
			within = inner()
		}}
		without := outer()
		if within != nil || without == nil {
			t.Errorf("%s began: it gave %v, the other %v", first, without, within)
		}
	}
}

func TestServices_ChangesAreHarmlessKilledAnywhere(t *testing.T) {
	var f *yard
	settled := func(t *testing.T) *controltest.World {
		f = newYard(t, "i", "j")
		f.create()
		f.settle("at first")
		return f.World
	}
	for name, c := range map[string]struct {
		build func(t *testing.T) *controltest.World
		run   func(w *controltest.World) error
		check func(t *testing.T)
	}{
		"create": {func(t *testing.T) *controltest.World { f = newYard(t, "i", "j"); return f.World },
			func(w *controltest.World) error {
				_, err := w.CreateService(ctx, control.ServiceRequest{Cluster: "default", Name: "web", Definition: "app:1", Desired: new(2), Token: "t"})
				return err
			}, func(t *testing.T) {
				f.settle("made")
				if n := len(f.living()); n != 2 || len(f.history()) != 1 {
					t.Errorf("%d live, history %+v", n, f.history())
				}
			}},
		"update": {settled,
			func(w *controltest.World) error {
				_, err := w.UpdateService(ctx, control.ServiceUpdate{Cluster: "default", Name: "web", Definition: "app:2"})
				return err
			}, func(t *testing.T) {
				f.settle("rolled")
				if rows := f.history(); len(rows) != 2 || rows[0].Status != control.RolloutSuccessful {
					t.Errorf("history %+v", rows)
				}
			}},
		"delete": {settled,
			func(w *controltest.World) error { _, err := w.DeleteService(ctx, "default", "web", true); return err },
			func(t *testing.T) {
				f.sweep()
				for range 6 {
					f.step()
				}
				if v := f.view(); v.Status != control.ServiceInactive {
					t.Errorf("it is %s", v.Status)
				}
			}},
	} {
		t.Run(name, func(t *testing.T) {
			controltest.KillEverywhere(t, c.build, c.run, func(t *testing.T, _ *controltest.World) { c.check(t) })
		})
	}
}
