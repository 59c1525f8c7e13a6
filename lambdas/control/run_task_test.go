package control_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
)

func TestRunTask_WritesWaitingTasksAndKicksWithTheirIDs(t *testing.T) {
	r := newAPIRig(t)
	r.cluster()
	req := one(3)
	req.StartedBy, req.Overrides = "alice", json.RawMessage(`{"containerOverrides":[{"name":"main","memory":64}]}`)
	req.Tags = map[string]string{"longshore:priority": "70", "longshore:maxWait": "90s"}
	run := r.run(req)
	if len(run.Tasks) != 3 || len(run.Failures) != 0 {
		t.Fatalf("run is %+v", run)
	}
	kicks := r.queue.TakeKicks()
	if len(kicks) != 1 || len(kicks[0].Tasks) != 3 || kicks[0].Cluster != "default" {
		t.Fatalf("kicks are %+v", kicks)
	}
	for i, v := range run.Tasks {
		got := r.task(v.ID)
		if got.LastStatus != task.Provisioning || got.DesiredStatus != task.DesiredRunning || got.Group != "family:web" ||
			got.Needs.MemoryMiB != 64 || got.Priority != 70 || got.MaxWait != 90*time.Second || got.Attempt != 1 || got.Launch != "EC2" || got.StartedBy != "alice" {
			t.Errorf("task is %+v", got)
		}
		if kicks[0].Tasks[i] != v.ID {
			t.Errorf("kick names %s, want %s", kicks[0].Tasks[i], v.ID)
		}
	}
}

func TestRunTask_SameTokenSameRequestIsTheSameTasks(t *testing.T) {
	r := newAPIRig(t)
	r.cluster()
	req := one(2)
	req.Token = "token-1"
	first := r.run(req)
	if _, err := r.DeregisterTaskDefinition(context.Background(), "web:1"); err != nil {
		t.Fatal(err)
	}
	again := r.run(req)
	if !slices.Equal(idsOf(first), idsOf(again)) || len(r.store.Tasks()) != 2 {
		t.Fatalf("first %v, again %v, stored %d", idsOf(first), idsOf(again), len(r.store.Tasks()))
	}
	other := req
	other.Count = 1
	_, err := r.RunTask(context.Background(), other)
	f := coded(t, err, "ConflictException")
	reuse, ok := errors.AsType[*control.TokenReuse](f)
	if !ok || len(reuse.ARNs) != 2 || !strings.HasSuffix(reuse.ARNs[0], "task/default/"+first.Tasks[0].ID) {
		t.Fatalf("conflict names %+v", reuse)
	}
	r.register("web")
	r.now = r.now.Add(24*time.Hour + time.Second)
	if late := r.run(req); slices.Equal(idsOf(first), idsOf(late)) {
		t.Error("a token of yesterday still holds")
	}
}

func TestRunTask_KilledAtAnyCallThenRepeatedMakesTheTasksOnce(t *testing.T) {
	for _, policy := range []string{"wait", "fail"} {
		for effect := range 2 {
			for n := 1; ; n++ {
				r := newAPIRig(t)
				r.cluster()
				r.instance(1)
				req := one(2)
				req.Token, req.Tags = "token", map[string]string{"longshore:onNoCapacity": policy}
				r.store.Calls.KillAt(n, effect == 1)
				_, err := r.RunTask(context.Background(), req)
				made, _ := r.store.Calls.Made()
				r.store.Calls.Reset()
				run := r.run(req)
				if len(run.Tasks) != 2 || len(r.store.Tasks()) != 2 {
					t.Fatalf("%s, killed at %d: %d tasks told, %d stored", policy, n, len(run.Tasks), len(r.store.Tasks()))
				}
				if again := r.run(req); !slices.Equal(idsOf(run), idsOf(again)) {
					t.Fatalf("%s, killed at %d: %v then %v", policy, n, idsOf(run), idsOf(again))
				}
				if policy == "wait" && len(r.queue.TakeKicks()) == 0 {
					t.Fatalf("killed at %d: admission was never woken", n)
				}
				r.check()
				if err == nil && made < n {
					break
				}
			}
		}
	}
}

