package control

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// ResourceKind is what an ARN is of, in ECS's words.
type ResourceKind string

// What can have tags.
const (
	ClusterResource    ResourceKind = "cluster"
	TaskResource       ResourceKind = "task"
	InstanceResource   ResourceKind = "container-instance"
	ServiceResource    ResourceKind = "service"
	DefinitionResource ResourceKind = "task-definition"
)

// Resource is something that can have tags.
type Resource struct {
	Kind    ResourceKind
	Cluster string // but of a cluster and a definition
	Name    string // the id of a task or an instance; family:revision of a definition
}

// awsTags begins the keys of tags that ECS sets itself; they count for no limit.
const awsTags = "aws:"

// tagged is what has the tags: a record, where they are in it, and what they may be.
type tagged struct {
	record Record
	// cluster is the one whose tags stand in for a task's.
	cluster *Cluster
	tags    *map[string]string
	judge   func(map[string]string) error
	// missing is the error if it is not there, or is no more.
	missing func() error
}

const resourceNotFoundException = "ResourceNotFoundException"

func resourceNotFound(what string) error {
	return fault.New(fault.NotFound, "The specified %s was not found.", what).WithCode(resourceNotFoundException)
}

// taggedOf finds the record of a resource, which is not loaded yet.
func (c *Control) taggedOf(r Resource) (*tagged, error) {
	gone := func(is bool, what string) error {
		if is {
			return resourceNotFound(what)
		}
		return nil
	}
	switch r.Kind {
	case ClusterResource:
		k := &Cluster{Name: r.Name}
		return &tagged{record: k, tags: &k.Tags, judge: c.checkClusterTags, missing: k.mustBeActive}, nil
	case TaskResource:
		t := &Task{ID: r.Name}
		return &tagged{record: t, cluster: &Cluster{Name: r.Cluster}, tags: &t.Tags, judge: checkTaskTags, missing: func() error {
			return gone(t.Version == 0 || t.Cluster != r.Cluster || expired(t.ExpiresAt, c.Now()), "task")
		}}, nil
	case InstanceResource:
		in := &Instance{ID: r.Name}
		return &tagged{record: in, tags: &in.Tags, judge: checkInstanceTags, missing: func() error {
			return gone(in.Version == 0 || in.Cluster != r.Cluster || !in.GoneAt.IsZero(), "container instance")
		}}, nil
	case ServiceResource:
		s := &Service{Cluster: r.Cluster, Name: r.Name}
		return &tagged{record: s, tags: &s.Tags, judge: checkTaskTags, missing: func() error {
			return gone(s.Version == 0 || s.Status == ServiceInactive, "service")
		}}, nil
	case DefinitionResource:
		ref, err := taskdef.ParseReference(r.Name)
		if err != nil || ref.Revision == 0 {
			return nil, invalid("resourceArn", "names no revision of a task definition")
		}
		d := &Definition{Family: ref.Family, Number: ref.Revision}
		return &tagged{record: d, tags: &d.Tags, judge: checkTaskTags, missing: func() error {
			return gone(d.Version == 0 || d.Status == DefinitionDeleted, "task definition")
		}}, nil
	}
	return nil, invalid("resourceArn", "is of a %.40s; clusters, services, tasks, task definitions and container instances have tags", r.Kind)
}

func (x *tagged) load(ctx context.Context, s Store) error {
	records := []Record{x.record}
	if x.cluster != nil {
		records = append(records, x.cluster)
	}
	if err := s.Load(ctx, records...); err != nil {
		return err
	}
	return x.missing()
}

// TagsOf are a resource's tags.
func (c *Control) TagsOf(ctx context.Context, r Resource) (map[string]string, error) {
	x, err := c.taggedOf(r)
	if err != nil {
		return nil, err
	}
	if err := x.load(ctx, c.Store); err != nil {
		// ListTagsForResource has no exception of its own for it.
		if f, ok := errors.AsType[*fault.Error](err); ok && f.Code == resourceNotFoundException {
			f.Code = InvalidParameterException
		}
		return nil, fmt.Errorf("list tags: %w", err)
	}
	return *x.tags, nil
}

// TagResource adds tags to a resource, or gives those it has another value.
// Tags that Longshore reads are obeyed from then on.
func (c *Control) TagResource(ctx context.Context, r Resource, tags map[string]string) error {
	return c.retag(ctx, r, tags, func(now map[string]string) error {
		maps.Copy(now, tags)
		if n := len(userTags(now)); n > maxTags {
			return fault.New(fault.Invalid, "tags: the resource would have %d; at most %d are allowed", n, maxTags).WithCode("LimitExceededException")
		}
		return nil
	})
}

// UntagResource removes tags from a resource; those it does not have are removed.
func (c *Control) UntagResource(ctx context.Context, r Resource, keys []string) error {
	if len(keys) > maxTags {
		return invalid("tagKeys", "has %d entries; at most %d are allowed", len(keys), maxTags)
	}
	for i, k := range keys {
		if strings.HasPrefix(strings.ToLower(k), awsTags) {
			return invalid(at("tagKeys", i), "is %.130q; the prefix aws: is reserved", k)
		}
	}
	return c.retag(ctx, r, nil, func(now map[string]string) error {
		for _, k := range keys {
			delete(now, k)
		}
		return nil
	})
}

func userTags(tags map[string]string) map[string]string {
	out := maps.Clone(tags)
	maps.DeleteFunc(out, func(k, _ string) bool { return strings.HasPrefix(k, awsTags) })
	return out
}

// retag changes a resource's tags; added are judged first, by its kind's rules.
func (c *Control) retag(ctx context.Context, r Resource, added map[string]string, change func(now map[string]string) error) error {
	x, err := c.taggedOf(r)
	if err != nil {
		return err
	}
	if err := x.judge(added); err != nil {
		return err
	}
	requeued := false
	err = c.decide(ctx, fmt.Sprintf("tag %s %s", r.Kind, r.Name), func() ([]Write, error) {
		requeued = false
		if err := x.load(ctx, c.Store); err != nil {
			return nil, err
		}
		now := maps.Clone(*x.tags)
		if now == nil {
			now = map[string]string{}
		}
		if err := change(now); err != nil {
			return nil, err
		}
		if maps.Equal(now, *x.tags) {
			return nil, errGiveUp
		}
		if t, ok := x.record.(*Task); ok {
			if t.Tags[noCapacityTag] != now[noCapacityTag] {
				return nil, invalid("tags", "%s is read when a task is run; it can not be changed afterwards", noCapacityTag)
			}
			requeued = t.reorder(now)
		}
		*x.tags = now
		return []Write{Put(x.record)}, nil
	})
	if err == nil && requeued {
		c.kick(ctx, Kick{Cluster: r.Cluster, Tasks: []string{r.Name}})
	}
	return err
}

// reorder gives a task its place in the queue by other tags, and says whether it
// waits there. How long is not for those to say that never wait, or whose service waits.
func (r *Task) reorder(tags map[string]string) (waits bool) {
	r.Priority, r.MaxWait = queueTags(tags)
	if r.NoWait || r.Service != "" {
		r.MaxWait = 0
	}
	return r.LastStatus == task.Provisioning
}
