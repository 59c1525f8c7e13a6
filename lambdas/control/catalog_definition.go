package control

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// DefinitionView is a task definition as it is described, and its tags, which
// stand beside it.
type DefinitionView struct {
	taskdef.TaskDefinition
	Tags map[string]string
}

// refusedBy makes the faults of a document an error that callers see.
func refusedBy(err error, code string) error {
	if err == nil {
		return nil
	}
	f := &fault.Error{Kind: fault.Invalid, Code: code, Cause: err}
	if all, ok := errors.AsType[taskdef.Faults](err); ok {
		f.Field = all[0].Path
		f.Code = exceptionFor(all, code)
	}
	return f
}

// RefusedDefinition makes the faults of a task definition an error that callers see.
func RefusedDefinition(err error) error { return refusedBy(err, ClientException) }

// exceptionFor is the exception for a document's faults: one that is no document of
// the operation at all is told apart from one that breaks a rule.
func exceptionFor(all taskdef.Faults, rule string) string {
	has := func(kinds ...taskdef.Kind) bool {
		return slices.ContainsFunc(all, func(f taskdef.Fault) bool { return slices.Contains(kinds, f.Kind) })
	}
	switch {
	case has(taskdef.Malformed, taskdef.WrongType):
		return SerializationException
	case has(taskdef.Unknown, taskdef.Unsupported):
		return InvalidParameterException
	}
	return rule
}

// RegisterTaskDefinition stores the next revision of a family.
func (c *Control) RegisterTaskDefinition(ctx context.Context, in taskdef.Input, by string) (*DefinitionView, error) {
	if err := taskdef.Validate(in); err != nil {
		return nil, RefusedDefinition(err)
	}
	tags := map[string]string{}
	for _, t := range in.Tags {
		tags[t.Key] = t.Value
	}
	if err := checkTaskTags(tags); err != nil {
		return nil, err
	}
	family, d := &Family{Name: in.Family}, &Definition{Family: in.Family}
	err := c.decide(ctx, "register task definition "+in.Family, func() ([]Write, error) {
		if err := c.Store.Load(ctx, family); err != nil {
			return nil, err
		}
		now := c.Now()
		family.Latest++
		family.Active++
		def := taskdef.Echo(in, taskdef.Registration{
			Region: c.Setting.Region, Account: c.Setting.Account, Partition: c.Setting.Partition, Revision: family.Latest, At: taskdef.At(now), By: by,
		})
		def.TaskDefinitionArn = c.DefinitionARN(in.Family, family.Latest)
		*d = Definition{
			Family: in.Family, Number: family.Latest, Status: taskdef.StatusActive,
			Definition: taskdef.Canonical(def), Tags: tags, RegisteredAt: now, RegisteredBy: by,
		}
		if len(d.Definition) > taskdef.MaxSize {
			return nil, client("the definition has %d bytes as it is stored; at most %d are allowed", len(d.Definition), taskdef.MaxSize)
		}
		return []Write{Put(family), Put(d)}, nil
	})
	if err != nil {
		return nil, err
	}
	return c.definitionView(d)
}

func (c *Control) definitionView(d *Definition) (*DefinitionView, error) {
	def, err := taskdef.ParseStored(d.Definition)
	if err != nil {
		return nil, fmt.Errorf("parse definition %s: %w", d.Key(), err)
	}
	def.Status = d.Status
	if !d.DeregisteredAt.IsZero() {
		def.DeregisteredAt = taskdef.At(d.DeregisteredAt)
	}
	if !d.DeleteAskedAt.IsZero() {
		def.DeleteRequestedAt = taskdef.At(d.DeleteAskedAt)
	}
	return &DefinitionView{TaskDefinition: def, Tags: d.Tags}, nil
}

// reference reads how a caller names a definition; one of another installation
// is not found.
func (c *Control) reference(name string) (taskdef.Reference, error) {
	ref, err := taskdef.ParseReference(name)
	if err != nil {
		return ref, refusedBy(err, InvalidParameterException)
	}
	if ref.Account != "" && ref.Account != c.Setting.Account || ref.Region != "" && ref.Region != c.Setting.Region {
		return ref, invalid("taskDefinition", "%q is not a task definition of account %s and region %s", name, c.Setting.Account, c.Setting.Region)
	}
	return ref, nil
}

// latest finds a family's newest ACTIVE revision, nil if there is none. family
// has been loaded.
func (c *Control) latest(ctx context.Context, family *Family) (*Definition, error) {
	if family.Latest == 0 || family.Active == 0 {
		return nil, nil
	}
	d := &Definition{Family: family.Name, Number: family.Latest}
	if err := c.Store.Load(ctx, d); err != nil || d.Status == taskdef.StatusActive {
		return d, err
	}
	for after := ""; ; {
		all, next, err := c.Store.Revisions(ctx, family.Name, true, Page{After: after})
		if err != nil {
			return nil, err
		}
		for _, r := range all {
			if r.Status == taskdef.StatusActive {
				d = &Definition{Family: r.Family, Number: r.Number}
				return d, c.Store.Load(ctx, d)
			}
		}
		if after = next; next == "" {
			return nil, nil
		}
	}
}

// definition finds what a reference names, nil if it is not there. Without a
// revision that is the newest ACTIVE one.
func (c *Control) definition(ctx context.Context, ref taskdef.Reference) (*Definition, error) {
	if ref.Revision == 0 {
		family := &Family{Name: ref.Family}
		if err := c.Store.Load(ctx, family); err != nil {
			return nil, err
		}
		return c.latest(ctx, family)
	}
	d := &Definition{Family: ref.Family, Number: ref.Revision}
	if err := c.Store.Load(ctx, d); err != nil || d.Version == 0 || d.Status == DefinitionDeleted {
		return nil, err
	}
	return d, nil
}

// DescribeTaskDefinition describes a revision, ACTIVE or not.
func (c *Control) DescribeTaskDefinition(ctx context.Context, name string) (*DefinitionView, error) {
	ref, err := c.reference(name)
	if err != nil {
		return nil, err
	}
	d, err := c.definition(ctx, ref)
	switch {
	case err != nil:
		return nil, fmt.Errorf("describe task definition %s: %w", name, err)
	case d == nil:
		return nil, client("Unable to describe task definition.")
	}
	return c.definitionView(d)
}

// DeregisterTaskDefinition makes a revision INACTIVE: no new task runs it.
func (c *Control) DeregisterTaskDefinition(ctx context.Context, name string) (*DefinitionView, error) {
	ref, err := c.reference(name)
	switch {
	case err != nil:
		return nil, err
	case ref.Revision == 0:
		return nil, invalid("taskDefinition", "must name a revision, as in %s:1", ref.Family)
	}
	d, family := &Definition{Family: ref.Family, Number: ref.Revision}, &Family{Name: ref.Family}
	err = c.decide(ctx, "deregister task definition "+name, func() ([]Write, error) {
		if err := c.Store.Load(ctx, d, family); err != nil {
			return nil, err
		}
		switch {
		case d.Version == 0 || d.Status == DefinitionDeleted:
			return nil, client("The specified task definition does not exist.")
		case d.Status != taskdef.StatusActive:
			return nil, errGiveUp
		}
		d.Status, d.DeregisteredAt = taskdef.StatusInactive, c.Now()
		family.Active--
		return []Write{Put(d), Put(family)}, nil
	})
	if err != nil {
		return nil, err
	}
	return c.definitionView(d)
}
