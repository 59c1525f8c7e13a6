package deployment_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/lambdas/internal/deployment"
)

func (w *world) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%+v\n", w.service)
	for _, d := range w.all {
		fmt.Fprintf(&b, "  %+v %s\n", d, w.bad[d.ID])
	}
	for _, t := range w.tasks {
		fmt.Fprintf(&b, "  %+v\n", w.view(t))
	}
	for _, h := range w.hosts {
		fmt.Fprintf(&b, "  %+v\n", *h)
	}
	fmt.Fprintf(&b, "  told %+v", w.told)
	return b.String()
}

// check holds one decision to what it must never do, whatever it was shown.
func (w *world) check(s *snapshot, out deployment.Output) {
	in := s.in
	fail := func(format string, args ...any) {
		w.Helper()
		w.Fatalf("%s\nin %+v\nout %+v", fmt.Sprintf(format, args...), in, out)
	}
	desired := in.Service.Desired
	if in.Service.Strategy == deployment.Daemon {
		desired = len(in.Hosts)
	}
	minimum, maximum := boundsOf(in.Service, desired)
	if len(out.Create) > 0 {
		if out.Hidden != (len(in.Tasks) < in.Live) || out.Hidden {
			fail("creates although the index hides some")
		}
		if in.Service.Strategy == deployment.Replica && in.Live+len(out.Create) > maximum {
			fail("creations bring %d live to %d, above the maximum %d", in.Live, in.Live+len(out.Create), maximum)
		}
	}
	if in.Limit > 0 && len(out.Create)+len(out.Stop) > in.Limit {
		fail("more than the limit %d", in.Limit)
	}
	w.checkStops(s, out, minimum, fail)
	keepers := 0
	for _, t := range in.Tasks {
		if t.Deployment == out.Deployments[0].ID && !t.ToStop && !t.Draining && !t.Unhealthy {
			keepers++
		}
	}
	if in.Service.Strategy == deployment.Replica && len(out.Create) > 0 && keepers+len(out.Create) > desired {
		fail("%d of the primary after the creations, more than desired", keepers+len(out.Create))
	}
	w.checkDaemon(in, out, fail)
	primaries := 0
	for _, d := range out.Deployments {
		if d.Primary {
			primaries++
		}
		if strings.Contains(d.Reason, "in progress") != (d.Rollout == deployment.InProgress && !d.RollingBack) {
			fail("deployment %s is %s: %s", d.ID, d.Rollout, d.Reason)
		}
	}
	if primaries != 1 || !out.Deployments[0].Primary {
		fail("%d primaries, or not the first", primaries)
	}
}

func (w *world) checkStops(s *snapshot, out deployment.Output, minimum int, fail func(string, ...any)) {
	left, stopped := 0, 0
	counts := func(id string) bool {
		i := slices.IndexFunc(s.in.Tasks, func(t deployment.Task) bool { return t.ID == id })
		return s.in.Hosts == nil || i < 0 || slices.Contains(s.in.Hosts, deployment.Host{ID: s.in.Tasks[i].Instance})
	}
	for id := range s.healthy {
		if !counts(id) {
			continue
		}
		if slices.ContainsFunc(out.Stop, func(st deployment.Stop) bool { return st.Task == id }) {
			stopped++
		} else {
			left++
		}
	}
	if stopped > 0 && left < minimum {
		fail("stops leave %d healthy, fewer than %d", left, minimum)
	}
	seen := map[string]bool{}
	for _, st := range out.Stop {
		i := slices.IndexFunc(s.in.Tasks, func(t deployment.Task) bool { return t.ID == st.Task })
		switch {
		case i < 0:
			fail("stops %s, which it was not shown", st.Task)
		case seen[st.Task] || s.in.Tasks[i].ToStop:
			fail("stops %s twice", st.Task)
		case s.in.Tasks[i].ProtectedUntil.After(s.in.Now):
			fail("stops %s, which is protected", st.Task)
		}
		seen[st.Task] = true
	}
}

func (w *world) checkDaemon(in deployment.Input, out deployment.Output, fail func(string, ...any)) {
	if in.Service.Strategy != deployment.Daemon {
		return
	}
	on := map[string]bool{}
	for _, t := range in.Tasks {
		on[t.Instance] = true
	}
	for _, c := range out.Create {
		if on[c.Instance] || !slices.Contains(in.Hosts, deployment.Host{ID: c.Instance}) {
			fail("creates a second task on %s, or where it does not belong", c.Instance)
		}
		on[c.Instance] = true
	}
}

