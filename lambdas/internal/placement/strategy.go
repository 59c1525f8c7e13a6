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
	strategies, isDefault := chainOf(t)
	for _, s := range strategies {
		if len(fit) == 1 {
			break
		}
		switch s.Type {
		case Binpack:
			fit = least(fit, func(h *host) int { return h.left(s.Field) })
		case Spread:
			counts := p.tallyOf(t, s.Field, isDefault)
			fit = least(fit, func(h *host) int { return counts[spreadValue(h, s.Field)] })
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

// tallyKey is what a spread of t over a field counts: the tasks of t's group, or of
// any where nothing is known of the group.
func (p *plan) tallyKey(t *Task, field string, ofAll bool) count {
	if _, known := p.in.GroupTasks[t.Group]; known && !ofAll {
		return count{field: field, group: t.Group}
	}
	return count{field: field, all: true}
}

// tallyOf counts tasks by the values of a field, as the plan goes.
func (p *plan) tallyOf(t *Task, field string, ofAll bool) map[string]int {
	key := p.tallyKey(t, field, ofAll)
	if counts, ready := p.tally[key]; ready {
		return counts
	}
	of := p.in.GroupTasks[t.Group]
	counts := map[string]int{}
	for _, h := range p.hosts {
		n := h.open
		if !key.all {
			n = of[h.in.ID] + h.placed[t.Group]
		}
		counts[spreadValue(h, field)] += n
	}
	p.tally[key] = counts
	p.fields[key.group] = append(p.fields[key.group], key)
	return counts
}

// tallied counts a task that was just placed.
func (p *plan) tallied(t *Task, h *host) {
	for _, group := range []string{"", t.Group} {
		for _, key := range p.fields[group] {
			if key.all || key.group == t.Group {
				p.tally[key][spreadValue(h, key.field)]++
			}
		}
		if t.Group == "" {
			break
		}
	}
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
