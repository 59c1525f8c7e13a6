package deployment_test

import (
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/longshore-run/longshore/lambdas/internal/deployment"
)

// world is a cluster with one service: instances that fall silent, die, are
// drained and reaped, tasks that start, fail, fall ill and end, and two deciders
// that read with a lagging index and commit on the version they read.
type world struct {
	*rapid.T
	now      time.Time
	service  deployment.Service
	all      []deployment.Deployment
	told     deployment.Told
	version  int
	tasks    []*inhabitant
	hosts    []*host
	bad      map[string]badness
	made     int
	limit    int
	checked  bool // its tasks have a health check
	room     int  // tasks an instance takes
	deciders [2]*snapshot
	quiet    bool
	storm    bool // nothing starts, whatever the revision
	// quietSince is when quiet began; what was decided before may have been under
	// another configuration.
	quietSince time.Time
}

type inhabitant struct{ deployment.Task }

type host struct {
	id, zone        string
	silent, drained bool
	dead            bool // will not come back
}

// badness is how a revision fails.
type badness string

const (
	good        badness = ""
	neverStarts badness = "never starts"
	neverWell   badness = "never healthy"
	crashes     badness = "crashes"
)

// snapshot is what a decider has read.
type snapshot struct {
	in      deployment.Input
	version int
	healthy map[string]bool // of all, those that the index hid too
}

func (w *world) host(id string) *host {
	for _, h := range w.hosts {
		if h.id == id {
			return h
		}
	}
	return nil
}

func (w *world) daemon() bool { return w.service.Strategy == deployment.Daemon }

func (w *world) belongs() []deployment.Host {
	var out []deployment.Host
	for _, h := range w.hosts {
		if !h.drained {
			out = append(out, deployment.Host{ID: h.id})
		}
	}
	return out
}

func (w *world) bounds() (desired, minimum, maximum int) {
	desired = w.service.Desired
	if w.daemon() {
		desired = len(w.belongs())
	}
	minimum, maximum = boundsOf(w.service, desired)
	return desired, minimum, maximum
}

// boundsOf are the percentages as numbers; one whose tasks are to end for sure
// before others are created is never above desired, and may lack one.
func boundsOf(s deployment.Service, desired int) (minimum, maximum int) {
	minimum, maximum = (desired*s.MinimumPercent+99)/100, desired*s.MaximumPercent/100
	if s.Confirmed {
		maximum = desired
		if minimum == desired && desired > 0 {
			minimum--
		}
	}
	return minimum, maximum
}

// view is a task as a strong read of it and of its instance shows it.
func (w *world) view(t *inhabitant) deployment.Task {
	v := t.Task
	if h := w.host(v.Instance); h != nil {
		v.Silent, v.Draining, v.Zone = h.silent, h.drained, h.zone
		v.Kept = h.silent && h.dead
	}
	return v
}

func healthy(t deployment.Task) bool {
	return t.Status == deployment.Running && !t.ToStop && !t.Unhealthy && !t.Unproven && !t.Silent
}

func (w *world) read(hide func(int) bool) *snapshot {
	s := &snapshot{version: w.version, healthy: map[string]bool{}}
	s.in = deployment.Input{Now: w.now, Service: w.service, Deployments: slices.Clone(w.all), Told: w.told, Live: len(w.tasks), Limit: w.limit}
	if w.daemon() {
		s.in.Hosts = w.belongs()
	}
	for i, t := range w.tasks {
		v := w.view(t)
		if healthy(v) {
			s.healthy[v.ID] = true
		}
		if hide == nil || !hide(i) {
			s.in.Tasks = append(s.in.Tasks, v)
		}
	}
	return s
}

