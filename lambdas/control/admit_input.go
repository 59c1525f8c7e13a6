package control

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/longshore-run/longshore/lambdas/internal/placement"
	"github.com/longshore-run/longshore/shared/wire"
)

// Attributes that every instance has.
const (
	attributeZone     = placement.ZoneAttribute
	attributeInstance = "ecs.instance-id"
)

// enough ends a plan in time for what it gives out to be written.
func (p *pass) enough(ctx context.Context) func() bool {
	started := p.c.Now()
	return func() bool {
		return p.out(ctx) || !p.deadline.IsZero() && p.c.Now().Sub(started) > p.deadline.Sub(started)/2
	}
}

func placementTask(t *Task) placement.Task {
	out := placement.Task{
		ID: t.ID, Group: t.Group, Needs: t.Needs, Priority: t.Priority,
		Since: t.CreatedAt, Pinned: t.Pinned, Distinct: t.Distinct(),
	}
	for _, c := range t.Constraints {
		if c.Type == "memberOf" {
			out.Expressions = append(out.Expressions, c.Expression)
		}
	}
	for _, s := range t.Strategy {
		out.Strategy = append(out.Strategy, placement.Strategy{Type: s.Type, Field: s.Field})
	}
	return out
}

func placementInstance(in *Instance, l *Ledger, now time.Time) placement.Instance {
	cpu, memory := l.Free()
	out := placement.Instance{
		ID:          in.ID,
		Attributes:  attributesOf(in),
		Unfit:       unfit(in, l),
		Registered:  placement.Size{CPU: l.Registered.CPU, MemoryMiB: l.Registered.MemoryMiB, GPUs: len(l.Registered.GPUs)},
		Free:        placement.Size{CPU: cpu, MemoryMiB: memory, GPUs: len(l.FreeGPUs())},
		TakenTCP:    setOf(l.Held.TCP, l.Registered.TCP),
		TakenUDP:    setOf(l.Held.UDP, l.Registered.UDP),
		ReservedTCP: setOf(l.Registered.TCP),
		ReservedUDP: setOf(l.Registered.UDP),
		Groups:      setOf(l.Held.Distinct),
		Open:        l.Open,
	}
	for _, r := range l.Refusals {
		if r.Until.After(now) {
			out.RefusedTCP = merge(out.RefusedTCP, r.TCP)
			out.RefusedUDP = merge(out.RefusedUDP, r.UDP)
			if r.Shape != "" {
				out.RefusedShapes = merge(out.RefusedShapes, []string{r.Shape})
			}
		}
	}
	return out
}

// unfit says why an instance takes no work at all, in ECS's words, or "".
func unfit(in *Instance, l *Ledger) string {
	if !slices.Contains(in.WireVersions, wire.Version) {
		return placement.ReasonAgent
	}
	return admissible(l)
}

// ShapeOf names what placement sees of a task, to remember refusals by.
func ShapeOf(t *Task) string { return placement.ShapeOf(placementTask(t)) }

// attributesOf are an instance's attributes as placement and people see them: what
// its agent says, what was put over that, and what every instance has.
func attributesOf(in *Instance) map[string]string {
	out := maps.Clone(in.Attributes)
	if out == nil {
		out = map[string]string{}
	}
	maps.DeleteFunc(out, func(k, _ string) bool { return strings.HasPrefix(k, operatorPrefix) })
	maps.Copy(out, in.Custom)
	out[attributeZone] = in.Zone
	if out[attributeInstance] = in.EC2InstanceID; in.EC2InstanceID == "" {
		out[attributeInstance] = in.ID
	}
	return out
}

// operatorPrefix opens the names of attributes that agents may not set: only
// PutAttributes does.
const operatorPrefix = "longshore."

func setOf[T comparable](lists ...[]T) map[T]bool {
	var out map[T]bool
	for _, l := range lists {
		out = merge(out, l)
	}
	return out
}

func merge[T comparable](set map[T]bool, more []T) map[T]bool {
	if set == nil && len(more) > 0 {
		set = make(map[T]bool, len(more))
	}
	for _, x := range more {
		set[x] = true
	}
	return set
}

func recordsOf[P Record](all []P) []Record {
	out := make([]Record, len(all))
	for i, r := range all {
		out[i] = r
	}
	return out
}

// load is Store.Load of records of one kind; none is no call.
func load[P Record](ctx context.Context, s Store, all []P) error {
	if len(all) == 0 {
		return nil
	}
	return s.Load(ctx, recordsOf(all)...)
}

// liveOf loads the live count of a task's service, nil for other tasks.
func (c *Control) liveOf(ctx context.Context, t *Task) (*Live, error) {
	if t.Service == "" {
		return nil, nil
	}
	live := &Live{Cluster: t.Cluster, Service: t.Service}
	return live, c.Store.Load(ctx, live)
}
