package deployment_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/internal/deployment"
)

var now = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

const (
	oldOne = "ecs-svc/1"
	newOne = "ecs-svc/2"
)

// service is a REPLICA with these bounds, and its breaker off.
func service(desired, minimum, maximum int) deployment.Service {
	return deployment.Service{Name: "web", Strategy: deployment.Replica, Desired: desired, MinimumPercent: minimum, MaximumPercent: maximum}
}

func daemon(minimum int) deployment.Service {
	return deployment.Service{Name: "web", Strategy: deployment.Daemon, MinimumPercent: minimum, MaximumPercent: 100}
}

// done is a service's one deployment, COMPLETED.
func done() []deployment.Deployment {
	return []deployment.Deployment{{ID: oldOne, Primary: true, Rollout: deployment.Completed, Reason: "ECS deployment ecs-svc/1 completed."}}
}

// rolling is an update on its way, from oldOne to newOne.
func rolling(change ...func(*deployment.Deployment)) []deployment.Deployment {
	d := deployment.Deployment{ID: newOne, Primary: true, Rollout: deployment.InProgress, Reason: "ECS deployment ecs-svc/2 in progress.", Rollback: oldOne}
	for _, f := range change {
		f(&d)
	}
	before := done()[0]
	before.Primary = false
	return []deployment.Deployment{d, before}
}

// task is one that has been RUNNING and well for an hour.
func task(id, of string, change ...func(*deployment.Task)) deployment.Task {
	t := deployment.Task{ID: id, Deployment: of, Status: deployment.Running, Instance: "i-" + id, Zone: "a", CreatedAt: now.Add(-time.Hour), Since: now.Add(-time.Hour)}
	for _, f := range change {
		f(&t)
	}
	return t
}

func pending(t *deployment.Task)   { t.Status, t.Since = deployment.Pending, time.Time{} }
func silent(t *deployment.Task)    { t.Silent = true }
func drained(t *deployment.Task)   { t.Draining = true }
func ill(t *deployment.Task)       { t.Unhealthy = true }
func unproven(t *deployment.Task)  { t.Unproven = true }
func toStop(t *deployment.Task)    { t.ToStop = true }
func protected(t *deployment.Task) { t.ProtectedUntil = now.Add(time.Hour) }

func on(instance string) func(*deployment.Task) {
	return func(t *deployment.Task) { t.Instance = instance }
}

func waits(reason string, since time.Duration) func(*deployment.Task) {
	return func(t *deployment.Task) {
		t.Status, t.Instance, t.Since, t.WaitingReason, t.CreatedAt = deployment.Waiting, "", time.Time{}, reason, now.Add(-since)
	}
}

// many are n tasks of a deployment that are well.
func many(n int, of string) []deployment.Task {
	var out []deployment.Task
	for i := range n {
		out = append(out, task(fmt.Sprintf("%s%d", map[string]string{oldOne: "o", newOne: "n"}[of], i), of))
	}
	return out
}

func tasks(of ...[]deployment.Task) []deployment.Task { return slices.Concat(of...) }

func decide(s deployment.Service, all []deployment.Deployment, of []deployment.Task, change ...func(*deployment.Input)) deployment.Output {
	in := deployment.Input{Now: now, Service: s, Deployments: all, Tasks: of, Live: len(of), Told: deployment.Told{Steady: true}}
	for _, f := range change {
		f(&in)
	}
	return deployment.Decide(in)
}

func stops(out deployment.Output) []string {
	ids := []string{}
	for _, s := range out.Stop {
		ids = append(ids, s.Task)
	}
	return ids
}

func messages(out deployment.Output) []string {
	var all []string
	for _, e := range out.Events {
		all = append(all, e.Message)
	}
	return all
}

func wantMessages(t *testing.T, out deployment.Output, want ...string) {
	t.Helper()
	if got := messages(out); !slices.Equal(got, want) {
		t.Errorf("told\n%q\nwant\n%q", got, want)
	}
}

