package control

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/shared/fault"
)

// Attribute is one attribute of a container instance.
type Attribute struct{ Name, Value, Instance string }

const (
	maxAttributes      = 10 // of one call, and put on one instance
	maxAttributeLength = 128
)

var (
	attributeName  = regexp.MustCompile(`^[A-Za-z0-9_./\\-]{1,128}$`)
	attributeValue = regexp.MustCompile(`^[A-Za-z0-9_.@:/\\ -]{0,128}$`)
)

// checkAttribute judges an attribute to put. Those that ECS and Longshore tell of
// every instance are not anybody's to change: placement trusts them.
func checkAttribute(i int, a Attribute) error {
	at := at("attributes", i)
	switch {
	case !attributeName.MatchString(a.Name):
		return invalid(at+".name", "is %.140q; 1 to %d letters, digits and - _ / \\ . are allowed", a.Name, maxAttributeLength)
	case strings.HasPrefix(a.Name, "ecs.") || strings.HasPrefix(a.Name, "com.amazonaws."):
		return invalid(at+".name", "is %.140q; the prefixes ecs. and com.amazonaws. are kept for what instances have by themselves", a.Name)
	case !attributeValue.MatchString(a.Value) || strings.TrimSpace(a.Value) != a.Value:
		return invalid(at+".value", "is %.140q; at most %d letters, digits, - _ . @ : / \\ and inner spaces are allowed", a.Value, maxAttributeLength)
	}
	return nil
}

func targetNotFound(id string) error {
	return fault.New(fault.NotFound, "The specified target was not found: %.200s", id).WithCode("TargetNotFoundException")
}

// PutAttributes sets attributes of instances, over what their agents say of
// themselves. They outlive the agents' registrations, and placement goes by them
// from then on. Each instance is written by itself; the first that can not be
// ends the call, and the same call again makes up the rest.
func (c *Control) PutAttributes(ctx context.Context, cluster string, all []Attribute) error {
	for i, a := range all {
		if err := checkAttribute(i, a); err != nil {
			return err
		}
	}
	return c.editAttributes(ctx, cluster, all, func(in *Instance, a Attribute) error {
		if in.Custom == nil {
			in.Custom = map[string]string{}
		}
		in.Custom[a.Name] = a.Value
		if len(in.Custom) > maxAttributes {
			return fault.New(fault.Invalid, "You can apply up to %d custom attributes for each resource.", maxAttributes).WithCode("AttributeLimitExceededException")
		}
		return nil
	})
}

// DeleteAttributes removes attributes of instances. One that an agent says of
// itself comes back with its next registration.
func (c *Control) DeleteAttributes(ctx context.Context, cluster string, all []Attribute) error {
	return c.editAttributes(ctx, cluster, all, func(in *Instance, a Attribute) error {
		delete(in.Custom, a.Name)
		delete(in.Attributes, a.Name)
		return nil
	})
}

func (c *Control) editAttributes(ctx context.Context, cluster string, all []Attribute, edit func(*Instance, Attribute) error) error {
	if len(all) == 0 || len(all) > maxAttributes {
		return invalid("attributes", "has %d entries; 1 to %d are allowed", len(all), maxAttributes)
	}
	if err := c.cluster(ctx, cluster); err != nil {
		return err
	}
	var ids []string
	for _, a := range all {
		ids = append(ids, a.Instance)
	}
	for _, id := range unique(ids) {
		in := &Instance{ID: id}
		err := c.decide(ctx, "set attributes of instance "+id, func() ([]Write, error) {
			if err := c.Store.Load(ctx, in); err != nil {
				return nil, err
			}
			if in.Version == 0 || in.Cluster != cluster || !in.GoneAt.IsZero() {
				return nil, targetNotFound(id)
			}
			before := attributesOf(in)
			in.Attributes, in.Custom = maps.Clone(in.Attributes), maps.Clone(in.Custom)
			for _, a := range all {
				if a.Instance == id {
					if err := edit(in, a); err != nil {
						return nil, err
					}
				}
			}
			if maps.Equal(before, attributesOf(in)) {
				return nil, errGiveUp
			}
			return []Write{Put(in)}, nil
		})
		if err != nil {
			return err
		}
		c.kick(ctx, Kick{Cluster: cluster, Instance: id}) // something may have waited for it
	}
	c.kickServices(ctx, Kick{Cluster: cluster}) // a DAEMON may belong there now, or no more
	return nil
}

// AttributeFilter is what ListAttributes lists; empty members filter nothing.
type AttributeFilter struct{ Cluster, Name, Value string }

// ListAttributes lists attributes of a cluster's instances, by instance and name.
func (c *Control) ListAttributes(ctx context.Context, f AttributeFilter, cursor Cursor, limit int) ([]Attribute, Cursor, error) {
	if err := c.cluster(ctx, f.Cluster); err != nil {
		return nil, Cursor{}, err
	}
	found := map[string]Attribute{}
	page := func(ctx context.Context, page Page) (keys []string, next string, err error) {
		page.Limit = 10 // each has many
		ids, next, err := c.Store.InstanceIDs(ctx, f.Cluster, page)
		if err != nil {
			return nil, "", err
		}
		all := make([]*Instance, len(ids))
		for i, id := range ids {
			all[i] = &Instance{ID: id}
		}
		if err := load(ctx, c.Store, all); err != nil {
			return nil, "", err
		}
		for _, in := range all {
			if in.Version == 0 || in.Cluster != f.Cluster || !in.GoneAt.IsZero() {
				continue
			}
			shown := attributesOf(in)
			for _, name := range slices.Sorted(maps.Keys(shown)) {
				key := in.ID + "/" + name
				found[key] = Attribute{Name: name, Value: shown[name], Instance: in.ID}
				keys = append(keys, key)
			}
		}
		return keys, next, nil
	}
	keep := func(_ context.Context, _ string, keys []string) ([]bool, error) {
		return keepIf(keys, func(k string) bool {
			a := found[k]
			return cmp.Or(f.Name, a.Name) == a.Name && cmp.Or(f.Value, a.Value) == a.Value
		}), nil
	}
	keys, next, err := walk(ctx, cursor, limit, []source{{page: page}}, keep)
	if err != nil {
		return nil, Cursor{}, fmt.Errorf("list attributes: %w", err)
	}
	all := make([]Attribute, len(keys))
	for i, k := range keys {
		all[i] = found[k]
	}
	return all, next, nil
}