func TestRunTask_AKickThatCanNotBeSentDoesNotFailTheCaller(t *testing.T) {
	r := newAPIRig(t)
	r.cluster()
	if _, err := r.RunTask(context.Background(), one(1)); err != nil {
		t.Fatal(err)
	}
	calls, names := r.store.Calls.Made()
	if names[calls-1] != "KickAdmission" {
		t.Fatalf("calls are %v", names)
	}
	r.store.Calls.FailAt(1+slices.Index(callsOfRun(t, r), "KickAdmission"), fault.Unavailable)
	if _, err := r.RunTask(context.Background(), one(1)); err != nil {
		t.Fatal(err)
	}
}

func callsOfRun(t *testing.T, r *apiRig) []string {
	t.Helper()
	r.store.Calls.Reset()
	r.run(one(1))
	_, names := r.store.Calls.Made()
	return names
}

func TestRunTask_IsFewCalls(t *testing.T) {
	r := newAPIRig(t)
	r.cluster()
	r.store.Calls.Reset()
	req := one(10)
	req.Token = "token"
	r.run(req)
	if n, names := r.store.Calls.Made(); n != 4 {
		t.Errorf("%d calls: %v; want catalog, definition, commit and kick", n, names)
	}
}

func TestRunTask_GoesToTheProcessorItsDefinitionNames(t *testing.T) {
	r := newAPIRig(t)
	r.cluster()
	in := decode(t, `{"family":"arm","runtimePlatform":{"cpuArchitecture":"ARM64"},"containerDefinitions":[{"name":"main","image":"busybox","memory":16}]}`)
	if _, err := r.RegisterTaskDefinition(context.Background(), in, ""); err != nil {
		t.Fatal(err)
	}
	r.instance(1)
	arm := &control.Instance{ID: r.instance(2)}
	if err := r.store.Load(context.Background(), arm); err != nil {
		t.Fatal(err)
	}
	arm.Attributes["ecs.cpu-architecture"] = "arm64"
	r.must(arm)
	req := one(3)
	req.Definition = "arm"
	run := r.run(req)
	r.admit()
	for _, v := range run.Tasks {
		if got := r.task(v.ID); got.Instance != arm.ID {
			t.Errorf("task is %s on %q", got.LastStatus, got.Instance)
		}
	}
}

func TestRunTask_WhatOnlySomeAgentsCanDoGoesToThose(t *testing.T) {
	const role, reader = `"longshore/app"`, `,"executionRoleArn":"arn:aws:iam::123456789012:role/longshore/pull"`
	for _, c := range []struct{ attribute, container, task, overrides string }{
		{"ecs.capability.container-health-check", `,"healthCheck":{"command":["CMD","true"]}`, "", ""},
		{"ecs.capability.container-restart-policy", `,"restartPolicy":{"enabled":true}`, "", ""},
		{"com.amazonaws.ecs.capability.task-iam-role", "", `,"taskRoleArn":` + role, ""},
		{"com.amazonaws.ecs.capability.task-iam-role", "", "", `{"taskRoleArn":` + role + `}`},
		{"com.amazonaws.ecs.capability.task-iam-role-network-host", "", `,"networkMode":"host","taskRoleArn":` + role, ""},
		{"ecs.capability.secrets.ssm.environment-variables", `,"secrets":[{"name":"A","valueFrom":"/a"}]`, reader, ""},
		{"ecs.capability.env-files.s3", "", reader, `{"containerOverrides":[{"name":"main","environmentFiles":[{"type":"s3","value":"arn:aws:s3:::b/a.env"}]}]}`},
		{"ecs.capability.private-registry-authentication.secretsmanager", `,"repositoryCredentials":{"credentialsParameter":"login"}`, reader, ""},
	} {
		attribute := c.attribute
		r := newAPIRig(t)
		r.cluster()
		in := decode(t, `{"family":"new","containerDefinitions":[{"name":"main","image":"busybox","memory":16`+c.container+`}]`+c.task+`}`)
		if _, err := r.RegisterTaskDefinition(context.Background(), in, ""); err != nil {
			t.Fatal(err)
		}
		r.instance(1)
		able := &control.Instance{ID: r.instance(2)}
		req := one(1)
		req.Definition, req.Overrides = "new", json.RawMessage(c.overrides)
		run := r.run(req)
		r.admit()
		if got := r.task(run.Tasks[0].ID); got.WaitingReason != "ATTRIBUTE" {
			t.Errorf("%s: with agents of before the task is %s on %q: %s", attribute, got.LastStatus, got.Instance, got.WaitingReason)
		}
		if err := r.store.Load(context.Background(), able); err != nil {
			t.Fatal(err)
		}
		able.Attributes[attribute] = ""
		r.must(able)
		r.admit()
		if got := r.task(run.Tasks[0].ID); got.Instance != able.ID {
			t.Errorf("%s: the task is %s on %q", attribute, got.LastStatus, got.Instance)
		}
	}
}