func TestDecide_RollsBetweenMinimumAndMaximum(t *testing.T) {
	for name, c := range map[string]struct {
		service deployment.Service
		all     []deployment.Deployment
		tasks   []deployment.Task
		create  int
		stop    []string
	}{
		"a first deployment creates what is desired":     {service(3, 100, 200), rolling()[:1], nil, 3, nil},
		"100/200 creates all before it stops any":        {service(3, 100, 200), rolling(), many(3, oldOne), 3, nil},
		"as many old ones go as new ones are well":       {service(3, 100, 200), rolling(), tasks(many(3, oldOne), many(2, newOne)), 1, []string{"o0", "o1"}},
		"the minimum is rounded up":                      {service(3, 50, 100), rolling(), many(3, oldOne), 0, []string{"o0"}},
		"the maximum is rounded down":                    {service(3, 100, 150), rolling(), many(3, oldOne), 1, nil},
		"50/200 stops and creates at once":               {service(4, 50, 200), rolling(), many(4, oldOne), 4, []string{"o0", "o1"}},
		"0/100 stops all first":                          {service(2, 0, 100), rolling(), many(2, oldOne), 0, []string{"o0", "o1"}},
		"what ends still counts for the maximum":         {service(1, 0, 100), rolling(), []deployment.Task{task("o0", oldOne, toStop)}, 0, nil},
		"what does not run yet of the old is stopped":    {service(2, 100, 200), rolling(), []deployment.Task{task("o0", oldOne, pending), task("o1", oldOne, waits("", 0))}, 2, []string{"o1", "o0"}},
		"of two old deployments the one never done goes": {service(1, 100, 300), append(rolling(), deployment.Deployment{ID: "ecs-svc/0", Rollout: deployment.InProgress}), []deployment.Task{task("o0", oldOne), task("x0", "ecs-svc/0"), task("n0", newOne, pending)}, 0, []string{"x0"}},
		"scaled up":                         {service(4, 100, 200), done(), many(2, oldOne), 2, nil},
		"scaled up far, within the maximum": {service(3, 100, 100), done(), many(2, oldOne), 1, nil},
		"scaled down":                       {service(1, 100, 200), done(), many(3, oldOne), 0, []string{"o0", "o1"}},
		"scaled to nothing":                 {service(0, 100, 200), done(), many(2, oldOne), 0, []string{"o0", "o1"}},
		"a lost one is replaced":            {service(3, 100, 200), done(), many(2, oldOne), 1, nil},
		"what waits on a drained instance goes at once":     {service(2, 100, 200), done(), []deployment.Task{task("o0", oldOne), task("o1", oldOne, pending, drained)}, 1, []string{"o1"}},
		"100 % replaces before it drains":                   {service(2, 100, 200), done(), []deployment.Task{task("o0", oldOne), task("o1", oldOne, drained)}, 1, nil},
		"and drains then":                                   {service(2, 100, 200), done(), []deployment.Task{task("o0", oldOne), task("o1", oldOne, drained), task("o2", oldOne)}, 0, []string{"o1"}},
		"50 % drains first":                                 {service(2, 50, 100), done(), []deployment.Task{task("o0", oldOne), task("o1", oldOne, drained)}, 0, []string{"o1"}},
		"an unhealthy one is replaced before it goes":       {service(2, 100, 200), done(), []deployment.Task{task("o0", oldOne), task("o1", oldOne, ill)}, 1, nil},
		"and goes then":                                     {service(2, 100, 200), done(), []deployment.Task{task("o0", oldOne), task("o1", oldOne, ill), task("o2", oldOne)}, 0, []string{"o1"}},
		"an unhealthy one makes room where there is none":   {service(2, 100, 100), done(), []deployment.Task{task("o0", oldOne), task("o1", oldOne, ill)}, 0, []string{"o1"}},
		"no more make room than is needed":                  {service(2, 100, 100), done(), []deployment.Task{task("o0", oldOne, toStop), task("o1", oldOne, ill), task("o2", oldOne, ill)}, 0, []string{"o1"}},
		"a silent one fills its place":                      {service(2, 100, 200), done(), []deployment.Task{task("o0", oldOne), task("o1", oldOne, silent)}, 0, nil},
		"silent old ones may be back: they go last":         {service(2, 100, 200), rolling(), []deployment.Task{task("o0", oldOne, silent), task("o1", oldOne, silent)}, 2, nil},
		"a silent old one goes before one that serves":      {service(2, 100, 200), rolling(), []deployment.Task{task("o0", oldOne), task("o1", oldOne, silent), task("n0", newOne)}, 1, []string{"o1"}},
		"protected ones stay":                               {service(1, 0, 100), rolling(), []deployment.Task{task("o0", oldOne, protected)}, 0, nil},
		"of a surplus those that are not protected go":      {service(1, 100, 200), done(), []deployment.Task{task("o0", oldOne, protected), task("o1", oldOne)}, 0, []string{"o1"}},
		"a failed deployment is given nothing, takes none":  {service(2, 0, 200), rolling(func(d *deployment.Deployment) { d.Rollout = deployment.Failed }), many(2, oldOne), 0, nil},
		"what a failed one was to replace is scaled down":   {service(1, 0, 200), rolling(func(d *deployment.Deployment) { d.Rollout = deployment.Failed }), many(3, oldOne), 0, []string{"o0", "o1"}},
		"what a failed one has goes first":                  {service(2, 0, 200), rolling(func(d *deployment.Deployment) { d.Rollout = deployment.Failed }), tasks(many(2, oldOne), many(1, newOne)), 0, []string{"n0"}},
		"and all of it to none":                             {service(0, 100, 200), rolling(func(d *deployment.Deployment) { d.Rollout = deployment.Failed }), tasks(many(1, oldOne), many(1, newOne)), 0, []string{"n0", "o0"}},
		"what a failed one left unhealthy stays":            {service(2, 0, 200), rolling(func(d *deployment.Deployment) { d.Rollout = deployment.Failed }), []deployment.Task{task("n0", newOne, ill)}, 0, nil},
		"a task of a deployment that nobody knows is old":   {service(1, 100, 200), done(), []deployment.Task{task("x", "ecs-svc/9"), task("o0", oldOne)}, 0, []string{"x"}},
		"a task that ends by itself is not stopped, either": {service(1, 100, 200), rolling(), []deployment.Task{task("o0", oldOne, func(t *deployment.Task) { t.Status = deployment.Stopping })}, 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			out := decide(c.service, c.all, c.tasks)
			if len(out.Create) != c.create || !slices.Equal(stops(out), append([]string{}, c.stop...)) {
				t.Errorf("creates %d and stops %v, want %d and %v", len(out.Create), stops(out), c.create, c.stop)
			}
		})
	}
}

