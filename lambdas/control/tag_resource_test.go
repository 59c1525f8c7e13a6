package control_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
)

var defaultResource = control.Resource{Kind: control.ClusterResource, Name: "default"}

func taskResource(id string) control.Resource {
	return control.Resource{Kind: control.TaskResource, Cluster: "default", Name: id}
}

func (r *apiRig) tag(x control.Resource, tags map[string]string) {
	r.t.Helper()
	if err := r.TagResource(context.Background(), x, tags); err != nil {
		r.t.Fatal(err)
	}
}

func TestTagResource_EveryKindKeepsWhatItIsGivenAndLosesWhatIsTaken(t *testing.T) {
	r := newAPIRig(t)
	r.cluster()
	in := r.instance(1)
	id := r.run(one(1)).Tasks[0].ID
	r.must(&control.Service{Cluster: "default", Name: "web", Status: control.ServiceActive})
	ctx := context.Background()
	for _, x := range []control.Resource{
		defaultResource, taskResource(id),
		{Kind: control.InstanceResource, Cluster: "default", Name: in},
		{Kind: control.ServiceResource, Cluster: "default", Name: "web"},
		{Kind: control.DefinitionResource, Name: "web:1"},
	} {
		r.tag(x, map[string]string{"team": "a", "stage": "test"})
		r.tag(x, map[string]string{"team": "b", "empty": ""})
		if err := r.UntagResource(ctx, x, []string{"stage", "never"}); err != nil {
			t.Fatal(err)
		}
		tags, err := r.TagsOf(ctx, x)
		if err != nil || len(tags) != 2 || tags["team"] != "b" || tags["empty"] != "" {
			t.Errorf("%s has %v, %v", x.Kind, tags, err)
		}
		commits := r.store.Commits()
		r.tag(x, map[string]string{"team": "b"})
		if r.store.Commits() != commits {
			t.Errorf("%s is written though nothing changes", x.Kind)
		}
	}
}

func TestTagResource_RefusesByName(t *testing.T) {
	r := newAPIRig(t)
	r.cluster()
	in := control.Resource{Kind: control.InstanceResource, Cluster: "default", Name: r.instance(1)}
	id := r.run(one(1)).Tasks[0].ID
	many := map[string]string{}
	for i := range 50 {
		many[fmt.Sprint("k", i)] = ""
	}
	r.tag(defaultResource, many)
	ctx := context.Background()
	for name, x := range map[string]struct {
		of   control.Resource
		tags map[string]string
		code string
		says string
	}{
		"aws":              {defaultResource, map[string]string{"aws:x": ""}, "InvalidParameterException", "aws:"},
		"one too many":     {defaultResource, map[string]string{"k50": ""}, "LimitExceededException", "51"},
		"long key":         {defaultResource, map[string]string{strings.Repeat("k", 129): ""}, "InvalidParameterException", "129"},
		"cluster's value":  {defaultResource, map[string]string{"longshore:onNoCapacity": "maybe"}, "InvalidParameterException", "wait or fail"},
		"ours of cluster":  {defaultResource, map[string]string{"longshore:replaceAfter": "confirmed"}, "InvalidParameterException", "reads of clusters"},
		"too soon":         {defaultResource, map[string]string{"longshore:reapAfter": "3m59s"}, "InvalidParameterException", `longshore:reapAfter is "3m59s"; allowed is a duration from 4m0s to 168h0m0s (suspectAfter, 3m0s, and one heartbeat, 1m0s)`},
		"too late":         {defaultResource, map[string]string{"longshore:reapAfter": "169h"}, "InvalidParameterException", "from 4m0s to 168h0m0s"},
		"no policy":        {defaultResource, map[string]string{"longshore:onDisconnect": "fence"}, "InvalidParameterException", "allowed is replace or keep"},
		"kept for ever":    {taskResource(id), map[string]string{"longshore:keepFor": "none"}, "InvalidParameterException", "from 1m0s to 720h0m0s"},
		"task's value":     {taskResource(id), map[string]string{"longshore:priority": "high"}, "InvalidParameterException", "0 to 100"},
		"unknown of ours":  {taskResource(id), map[string]string{"longshore:prio": "1"}, "InvalidParameterException", "longshore:prio"},
		"ours of instance": {in, map[string]string{"longshore:pool": "a"}, "InvalidParameterException", "container instances; these are longshore:drainDeadline"},
		"read once":        {taskResource(id), map[string]string{"longshore:onNoCapacity": "fail"}, "InvalidParameterException", "when a task is run"},
		"no cluster":       {control.Resource{Kind: control.ClusterResource, Name: "none"}, nil, "ClusterNotFoundException", "Cluster not found."},
		"no task":          {taskResource("none"), nil, "ResourceNotFoundException", "task"},
		"task elsewhere":   {control.Resource{Kind: control.TaskResource, Cluster: "other", Name: id}, nil, "ResourceNotFoundException", "task"},
		"no service":       {control.Resource{Kind: control.ServiceResource, Cluster: "default", Name: "none"}, nil, "ResourceNotFoundException", "service"},
		"no revision":      {control.Resource{Kind: control.DefinitionResource, Name: "web"}, nil, "InvalidParameterException", "revision"},
		"no definition":    {control.Resource{Kind: control.DefinitionResource, Name: "web:2"}, nil, "ResourceNotFoundException", "task definition"},
		"another kind":     {control.Resource{Kind: "daemon", Name: "x"}, nil, "InvalidParameterException", "daemon"},
	} {
		err := r.TagResource(ctx, x.of, x.tags)
		if f := coded(t, err, x.code); !strings.Contains(f.Error(), x.says) {
			t.Errorf("%s: %s", name, f)
		}
	}
	wantCode(t, r.UntagResource(ctx, defaultResource, []string{"AWS:x"}), "InvalidParameterException")
}