func TestRunTask_NotToWaitFillsTheInstanceAndFailsTheRest(t *testing.T) {
	r := newAPIRig(t)
	r.cluster()
	r.instance(1)
	req := one(6)
	req.Token, req.Tags = "token", map[string]string{"longshore:onNoCapacity": "fail"}
	run := r.run(req)
	if len(run.Tasks) != 4 || len(run.Failures) != 2 || run.Failures[0].Reason != "RESOURCE:CPU" {
		t.Fatalf("placed %d, failures %+v", len(run.Tasks), run.Failures)
	}
	if len(r.store.Tasks()) != 4 {
		t.Errorf("%d tasks stored: one that was not placed is not to be left behind", len(r.store.Tasks()))
	}
	again := r.run(req)
	if !slices.Equal(idsOf(run), idsOf(again)) || !slices.Equal(run.Failures, again.Failures) {
		t.Errorf("again: %v %+v", idsOf(again), again.Failures)
	}
}

func TestRunTask_ACutOffRequestIsNotFinishedWhenItsTasksMayBeForgotten(t *testing.T) {
	r := newAPIRig(t)
	r.cluster()
	r.instance(1)
	req := one(2)
	req.Token, req.Tags = "token", map[string]string{"longshore:onNoCapacity": "fail"}
	for n := 1; len(r.store.Tasks()) == 0; n++ { // killed when one of two was placed
		r.store.Calls.KillAt(n, true)
		_, err := r.RunTask(context.Background(), req)
		r.store.Calls.Reset()
		if err == nil {
			t.Fatal("it was never cut off after the first task")
		}
	}
	if len(r.store.Tasks()) != 1 {
		t.Fatalf("%d tasks", len(r.store.Tasks()))
	}
	r.now = r.now.Add(16 * time.Minute)
	run := r.run(req)
	if len(run.Tasks) != 1 || len(run.Failures) != 1 || run.Failures[0].Reason != "MISSING" || len(r.store.Tasks()) != 1 {
		t.Errorf("late repetition: %d tasks, %+v", len(run.Tasks), run.Failures)
	}
}

func TestRunTask_NotToWaitByTheClustersTag(t *testing.T) {
	r := newAPIRig(t)
	r.register("web")
	if _, err := r.CreateCluster(context.Background(), control.ClusterRequest{Name: "default", Tags: map[string]string{"longshore:onNoCapacity": "fail"}}); err != nil {
		t.Fatal(err)
	}
	_, err := r.RunTask(context.Background(), one(1))
	if f := coded(t, err, "InvalidParameterException"); f.Message != "No Container Instances were found in your cluster." {
		t.Errorf("message is %q", f.Message)
	}
	req := one(1)
	req.Tags = map[string]string{"longshore:onNoCapacity": "wait"}
	if run := r.run(req); len(run.Tasks) != 1 || run.Tasks[0].NoWait {
		t.Errorf("the task's own tag does not win: %+v", run)
	}
}