func TestDecide_StopsFirstWhatIsMissedLeast(t *testing.T) {
	zone := func(z string) func(*deployment.Task) { return func(t *deployment.Task) { t.Zone = z } }
	young := func(t *deployment.Task) { t.CreatedAt = now.Add(-time.Minute) }
	all := []deployment.Task{
		task("primary", newOne), task("old", oldOne), task("unfinished", "ecs-svc/0"), task("drained", newOne, drained),
		task("unproven", newOne, unproven), task("silent", newOne, silent), task("ill", newOne, ill), task("pending", newOne, pending), task("waiting", newOne, waits("", 0)),
	}
	out := decide(service(0, 100, 200), rolling(), all)
	if want := []string{"waiting", "pending", "ill", "silent", "unproven", "drained", "unfinished", "old", "primary"}; !slices.Equal(stops(out), want) {
		t.Errorf("stops %v, want %v", stops(out), want)
	}
	out = decide(service(2, 100, 200), done(), []deployment.Task{
		task("alone", oldOne, zone("b"), on("i1")), task("pair1", oldOne, zone("a"), on("i2")), task("pair2", oldOne, zone("a"), on("i2"), young),
		task("third", oldOne, zone("a"), on("i3")),
	})
	if want := []string{"pair2", "pair1"}; !slices.Equal(stops(out), want) {
		t.Errorf("stops %v, want %v: where most are, by zone and by instance, the youngest first", stops(out), want)
	}
}

func TestDecide_NeverCreatesWhatAnIndexMayHide(t *testing.T) {
	hidden := func(in *deployment.Input) { in.Live = len(in.Tasks) + 1 }
	out := decide(service(3, 100, 200), rolling(func(d *deployment.Deployment) { d.Failures = 99 }), tasks(many(3, oldOne), many(1, newOne)), hidden, func(in *deployment.Input) { in.Service.Breaker = true })
	if !out.Hidden || len(out.Create) > 0 || !slices.Equal(stops(out), []string{"o0"}) || out.Deployments[0].Rollout != deployment.InProgress {
		t.Errorf("with one hidden: %+v", out)
	}
	if out := decide(service(3, 100, 100), done(), []deployment.Task{task("o0", oldOne, ill), task("o1", oldOne)}, hidden); len(out.Stop) > 0 {
		t.Errorf("stops an unhealthy one, whose place may be filled: %v", stops(out))
	}
	if out := decide(service(3, 100, 200), rolling(), many(3, newOne), hidden); out.Deployments[0].Rollout != deployment.InProgress || len(out.Deployments) != 2 {
		t.Errorf("completes with one hidden: %+v", out.Deployments)
	}
}

func TestDecide_ADeletedServiceStopsAllAndIsDone(t *testing.T) {
	s := service(2, 100, 200)
	s.Deleted = true
	out := decide(s, rolling(), []deployment.Task{task("o0", oldOne, protected), task("n0", newOne, pending), task("n1", newOne, toStop)})
	if !slices.Equal(stops(out), []string{"o0", "n0"}) || out.Done || len(out.Create) > 0 {
		t.Errorf("%+v", out)
	}
	wantMessages(t, out, "(service web) stopped 1 pending tasks.", "(service web) has stopped 1 running tasks: (task o0).")
	if out = decide(s, rolling(), nil); !out.Done {
		t.Error("is not done though nothing of it lives")
	}
	if out = decide(s, rolling(), nil, func(in *deployment.Input) { in.Live = 1 }); out.Done {
		t.Error("is done though one of it lives that the index hides")
	}
}

