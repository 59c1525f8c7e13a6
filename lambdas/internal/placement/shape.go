package placement

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/longshore-run/longshore/shared/taskdef/query"
)

// shape is what tasks that are alike to placement share.
type shape struct {
	key      string
	eligible []*host // that meet its constraints and take work
	unfit    string  // why no host is eligible
	full     string  // the reason of the first that found no room
	err      error
}

// maxShape bounds a shape's name in bytes: ledgers remember some, and every
// admission writes a ledger.
const maxShape = 400

// ShapeOf names a task's needs and constraints, for reasons and refusals. Of a
// long one the end is a hash of the whole.
func ShapeOf(t Task) string {
	var b strings.Builder
	fmt.Fprintf(&b, "cpu=%d memory=%d gpus=%d tcp=%v udp=%v", t.Needs.CPU, t.Needs.MemoryMiB, t.Needs.GPUs, t.Needs.TCP, t.Needs.UDP)
	if t.Distinct {
		fmt.Fprintf(&b, " distinct=%q", t.Group)
	}
	if t.Pinned != "" {
		fmt.Fprintf(&b, " on=%s", t.Pinned)
	}
	expressions := slices.Clone(t.Expressions)
	slices.Sort(expressions)
	for _, e := range slices.Compact(expressions) {
		fmt.Fprintf(&b, " memberOf=%q", e)
	}
	return short(b.String())
}

func short(shape string) string {
	if len(shape) <= maxShape {
		return shape
	}
	sum := sha256.Sum256([]byte(shape))
	hash := "… " + hex.EncodeToString(sum[:16])
	return strings.ToValidUTF8(shape[:maxShape-len(hash)], "") + hash
}

// plainShape is the whole shape of a task without ports and expressions.
type plainShape struct {
	cpu, memory, gpus int
	distinct, pinned  string
	isDistinct        bool
}

// shapeOf is a task's shape; most are told without a text being made.
func (p *plan) shapeOf(t *Task) *shape {
	if len(t.Needs.TCP)+len(t.Needs.UDP)+len(t.Expressions) > 0 {
		return p.namedShape(t)
	}
	k := plainOf(t)
	s, ok := p.plain[k]
	if !ok {
		s = p.namedShape(t)
		p.plain[k] = s
	}
	return s
}

func plainOf(t *Task) plainShape {
	k := plainShape{cpu: t.Needs.CPU, memory: t.Needs.MemoryMiB, gpus: t.Needs.GPUs, pinned: t.Pinned, isDistinct: t.Distinct}
	if t.Distinct {
		k.distinct = t.Group
	}
	return k
}

func (p *plan) namedShape(t *Task) *shape {
	key := ShapeOf(*t)
	if s, ok := p.shapes[key]; ok {
		return s
	}
	s := &shape{key: key, unfit: ReasonAgent}
	p.shapes[key] = s
	var exprs []query.Expr
	for _, text := range t.Expressions {
		e, err := query.Parse(text)
		if err != nil {
			s.err = err
			return s
		}
		exprs = append(exprs, e)
	}
	if t.Pinned == "" {
		s.eligible = make([]*host, 0, len(p.hosts))
	}
	for _, h := range p.hosts {
		switch {
		case t.Pinned != "" && t.Pinned != h.in.ID:
		case slices.ContainsFunc(exprs, func(e query.Expr) bool { return !e.Match(h.in.Attributes) }):
			s.unfit = nearer(s.unfit, ReasonAttribute)
		case h.in.Unfit != "":
			s.unfit = nearer(s.unfit, h.in.Unfit)
		default:
			s.eligible = append(s.eligible, h)
		}
	}
	return s
}

// demand counts who goes on waiting, by shape, in the order served.
func (p *plan) demand(order []*Task) {
	at := map[string]int{}
	for _, t := range order {
		reason, waits := p.out.Reasons[t.ID]
		if !waits {
			continue
		}
		key := p.shapeOf(t).key
		i, ok := at[key]
		if !ok {
			i = len(p.out.Demand)
			at[key] = i
			p.out.Demand = append(p.out.Demand, Demand{Shape: key, Needs: t.Needs, Oldest: t.Since, Reason: reason})
		}
		d := &p.out.Demand[i]
		d.Count++
		if t.Since.Before(d.Oldest) {
			d.Oldest = t.Since
		}
	}
}

// renewEarmark drops an earmark whose task or instance is gone, and moves one
// that has run out to another instance. If there is no other, it rests for as long
// as it held: what keeps its task out may never end, and others would wait for ever.
func (p *plan) renewEarmark(order []*Task) {
	e := p.in.Earmark
	if e.Task == "" {
		return
	}
	i := slices.IndexFunc(order, func(t *Task) bool { return t.ID == e.Task })
	if i < 0 {
		p.out.Earmark = Earmark{}
		return
	}
	t := order[i]
	s := p.shapeOf(t)
	candidates := p.candidates(t, s)
	expired := !p.in.Now.Before(e.Until)
	isIts := func(h *host) bool { return h.in.ID == e.Instance }
	if !expired && (e.rests() || slices.ContainsFunc(candidates, isIts)) {
		return
	}
	p.out.Earmark = Earmark{}
	if expired {
		only := len(candidates) == 1 && isIts(candidates[0])
		if only {
			p.out.Earmark = Earmark{Task: t.ID, Until: p.until()}
			return
		}
		candidates = slices.DeleteFunc(candidates, isIts)
	}
	p.earmark(t, candidates)
}

// until is when an earmark, or its rest, that begins now is over.
func (p *plan) until() time.Time { return p.in.Now.Add(max(p.in.EarmarkFor, time.Second)) }

// starve earmarks an instance for t if it has waited too long and nothing is earmarked.
func (p *plan) starve(t *Task, s *shape) {
	if p.out.Earmark.Task != "" || t.Pinned != "" || p.in.Now.Sub(t.Since) < p.in.StarvationAge {
		return
	}
	p.earmark(t, p.candidates(t, s))
}

// candidates are the eligible hosts that t would fit if they were empty.
func (p *plan) candidates(t *Task, s *shape) []*host {
	var out []*host
	for _, h := range s.eligible {
		refused := h.in.RefusedShapes[s.key] || taken(t.Needs.TCP, h.in.RefusedTCP) || taken(t.Needs.UDP, h.in.RefusedUDP)
		if !refused && h.holdsEmpty(t) {
			out = append(out, h)
		}
	}
	return out
}

func (p *plan) earmark(t *Task, candidates []*host) {
	var best *host
	for _, h := range candidates {
		if best == nil || h.room(t) > best.room(t) || h.room(t) == best.room(t) && h.in.ID < best.in.ID {
			best = h
		}
	}
	if best != nil {
		p.out.Earmark = Earmark{Task: t.ID, Instance: best.in.ID, Until: p.until()}
	}
}
