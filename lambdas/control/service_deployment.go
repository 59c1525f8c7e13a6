package control

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/longshore-run/longshore/lambdas/internal/deployment"
	"github.com/longshore-run/longshore/shared/fault"
)

// HistoryAtOnce is how many rows of services' histories one call describes.
const HistoryAtOnce = 20

// ServiceItem names a row of a service's history, or one of its revisions.
type ServiceItem struct{ Cluster, Service, ID string }

// ServiceDeploymentFilter is what ListServiceDeployments lists; empty members
// filter nothing.
type ServiceDeploymentFilter struct {
	Cluster, Service string
	Status           []RolloutStatus
	After, Before    time.Time // of creation
}

// ListServiceDeployments lists a service's history, newest first.
func (c *Control) ListServiceDeployments(ctx context.Context, f ServiceDeploymentFilter, cursor Cursor, limit int) ([]ServiceDeployment, Cursor, error) {
	k, s := &Cluster{Name: f.Cluster}, &Service{Cluster: f.Cluster, Name: f.Service}
	if err := c.Store.Load(ctx, k, s); err != nil {
		return nil, Cursor{}, fmt.Errorf("list service deployments: %w", err)
	}
	switch {
	case k.Version == 0:
		return nil, Cursor{}, clusterNotFound()
	case s.Version == 0:
		return nil, Cursor{}, serviceNotFound()
	}
	rows := map[string]*ServiceDeployment{}
	keep := func(ctx context.Context, _ string, ids []string) ([]bool, error) {
		all := make([]*ServiceDeployment, len(ids))
		for i, id := range ids {
			all[i] = &ServiceDeployment{Cluster: f.Cluster, Service: f.Service, ID: id}
			rows[id] = all[i]
		}
		err := load(ctx, c.Store, all)
		return keepIf(all, func(r *ServiceDeployment) bool {
			return r.Version > 0 && (len(f.Status) == 0 || slices.Contains(f.Status, r.Status)) &&
				(f.After.IsZero() || r.CreatedAt.After(f.After)) && (f.Before.IsZero() || r.CreatedAt.Before(f.Before))
		}), err
	}
	page := func(ctx context.Context, page Page) ([]string, string, error) {
		return c.Store.ServiceDeployments(ctx, f.Cluster, f.Service, page)
	}
	ids, next, err := walk(ctx, cursor, limit, []source{{page: page}}, keep)
	out := make([]ServiceDeployment, 0, len(ids))
	for _, id := range ids {
		out = append(out, *rows[id])
	}
	return out, next, err
}

// ServiceDeploymentView is a row of the history as it is described: while it is
// under way, with what the service knows of it.
type ServiceDeploymentView struct {
	ServiceDeployment
	Tasks map[string]DeploymentView // of its revisions, by id
}

// DescribeServiceDeployments describes rows of histories; those that are not there
// are missing.
func (c *Control) DescribeServiceDeployments(ctx context.Context, items []ServiceItem) (found []ServiceDeploymentView, missing []ServiceItem, err error) {
	if len(items) > HistoryAtOnce {
		return nil, nil, invalid("serviceDeploymentArns", "has %d entries; at most %d are allowed", len(items), HistoryAtOnce)
	}
	services := map[string]*ServiceView{}
	for _, at := range items {
		r, s := &ServiceDeployment{Cluster: at.Cluster, Service: at.Service, ID: at.ID}, &Service{Cluster: at.Cluster, Name: at.Service}
		if err := c.Store.Load(ctx, r, s); err != nil {
			return nil, nil, fmt.Errorf("describe service deployments: %w", err)
		}
		if r.Version == 0 {
			missing = append(missing, at)
			continue
		}
		v := ServiceDeploymentView{ServiceDeployment: *r, Tasks: map[string]DeploymentView{}}
		if s.Version > 0 && services[s.Key()] == nil {
			if services[s.Key()], err = c.serviceView(ctx, s); err != nil {
				return nil, nil, err
			}
		}
		if of := services[s.Key()]; of != nil {
			v.underWay(of)
		}
		found = append(found, v)
	}
	return found, missing, nil
}

func (v *ServiceDeploymentView) underWay(s *ServiceView) {
	for _, d := range s.Deployments {
		v.Tasks[revisionOf(d.ID)] = d
	}
	if d, has := v.Tasks[v.Target]; has && !v.Status.Over() && !v.Tripped {
		v.Failures = d.Failed
	}
	if v.Threshold == 0 {
		v.Threshold = deployment.Threshold(s.Desired)
	}
}