func TestDecide_DoesNoMoreAtOnceThanTheLimit(t *testing.T) {
	limit := func(in *deployment.Input) { in.Limit = 4 }
	out := decide(service(9, 0, 200), rolling(), many(3, oldOne), limit)
	if len(out.Stop) != 3 || len(out.Create) != 1 || !out.More {
		t.Errorf("%d stops, %d creations, more %v", len(out.Stop), len(out.Create), out.More)
	}
	if out = decide(service(4, 0, 200), rolling()[:1], nil, limit); len(out.Create) != 4 || out.More {
		t.Errorf("%d creations, more %v, where all fits", len(out.Create), out.More)
	}
}

func TestDecide_KeepsOneOfADaemonOnEachHost(t *testing.T) {
	hosts := func(ids ...string) func(*deployment.Input) {
		return func(in *deployment.Input) {
			for _, id := range ids {
				in.Hosts = append(in.Hosts, deployment.Host{ID: id})
			}
		}
	}
	busy := func(t *deployment.Task) { t.Draining, t.Busy = true, true }
	a, b := on("a"), on("b")
	for name, c := range map[string]struct {
		minimum int
		all     []deployment.Deployment
		tasks   []deployment.Task
		hosts   func(*deployment.Input)
		create  []string
		stop    []string
	}{
		"one on each":                              {0, done(), nil, hosts("a", "b"), []string{"a", "b"}, nil},
		"where one is none comes":                  {0, done(), []deployment.Task{task("o0", oldOne, a)}, hosts("a", "b"), []string{"b"}, nil},
		"where one ends none comes yet":            {0, done(), []deployment.Task{task("o0", oldOne, a, toStop)}, hosts("a"), nil, nil},
		"an update stops first":                    {0, rolling(), []deployment.Task{task("o0", oldOne, a), task("o1", oldOne, b)}, hosts("a", "b"), nil, []string{"o0", "o1"}},
		"within the minimum":                       {50, rolling(), []deployment.Task{task("o0", oldOne, a), task("o1", oldOne, b)}, hosts("a", "b"), nil, []string{"o0"}},
		"and starts then":                          {50, rolling(), []deployment.Task{task("o1", oldOne, b)}, hosts("a", "b"), []string{"a"}, nil},
		"an unhealthy one goes first":              {50, done(), []deployment.Task{task("o0", oldOne, a, ill), task("o1", oldOne, b)}, hosts("a", "b"), nil, []string{"o0"}},
		"two on one host are one too many":         {0, done(), []deployment.Task{task("o0", oldOne, a), task("o1", oldOne, a, pending)}, hosts("a"), nil, []string{"o1"}},
		"a drained host's is the last to go":       {0, done(), []deployment.Task{task("o0", oldOne, a, busy)}, hosts(), nil, nil},
		"and goes then":                            {100, done(), []deployment.Task{task("o0", oldOne, a, drained)}, hosts(), nil, []string{"o0"}},
		"what waits on a drained host goes":        {0, done(), []deployment.Task{task("o0", oldOne, waits("AGENT", 0), a, busy)}, hosts(), nil, []string{"o0"}},
		"where it does not belong it goes":         {0, done(), []deployment.Task{task("o0", oldOne, a)}, hosts("b"), []string{"b"}, []string{"o0"}},
		"a lost host's is left to the reaper":      {0, done(), []deployment.Task{task("o0", oldOne, a, silent)}, hosts("b"), []string{"b"}, nil},
		"what waits for a host that is gone, goes": {0, done(), []deployment.Task{task("o0", oldOne, waits("AGENT", 0), a)}, hosts("b"), []string{"b"}, []string{"o0"}},
	} {
		t.Run(name, func(t *testing.T) {
			out := decide(daemon(c.minimum), c.all, c.tasks, c.hosts)
			var create []string
			for _, k := range out.Create {
				create = append(create, k.Instance)
			}
			if !slices.Equal(create, c.create) || !slices.Equal(stops(out), append([]string{}, c.stop...)) {
				t.Errorf("creates on %v and stops %v, want %v and %v", create, stops(out), c.create, c.stop)
			}
		})
	}
	out := decide(daemon(0), rolling(), []deployment.Task{task("n0", newOne, a), task("o0", oldOne, busy)}, hosts("a"))
	if out.Deployments[0].Rollout != deployment.Completed {
		t.Errorf("a rollout waits for an instance that is drained: %+v", out.Deployments)
	}
}
