package control

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/longshore-run/longshore/lambdas/internal/deployment"
	"github.com/longshore-run/longshore/shared/logkey"
	"github.com/longshore-run/longshore/shared/task"
)

// inactiveFor is how long a deleted service stays describable.
const inactiveFor = 24 * time.Hour

// configurationFailure names the event of what the owner has to change; it is not
// told again while it is the last that was told.
const configurationFailure = "SERVICE_TASK_CONFIGURATION_FAILURE"

// writes are those of one decision, as one transaction: what it creates and stops
// on the live count as it was before the tasks were read, so that of two runs one
// decides again (I11).
func (s *serving) writes(ctx context.Context, x *situation, out deployment.Output) ([]Write, error) {
	w := &changes{}
	events := out.Events
	created, err := s.create(ctx, x, out.Create, w)
	if err != nil {
		return nil, err
	}
	events = append(events, x.refused...)
	if len(created) > 0 {
		events = append(events, deployment.Started(x.service.Name, created, min(out.Replaces, len(created))))
	}
	for _, stop := range out.Stop {
		s.stop(x, stop, w)
	}
	failed := failedOf(out.Deployments)
	liveChanged := len(created)+len(out.Stop) > 0 || !slices.EqualFunc(failed, x.live.Failed, sameFailed)
	x.live.Failed = failed
	before := *x.service
	x.take(out)
	if err := s.c.record(ctx, x, w); err != nil {
		return nil, err
	}
	if err := s.c.tell(ctx, x, events, w); err != nil {
		return nil, err
	}
	serviceChanged := !reflect.DeepEqual(before, *x.service)
	if !liveChanged && !serviceChanged && len(w.order) == 0 {
		return nil, nil
	}
	w.putIf(serviceChanged, x.service)
	if out.Done {
		return append(w.all(), Delete(x.live)), nil
	}
	w.putIf(liveChanged, x.live)
	return w.all(), nil
}

// create adds tasks, and counts them live.
func (s *serving) create(ctx context.Context, x *situation, creations []deployment.Creation, w *changes) (ids []string, err error) {
	for _, k := range creations {
		o, err := s.origin(ctx, x, k.Deployment)
		if err != nil {
			return nil, err
		}
		if o == nil {
			continue
		}
		t := o.with(s.c.NewID())
		t.Pinned = k.Instance
		w.put(t)
		x.live.Live++
		ids = append(ids, t.ID)
		s.named[t.ID] = true
	}
	s.created = ids
	return ids, nil
}

// stop makes a task's desired status STOPPED; one that waits is STOPPED by the
// same transaction, and counted down (I3).
func (s *serving) stop(x *situation, stop deployment.Stop, w *changes) {
	t := x.tasks[stop.Task]
	e := ending{cause: task.ServiceCause, now: x.now, keepFor: s.c.Setting.StoppedTasksFor}
	if t.Health == task.Unhealthy {
		e.cause = task.UnhealthyCause
	} else if len(x.service.Deployments) > 0 {
		e.reason = fmt.Sprintf("Scaling activity initiated by (deployment %s)", x.service.Deployments[0].ID)
	}
	s.c.Log.Info("service stops task", logkey.Service, x.service.Name, logkey.Task, t.ID, logkey.Reason, stop.Why)
	w.put(t)
	if t.LastStatus == task.Provisioning {
		withdraw(t, e)
		x.live.down(t)
		return
	}
	t.LastStatus = move(t.LastStatus, task.StopRequested)
	t.DesiredStatus, t.StopCause, t.StoppedReason = task.DesiredStopped, e.cause, e.text()
	t.Dispatched, t.DispatchAt = 1, x.now.Add(dispatchWait(1))
	s.stops = append(s.stops, stopMessage(t))
}

// failedOf are the counters of deployments, of those that have any.
func failedOf(all []deployment.Deployment) []Failed {
	var out []Failed
	for _, d := range all {
		if d.Failures != 0 || d.InARow != 0 || d.Unhealthy != 0 || !d.LastFailed.IsZero() {
			out = append(out, Failed{d.ID, d.Failures, d.Unhealthy, d.InARow, d.LastFailed})
		}
	}
	return out
}

func sameFailed(a, b Failed) bool {
	same := a.Last.Equal(b.Last)
	a.Last, b.Last = time.Time{}, time.Time{}
	return same && a == b
}

