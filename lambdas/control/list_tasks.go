package control

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/shared/task"
)

// TaskFilter is what ListTasks lists; empty members filter nothing, but for
// Desired, which is then RUNNING.
type TaskFilter struct {
	Cluster   string
	Instance  string
	Family    string
	StartedBy string
	Service   string
	Desired   string // RUNNING, STOPPED, or PENDING, which no task has
	Launch    string
}

func (f *TaskFilter) wants(t *Task) bool {
	return t.Cluster == f.Cluster && string(t.DesiredStatus) == f.Desired &&
		(f.Instance == "" || t.Instance == f.Instance) &&
		(f.Family == "" || t.Family == f.Family) &&
		(f.StartedBy == "" || t.StartedBy == f.StartedBy) &&
		(f.Service == "" || t.Service == f.Service) &&
		(f.Launch == "" || t.Launch == f.Launch)
}

// ListTasks lists the ids of tasks. It goes through the narrowest index there
// is: those that are to run are found where they wait and on their instances, so
// that the many that have stopped are not read; an index may lag.
func (c *Control) ListTasks(ctx context.Context, f TaskFilter, cursor Cursor, limit int) ([]string, Cursor, error) {
	if f.Desired == "" {
		f.Desired = string(task.DesiredRunning)
	}
	k := &Cluster{Name: f.Cluster}
	in := &Instance{ID: f.Instance}
	records := []Record{k}
	if f.Instance != "" {
		records = append(records, in)
	}
	of := &Service{Cluster: f.Cluster, Name: f.Service}
	if f.Service != "" {
		records = append(records, of)
	}
	if err := c.Store.Load(ctx, records...); err != nil {
		return nil, Cursor{}, fmt.Errorf("list tasks: %w", err)
	}
	switch {
	case k.Version == 0:
		return nil, Cursor{}, clusterNotFound()
	case f.Instance != "" && (in.Version == 0 || in.Cluster != f.Cluster):
		return nil, Cursor{}, instanceNotFound()
	case f.Service != "" && of.Version == 0:
		return nil, Cursor{}, serviceNotFound()
	case f.Desired != string(task.DesiredRunning) && f.Desired != string(task.DesiredStopped):
		return []string{}, Cursor{}, nil
	}
	sources, err := c.taskSources(ctx, &f)
	if err != nil {
		return nil, Cursor{}, err
	}
	now := c.Now()
	keep := func(ctx context.Context, source string, ids []string) ([]bool, error) {
		tasks := tasksOf(ids)
		err := load(ctx, c.Store, tasks)
		return keepIf(tasks, func(t *Task) bool {
			listed := strings.HasPrefix(source, onInstances) && t.WaitingFor() == ForSign // there, and not twice
			return t.Version > 0 && !expired(t.ExpiresAt, now) && f.wants(t) && !listed
		}), err
	}
	return walk(ctx, cursor, limit, sources, keep)
}

// onInstances begins the names of the sources of what instances run.
const onInstances = "3 "

// taskSources are the index lists that hold what a filter wants. Their names
// sort as they are read: what waits, what was just admitted, then instances, so
// that a task which moves on meanwhile is met again and not missed.
func (c *Control) taskSources(ctx context.Context, f *TaskFilter) ([]source, error) {
	of := func(name string, q TaskQuery) source {
		return source{name, func(ctx context.Context, page Page) ([]string, string, error) { return c.Store.TaskIDs(ctx, q, page) }}
	}
	running := f.Desired == string(task.DesiredRunning)
	switch {
	case f.Service != "":
		group := TaskQuery{Cluster: f.Cluster, Group: servicePrefix + f.Service}
		sources := []source{of("1 group", group)} // of those that are to stop, too: some have not yet
		if !running {
			group.Stopped = true
			sources = append(sources, of("2 stopped", group))
		}
		return sources, nil
	case running && f.Instance != "":
		return []source{of("instance", TaskQuery{OnInstance: f.Instance})}, nil
	case !running:
		return []source{of("cluster", TaskQuery{Cluster: f.Cluster})}, nil
	}
	ledgers, err := c.ledgersOf(ctx, f.Cluster)
	if err != nil {
		return nil, fmt.Errorf("list tasks: %w", err)
	}
	sources := []source{
		of("1 room", TaskQuery{Cluster: f.Cluster, Waiting: ForRoom}),
		of("2 sign", TaskQuery{Cluster: f.Cluster, Waiting: ForSign}),
	}
	slices.SortFunc(ledgers, func(a, b *Ledger) int { return cmp.Compare(a.ID, b.ID) })
	for _, l := range ledgers {
		if l.Open > 0 {
			sources = append(sources, of(onInstances+l.ID, TaskQuery{OnInstance: l.ID}))
		}
	}
	return sources, nil
}