// DescribeServiceRevisions describes revisions of services.
func (c *Control) DescribeServiceRevisions(ctx context.Context, items []ServiceItem) (found []ServiceRevision, missing []ServiceItem, err error) {
	if len(items) > HistoryAtOnce {
		return nil, nil, invalid("serviceRevisionArns", "has %d entries; at most %d are allowed", len(items), HistoryAtOnce)
	}
	var all []*ServiceRevision
	for _, at := range items {
		all = append(all, &ServiceRevision{Cluster: at.Cluster, Service: at.Service, ID: at.ID})
	}
	if err := load(ctx, c.Store, all); err != nil {
		return nil, nil, fmt.Errorf("describe service revisions: %w", err)
	}
	for i, r := range all {
		if r.Version == 0 {
			missing = append(missing, items[i])
			continue
		}
		found = append(found, *r)
	}
	return found, missing, nil
}

// StopServiceDeployment ends a rollout that is under way: back to the deployment
// that was COMPLETED last or, without rollback, where it is, with what the old ones
// still have.
func (c *Control) StopServiceDeployment(ctx context.Context, at ServiceItem, back bool) error {
	err := c.decide(ctx, "stop service deployment "+at.ID, func() ([]Write, error) {
		row, s := &ServiceDeployment{Cluster: at.Cluster, Service: at.Service, ID: at.ID}, &Service{Cluster: at.Cluster, Name: at.Service}
		live, events := &Live{Cluster: at.Cluster, Service: at.Service}, &ServiceEvents{Cluster: at.Cluster, Service: at.Service}
		if err := c.Store.Load(ctx, row, s, live, events); err != nil {
			return nil, err
		}
		switch {
		case row.Version == 0:
			return nil, fault.New(fault.NotFound, "Service deployment not found.").WithCode(ServiceDeploymentNotFoundException)
		case s.Status != ServiceActive || s.Rollout != at.ID || row.Status != RolloutInProgress || len(s.Deployments) == 0:
			return nil, fault.New(fault.Invalid, "The service deployment is %s; one that is IN_PROGRESS can be stopped.", row.Status).WithCode(ConflictException)
		}
		now := c.Now()
		p := &s.Deployments[0]
		to := slices.IndexFunc(s.Deployments, func(d Deployment) bool { return d.ID == p.Rollback })
		if back && to < 0 {
			return nil, fault.New(fault.Invalid, "The service has no COMPLETED deployment to roll back to.").WithCode(ConflictException)
		}
		p.State, p.Reason, p.UpdatedAt = deployment.Failed, "ECS deployment "+p.ID+" was stopped by a request.", now
		events.add(ServiceEvent{ID: c.NewID(), At: now, Name: "SERVICE_DEPLOYMENT_FAILED", Deployment: p.ID,
			Message: fmt.Sprintf("(service %s) (deployment %s) deployment failed: stopped by a request.", s.Name, p.ID)})
		if !back {
			row.end(RolloutStopped, "Service deployment stopped by a request.", now)
			s.Rollout = ""
			return []Write{Put(row), Put(s), Put(events), Put(live)}, nil
		}
		s.goBack(to, now)
		live.Failed = slices.DeleteFunc(live.Failed, func(f Failed) bool { return f.Deployment == s.Deployments[0].ID })
		row.goBack(s.Deployments[0].ID, "Service deployment rolled back by a request.", now)
		events.add(ServiceEvent{ID: c.NewID(), At: now, Name: "SERVICE_DEPLOYMENT_IN_PROGRESS", Deployment: s.Deployments[0].ID,
			Message: fmt.Sprintf("(service %s) rolling back to deployment %s.", s.Name, s.Deployments[0].ID)})
		return []Write{Put(row), Put(s), Put(events), Put(live)}, nil
	})
	if err == nil {
		c.kickServices(ctx, Kick{Cluster: at.Cluster, Service: at.Service})
	}
	return err
}

// goBack makes the deployment at an index primary again, as the breaker does.
func (r *Service) goBack(to int, now time.Time) {
	d := r.Deployments[to]
	d.State, d.RollingBack, d.Reached, d.Rollback = deployment.InProgress, true, false, ""
	d.Reason = "ECS deployment: rolling back to deploymentId " + d.ID + "."
	d.CreatedAt, d.UpdatedAt = now, now
	others := slices.Delete(slices.Clone(r.Deployments), to, to+1)
	r.Deployments = append([]Deployment{d}, others...)
	r.Family, r.Number, r.Announced = d.Family, d.Number, Announced{}
}
