package placement

import (
	"cmp"
	"math"
	"strings"
)

// maxChain is how many strategies a ladder orders by; a longer chain is followed
// host by host.
const maxChain = 5

// ladder keeps the hosts that have room for the tasks of one shape in the order in
// which one chain of strategies prefers them. A placement changes one host, so the
// next best is found in the logarithm of their number, where a look at each would
// take time in proportion to it. Within a plan room only shrinks: a host that has
// fallen off never comes back.
type ladder struct {
	shape   *shape
	chain   []Strategy
	tallies []map[string]int // what each spread of the chain counts by; nil for others
	alone   []bool           // spreads over hosts, of which each is a value of its own
	classes []*class
	of      []*class // by host
	at      []int32  // where each host stands in its class, -1: nowhere
	seen    int      // of the plan's changes
}

// class is hosts that no spread of the chain tells apart: a heap, best first.
type class struct {
	values [maxChain]string // of the spread attributes
	heap   []rung
}

// rung is a host with what the chain orders it by within its class, as it was when
// the ladder looked last.
type rung struct {
	h   *host
	key [maxChain]int32
}

// ladderKey names a ladder: of a group's own where a spread counts by it.
type ladderKey struct {
	shape        *shape
	chain, group string
	ofGroup      bool
}

// ladderFor is the ladder of a task, nil if it has none: for a single task a look
// at each host costs less, and chance needs to see all of them.
func (p *plan) ladderFor(t *Task, s *shape) *ladder {
	chain, byDefault := chainOf(t)
	k := ladderKey{shape: s}
	for i, c := range chain {
		if c.Type == Random || i >= maxChain {
			return nil
		}
		if !byDefault {
			k.chain += c.Type + " " + c.Field + ","
		}
		if c.Type == Spread && !p.tallyKey(t, c.Field, byDefault).all {
			k.group, k.ofGroup = t.Group, true
		}
	}
	l, again := p.ladders[k]
	if !again && p.alike[plainOf(t)] < 2 {
		p.ladders[k] = nil
		return nil
	}
	if l == nil {
		l = p.newLadder(t, s)
		p.ladders[k] = l
	}
	return l
}

func (p *plan) newLadder(t *Task, s *shape) *ladder {
	chain, byDefault := chainOf(t)
	l := &ladder{shape: s, chain: chain, of: make([]*class, len(p.hosts)), at: make([]int32, len(p.hosts)), seen: len(p.changes)}
	for _, c := range chain {
		var counts map[string]int
		if c.Type == Spread {
			counts = p.tallyOf(t, c.Field, byDefault)
		}
		l.tallies = append(l.tallies, counts)
		l.alone = append(l.alone, c.Type == Spread && perHost(c.Field))
	}
	for i := range l.at {
		l.at[i] = -1
	}
	find := l.classFinder(len(s.eligible))
	for _, h := range s.eligible {
		if h.lacks(t, s.key) != "" {
			continue
		}
		c := find(h)
		l.of[h.at], l.at[h.at] = c, int32(len(c.heap))
		c.heap = append(c.heap, rung{h, l.key(h)})
	}
	for _, c := range l.classes {
		for i := len(c.heap)/2 - 1; i >= 0; i-- {
			l.down(c, i)
		}
	}
	return l
}

// classFinder finds the class of a host, and makes it if it is the first of it.
func (l *ladder) classFinder(hosts int) func(*host) *class {
	classes := map[[maxChain]string]*class{}
	var last *class // neighbours are often alike
	return func(h *host) *class {
		var values [maxChain]string
		for i, c := range l.chain {
			if l.tallies[i] != nil && !l.alone[i] {
				values[i] = spreadValue(h, c.Field)
			}
		}
		if last != nil && last.values == values {
			return last
		}
		if last = classes[values]; last == nil {
			last = &class{values: values, heap: make([]rung, 0, hosts/(1+len(classes)))}
			classes[values] = last
			l.classes = append(l.classes, last)
		}
		return last
	}
}

