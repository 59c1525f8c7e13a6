package control_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/schedule"
	"github.com/longshore-run/longshore/shared/taskdef"
)

const account = "arn:aws:iam::000000000000:role/"

// withRoles puts definition app:3 with a task and an execution role.
func withRoles(w *controltest.World, task, execution string) {
	def := controltest.MinimalDefinition("app")
	def.TaskRoleArn, def.ExecutionRoleArn = task, execution
	w.Put(&control.Definition{Family: "app", Number: 3, Status: "ACTIVE", Definition: taskdef.Canonical(def), RegisteredAt: w.Clock.Now()})
}

// Every way by which a task comes to be goes by the list of roles: its own, and what would run it later.
func TestTaskRoles_AreThoseOfTheListHoweverATaskIsAskedFor(t *testing.T) {
	request := control.TaskRequest{Cluster: "default", Definition: "app:3"}
	ways := map[string]func(w *controltest.World) error{
		"RunTask": func(w *controltest.World) error {
			_, err := w.RunTask(ctx, control.RunTaskRequest{TaskRequest: request, Count: 1})
			return err
		},
		"RunTask that does not wait": func(w *controltest.World) error {
			r := request
			r.Tags = map[string]string{"longshore:onNoCapacity": "fail"}
			_, err := w.RunTask(ctx, control.RunTaskRequest{TaskRequest: r, Count: 1})
			return err
		},
		"StartTask": func(w *controltest.World) error {
			_, err := w.StartTask(ctx, control.StartTaskRequest{TaskRequest: request, Instances: []string{"i"}})
			return err
		},
		"CreateService": func(w *controltest.World) error {
			_, err := w.CreateService(ctx, control.ServiceRequest{Cluster: "default", Name: "web", Definition: "app:3", Desired: new(1)})
			return err
		},
		"UpdateService": func(w *controltest.World) error {
			if _, err := w.CreateService(ctx, control.ServiceRequest{Cluster: "default", Name: "web", Definition: "app:1", Desired: new(1)}); err != nil {
				t.Fatal(err)
			}
			_, err := w.UpdateService(ctx, control.ServiceUpdate{Cluster: "default", Name: "web", Definition: "app:3"})
			return err
		},
	}
	for name, ask := range ways {
		for _, c := range []struct{ task, execution, want string }{
			{account + "longshore/app", account + "longshore/pull", ""},
			{account + "admin", account + "longshore/pull", "taskDefinition: the taskRoleArn of app:3, " + account + "admin, is not a role that tasks of cluster default may have; allowed: " + account + "longshore/*"},
			{"", account + "longshorex", "taskDefinition: the executionRoleArn of app:3, " + account + "longshorex, is not a role that tasks of cluster default may have; allowed: " + account + "longshore/*"},
			{"arn:aws:iam::111111111111:role/longshore/app", "", "taskDefinition: the taskRoleArn of app:3, arn:aws:iam::111111111111:role/longshore/app, is not"},
		} {
			w := controltest.NewWorld(t)
			w.AddInstance("i", control.Held{CPU: 1024, MemoryMiB: 1024})
			withRoles(w, c.task, c.execution)
			err := ask(w)
			switch {
			case c.want == "" && err != nil:
				t.Errorf("%s with %s: %v", name, c.task, err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || codeOf(err) != control.AccessDeniedException):
				t.Errorf("%s: %v (%s)\nwant %s", name, err, codeOf(err), c.want)
			}
			for _, k := range w.Memory.Tasks() {
				if c.want != "" && k.Number == 3 {
					t.Errorf("%s made a task with %s", name, c.task)
				}
			}
		}
	}
}

