package control

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/longshore-run/longshore/lambdas/internal/deployment"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef/query"
	"github.com/longshore-run/longshore/shared/wire"
)

// situation is what a service's decision rests on, read strongly.
type situation struct {
	now     time.Time
	cluster *Cluster
	service *Service
	live    *Live
	tasks   map[string]*Task // not STOPPED
	ledgers map[string]*Ledger
	hosts   map[string]*Instance
	origins map[string]*origin // by deployment, as they are needed
	refused []deployment.Event // of those that can not be made from what there is now
	in      deployment.Input
}

// read reads the service, and then, after its live count, the tasks it has. It is
// nil for a service for which there is nothing to do.
func (s *serving) read(ctx context.Context) (*situation, error) {
	x := &situation{
		now: s.c.Now(), cluster: &Cluster{Name: s.cluster},
		service: &Service{Cluster: s.cluster, Name: s.name}, live: &Live{Cluster: s.cluster, Service: s.name},
		ledgers: map[string]*Ledger{}, hosts: map[string]*Instance{}, origins: map[string]*origin{},
	}
	if err := s.c.Store.Load(ctx, x.cluster, x.service, x.live); err != nil {
		return nil, err
	}
	if x.service.Version == 0 || x.service.Status == ServiceInactive || x.live.Version == 0 {
		return nil, nil
	}
	var err error
	if x.tasks, err = s.c.members(ctx, s.cluster, s.name, slices.Collect(maps.Keys(s.named))); err != nil {
		return nil, err
	}
	instances := map[string]bool{}
	for _, t := range x.tasks {
		instances[place(t)] = true
	}
	if x.service.Strategy == deployment.Daemon && x.service.Status == ServiceActive {
		if err := s.everyInstance(ctx, instances); err != nil {
			return nil, err
		}
	}
	if err := s.readHosts(ctx, x, instances); err != nil {
		return nil, err
	}
	x.in = x.input()
	if x.service.Strategy == deployment.Daemon && x.service.Status == ServiceActive {
		if x.in.Hosts, err = s.belongsOn(ctx, x); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// members are a service's tasks that are not STOPPED: those the index shows and
// those that are named, each read strongly.
func (c *Control) members(ctx context.Context, cluster, service string, named []string) (map[string]*Task, error) {
	ids, err := everything(ctx, func(ctx context.Context, page Page) ([]string, string, error) {
		return c.Store.TaskIDs(ctx, TaskQuery{Cluster: cluster, Group: servicePrefix + service}, page)
	})
	if err != nil {
		return nil, fmt.Errorf("list tasks of service %s: %w", service, err)
	}
	ids = append(ids, named...)
	slices.Sort(ids)
	all := tasksOf(slices.Compact(ids))
	if err := load(ctx, c.Store, all); err != nil {
		return nil, err
	}
	out := map[string]*Task{}
	for _, t := range all {
		if t.Version > 0 && t.Cluster == cluster && t.Service == service && t.LastStatus != task.Stopped {
			out[t.ID] = t
		}
	}
	return out, nil
}

// place is where a task is, or is to be; "" while it may go anywhere.
func place(t *Task) string {
	if t.Instance != "" {
		return t.Instance
	}
	return t.Pinned
}

func (s *serving) everyInstance(ctx context.Context, into map[string]bool) error {
	instances := func(ctx context.Context, page Page) ([]string, string, error) {
		return s.c.Store.InstanceIDs(ctx, s.cluster, page)
	}
	return pages(ctx, instances, func(id *string) { into[*id] = true })
}

func (s *serving) readHosts(ctx context.Context, x *situation, ids map[string]bool) error {
	delete(ids, "")
	var records []Record
	for id := range ids {
		x.ledgers[id], x.hosts[id] = &Ledger{ID: id}, &Instance{ID: id}
		records = append(records, x.ledgers[id], x.hosts[id])
	}
	if len(records) == 0 {
		return nil
	}
	return s.c.Store.Load(ctx, records...)
}

// input is the situation in the words of the decision.
func (x *situation) input() deployment.Input {
	r := x.service
	in := deployment.Input{
		Now: x.now, Live: x.live.Live, Limit: serveAtOnce,
		Service: deployment.Service{
			Name: r.Name, Strategy: r.Strategy, Desired: r.Desired, Deleted: r.Status != ServiceActive,
			MaximumPercent: r.MaximumPercent, MinimumPercent: r.MinimumPercent, Breaker: r.Breaker, Rollback: r.Rollback,
			Confirmed: r.Tags[replaceAfterTag] == afterConfirmed,
		},
		Told: deployment.Told(r.Announced),
	}
	for i, d := range r.Deployments {
		f := x.live.of(d.ID)
		in.Deployments = append(in.Deployments, deployment.Deployment{
			ID: d.ID, Primary: i == 0, Rollout: d.State, Reason: d.Reason, CreatedAt: d.CreatedAt, UpdatedAt: d.UpdatedAt,
			Reached: d.Reached, Failures: f.All, Unhealthy: f.Unhealthy, InARow: f.InARow, LastFailed: f.Last,
			Rollback: d.Rollback, RollingBack: d.RollingBack,
		})
	}
	for _, id := range slices.Sorted(maps.Keys(x.tasks)) {
		in.Tasks = append(in.Tasks, x.member(x.tasks[id]))
	}
	return in
}

// statusesOf names a task's status as the decision does.
var statusesOf = map[task.Status]deployment.Status{
	task.Provisioning: deployment.Waiting, task.Pending: deployment.Pending,
	task.Running: deployment.Running, task.Stopping: deployment.Stopping,
}

func (x *situation) member(t *Task) deployment.Task {
	m := deployment.Task{
		ID: t.ID, Deployment: t.StartedBy, Status: statusesOf[t.LastStatus], ToStop: t.DesiredStatus == task.DesiredStopped,
		Instance: place(t), Since: t.StartedAt, CreatedAt: t.CreatedAt, WaitingReason: t.WaitingReason,
		Unproven: t.Health == task.HealthUnknown, ProtectedUntil: t.ProtectedUntil,
	}
	if t.Health == task.Unhealthy {
		// Within its grace nothing is done about it, and nothing rests on it.
		m.Unproven = x.now.Before(t.StartedAt.Add(x.service.HealthGrace))
		m.Unhealthy = !m.Unproven
	}
	l := x.ledgers[m.Instance]
	if l == nil {
		return m
	}
	m.Zone = x.hosts[m.Instance].Zone
	m.Draining = l.Status == Draining
	m.Silent = t.LastStatus.Open() && silent(t, l)
	m.Kept = t.LastStatus.Open() && !t.Kept.IsZero()
	return m
}

// silent says whether nothing is heard of an open task: its instance is not
// connected, or it is kept from an earlier epoch (U7).
func silent(t *Task, l *Ledger) bool { return l == nil || !l.Connected || !t.Kept.IsZero() }

// belongsOn are the instances that a DAEMON service is to have a task on: ACTIVE,
// where its constraints let it, and connected or, while they are silent, those
// where it has one. It also says of its tasks on instances that are to be emptied
// whether others are there.
func (s *serving) belongsOn(ctx context.Context, x *situation) ([]deployment.Host, error) {
	if len(x.service.Deployments) == 0 {
		return nil, nil
	}
	o, err := s.origin(ctx, x, x.service.Deployments[0].ID)
	if err != nil {
		return nil, err
	}
	if o == nil { // what is missing says nothing of where it belongs: it stays where it is (I12)
		return x.whereItIs(), s.c.busy(ctx, x)
	}
	var constraints []query.Expr
	for _, p := range o.task.Constraints {
		if p.Type != "memberOf" {
			continue
		}
		e, err := query.Parse(p.Expression)
		if err != nil {
			return nil, fmt.Errorf("parse placement constraint: %w", err)
		}
		constraints = append(constraints, e)
	}
	has := map[string]bool{}
	for _, t := range x.tasks {
		has[place(t)] = true
	}
	var hosts []deployment.Host
	for _, id := range slices.Sorted(maps.Keys(x.ledgers)) {
		l, in := x.ledgers[id], x.hosts[id]
		fits := l.Version > 0 && in.Version > 0 && l.Cluster == s.cluster && l.Status == Active && slices.Contains(in.WireVersions, wire.Version) &&
			!slices.ContainsFunc(constraints, func(e query.Expr) bool { return !e.Match(attributesOf(in)) })
		if fits && (l.Connected || has[id]) {
			hosts = append(hosts, deployment.Host{ID: id})
		}
	}
	return hosts, s.c.busy(ctx, x)
}

// whereItIs are the ACTIVE instances on which a DAEMON service has a task.
func (x *situation) whereItIs() (hosts []deployment.Host) {
	for _, t := range x.tasks {
		h := deployment.Host{ID: place(t)}
		if l := x.ledgers[h.ID]; l != nil && l.Status == Active && !slices.Contains(hosts, h) {
			hosts = append(hosts, h)
		}
	}
	return hosts
}

// busy marks a DAEMON service's tasks on instances that are to be emptied and
// that have tasks of others than DAEMON services: those go first. How many there
// are is the ledger's word; which of them are a daemon's is read through an index,
// and what that does not show counts as another's.
func (c *Control) busy(ctx context.Context, x *situation) error {
	strategies := map[string]*Service{}
	for i := range x.in.Tasks {
		m := &x.in.Tasks[i]
		if !m.Draining {
			continue
		}
		ids, _, err := c.Store.TaskIDs(ctx, TaskQuery{OnInstance: m.Instance}, Page{})
		if err != nil {
			return err
		}
		there := tasksOf(ids)
		if err := load(ctx, c.Store, there); err != nil {
			return err
		}
		others := x.ledgers[m.Instance].Open
		for _, t := range there {
			if t.Service == "" || !t.LastStatus.Open() || t.Instance != m.Instance {
				continue
			}
			of := strategies[t.Service]
			if of == nil {
				of = &Service{Cluster: t.Cluster, Name: t.Service}
				if err := c.Store.Load(ctx, of); err != nil {
					return err
				}
				strategies[t.Service] = of
			}
			if of.Strategy == deployment.Daemon {
				others--
			}
		}
		m.Busy = others > 0
	}
	return nil
}
