package control

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/lambdas/internal/deployment"
	"github.com/longshore-run/longshore/shared/task"
)

// ServicesAtOnce is how many services one call describes.
const ServicesAtOnce = 10

// ServiceView is a service as it is described.
type ServiceView struct {
	Service
	Tasks       TaskCount
	Deployments []DeploymentView
	Events      []ServiceEvent
}

// DeploymentView is a deployment as it is described.
type DeploymentView struct {
	Deployment
	Primary bool
	Desired int
	Tasks   TaskCount
	Failed  int
}

// DescribeServices describes services by name, those that were deleted lately too;
// others are missing.
func (c *Control) DescribeServices(ctx context.Context, cluster string, names []string) (found []ServiceView, missing []string, err error) {
	if len(names) == 0 || len(names) > ServicesAtOnce {
		return nil, nil, invalid("services", "has %d entries; 1 to %d are allowed", len(names), ServicesAtOnce)
	}
	k := &Cluster{Name: cluster}
	var all []*Service
	for _, name := range unique(names) {
		all = append(all, &Service{Cluster: cluster, Name: name})
	}
	if err := c.Store.Load(ctx, append(recordsOf(all), k)...); err != nil {
		return nil, nil, fmt.Errorf("describe services: %w", err)
	}
	if k.Version == 0 {
		return nil, nil, clusterNotFound()
	}
	for _, s := range all {
		if s.Version == 0 {
			missing = append(missing, s.Name)
			continue
		}
		v, err := c.serviceView(ctx, s)
		if err != nil {
			return nil, nil, err
		}
		found = append(found, *v)
	}
	return found, missing, nil
}

// serviceView reads what a service is described with. Its counts are those of the
// tasks that are found; what an index still hides is known by number, and pends.
func (c *Control) serviceView(ctx context.Context, s *Service) (*ServiceView, error) {
	v := &ServiceView{Service: *s}
	live, events := &Live{Cluster: s.Cluster, Service: s.Name}, &ServiceEvents{Cluster: s.Cluster, Service: s.Name}
	if err := c.Store.Load(ctx, live, events); err != nil {
		return nil, fmt.Errorf("describe service %s: %w", s.Name, err)
	}
	// What only the bus tells does not begin with the service, as in ECS.
	v.Events = slices.DeleteFunc(events.Events, func(e ServiceEvent) bool { return !strings.HasPrefix(e.Message, "(service ") })
	tasks := map[string]*Task{}
	if live.Live > 0 {
		var err error
		if tasks, err = c.members(ctx, s.Cluster, s.Name, nil); err != nil {
			return nil, err
		}
	}
	ledgers, err := c.ledgersUnder(ctx, tasks)
	if err != nil {
		return nil, err
	}
	for i, d := range s.Deployments {
		v.Deployments = append(v.Deployments, DeploymentView{Deployment: d, Primary: i == 0, Failed: live.of(d.ID).All})
	}
	v.count(tasks, ledgers)
	v.hidden(max(live.Live-len(tasks), 0))
	return v, nil
}

// ledgersUnder are the ledgers of the instances that tasks are on.
func (c *Control) ledgersUnder(ctx context.Context, tasks map[string]*Task) (map[string]*Ledger, error) {
	ledgers := map[string]*Ledger{}
	for _, t := range tasks {
		if t.Instance != "" {
			ledgers[t.Instance] = &Ledger{ID: t.Instance}
		}
	}
	return ledgers, load(ctx, c.Store, slices.Collect(maps.Values(ledgers)))
}

// count counts tasks: RUNNING are those that are heard of, for only those serve (U7).
func (v *ServiceView) count(tasks map[string]*Task, ledgers map[string]*Ledger) {
	wanted := map[string]int{}
	for _, t := range tasks {
		at := slices.IndexFunc(v.Deployments, func(d DeploymentView) bool { return d.ID == t.StartedBy })
		d := &DeploymentView{}
		if at >= 0 {
			d = &v.Deployments[at]
		}
		switch {
		case t.LastStatus == task.Provisioning, t.LastStatus == task.Pending:
			v.Tasks.Pending++
			d.Tasks.Pending++
		case t.LastStatus == task.Running && !silent(t, ledgers[t.Instance]):
			v.Tasks.Running++
			d.Tasks.Running++
		}
		if t.DesiredStatus == task.DesiredRunning {
			wanted[t.StartedBy]++
		}
	}
	for i := range v.Deployments {
		d := &v.Deployments[i]
		if d.Desired = wanted[d.ID]; d.Primary && d.State != deployment.Failed {
			d.Desired = v.Desired
		}
	}
}

func (v *ServiceView) hidden(n int) {
	v.Tasks.Pending += n
	if len(v.Deployments) > 0 {
		v.Deployments[0].Tasks.Pending += n
	}
}

// ServiceFilter is what ListServices lists; empty members filter nothing.
type ServiceFilter struct {
	Cluster  string
	Launch   string
	Strategy string
}

// ListServices lists the names of a cluster's services that are not INACTIVE.
func (c *Control) ListServices(ctx context.Context, f ServiceFilter, cursor Cursor, limit int) ([]string, Cursor, error) {
	k := &Cluster{Name: f.Cluster}
	if err := c.Store.Load(ctx, k); err != nil {
		return nil, Cursor{}, fmt.Errorf("list services: %w", err)
	}
	if k.Version == 0 {
		return nil, Cursor{}, clusterNotFound()
	}
	page := func(ctx context.Context, page Page) ([]string, string, error) {
		return c.Store.Services(ctx, f.Cluster, page)
	}
	keep := func(ctx context.Context, _ string, names []string) ([]bool, error) {
		all := servicesOf(f.Cluster, names)
		err := load(ctx, c.Store, all)
		return keepIf(all, func(s *Service) bool {
			return s.open() && (f.Launch == "" || s.Launch == f.Launch) && (f.Strategy == "" || s.Strategy == f.Strategy)
		}), err
	}
	return walk(ctx, cursor, limit, []source{{page: page}}, keep)
}

func servicesOf(cluster string, names []string) []*Service {
	all := make([]*Service, len(names))
	for i, name := range names {
		all[i] = &Service{Cluster: cluster, Name: name}
	}
	return all
}

// open says whether a service is there and not INACTIVE.
func (r *Service) open() bool { return r.Version > 0 && r.Status != ServiceInactive }

// serviceNames are all of a cluster, INACTIVE ones too.
func (c *Control) serviceNames(ctx context.Context, cluster string) ([]string, error) {
	names, err := everything(ctx, func(ctx context.Context, page Page) ([]string, string, error) {
		return c.Store.Services(ctx, cluster, page)
	})
	if err != nil {
		return nil, fmt.Errorf("list services of cluster %s: %w", cluster, err)
	}
	return names, nil
}

// services are a cluster's services that are not INACTIVE.
func (c *Control) services(ctx context.Context, cluster string) ([]*Service, error) {
	names, err := c.serviceNames(ctx, cluster)
	if err != nil {
		return nil, err
	}
	all := servicesOf(cluster, names)
	if err := load(ctx, c.Store, all); err != nil {
		return nil, fmt.Errorf("load services of cluster %s: %w", cluster, err)
	}
	return slices.DeleteFunc(all, func(s *Service) bool { return !s.open() }), nil
}
