package control

import (
	"context"
	"time"

	"github.com/longshore-run/longshore/lambdas/internal/deployment"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// CreateService stores a service with its first deployment, and wakes those who
// make its tasks.
func (c *Control) CreateService(ctx context.Context, r ServiceRequest) (*ServiceView, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	ref, err := c.reference(r.Definition)
	if err != nil {
		return nil, err
	}
	s := &Service{Cluster: r.Cluster, Name: r.Name}
	err = c.decide(ctx, "create service "+r.Name, func() ([]Write, error) { return c.creation(ctx, &r, s, ref) })
	if err != nil {
		return nil, err
	}
	c.kickServices(ctx, Kick{Cluster: r.Cluster, Service: r.Name})
	return c.serviceView(ctx, s)
}

// creation is one try to create a service. A token that already stands for the
// request is the whole answer.
func (c *Control) creation(ctx context.Context, r *ServiceRequest, s *Service, ref taskdef.Reference) ([]Write, error) {
	k, live, events := &Cluster{Name: r.Cluster}, &Live{Cluster: r.Cluster, Service: r.Name}, &ServiceEvents{Cluster: r.Cluster, Service: r.Name}
	token := &Token{Scope: "CreateService#" + r.Cluster, Token: r.Token}
	records := []Record{k, s, live, events}
	if r.Token != "" {
		records = append(records, token)
	}
	if err := c.Store.Load(ctx, records...); err != nil {
		return nil, err
	}
	hash := hashOf(r)
	if known := token.Version > 0 && !expired(token.ExpiresAt, c.Now()); known && token.Request == hash && s.Version > 0 {
		return nil, errGiveUp
	} else if known {
		return nil, notIdempotent()
	}
	if err := k.mustBeActive(); err != nil {
		return nil, err
	}
	switch s.Status {
	case ServiceActive:
		return nil, notIdempotent()
	case ServiceDraining:
		return nil, fault.New(fault.Invalid, "Unable to Start a service that is still Draining.").WithCode(InvalidParameterException)
	case ServiceInactive: // it is made anew
	}
	d, err := c.activeDefinition(ctx, ref)
	if err != nil {
		return nil, err
	}
	now := c.Now()
	if err := r.service(s, now); err != nil {
		return nil, err
	}
	if _, err := c.serviceOrigin(s, k, d, ""); err != nil { // what its tasks could not be made from is refused now
		return nil, err
	}
	if s.Strategy == deployment.Daemon {
		// The first run counts again, by constraints: until then 0 would look like done.
		if s.Desired, err = c.countActive(ctx, r.Cluster); err != nil {
			return nil, err
		}
	}
	events.Events, events.ExpiresAt = nil, time.Time{}
	live.Live, live.Failed = 0, nil
	writes, err := c.roll(s, d, events, now)
	if err != nil {
		return nil, err
	}
	// The cluster is written, not checked: whoever deletes it has found no service.
	writes = append(writes, Put(s), Put(live), Put(events), Put(k))
	if r.Token != "" {
		token.Request, token.IDs, token.ExpiresAt = hash, []string{r.Name}, now.Add(tokenLife)
		writes = append(writes, Put(token))
	}
	return writes, nil
}

func notIdempotent() error {
	return fault.New(fault.Invalid, "Creation of service was not idempotent.").WithCode(InvalidParameterException)
}

// countActive counts a cluster's instances that take work.
func (c *Control) countActive(ctx context.Context, cluster string) (n int, err error) {
	ledgers, err := c.ledgersOf(ctx, cluster)
	for _, l := range ledgers {
		if l.Status == Active && l.Connected {
			n++
		}
	}
	return n, err
}

// activeDefinition finds the definition that new tasks are to run.
func (c *Control) activeDefinition(ctx context.Context, ref taskdef.Reference) (*Definition, error) {
	d, err := c.definition(ctx, ref)
	switch {
	case err != nil:
		return nil, err
	case d == nil:
		return nil, client("TaskDefinition not found.")
	case d.Status != taskdef.StatusActive:
		return nil, client("TaskDefinition is inactive")
	}
	return d, nil
}

// roll starts a deployment of a definition: it becomes the service's primary one,
// with a revision and a row of the history.
func (c *Control) roll(s *Service, d *Definition, events *ServiceEvents, now time.Time) ([]Write, error) {
	def, err := taskdef.ParseStored(d.Definition)
	if err != nil {
		return nil, err
	}
	id := c.newDeploymentID()
	next := Deployment{
		ID: id, Family: d.Family, Number: d.Number, State: deployment.InProgress, CreatedAt: now, UpdatedAt: now,
		Reason: "ECS deployment " + id + " in progress.", Rollback: s.goesBackTo(),
	}
	revision := &ServiceRevision{
		Cluster: s.Cluster, Service: s.Name, ID: revisionOf(id), Family: d.Family, Number: d.Number, Launch: s.Launch,
		Images: map[string]string{}, CreatedAt: now, ExpiresAt: now.Add(historyFor),
	}
	for _, k := range def.ContainerDefinitions {
		revision.Images[k.Name] = k.Image
	}
	row := &ServiceDeployment{
		Cluster: s.Cluster, Service: s.Name, ID: c.newRolloutID(now), Status: RolloutInProgress,
		Target: revision.ID, Deployment: id, MaximumPercent: s.MaximumPercent, MinimumPercent: s.MinimumPercent,
		Breaker: s.Breaker, Rollback: s.Rollback, Requested: s.Desired,
		CreatedAt: now, StartedAt: now, UpdatedAt: now, ExpiresAt: now.Add(historyFor),
	}
	for _, of := range s.Deployments {
		row.Sources = append(row.Sources, revisionOf(of.ID))
	}
	s.Deployments = append([]Deployment{next}, s.Deployments...)
	s.Family, s.Number, s.Rollout, s.Announced = d.Family, d.Number, row.ID, Announced{}
	events.add(ServiceEvent{ID: c.NewID(), At: now, Name: "SERVICE_DEPLOYMENT_IN_PROGRESS", Message: next.Reason, Deployment: id})
	return []Write{Put(revision), Put(row)}, nil
}

// goesBackTo is the deployment that one which fails now goes back to: the last
// that was COMPLETED.
func (r *Service) goesBackTo() string {
	if len(r.Deployments) == 0 {
		return ""
	}
	if p := r.Deployments[0]; p.State != deployment.Completed && !p.RollingBack {
		return p.Rollback
	}
	return r.Deployments[0].ID
}