// decide asks, checks what a decision must never be, and commits unless another
// wrote in between.
func (w *world) decide(s *snapshot) (out deployment.Output, committed bool) {
	out = deployment.Decide(s.in)
	situations++
	w.check(s, out)
	if s.version != w.version {
		met["conflict"]++
		return out, false
	}
	changed := !slices.Equal(w.all, out.Deployments) || w.told != out.Told || len(out.Events) > 0
	w.all, w.told = out.Deployments, out.Told
	for _, c := range out.Create {
		w.made++
		t := &inhabitant{deployment.Task{ID: fmt.Sprintf("t%03d", w.made), Deployment: c.Deployment, Status: deployment.Waiting, Instance: c.Instance, CreatedAt: w.now}}
		w.tasks = append(w.tasks, t)
	}
	for _, stop := range out.Stop {
		t := w.task(stop.Task)
		t.ToStop = true
		if t.Status == deployment.Waiting {
			w.end(t)
		}
	}
	if len(out.Create)+len(out.Stop) > 0 || changed {
		w.version++
	}
	w.checkCommitted(s, out)
	return out, true
}

func (w *world) task(id string) *inhabitant {
	for _, t := range w.tasks {
		if t.ID == id {
			return t
		}
	}
	return nil
}

// end makes a task STOPPED, which counts the live item down.
func (w *world) end(t *inhabitant) {
	w.tasks = slices.DeleteFunc(w.tasks, func(o *inhabitant) bool { return o == t })
	w.version++
}

// fail ends a task by its own fault.
func (w *world) fail(t *inhabitant) {
	w.end(t)
	if t.ToStop {
		return
	}
	for i := range w.all {
		d := &w.all[i]
		if d.ID != t.Deployment {
			continue
		}
		if d.Rollout == deployment.InProgress {
			d.Failures++
		}
		if t.Status != deployment.Running {
			d.InARow++
		}
		d.LastFailed = w.now
	}
}

// admit gives a waiting task an instance, or a reason.
func (w *world) admit(t *inhabitant) bool {
	t.WaitingReason = "EMPTY CAPACITY"
	for _, h := range w.hosts {
		if w.daemon() && h.id != t.Instance {
			continue
		}
		if h.silent || h.drained {
			t.WaitingReason = "AGENT"
			continue
		}
		n := 0
		for _, o := range w.tasks {
			if o.Instance == h.id && o.Status != deployment.Waiting {
				n++
			}
		}
		if n >= w.room {
			t.WaitingReason = "RESOURCE:MEMORY"
			continue
		}
		t.Instance, t.Status, t.WaitingReason = h.id, deployment.Pending, ""
		return true
	}
	return false
}

// step moves a task on, and says whether it moved.
func (w *world) step(t *inhabitant) bool {
	h := w.host(t.Instance)
	switch {
	case t.Status == deployment.Waiting:
		return w.admit(t)
	case h == nil || h.silent:
		return false
	case t.ToStop:
		w.end(t)
	case t.Status == deployment.Pending && (w.storm || w.bad[t.Deployment] == neverStarts):
		w.fail(t)
	case t.Status == deployment.Pending:
		t.Status, t.Since, t.Unproven = deployment.Running, w.now, w.checked
	case t.Unproven && w.bad[t.Deployment] == neverWell:
		t.Unproven, t.Unhealthy = false, true
	case t.Unproven:
		t.Unproven = false
	case t.Unhealthy && w.bad[t.Deployment] != neverWell && w.quiet:
		t.Unhealthy = false
	case w.bad[t.Deployment] == crashes && t.Status == deployment.Running:
		w.fail(t)
	default:
		return false
	}
	return true
}

// reap closes the tasks of an instance that has been silent, and forgets it.
func (w *world) reap(h *host) {
	w.hosts = slices.DeleteFunc(w.hosts, func(o *host) bool { return o == h })
	for _, t := range slices.Clone(w.tasks) {
		if t.Instance == h.id && t.Status != deployment.Waiting {
			w.end(t)
		}
	}
	w.version++
}

// update starts another deployment, as UpdateService does.
func (w *world) update(b badness) {
	w.made++
	d := deployment.Deployment{ID: fmt.Sprintf("ecs-svc/%d", w.made), Primary: true, Rollout: deployment.InProgress, CreatedAt: w.now, UpdatedAt: w.now}
	d.Reason = "ECS deployment " + d.ID + " in progress."
	for i := range w.all {
		if o := &w.all[i]; o.Primary {
			o.Primary, d.Rollback = false, o.Rollback
			if o.Rollout == deployment.Completed {
				d.Rollback = o.ID
			}
		}
	}
	w.all = append([]deployment.Deployment{d}, w.all...)
	w.bad[d.ID] = b
	w.version++
}
