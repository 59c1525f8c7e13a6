package control_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/setting"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// apiRig is a control plane in memory, with a lagging index; the invariants
// are checked at the end.
type apiRig struct {
	*control.Control
	t     *testing.T
	store *controltest.Store
	queue *controltest.Queue
	now   time.Time
}

func newAPIRig(t *testing.T) *apiRig {
	t.Helper()
	r := &apiRig{t: t, store: controltest.NewStore(), now: time.Unix(1_800_000_000, 0).UTC()}
	r.queue = controltest.NewQueue(r.store.Calls)
	var s setting.Control
	if err := setting.FromEnv(&s, func(name string) (string, bool) {
		switch {
		case name == "LONGSHORE_REGION":
			return "eu-central-1", true
		case name == "LONGSHORE_ACCOUNT":
			return "123456789012", true
		}
		return "unused", strings.HasSuffix(name, "_TABLE") || strings.HasSuffix(name, "_URL")
	}); err != nil {
		t.Fatal(err)
	}
	ids := 0
	r.Control = &control.Control{
		Store: r.store, Queue: r.queue, Metrics: noMetrics{}, Setting: s,
		Log:   slog.New(slog.DiscardHandler),
		Now:   func() time.Time { return r.now },
		NewID: func() string { ids++; return fmt.Sprintf("%032x", ids) },
		Pause: func(context.Context, int) {},
	}
	t.Cleanup(r.check)
	return r
}

type noMetrics struct{}

func (noMetrics) Count(string, float64, ...string) {}

func (r *apiRig) check() {
	r.t.Helper()
	for _, v := range r.store.Violations() {
		r.t.Error(v)
	}
}

// must commits records as they are.
func (r *apiRig) must(records ...control.Record) {
	r.t.Helper()
	for _, rec := range records {
		if err := r.store.Commit(context.Background(), control.Put(rec)); err != nil {
			r.t.Fatal(err)
		}
	}
}

// cluster makes the cluster default and the definition web:1, 256 units and 128 MiB.
func (r *apiRig) cluster() {
	r.t.Helper()
	if _, err := r.EnsureCluster(context.Background(), "default"); err != nil {
		r.t.Fatal(err)
	}
	r.register("web")
}

func (r *apiRig) register(family string) *control.DefinitionView {
	r.t.Helper()
	in, err := taskdef.Decode(fmt.Appendf(nil, `{"family":%q,"containerDefinitions":[{"name":"main","image":"busybox","cpu":256,"memory":128}]}`, family))
	if err != nil {
		r.t.Fatal(err)
	}
	v, err := r.RegisterTaskDefinition(context.Background(), in, "arn:aws:iam::123456789012:user/alice")
	if err != nil {
		r.t.Fatal(err)
	}
	return v
}

// instance registers a connected instance of one core and 1 GiB.
func (r *apiRig) instance(n int) string {
	r.t.Helper()
	id := fmt.Sprintf("%032x", 0xa000+n)
	r.must(
		&control.Instance{ID: id, Cluster: "default", Incarnation: "inc", Zone: "z1", WireVersions: []int{1}, AgentVersion: "1.0.0", DockerVersion: "28", RegisteredAt: r.now, Attributes: map[string]string{"disk": "ssd"}},
		&control.Ledger{ID: id, Cluster: "default", Status: control.Active, Connected: true, Epoch: 7, SinceEpoch: 7, Registered: control.Held{CPU: 1024, MemoryMiB: 1024, TCP: []int{22}}},
		&control.Lease{ID: id, Cluster: "default", Zone: "z1", Sent: r.now, Epoch: 7, Incarnation: "inc", Stage: control.StageConnected, StageSince: r.now},
	)
	if err := r.queue.EnsureInbox(context.Background(), id, "AROAEXAMPLE:"+id); err != nil {
		r.t.Fatal(err)
	}
	r.store.CatchUp()
	return id
}

func (r *apiRig) run(req control.RunTaskRequest) *control.Run {
	r.t.Helper()
	run, err := r.RunTask(context.Background(), req)
	if err != nil {
		r.t.Fatal(err)
	}
	return run
}

// admit runs admission until nothing waits that fits.
func (r *apiRig) admit() {
	r.t.Helper()
	r.store.CatchUp()
	if err := r.Admit(context.Background(), control.Kick{Cluster: "default"}); err != nil {
		r.t.Fatal(err)
	}
	r.store.CatchUp()
}

func (r *apiRig) task(id string) control.Task { return r.store.Tasks()[id] }

func one(count int) control.RunTaskRequest {
	return control.RunTaskRequest{TaskRequest: control.TaskRequest{Cluster: "default", Definition: "web"}, Count: count}
}

// coded is err as callers see it, under this exception; anything else fails.
func coded(t *testing.T, err error, code string) *fault.Error {
	t.Helper()
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Code != code {
		t.Fatalf("error is %v (%#v), want exception %s", err, f, code)
	}
	return f
}

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	_ = coded(t, err, code)
}
