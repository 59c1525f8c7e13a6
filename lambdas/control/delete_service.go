package control

import (
	"context"

	"github.com/longshore-run/longshore/lambdas/internal/deployment"
	"github.com/longshore-run/longshore/shared/fault"
)

// DeleteService makes a service DRAINING: it wants no task any more, and is
// INACTIVE once nothing of it lives. Above 0 it takes force.
func (c *Control) DeleteService(ctx context.Context, cluster, name string, force bool) (*ServiceView, error) {
	k, s := &Cluster{Name: cluster}, &Service{Cluster: cluster, Name: name}
	err := c.decide(ctx, "delete service "+name, func() ([]Write, error) {
		if err := c.Store.Load(ctx, k, s); err != nil {
			return nil, err
		}
		switch {
		case k.Version == 0:
			return nil, clusterNotFound()
		case s.Version == 0 || s.Status == ServiceInactive:
			return nil, serviceNotFound()
		case s.Status == ServiceDraining:
			return nil, errGiveUp
		case s.Desired > 0 && s.Strategy != deployment.Daemon && !force:
			return nil, fault.New(fault.Invalid, "The service cannot be stopped while it is scaled above 0.").WithCode(InvalidParameterException)
		}
		now := c.Now()
		s.Status, s.Desired, s.DeletedAt = ServiceDraining, 0, now
		row := &ServiceDeployment{Cluster: cluster, Service: name, ID: s.Rollout}
		if s.Rollout == "" {
			return []Write{Put(s)}, nil
		}
		if err := c.Store.Load(ctx, row); err != nil {
			return nil, err
		}
		s.Rollout = ""
		if row.Version == 0 || row.Status.Over() {
			return []Write{Put(s)}, nil
		}
		row.end(RolloutStopped, "Service deployment stopped because the service was deleted.", now)
		return []Write{Put(s), Put(row)}, nil
	})
	if err != nil {
		return nil, err
	}
	c.kickServices(ctx, Kick{Cluster: cluster, Service: name})
	return c.serviceView(ctx, s)
}
