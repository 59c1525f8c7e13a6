package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-run/longshore/shared/logkey"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// DefinitionDeleted is the status of a revision that nobody sees any more. Its
// body stays: that no task used it was read from an index, and such a reading
// destroys nothing (I12).
const DefinitionDeleted = "DELETED"

const (
	maxDeleteDefinitions = 10
	// deletingFor is how long a revision is at least DELETE_IN_PROGRESS: calls that
	// found it ACTIVE have ended by then, and indexes show their tasks.
	deletingFor = 10 * time.Minute
	// usersAtOnce is how many tasks are read at once to see what they use.
	usersAtOnce = 500
)

// DeleteTaskDefinitions begins to delete revisions that are INACTIVE. They stay
// describable until nothing uses them; what runs goes on.
func (c *Control) DeleteTaskDefinitions(ctx context.Context, names []string) (found []*DefinitionView, failures []Failure, err error) {
	if len(names) == 0 || len(names) > maxDeleteDefinitions {
		return nil, nil, invalid("taskDefinitions", "has %d entries; 1 to %d are allowed", len(names), maxDeleteDefinitions)
	}
	for _, name := range unique(names) {
		ref, err := c.reference(name)
		if err != nil || ref.Revision == 0 {
			failures = append(failures, Failure{ARN: name, Reason: "The specified task definition identifier is invalid. Specify a valid name or ARN and try again."})
			continue
		}
		d, why, err := c.deleteDefinition(ctx, ref)
		if err != nil {
			return nil, nil, err
		}
		if why != "" {
			failures = append(failures, Failure{ARN: c.DefinitionARN(ref.Family, ref.Revision), Reason: why})
			continue
		}
		v, err := c.definitionView(d)
		if err != nil {
			return nil, nil, err
		}
		found = append(found, v)
	}
	return found, failures, nil
}

func (c *Control) deleteDefinition(ctx context.Context, ref taskdef.Reference) (d *Definition, why string, err error) {
	d, family := &Definition{Family: ref.Family, Number: ref.Revision}, &Family{Name: ref.Family}
	err = c.decide(ctx, "delete task definition "+d.Key(), func() ([]Write, error) {
		if err := c.Store.Load(ctx, d, family); err != nil {
			return nil, err
		}
		why = ""
		switch {
		case d.Version == 0 || d.Status == DefinitionDeleted:
			why = "The specified task definition does not exist. Specify a valid account, family, revision and try again."
		case d.Status == taskdef.StatusActive:
			why = "The specified task definition is still in ACTIVE status. Please deregister the target and try again."
		case d.Status == taskdef.StatusInactive:
			d.Status, d.DeleteAskedAt = taskdef.StatusDeleteInProgress, c.Now()
			family.Deleting++
			return []Write{Put(d), Put(family)}, nil
		}
		return nil, errGiveUp
	})
	return d, why, err
}

// sweepDefinitions hides the revisions whose deletion was asked for and which
// nothing uses. It looks every ten minutes: to see what is used is to read every
// task and service.
func (c *Control) sweepDefinitions(ctx context.Context) error {
	if c.Now().Minute()%10 != 0 {
		return nil
	}
	due, err := c.dueDefinitions(ctx)
	if err != nil || len(due) == 0 {
		return err
	}
	whole, err := c.unused(ctx, due)
	if err != nil || !whole {
		return err
	}
	var errs []error
	for _, d := range due {
		if err := c.hideDefinition(ctx, d.Family, d.Number); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// dueDefinitions are the revisions that have been DELETE_IN_PROGRESS for a while, by name.
func (c *Control) dueDefinitions(ctx context.Context) (map[string]Definition, error) {
	due := map[string]Definition{}
	for after := ""; ; {
		families, next, err := c.Store.Families(ctx, "", Page{After: after})
		if err != nil {
			return nil, fmt.Errorf("list families: %w", err)
		}
		for _, f := range families {
			if f.Deleting == 0 {
				continue
			}
			if err := c.dueRevisions(ctx, f.Name, due); err != nil {
				return nil, err
			}
		}
		if after = next; next == "" {
			return due, nil
		}
	}
}

func (c *Control) dueRevisions(ctx context.Context, family string, due map[string]Definition) error {
	for after := ""; ; {
		all, next, err := c.Store.Revisions(ctx, family, false, Page{After: after})
		if err != nil {
			return fmt.Errorf("list revisions of %s: %w", family, err)
		}
		for _, d := range all {
			if d.Status == taskdef.StatusDeleteInProgress && !c.Now().Before(d.DeleteAskedAt.Add(deletingFor)) {
				due[d.Key()] = d
			}
		}
		if after = next; next == "" {
			return nil
		}
	}
}

// unused takes out of due what a task or a service still uses, and says whether
// it came to see all of them. A stopped task still shows its definition.
func (c *Control) unused(ctx context.Context, due map[string]Definition) (whole bool, err error) {
	for after := ""; ; {
		clusters, next, err := c.Store.Clusters(ctx, Page{After: after})
		if err != nil {
			return false, fmt.Errorf("list clusters: %w", err)
		}
		for _, cluster := range clusters {
			if whole, err := c.unusedIn(ctx, cluster, due); err != nil || !whole {
				return false, err
			}
		}
		if after = next; next == "" {
			return true, nil
		}
	}
}

func (c *Control) unusedIn(ctx context.Context, cluster string, due map[string]Definition) (whole bool, err error) {
	for after := ""; ; {
		if outOfTime(ctx) {
			return false, nil
		}
		ids, next, err := c.Store.TaskIDs(ctx, TaskQuery{Cluster: cluster}, Page{After: after, Limit: usersAtOnce})
		if err != nil {
			return false, fmt.Errorf("list tasks of cluster %s: %w", cluster, err)
		}
		tasks := tasksOf(ids)
		if err := load(ctx, c.Store, tasks); err != nil {
			return false, fmt.Errorf("load tasks of cluster %s: %w", cluster, err)
		}
		for _, t := range tasks {
			if t.LastStatus != task.Stopped {
				delete(due, DefinitionName(t.Family, t.Number))
			}
		}
		if after = next; next == "" {
			break
		}
	}
	return true, c.unusedByServices(ctx, cluster, due)
}

func (c *Control) hideDefinition(ctx context.Context, name string, number int) error {
	d, family := &Definition{Family: name, Number: number}, &Family{Name: name}
	err := c.decide(ctx, "forget task definition "+d.Key(), func() ([]Write, error) {
		if err := c.Store.Load(ctx, d, family); err != nil {
			return nil, err
		}
		if d.Status != taskdef.StatusDeleteInProgress {
			return nil, errGiveUp
		}
		d.Status = DefinitionDeleted
		family.Deleting--
		family.Deleted++
		return []Write{Put(d), Put(family)}, nil
	})
	if err == nil {
		c.Log.InfoContext(ctx, "task definition deleted: nothing uses it", logkey.Definition, d.Key())
	}
	return err
}

// unusedByServices takes out of due what a cluster's services still use: their
// own definition, and those of deployments that have tasks or are gone back to.
func (c *Control) unusedByServices(ctx context.Context, cluster string, due map[string]Definition) error {
	services, err := c.services(ctx, cluster)
	if err != nil {
		return err
	}
	for _, s := range services {
		delete(due, DefinitionName(s.Family, s.Number))
		for _, d := range s.Deployments {
			delete(due, DefinitionName(d.Family, d.Number))
		}
	}
	return nil
}