func TestTagResource_AClustersOnNoCapacityIsObeyedFromThenOn(t *testing.T) {
	r := newAPIRig(t)
	r.cluster()
	if run := r.run(one(1)); len(run.Tasks) != 1 || run.Tasks[0].NoWait {
		t.Fatalf("a task is to wait: %+v", run)
	}
	r.tag(defaultResource, map[string]string{"longshore:onNoCapacity": "fail"})
	_, err := r.RunTask(context.Background(), one(1))
	wantCode(t, err, "InvalidParameterException")
	if err := r.UntagResource(context.Background(), defaultResource, []string{"longshore:onNoCapacity"}); err != nil {
		t.Fatal(err)
	}
	if run := r.run(one(1)); len(run.Tasks) != 1 {
		t.Errorf("a task is to wait again: %+v", run)
	}
}

func TestTagResource_AWaitingTaskGetsItsNewPlaceInTheQueue(t *testing.T) {
	r := newAPIRig(t)
	r.cluster()
	first, second := r.run(one(1)).Tasks[0].ID, r.run(one(1)).Tasks[0].ID
	r.queue.TakeKicks()
	r.tag(taskResource(second), map[string]string{"longshore:priority": "90", "longshore:maxWait": "1h"})
	if kicks := r.queue.TakeKicks(); len(kicks) != 1 || kicks[0].Tasks[0] != second {
		t.Errorf("kicks are %v", kicks)
	}
	if got := r.task(second); got.Priority != 90 || got.MaxWait != time.Hour {
		t.Errorf("priority %d, wait %s", got.Priority, got.MaxWait)
	}
	in := r.instance(1)
	r.must(&control.Ledger{ID: in, Version: 1, Cluster: "default", Status: control.Active, Connected: true, Epoch: 7, SinceEpoch: 7, Registered: control.Held{CPU: 256, MemoryMiB: 1024}}) // room for one
	r.admit()
	if r.task(second).Instance != in || r.task(first).Instance != "" {
		t.Errorf("the task that was put first did not go first")
	}
	if err := r.UntagResource(context.Background(), taskResource(second), []string{"longshore:priority", "longshore:maxWait"}); err != nil {
		t.Fatal(err)
	}
	if got := r.task(second); got.Priority != 50 || got.MaxWait != 0 {
		t.Errorf("priority %d, wait %s without the tags", got.Priority, got.MaxWait)
	}
}
