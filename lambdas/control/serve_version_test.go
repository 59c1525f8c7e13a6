package control_test

import (
	"context"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/task"
)

// afterTasks is a store after whose next reading of tasks somebody else gets in.
type afterTasks struct {
	control.Store
	do func()
}

func (a *afterTasks) Load(ctx context.Context, records ...control.Record) error {
	err := a.Store.Load(ctx, records...)
	if do := a.do; do != nil && len(records) > 0 && records[0].Kind() == control.TaskKind {
		a.do = nil
		do()
	}
	return err
}

// One run has read the tasks and is to stop one. Before it goes on another run
// stops another, because by then an owner has lifted that one's protection. Each
// alone keeps the minimum; both together break it, and nothing but the version of
// the live count is common to what they write. Reading the live count after the
// tasks, or not raising it by a stop, is enough for that.
func TestServe_OfTwoRunsThatStopDifferentTasksOneDecidesAgain(t *testing.T) {
	f := newYard(t, "i", "j", "k")
	f.create(func(r *control.ServiceRequest) {
		r.Deployment = control.DeploymentRules{MinimumPercent: new(66), MaximumPercent: new(100)}
	})
	f.settle("at first") // 2 of 3 are to serve throughout
	f.update(func(r *control.ServiceUpdate) { r.Definition = "app:2" })
	f.Sent.TakeServiceKicks()
	kick := control.Kick{Cluster: "default", Service: "web"}
	first := firstStopped(t, f)
	protect := func(until time.Time) {
		one := f.Task(first)
		one.ProtectedUntil = until
		f.Put(&one)
	}
	protect(f.Clock.Now().Add(time.Hour))
	store, got := f.Store, false
	f.Store = &afterTasks{Store: store, do: func() {
		f.Store = store
		protect(time.Time{})
		if err := f.Serve(ctx, kick); err != nil {
			t.Error(err)
		}
		if got = f.Task(first).DesiredStatus == task.DesiredStopped; !got {
			t.Error("the other run did not stop the task whose protection was lifted")
		}
	}}
	f.least = 2
	if err := f.Serve(ctx, kick); err != nil {
		t.Fatal(err)
	}
	f.Store = store
	f.bounds()
	if !got {
		t.Error("no other run got in")
	}
	f.settle("after both")
}

// firstStopped is which of service web's tasks a run would stop first.
func firstStopped(t *testing.T, f *yard) string {
	store := f.Store
	defer func() { f.Store = store }()
	var id string
	f.Store = &noCommit{store, func(writes []control.Write) {
		for _, w := range writes {
			if one, is := w.Record.(*control.Task); is && one.DesiredStatus == task.DesiredStopped && id == "" {
				id = one.ID
			}
		}
	}}
	_ = f.Serve(ctx, control.Kick{Cluster: "default", Service: "web"})
	if id == "" {
		t.Fatal("nothing is to be stopped")
	}
	return id
}

// noCommit shows what would be written, and fails.
type noCommit struct {
	control.Store
	see func([]control.Write)
}

func (n *noCommit) Commit(_ context.Context, writes ...control.Write) error {
	n.see(writes)
	return errDead
}
