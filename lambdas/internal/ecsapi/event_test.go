package ecsapi_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/task"
)

// pretty is an event as a subscriber of EventBridge gets it, but for what
// EventBridge adds.
func pretty(t *testing.T, e control.Event) []byte {
	t.Helper()
	b, err := json.Marshal(map[string]any{"detail-type": e.Type, "source": "longshore", "time": e.At.UTC().Format(time.RFC3339), "resources": e.Resources, "detail": e.Detail})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, b, "", "  "); err != nil {
		t.Fatal(err)
	}
	out.WriteByte('\n')
	return out.Bytes()
}

// announced are a rig's events of all that was committed, the last of each thing.
func announced(r *rig) map[string]control.Event {
	r.t.Helper()
	out := map[string]control.Event{}
	for _, c := range r.store.TakeChanges() {
		for _, n := range noticesOf(r, c) {
			out[n.Resources[0]] = n
		}
	}
	return out
}

func noticesOf(r *rig, c control.Change) []control.Event {
	r.t.Helper()
	c.At = r.now
	bus := &controltest.Bus{}
	r.control.Shape, r.control.Bus = r.handler.Event, bus
	if err := r.control.Announce(r.ctx, []control.Change{c})[0]; err != nil {
		r.t.Fatal(err)
	}
	return bus.Take()
}

func TestEvent_ShapesAreExact(t *testing.T) {
	r := newRig(t)
	in := r.world()
	_, answer, _ := r.post("RunTask", `{"taskDefinition":"web","startedBy":"alice","tags":[{"key":"team","value":"a"}]}`)
	var run struct{ Tasks []struct{ TaskArn string } }
	if err := json.Unmarshal([]byte(answer), &run); err != nil || len(run.Tasks) != 1 {
		t.Fatal(answer, err)
	}
	arn := run.Tasks[0].TaskArn
	r.admit()
	id := idOf(&arn)
	r.running(id)
	got := announced(r)
	golden(t, "event-task-running.json", pretty(t, got[arn]))
	golden(t, "event-instance.json", pretty(t, got[r.control.InstanceARN("default", in)]))
	r.stopped(id, 7)
	golden(t, "event-task-stopped.json", pretty(t, announced(r)[arn]))
	r.put(&control.ServiceEvents{Cluster: "default", Service: "web", Events: []control.ServiceEvent{
		{ID: "1", At: r.now, Name: "SERVICE_STEADY_STATE", Message: "(service web) has reached a steady state."},
	}})
	golden(t, "event-service.json", pretty(t, announced(r)[r.control.ServiceARN("default", "web")]))
	r.put(&control.ServiceEvents{Cluster: "default", Service: "api", Events: []control.ServiceEvent{
		{ID: "2", At: r.now, Name: "SERVICE_DEPLOYMENT_FAILED", Message: "ECS deployment circuit breaker: task failed to start.", Deployment: "ecs-svc/7"},
	}})
	golden(t, "event-deployment.json", pretty(t, announced(r)[r.control.ServiceARN("default", "api")]))
}

// What an event's detail has is what Describe answers, with the same members and
// values, but for the form of times.
func TestEvent_DetailIsWhatDescribeAnswers(t *testing.T) {
	r := newRig(t)
	in := r.world()
	_, answer, _ := r.post("RunTask", `{"taskDefinition":"web"}`)
	var run struct{ Tasks []struct{ TaskArn string } }
	if err := json.Unmarshal([]byte(answer), &run); err != nil {
		t.Fatal(err)
	}
	arn := run.Tasks[0].TaskArn
	r.admit()
	r.running(idOf(&arn))
	events := announced(r)
	for _, c := range []struct{ operation, body, list, arn, more, fewer string }{
		{"DescribeTasks", `{"tasks":["` + arn + `"],"include":["TAGS"]}`, "tasks", arn, "updatedAt", ""},
		{"DescribeContainerInstances", `{"containerInstances":["` + in + `"],"include":["TAGS"]}`, "containerInstances", r.control.InstanceARN("default", in), "clusterArn updatedAt", "pendingTasksCount runningTasksCount"},
	} {
		_, answer, _ := r.post(c.operation, c.body)
		var described map[string][]map[string]any
		var detail map[string]any
		if err := json.Unmarshal([]byte(answer), &described); err == nil {
			err = json.Unmarshal(events[c.arn].Detail, &detail)
			if err != nil {
				t.Fatal(err)
			}
		}
		want := described[c.list][0]
		var more, fewer []string
		for _, name := range slices.Sorted(maps.Keys(detail)) {
			if _, ok := want[name]; !ok {
				more = append(more, name)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(want)) {
			have, ok := detail[name]
			switch {
			case !ok:
				fewer = append(fewer, name)
			case strings.HasSuffix(name, "At"):
				at, err := time.Parse(time.RFC3339, have.(string))
				if seconds := want[name].(float64); err != nil || float64(at.UnixMilli())/1000 != seconds {
					t.Errorf("%s: %s is %v in the event and %v described", c.operation, name, have, want[name])
				}
			default:
				a, _ := json.Marshal(have)
				b, _ := json.Marshal(want[name])
				if !bytes.Equal(a, b) {
					t.Errorf("%s: %s is %s in the event and %s described", c.operation, name, a, b)
				}
			}
		}
		if strings.Join(more, " ") != c.more || strings.Join(fewer, " ") != c.fewer {
			t.Errorf("%s: the event also has %v and lacks %v", c.operation, more, fewer)
		}
	}
}

func TestEvent_ALostInstanceSaysWhyAndHasNothingLeft(t *testing.T) {
	r := newRig(t)
	id := r.world()
	l, lease := &control.Ledger{ID: id}, &control.Lease{ID: id}
	if err := r.store.Load(r.ctx, l, lease); err != nil {
		t.Fatal(err)
	}
	l.Connected, l.Epoch = false, l.Epoch+1
	lease.Stage, lease.StageReason = control.StageLost, "LOST: silent for 10m0s"
	r.put(lease)
	r.put(l)
	detail := string(announced(r)[r.control.InstanceARN("default", id)].Detail)
	for _, want := range []string{`"agentConnected":false`, `"statusReason":"LOST since`, `"remainingResources":[{"name":"CPU","type":"INTEGER","doubleValue":0,"longValue":0,"integerValue":0}`} {
		if !strings.Contains(detail, want) {
			t.Errorf("%s lacks %s", detail, want)
		}
	}
}

func TestEvent_AnEndSaysWhoDecidedIt(t *testing.T) {
	r := newRig(t)
	r.world()
	lost := &control.Task{ID: strings.Repeat("b", 32), Cluster: "default", Family: "web", Number: 1, LastStatus: task.Stopped, DesiredStatus: task.DesiredStopped,
		StopCause: task.LostCause, StoppedReason: task.EndOf(task.LostCause).Reason, CreatedAt: r.now, StoppedAt: r.now}
	detail := string(noticesOf(r, control.Change{New: lost})[0].Detail)
	for _, want := range []string{`"lastStatus":"STOPPED"`, `"stopCode":"InfrastructureHealth"`, `"stoppedReason":"Container instance lost`, `"name":"main","image":"busybox","lastStatus":"STOPPED"`} {
		if !strings.Contains(detail, want) {
			t.Errorf("%s lacks %s", detail, want)
		}
	}
}
