package placement

import (
	"cmp"
	"slices"
	"strings"
)

// ZoneAttribute is the attribute that spreads over zones read.
const ZoneAttribute = "ecs.availability-zone"

// byDefault is what a task without strategies gets.
var byDefault = []Strategy{{Spread, "attribute:" + ZoneAttribute}, {Binpack, "memory"}}

// best is the host that t's strategies prefer, each narrowing what the one
// before left, and the lowest id among equals.
func (p *plan) best(t *Task, fit []*host) *host {
	strategies := t.Strategy
	if len(strategies) == 0 {
		strategies = byDefault
	}
	for _, s := range strategies {
		if len(fit) == 1 {
			break
		}
		switch s.Type {
		case Binpack:
			fit = least(fit, func(h *host) int { return h.left(s.Field) })
		case Spread:
			fit = p.spread(t, fit, s.Field, len(t.Strategy) == 0)
		case Random:
			if p.in.Random != nil {
				return fit[p.in.Random(len(fit))]
			}
		}
	}
	return slices.MinFunc(fit, func(a, b *host) int { return cmp.Compare(a.in.ID, b.in.ID) })
}

func (h *host) left(field string) int {
	if strings.EqualFold(field, "cpu") {
		return h.free.CPU
	}
	return h.free.MemoryMiB
}

// count is what a spread counts: tasks by a field's values, of one group or of
// all ("").
type count struct {
	field, group string
	all          bool
}

// spread keeps the hosts whose value of field has the fewest tasks: of t's
// group, or of any where nothing is known of the group.
func (p *plan) spread(t *Task, fit []*host, field string, ofAll bool) []*host {
	key := count{field: field, all: true}
	of, known := p.in.GroupTasks[t.Group]
	if known && !ofAll {
		key = count{field: field, group: t.Group}
	}
	counts, ready := p.tally[key]
	if !ready {
		counts = map[string]int{}
		for _, h := range p.hosts {
			n := h.open
			if !key.all {
				n = of[h.in.ID] + h.placed[t.Group]
			}
			counts[spreadValue(h, field)] += n
		}
		if p.tally == nil {
			p.tally = map[count]map[string]int{}
		}
		p.tally[key] = counts
	}
	return least(fit, func(h *host) int { return counts[spreadValue(h, field)] })
}

// tallied counts a task that was just placed.
func (p *plan) tallied(t *Task, h *host) {
	for key, counts := range p.tally {
		if key.all || key.group == t.Group {
			counts[spreadValue(h, key.field)]++
		}
	}
}

func spreadValue(h *host, field string) string {
	if field == "instanceId" || field == "host" {
		return h.in.ID
	}
	return h.in.Attributes[strings.TrimPrefix(field, "attribute:")]
}

// least keeps the hosts of which score is least.
func least(hosts []*host, score func(*host) int) []*host {
	var out []*host
	low := 0
	for _, h := range hosts {
		s := score(h)
		if len(out) == 0 || s < low {
			out, low = out[:0:0], s
		}
		if s == low {
			out = append(out, h)
		}
	}
	return out
}
