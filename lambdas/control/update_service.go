package control

import (
	"context"

	"github.com/longshore-run/longshore/lambdas/internal/deployment"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// ServiceUpdate is what is to change of a service; nil members and "" change nothing.
type ServiceUpdate struct {
	Cluster       string
	Name          string
	Definition    string
	Desired       *int
	Deployment    DeploymentRules
	Constraints   *[]Placement
	Placement     *[]Placement
	PropagateTags string
	ManagedTags   *bool
	HealthGrace   *int
	Rebalancing   string
	Force         bool // a new deployment, though the definition stays
}

func (r *ServiceUpdate) check() error {
	if err := checkDesired(r.Desired); err != nil {
		return err
	}
	if err := checkGrace(r.HealthGrace); err != nil {
		return err
	}
	var constraints, strategy []Placement
	set(&constraints, r.Constraints)
	set(&strategy, r.Placement)
	return checkPlacement(constraints, strategy)
}

func serviceNotFound() error {
	return fault.New(fault.NotFound, "Service not found.").WithCode(ServiceNotFoundException)
}

// UpdateService changes a service. Another definition, or force, starts a new
// deployment, as in ECS; all else holds from now on.
func (c *Control) UpdateService(ctx context.Context, r ServiceUpdate) (*ServiceView, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	var ref taskdef.Reference
	if r.Definition != "" {
		var err error
		if ref, err = c.reference(r.Definition); err != nil {
			return nil, err
		}
	}
	s := &Service{Cluster: r.Cluster, Name: r.Name}
	err := c.decide(ctx, "update service "+r.Name, func() ([]Write, error) { return c.change(ctx, &r, s, ref) })
	if err != nil {
		return nil, err
	}
	c.kickServices(ctx, Kick{Cluster: r.Cluster, Service: r.Name})
	return c.serviceView(ctx, s)
}

// change is one try to update a service.
func (c *Control) change(ctx context.Context, r *ServiceUpdate, s *Service, ref taskdef.Reference) ([]Write, error) {
	k := &Cluster{Name: r.Cluster}
	if err := c.Store.Load(ctx, k, s); err != nil {
		return nil, err
	}
	switch {
	case k.Version == 0:
		return nil, clusterNotFound()
	case s.Version == 0:
		return nil, serviceNotFound()
	case s.Status != ServiceActive:
		return nil, fault.New(fault.Invalid, "Service was not ACTIVE.").WithCode(ServiceNotActiveException)
	}
	if err := r.apply(s); err != nil {
		return nil, err
	}
	if ref.Family == "" {
		ref = taskdef.Reference{Family: s.Family, Revision: s.Number}
		if !r.Force {
			return []Write{Put(s)}, c.canPropagate(ctx, r, s, k)
		}
	}
	d, err := c.activeDefinition(ctx, ref)
	switch {
	case err != nil:
		return nil, err
	case d.Family == s.Family && d.Number == s.Number && !r.Force:
		return []Write{Put(s)}, c.canPropagate(ctx, r, s, k)
	case len(s.Deployments) >= maxDeployments:
		return nil, fault.New(fault.Invalid, "The service has tasks of %d deployments; wait until some have ended.", len(s.Deployments)).WithCode(InvalidParameterException)
	}
	if _, err := c.serviceOrigin(s, k, d, ""); err != nil {
		return nil, err
	}
	return c.supersede(ctx, s, d)
}

// canPropagate refuses tags, where an update changes whence they come, with which
// the next tasks of the same deployment could not be made. One that does not is no
// worse than before: it may be what mends the service.
func (c *Control) canPropagate(ctx context.Context, r *ServiceUpdate, s *Service, k *Cluster) error {
	if r.PropagateTags == "" {
		return nil
	}
	d := &Definition{Family: s.Family, Number: s.Number}
	if err := c.Store.Load(ctx, d); err != nil || d.Version == 0 {
		return err
	}
	_, err := c.serviceOrigin(s, k, d, "")
	return err
}

// apply makes the changes that start no deployment.
func (r *ServiceUpdate) apply(s *Service) error {
	if s.Strategy == deployment.Daemon {
		switch {
		case r.Desired != nil && *r.Desired != 0:
			return invalid("desiredCount", "The daemon scheduling strategy does not support a desired count for services. Remove the desired count value and try again.")
		case r.Placement != nil && len(*r.Placement) > 0:
			return invalid("placementStrategy", "The daemon scheduling strategy does not support a task placement strategy.")
		}
	} else {
		set(&s.Desired, r.Desired)
	}
	set(&s.Constraints, r.Constraints)
	set(&s.Placement, r.Placement)
	set(&s.ManagedTags, r.ManagedTags)
	if r.PropagateTags != "" {
		s.PropagateTags = r.PropagateTags
	}
	if r.Rebalancing != "" {
		s.Rebalancing = r.Rebalancing
	}
	s.grace(r.HealthGrace)
	s.Announced.Stuck = ""
	return r.Deployment.apply(s)
}

// supersede starts a deployment in place of the one that may be under way.
func (c *Control) supersede(ctx context.Context, s *Service, d *Definition) ([]Write, error) {
	now := c.Now()
	events := &ServiceEvents{Cluster: s.Cluster, Service: s.Name}
	row := &ServiceDeployment{Cluster: s.Cluster, Service: s.Name, ID: s.Rollout}
	records := []Record{events}
	if s.Rollout != "" {
		records = append(records, row)
	}
	if err := c.Store.Load(ctx, records...); err != nil {
		return nil, err
	}
	var writes []Write
	if row.Version > 0 && !row.Status.Over() {
		row.end(RolloutStopped, "Service deployment stopped because a newer one was started.", now)
		writes = append(writes, Put(row))
	}
	more, err := c.roll(s, d, events, now)
	return append(append(writes, more...), Put(s), Put(events)), err
}
