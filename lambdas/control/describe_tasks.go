package control

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/longshore-run/longshore/shared/logkey"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// DescribeAtOnce is how many things one call describes.
const DescribeAtOnce = 100

// TaskView is a task as it is described: with what its definition and its
// instance say of it.
type TaskView struct {
	Task
	Definition taskdef.TaskDefinition // with the overrides applied: what the task runs
	Override   taskdef.TaskOverride
	Zone       string // of its instance
	Connected  bool   // its instance's agent
	// KeptUntil is when a kept task is ended unless its instance returns; zero with
	// KeptConfirmed: until its end is confirmed.
	KeptUntil     time.Time
	KeptConfirmed bool
}

// DescribeTasks describes tasks by id; those a cluster does not have are missing.
func (c *Control) DescribeTasks(ctx context.Context, cluster string, ids []string) (found []TaskView, missing []string, err error) {
	if len(ids) == 0 || len(ids) > DescribeAtOnce {
		return nil, nil, invalid("tasks", "has %d entries; 1 to %d are allowed", len(ids), DescribeAtOnce)
	}
	k, all := &Cluster{Name: cluster}, tasksOf(unique(ids))
	if err := c.Store.Load(ctx, append(recordsOf(all), k)...); err != nil {
		return nil, nil, fmt.Errorf("describe tasks: %w", err)
	}
	if k.Version == 0 {
		return nil, nil, clusterNotFound()
	}
	var here []*Task
	for _, t := range all {
		if t.Version == 0 || t.Cluster != cluster || expired(t.ExpiresAt, c.Now()) {
			missing = append(missing, t.ID)
			continue
		}
		here = append(here, t)
	}
	found, err = c.views(ctx, here)
	return found, missing, err
}

// viewsOf are the views of tasks that were just made.
func viewsOf(o *origin, tasks []*Task) []TaskView {
	var views []TaskView
	for _, t := range tasks {
		v := TaskView{Task: *t, Override: o.over}
		v.Definition, _ = taskdef.Apply(o.def, o.over) // it has been applied before
		views = append(views, v)
	}
	return views
}

// views reads what tasks are described with: definitions and instances, each once.
func (c *Control) views(ctx context.Context, tasks []*Task) ([]TaskView, error) {
	definitions, instances, ledgers := map[string]*Definition{}, map[string]*Instance{}, map[string]*Ledger{}
	var records []Record
	for _, t := range tasks {
		d := &Definition{Family: t.Family, Number: t.Number}
		if definitions[d.Key()] == nil {
			definitions[d.Key()] = d
			records = append(records, d)
		}
		if t.Instance != "" && instances[t.Instance] == nil {
			instances[t.Instance], ledgers[t.Instance] = &Instance{ID: t.Instance}, &Ledger{ID: t.Instance}
			records = append(records, instances[t.Instance], ledgers[t.Instance])
		}
	}
	if len(records) == 0 {
		return nil, nil
	}
	if err := c.Store.Load(ctx, records...); err != nil {
		return nil, fmt.Errorf("load what tasks are described with: %w", err)
	}
	policies, err := c.policiesOf(ctx, slices.DeleteFunc(slices.Clone(tasks), func(t *Task) bool { return t.Kept.IsZero() }))
	if err != nil {
		return nil, fmt.Errorf("load how long tasks are kept: %w", err)
	}
	var out []TaskView
	for _, t := range tasks {
		v, err := viewOf(t, definitions[DefinitionName(t.Family, t.Number)])
		if err != nil { // it is shown with less, and hides no other
			c.Log.ErrorContext(ctx, "task not shown in full", logkey.Task, t.ID, logkey.Error, err)
		}
		if in := instances[t.Instance]; in != nil {
			v.Zone, v.Connected = in.Zone, ledgers[t.Instance].Connected && t.Kept.IsZero()
		}
		if !t.Kept.IsZero() {
			p := policies.of(t)
			v.KeptUntil, v.KeptConfirmed = p.until(t), p.confirmed
		}
		out = append(out, v)
	}
	return out, nil
}

func viewOf(t *Task, d *Definition) (TaskView, error) {
	v := TaskView{Task: *t}
	if d.Version == 0 {
		return v, nil // a task outlives nothing it needs to be shown by
	}
	def, err := taskdef.ParseStored(d.Definition)
	if err != nil {
		return v, fmt.Errorf("parse definition %s: %w", d.Key(), err)
	}
	if len(t.Overrides) > 0 {
		if v.Override, err = taskdef.DecodeOverride(t.Overrides); err != nil {
			v.Definition = def
			return v, fmt.Errorf("decode overrides of task %s: %w", t.ID, err)
		}
	}
	if v.Definition, err = taskdef.Apply(def, v.Override); err != nil {
		v.Definition = def
		return v, fmt.Errorf("apply overrides of task %s: %w", t.ID, err)
	}
	return v, nil
}

// ShownContainers are a task's containers in its definition's order: as they
// were reported, or as they must be before any report and after the end.
func (v *TaskView) ShownContainers() []task.Container {
	var out []task.Container
	for _, d := range v.Definition.ContainerDefinitions {
		k := task.Container{Name: d.Name, Image: d.Image, Status: task.ContainerPending}
		for _, known := range v.Containers {
			if known.Name == d.Name {
				k = known
				k.Image = d.Image
			}
		}
		out = append(out, k)
	}
	if v.LastStatus == task.Stopped {
		out = task.StopContainers(out, "", v.StoppedAt)
	}
	return out
}

func unique(ids []string) []string {
	seen := map[string]bool{}
	var out []string
	for _, id := range ids {
		if !seen[id] {
			seen[id] = true
			out = append(out, id)
		}
	}
	return out
}