// checkCommitted holds the world to its bounds after a commit, and demands that
// the same is not decided or told again.
func (w *world) checkCommitted(s *snapshot, out deployment.Output) {
	w.tally(s, out)
	live := map[string]int{}
	for _, t := range w.tasks {
		live[t.Instance]++
		if w.daemon() && live[t.Instance] > 1 {
			w.Fatalf("two tasks of a daemon on %s\n%s", t.Instance, w)
		}
	}
	_, _, maximum := w.bounds()
	if !w.daemon() && len(out.Create) > 0 && len(w.tasks) > maximum {
		w.Fatalf("%d live after creations, above the maximum %d\n%s", len(w.tasks), maximum, w)
	}
	if len(out.Create)+len(out.Stop) == 0 || out.More || out.Hidden {
		return
	}
	again := deployment.Decide(w.read(nil).in)
	situations++
	for _, e := range again.Events {
		if e.Name != "" && slices.Contains(out.Events, e) {
			w.Fatalf("told twice: %+v\nin %+v", e, s.in)
		}
	}
}

// met counts what the worlds went through, so that no property holds for want of
// anything that could break it.
var met = map[string]int{}

func (w *world) tally(s *snapshot, out deployment.Output) {
	for _, e := range out.Events {
		met[e.Name]++
		if strings.Contains(e.Message, "rolling back") {
			met["rollback"]++
		}
	}
	for what, happened := range map[string]bool{
		"created": len(out.Create) > 0, "stopped": len(out.Stop) > 0, "hidden": out.Hidden, "limited": out.More,
		"hidden and stopped": out.Hidden && len(out.Stop) > 0,
		"replaced unhealthy": out.Replaces > 0, "stuck on " + out.Told.Stuck: out.Told.Stuck != s.in.Told.Stuck,
		"three deployments": len(out.Deployments) > 2,
	} {
		if happened {
			met[what]++
		}
	}
	for _, t := range s.in.Tasks {
		for what, is := range map[string]bool{"silent": t.Silent, "draining": t.Draining, "protected": !t.ProtectedUntil.IsZero()} {
			if is {
				met[what]++
			}
		}
	}
}

// wanted are what a run of the property has to meet, each at least twenty times.
var wanted = []string{
	"created", "stopped", "hidden", "hidden and stopped", "limited", "replaced unhealthy", "three deployments", "conflict", "rollback", "never serves",
	"silent", "draining", "protected", "stuck on protection", "stuck on percent", "stuck on room", "stuck on end",
	"SERVICE_STEADY_STATE", "SERVICE_DEPLOYMENT_COMPLETED", "SERVICE_DEPLOYMENT_FAILED", "SERVICE_TASK_PLACEMENT_FAILURE", "SERVICE_TASK_START_IMPAIRED",
}

// checkQuiet says what has to be true once nothing moves any more.
func (w *world) checkQuiet(last deployment.Output) {
	again := deployment.Decide(w.read(nil).in)
	if n := len(again.Create) + len(again.Stop) + len(again.Events); n > 0 {
		w.Fatalf("is not at rest: %+v\n%s", again, w)
	}
	desired, minimum, maximum := w.bounds()
	p, well := w.all[0], 0
	for _, t := range w.tasks {
		if healthy(w.view(t)) {
			well++
		}
	}
	roomy := w.room == 1000
	switch {
	case roomy && !w.told.NoRoom.IsZero():
		w.Fatalf("waits though there is room: %s", w)
	case roomy && w.told.Stuck != "" && (w.daemon() && well > minimum || !w.daemon() && (len(w.tasks) < maximum || well > minimum)):
		w.Fatalf("stuck on %s though it could move: %s", w.told.Stuck, w)
	}
	excused := w.told.Stuck != "" || !w.told.NoRoom.IsZero()
	switch p.Rollout {
	case deployment.Completed:
		if !excused && (len(w.all) != 1 || len(w.tasks) != desired || well != desired || !w.told.Steady) {
			w.Fatalf("COMPLETED and quiet, yet not steady: %s", w)
		}
	case deployment.Failed:
		met["never serves"]++
		if w.service.Rollback && p.Rollback != "" && w.bad[p.ID] != good && p.UpdatedAt.After(w.quietSince) {
			w.Fatalf("FAILED, and did not roll back: %s", w)
		}
		if !excused && (well > desired || desired == 0 && len(w.tasks) > 0) {
			w.Fatalf("FAILED and quiet, yet more than %d live: %s", desired, w)
		}
	case deployment.InProgress:
		if !excused {
			w.Fatalf("a rollout does not end, and nobody is told: %s\nlast %+v", w, last)
		}
	}
}