func TestRunTask_RefusesByName(t *testing.T) {
	r := newAPIRig(t)
	r.cluster()
	for name, x := range map[string]struct {
		change func(*control.RunTaskRequest)
		code   string
		says   string
	}{
		"cluster":     {func(q *control.RunTaskRequest) { q.Cluster = "nowhere" }, "ClusterNotFoundException", "Cluster not found."},
		"definition":  {func(q *control.RunTaskRequest) { q.Definition = "other" }, "ClientException", "TaskDefinition not found."},
		"revision":    {func(q *control.RunTaskRequest) { q.Definition = "web:9" }, "ClientException", "TaskDefinition not found."},
		"foreign":     {func(q *control.RunTaskRequest) { q.Definition = "arn:aws:ecs:us-east-1:1:task-definition/web:1" }, "InvalidParameterException", "taskDefinition"},
		"count 0":     {func(q *control.RunTaskRequest) { q.Count = 0 }, "InvalidParameterException", "count: is 0"},
		"count 11":    {func(q *control.RunTaskRequest) { q.Count = 11 }, "InvalidParameterException", "count: is 11"},
		"group":       {func(q *control.RunTaskRequest) { q.Group = "service:web" }, "InvalidParameterException", "group"},
		"startedBy":   {func(q *control.RunTaskRequest) { q.StartedBy = strings.Repeat("x", 129) }, "InvalidParameterException", "startedBy"},
		"launch":      {func(q *control.RunTaskRequest) { q.Launch = "FARGATE" }, "InvalidParameterException", "FARGATE is not supported"},
		"token":       {func(q *control.RunTaskRequest) { q.Token = "with space" }, "InvalidParameterException", "clientToken"},
		"long token":  {func(q *control.RunTaskRequest) { q.Token = strings.Repeat("x", 65) }, "InvalidParameterException", "clientToken"},
		"priority":    {func(q *control.RunTaskRequest) { q.Tags = map[string]string{"longshore:priority": "101"} }, "InvalidParameterException", "0 to 100"},
		"max wait":    {func(q *control.RunTaskRequest) { q.Tags = map[string]string{"longshore:maxWait": "soon"} }, "InvalidParameterException", "duration"},
		"no capacity": {func(q *control.RunTaskRequest) { q.Tags = map[string]string{"longshore:onNoCapacity": "pray"} }, "InvalidParameterException", "wait or fail"},
		"keep":        {func(q *control.RunTaskRequest) { q.Tags = map[string]string{"longshore:onDisconnect": "kept"} }, "InvalidParameterException", "allowed is replace or keep"},
		"confirmed":   {func(q *control.RunTaskRequest) { q.Tags = map[string]string{"longshore:replaceAfter": "never"} }, "InvalidParameterException", "allowed is confirmed"},
		"unknown tag": {func(q *control.RunTaskRequest) { q.Tags = map[string]string{"longshore:maxwait": "1s"} }, "InvalidParameterException", "longshore:maxwait"},
		"aws tag":     {func(q *control.RunTaskRequest) { q.Tags = map[string]string{"aws:x": "1"} }, "InvalidParameterException", "aws:"},
		"override": {func(q *control.RunTaskRequest) {
			q.Overrides = json.RawMessage(`{"containerOverrides":[{"name":"nobody"}]}`)
		}, "InvalidParameterException", "nobody"},
		"override type": {func(q *control.RunTaskRequest) { q.Overrides = json.RawMessage(`{"containerOverrides":[{"name":7}]}`) }, "SerializationException", "overrides.containerOverrides[0].name"},
		"large override": {func(q *control.RunTaskRequest) {
			q.Overrides = json.RawMessage(`{"containerOverrides":[{"name":"main","command":["` + strings.Repeat("x", 8192) + `"]}]}`)
		}, "InvalidParameterException", "8192"},
		"constraint": {func(q *control.RunTaskRequest) { q.Constraints = []control.Placement{{Type: "near"}} }, "InvalidParameterException", "placementConstraints[0].type"},
		"expression": {func(q *control.RunTaskRequest) {
			q.Constraints = []control.Placement{{Type: "memberOf", Expression: "attribute:x =="}}
		}, "InvalidParameterException", "placementConstraints[0].expression"},
		"constraints": {func(q *control.RunTaskRequest) { q.Constraints = make([]control.Placement, 11) }, "InvalidParameterException", "at most 10"},
		"strategies":  {func(q *control.RunTaskRequest) { q.Strategy = make([]control.Placement, 6) }, "InvalidParameterException", "at most 5"},
		"binpack":     {func(q *control.RunTaskRequest) { q.Strategy = []control.Placement{{Type: "binpack", Field: "disk"}} }, "InvalidParameterException", "placementStrategy[0].field"},
		"spread":      {func(q *control.RunTaskRequest) { q.Strategy = []control.Placement{{Type: "spread"}} }, "InvalidParameterException", "placementStrategy[0].field"},
		"random":      {func(q *control.RunTaskRequest) { q.Strategy = []control.Placement{{Type: "random", Field: "x"}} }, "InvalidParameterException", "placementStrategy[0].field"},
	} {
		t.Run(name, func(t *testing.T) {
			req := one(1)
			x.change(&req)
			_, err := r.RunTask(context.Background(), req)
			if f := coded(t, err, x.code); !strings.Contains(f.Error(), x.says) {
				t.Errorf("says %q, want %q in it", f.Error(), x.says)
			}
		})
	}
	if n := len(r.store.Tasks()); n != 0 {
		t.Errorf("%d tasks were written", n)
	}
}

