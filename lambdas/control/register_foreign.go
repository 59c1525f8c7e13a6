package control

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ForeignRequest describes an instance that somebody registers through the API,
// without longshore-agent.
type ForeignRequest struct {
	Cluster       string
	ID            string // "" for a new one, else one that was registered so before
	EC2InstanceID string
	Zone          string
	Registered    Held // TCP and UDP hold the reserved ports
	AgentVersion  string
	AgentHash     string
	DockerVersion string
	Attributes    map[string]string
	Tags          map[string]string
}

func (r *ForeignRequest) check() error {
	if r.Registered.CPU < 0 || r.Registered.MemoryMiB < 0 {
		return invalid("totalResources", "must not be below zero")
	}
	for _, name := range slices.Sorted(maps.Keys(r.Attributes)) {
		if strings.HasPrefix(name, operatorPrefix) {
			return invalid("attributes", "%s is not an instance's to say; PutAttributes sets it", name)
		}
		if !attributeName.MatchString(name) || !attributeValue.MatchString(r.Attributes[name]) {
			return invalid("attributes", "%.140q is %.140q; at most %d letters, digits and - _ / \\ . are allowed in a name, and @ : and spaces in a value", name, r.Attributes[name], maxAttributeLength)
		}
	}
	return checkInstanceTags(r.Tags)
}

// RegisterForeign lists an instance that has no longshore-agent, as ECS's
// RegisterContainerInstance does. It is disconnected and stays so: no lease is
// made, nobody waits for its beats, it is given no work, and it counts for no
// bound. It is there until it is deregistered, or an agent registers as it.
func (c *Control) RegisterForeign(ctx context.Context, r ForeignRequest) (*InstanceView, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	id := r.ID
	if id == "" {
		id = c.NewID()
	}
	k, v := &Cluster{Name: r.Cluster}, &InstanceView{}
	v.Instance.ID, v.Ledger.ID = id, id
	err := c.decide(ctx, "register instance "+id, func() ([]Write, error) {
		if err := c.Store.Load(ctx, k, &v.Instance, &v.Ledger); err != nil {
			return nil, err
		}
		w := &changes{}
		if k.Version == 0 && k.Name == DefaultCluster { // as ECS makes it for its first instance
			k.Status, k.CreatedAt = ClusterActive, c.Now()
			w.put(k)
		}
		if k.Status != ClusterActive {
			return nil, k.mustBeActive()
		}
		w.check(k)
		switch {
		case r.ID != "" && (v.Instance.Version == 0 || v.Instance.Cluster != r.Cluster || !v.GoneAt.IsZero()):
			return nil, instanceNotFound()
		case r.ID != "" && !v.Foreign:
			return nil, invalid("containerInstanceArn", "its agent registers this instance, and nobody else")
		}
		r.describe(v)
		if v.Ledger.Version == 0 {
			now := c.Now()
			v.RegisteredAt = now
			v.Ledger.Status, v.Ledger.Epoch, v.Ledger.SinceEpoch = Active, now.Unix(), now.Unix()
		}
		w.put(&v.Instance, &v.Ledger)
		return w.all(), nil
	})
	if err != nil {
		return nil, fmt.Errorf("register without an agent: %w", err)
	}
	return v, nil
}

func (r *ForeignRequest) describe(v *InstanceView) {
	in, l := &v.Instance, &v.Ledger
	in.Cluster, in.Foreign, in.EC2InstanceID = r.Cluster, true, r.EC2InstanceID
	if in.Zone = r.Zone; in.Zone == "" {
		in.Zone = noZone
	}
	in.AgentVersion, in.AgentHash, in.DockerVersion = r.AgentVersion, r.AgentHash, r.DockerVersion
	in.Attributes = attributesFrom(r.Attributes)
	if len(r.Tags) > 0 {
		in.Tags = r.Tags
	}
	l.Cluster = r.Cluster
	l.Registered = Held{
		CPU: r.Registered.CPU, MemoryMiB: r.Registered.MemoryMiB, GPUs: sorted(slices.Clone(r.Registered.GPUs)),
		TCP: distinct(r.Registered.TCP), UDP: distinct(r.Registered.UDP),
	}
}