// take makes the service what was decided.
func (x *situation) take(out deployment.Output) {
	r := x.service
	of := map[string]Deployment{}
	for _, d := range r.Deployments {
		of[d.ID] = d
	}
	r.Deployments = make([]Deployment, 0, len(out.Deployments))
	for _, d := range out.Deployments {
		k := of[d.ID]
		k.State, k.Reason, k.CreatedAt, k.UpdatedAt = d.Rollout, d.Reason, d.CreatedAt, d.UpdatedAt
		k.Reached, k.Rollback, k.RollingBack = d.Reached, d.Rollback, d.RollingBack
		r.Deployments = append(r.Deployments, k)
	}
	if len(r.Deployments) > 0 { // a rollback is to another definition
		r.Family, r.Number = r.Deployments[0].Family, r.Deployments[0].Number
	}
	r.Announced = Announced(out.Told)
	if r.Strategy == deployment.Daemon {
		r.Desired = len(x.in.Hosts)
	}
	if out.Done {
		r.Status, r.Deployments, r.Desired = ServiceInactive, []Deployment{}, 0
		r.ExpiresAt = x.now.Add(inactiveFor)
	}
}

// origin is what a deployment's tasks are made from; nil if its definition is gone.
func (s *serving) origin(ctx context.Context, x *situation, id string) (*origin, error) {
	if o, known := x.origins[id]; known {
		return o, nil
	}
	r := x.service
	at := slices.IndexFunc(r.Deployments, func(d Deployment) bool { return d.ID == id })
	d := &Definition{Family: r.Deployments[at].Family, Number: r.Deployments[at].Number}
	if err := s.c.Store.Load(ctx, d); err != nil {
		return nil, err
	}
	if d.Version == 0 {
		s.c.Log.ErrorContext(ctx, "task of a service not created: its definition is gone", logkey.Service, r.Name, logkey.Definition, d.Key())
		x.origins[id] = nil
		return nil, nil
	}
	o, err := s.c.serviceOrigin(r, x.cluster, d, id)
	if refusal(err) { // tags that were added since are too many: all else goes on
		s.c.Log.ErrorContext(ctx, "task of a service not created: it is refused", logkey.Service, r.Name, logkey.Definition, d.Key(), logkey.Error, err)
		x.refused = append(x.refused, deployment.Event{Name: configurationFailure, Deployment: id,
			Message: fmt.Sprintf("(service %s) was unable to place a task. Reason: %s.", r.Name, cut(err.Error(), maxReason))})
		x.origins[id] = nil
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("make tasks of %s: %w", d.Key(), err)
	}
	x.origins[id] = o
	return o, nil
}

// serviceOrigin is what the tasks of a service's deployment are made from. They
// wait for room for as long as they are wanted, whatever their tags say.
func (c *Control) serviceOrigin(r *Service, k *Cluster, d *Definition, deployment string) (*origin, error) {
	req := &TaskRequest{
		Cluster: r.Cluster, Group: servicePrefix + r.Name, StartedBy: deployment, Launch: r.Launch,
		PropagateTags: r.PropagateTags == "TASK_DEFINITION", ManagedTags: r.ManagedTags,
		Constraints: r.Constraints, Strategy: r.Placement, Tags: map[string]string{},
	}
	for name, value := range r.Tags { // what Longshore itself reads holds for the tasks in any case
		if r.PropagateTags == "SERVICE" || strings.HasPrefix(name, ownTags) {
			req.Tags[name] = value
		}
	}
	o, err := c.makeOrigin(req, d, k)
	if err != nil {
		return nil, err
	}
	if r.ManagedTags {
		o.task.Tags["aws:ecs:serviceName"] = r.Name
	}
	o.task.Service, o.task.NoWait, o.task.MaxWait = r.Name, false, 0
	return o, nil
}

// tell adds what is to be told to the service's events.
func (c *Control) tell(ctx context.Context, x *situation, events []deployment.Event, w *changes) error {
	if len(events) == 0 && x.service.Status != ServiceInactive {
		return nil
	}
	all, told := &ServiceEvents{Cluster: x.service.Cluster, Service: x.service.Name}, x.service.Status == ServiceInactive
	if err := c.Store.Load(ctx, all); err != nil {
		return err
	}
	for _, e := range events {
		if len(all.Events) > 0 && all.Events[0].Message == e.Message && e.Name == configurationFailure {
			continue // it is so still
		}
		told = true
		all.add(ServiceEvent{ID: c.NewID(), At: x.now, Name: e.Name, Message: e.Message, Deployment: e.Deployment})
	}
	if all.ExpiresAt = x.service.ExpiresAt; told {
		w.put(all)
	}
	return nil
}

// add puts an event before the others, and lets the oldest go.
func (r *ServiceEvents) add(e ServiceEvent) {
	r.Events = slices.Insert(r.Events, 0, e)
	r.Events = r.Events[:min(len(r.Events), maxEvents)]
}