// key is what the chain orders a host by within its class.
func (l *ladder) key(h *host) (key [maxChain]int32) {
	for i, c := range l.chain {
		switch {
		case c.Type == Binpack:
			key[i] = int32(min(h.left(c.Field), math.MaxInt32))
		case l.alone[i]:
			key[i] = int32(l.tallies[i][spreadValue(h, c.Field)])
		}
	}
	return key
}

// best is the host that the chain prefers for t, nil if none has room.
func (p *plan) bestOn(l *ladder, t *Task) *host {
	for ; l.seen < len(p.changes); l.seen++ {
		l.look(p.changes[l.seen], t)
	}
	var best *class
	var top rung
	for _, c := range l.classes {
		if r, ok := p.topOf(l, c, t); ok && (best == nil || l.before(c, r, best, top)) {
			best, top = c, r
		}
	}
	return top.h
}

// topOf is a class's best host whose room is not kept for another task.
func (p *plan) topOf(l *ladder, c *class, t *Task) (top rung, ok bool) {
	if len(c.heap) == 0 {
		return rung{}, false
	}
	if top = c.heap[0]; !p.kept(top.h, t) {
		return top, true
	}
	for _, i := range []int{1, 2} { // one instance at most is kept: the next best is below it
		if i < len(c.heap) && (!ok || less(c.heap[i], top)) {
			top, ok = c.heap[i], true
		}
	}
	return top, ok
}

// before says whether the chain prefers the best of one class to that of another.
func (l *ladder) before(a *class, x rung, b *class, y rung) bool {
	for i := range l.chain {
		m, n := x.key[i], y.key[i]
		if l.tallies[i] != nil && !l.alone[i] {
			m, n = int32(l.tallies[i][a.values[i]]), int32(l.tallies[i][b.values[i]])
		}
		if m != n {
			return m < n
		}
	}
	return x.h.in.ID < y.h.in.ID
}

func less(x, y rung) bool {
	for i := range x.key {
		if x.key[i] != y.key[i] {
			return x.key[i] < y.key[i]
		}
	}
	return cmp.Less(x.h.in.ID, y.h.in.ID)
}

// look puts a host that has changed where it belongs now.
func (l *ladder) look(h *host, t *Task) {
	at, c := int(l.at[h.at]), l.of[h.at]
	if at < 0 {
		return
	}
	if h.lacks(t, l.shape.key) == "" {
		c.heap[at].key = l.key(h)
	} else {
		last := len(c.heap) - 1
		l.swap(c, at, last)
		l.at[h.at] = -1
		if c.heap = c.heap[:last]; at == last {
			return
		}
	}
	l.up(c, at)
	l.down(c, int(at))
}

func (l *ladder) swap(c *class, i, j int) {
	c.heap[i], c.heap[j] = c.heap[j], c.heap[i]
	l.at[c.heap[i].h.at], l.at[c.heap[j].h.at] = int32(i), int32(j)
}

func (l *ladder) up(c *class, i int) {
	for i > 0 && less(c.heap[i], c.heap[(i-1)/2]) {
		l.swap(c, i, (i-1)/2)
		i = (i - 1) / 2
	}
}

func (l *ladder) down(c *class, i int) {
	for {
		child := 2*i + 1
		if child+1 < len(c.heap) && less(c.heap[child+1], c.heap[child]) {
			child++
		}
		if child >= len(c.heap) || !less(c.heap[child], c.heap[i]) {
			return
		}
		l.swap(c, i, child)
		i = child
	}
}

// chainOf is the strategies that a task follows, and whether they are the default.
func chainOf(t *Task) (chain []Strategy, isDefault bool) {
	if len(t.Strategy) == 0 {
		return byDefault, true
	}
	return t.Strategy, false
}

// perHost says whether a field has another value on every host.
func perHost(field string) bool { return field == "instanceId" || field == "host" }

// spreadValue is a host's value of a field.
func spreadValue(h *host, field string) string {
	switch {
	case perHost(field):
		return h.in.ID
	case field == byDefault[0].Field:
		return h.zone
	}
	return h.in.Attributes[strings.TrimPrefix(field, "attribute:")]
}