func TestTaskRoles_OfOverridesAreThoseOfTheList(t *testing.T) {
	for over, want := range map[string]string{
		`{"taskRoleArn":"longshore/other","executionRoleArn":"` + account + `longshore/pull"}`: "",
		`{"taskRoleArn":"longshore"}`:                    "overrides.taskRoleArn: " + account + "longshore is not a role",
		`{"executionRoleArn":"` + account + `admin"}`:    "overrides.executionRoleArn: " + account + "admin is not a role",
		`{"taskRoleArn":"` + account + `longshore/app"}`: "",
	} {
		r := newAPIRig(t)
		r.cluster()
		r.Setting.Account = "000000000000"
		in := decode(t, `{"family":"app","taskRoleArn":"longshore/app","containerDefinitions":[{"name":"main","image":"busybox","memory":16}]}`)
		if _, err := r.RegisterTaskDefinition(context.Background(), in, ""); err != nil {
			t.Fatal(err)
		}
		req := one(1)
		req.Definition, req.Overrides = "app", json.RawMessage(over)
		_, err := r.RunTask(context.Background(), req)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || codeOf(err) != control.AccessDeniedException) {
			t.Errorf("%s: %v", over, err)
		}
	}
	// An override takes the place of what may not be: the definition's own role is not what would run.
	r := newAPIRig(t)
	r.cluster()
	in := decode(t, `{"family":"app","taskRoleArn":"admin","containerDefinitions":[{"name":"main","image":"busybox","memory":16}]}`)
	if _, err := r.RegisterTaskDefinition(context.Background(), in, ""); err != nil {
		t.Fatalf("a definition may name any role: %v", err)
	}
	req := one(1)
	req.Definition, req.Overrides = "app", json.RawMessage(`{"taskRoleArn":"longshore/app"}`)
	r.run(req)
}

func TestTaskRoles_AreAListForEachCluster(t *testing.T) {
	w := controltest.NewWorld(t)
	w.Put(&control.Cluster{Name: "edge", Status: "ACTIVE"})
	w.Setting.TaskRoles = []string{"longshore/*", "edge=longshore/edge/*", "edge=" + "arn:aws:iam::111111111111:role/shared", "lab=none"}
	w.Put(&control.Cluster{Name: "lab", Status: "ACTIVE"})
	for _, c := range []struct {
		cluster, role string
		may           bool
	}{
		{"default", account + "longshore/app", true}, {"edge", account + "longshore/app", false}, {"edge", account + "longshore/edge/app", true},
		{"default", "arn:aws:iam::111111111111:role/shared", false}, {"edge", "arn:aws:iam::111111111111:role/shared", true}, {"lab", account + "longshore/app", false},
	} {
		withRoles(w, c.role, "")
		_, err := w.RunTask(ctx, control.RunTaskRequest{TaskRequest: control.TaskRequest{Cluster: c.cluster, Definition: "app:3"}, Count: 1})
		if (err == nil) != c.may {
			t.Errorf("%s in %s: %v", c.role, c.cluster, err)
		}
		if c.cluster == "lab" && (err == nil || !strings.HasSuffix(err.Error(), "allowed: no role")) {
			t.Errorf("%v", err)
		}
	}
}

func TestRunScheduled_WithARoleThatIsNotAllowedIsMissedAndSaysWhy(t *testing.T) {
	w := controltest.NewWorld(t)
	withRoles(w, account+"admin", "")
	mustRun(t, w, due(w, func(r *schedule.Run) { r.TaskDefinition = "app:3" }))
	runs := runsOf(t, w)
	if len(runs) != 1 || runs[0].Outcome != control.OutcomeMissed || runs[0].Reason != control.MissedRefused || !strings.Contains(runs[0].Detail, account+"admin, is not a role") || len(w.Memory.Tasks()) != 0 {
		t.Errorf("%+v", runs)
	}
}

// A list that has shrunk holds for what a service starts from then on: it is told why it gets no more, keeps what runs, and
// goes on when the role is allowed again.
func TestServe_StartsNothingWithARoleThatIsNotAllowedAnyMore(t *testing.T) {
	f := newYard(t, "i")
	withRoles(f.World, account+"longshore/app", "")
	f.create(func(r *control.ServiceRequest) { r.Definition = "app:3" })
	f.settle("at first")
	f.Setting.TaskRoles = []string{"none"}
	if _, err := f.StopTask(ctx, "default", f.living()[0].ID, "a person"); err != nil {
		t.Fatal(err)
	}
	f.agent("i")
	for range 3 {
		if err := f.Serve(ctx, control.Kick{Cluster: "default", Service: "web"}); err != nil {
			t.Fatal(err)
		}
	}
	told := ""
	for _, e := range f.view().Events {
		if e.Name == "SERVICE_TASK_CONFIGURATION_FAILURE" {
			told += e.Message
		}
	}
	if n := len(f.living()); n != 2 || strings.Count(told, "was unable to place a task") != 1 || !strings.Contains(told, account+"longshore/app, is not a role") {
		t.Errorf("%d live, told %q", n, told)
	}
	f.Setting.TaskRoles = []string{"longshore/*"}
	f.settle("allowed again")
}