func TestRunTask_MergesTheDefinitionsTagsAndConstraints(t *testing.T) {
	r := newAPIRig(t)
	r.cluster()
	in := decode(t, `{"family":"tagged","tags":[{"key":"team","value":"a"},{"key":"tier","value":"1"}],"placementConstraints":[{"type":"memberOf","expression":"attribute:disk == ssd"}],
		"containerDefinitions":[{"name":"main","image":"busybox","memory":16}]}`)
	if _, err := r.RegisterTaskDefinition(context.Background(), in, ""); err != nil {
		t.Fatal(err)
	}
	req := one(1)
	req.Definition, req.PropagateTags, req.ManagedTags, req.Tags = "tagged:1", true, true, map[string]string{"tier": "2"}
	req.Constraints = []control.Placement{{Type: "distinctInstance"}}
	got := r.task(r.run(req).Tasks[0].ID)
	if got.Tags["team"] != "a" || got.Tags["tier"] != "2" || got.Tags["aws:ecs:clusterName"] != "default" {
		t.Errorf("tags are %v", got.Tags)
	}
	if len(got.Constraints) != 2 || got.Constraints[1].Expression != "attribute:disk == ssd" {
		t.Errorf("constraints are %+v", got.Constraints)
	}
}

func TestRunTask_InactiveDefinitionOrCluster(t *testing.T) {
	r := newAPIRig(t)
	r.cluster()
	if _, err := r.DeregisterTaskDefinition(context.Background(), "web:1"); err != nil {
		t.Fatal(err)
	}
	req := one(1)
	req.Definition = "web:1"
	_, err := r.RunTask(context.Background(), req)
	if f := coded(t, err, "ClientException"); f.Message != "TaskDefinition is inactive" {
		t.Errorf("message is %q", f.Message)
	}
	if _, err := r.DeleteCluster(context.Background(), "default"); err != nil {
		t.Fatal(err)
	}
	_, err = r.RunTask(context.Background(), req)
	wantCode(t, err, "ClusterNotFoundException")
}

func TestStartTask_PlacesOnEachInstanceOrSaysWhyNot(t *testing.T) {
	r := newAPIRig(t)
	r.cluster()
	good, full, gone, silent := r.instance(1), r.instance(2), r.instance(3), r.instance(4)
	ledgers := r.store.Ledgers()
	for id, change := range map[string]func(*control.Ledger){
		full:   func(l *control.Ledger) { l.Registered.CPU = 100 },
		gone:   func(l *control.Ledger) { l.Status = control.Inactive },
		silent: func(l *control.Ledger) { l.Connected = false },
	} {
		l := ledgers[id]
		change(&l)
		r.must(&l)
	}
	missing := strings.Repeat("f", 32)
	run, err := r.StartTask(context.Background(), control.StartTaskRequest{TaskRequest: one(1).TaskRequest, Instances: []string{good, full, gone, silent, missing}})
	if err != nil {
		t.Fatal(err)
	}
	if len(run.Tasks) != 1 || run.Tasks[0].Instance != good || run.Tasks[0].LastStatus != task.Pending || !run.Tasks[0].NoWait || run.Tasks[0].Zone != "z1" {
		t.Errorf("tasks are %+v", run.Tasks)
	}
	var got []string
	for _, f := range run.Failures {
		got = append(got, f.Reason)
	}
	if !slices.Equal(got, []string{"RESOURCE:CPU", "INACTIVE", "AGENT", "MISSING"}) {
		t.Errorf("failures are %+v", run.Failures)
	}
	if len(r.store.Tasks()) != 1 || len(r.queue.TakeCommands(good)) != 1 {
		t.Error("want one stored task and its assign")
	}
}

func idsOf(run *control.Run) (ids []string) {
	for _, v := range run.Tasks {
		ids = append(ids, v.ID)
	}
	return ids
}
