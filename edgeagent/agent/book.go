package agent

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// book is the journal and, beside it, the same in memory. Every change is one
// journal transaction, made on what the lock shows: look-up and write cannot be
// pulled apart, and memory never runs ahead of the disk.
type book struct {
	journal Journal
	now     func() time.Time

	mu    sync.Mutex
	meta  Meta
	tasks map[string]Record
	tombs map[string]Record // apart, so that walks over what lives stay short
	used  []ImageUse        // never changed, only replaced
	since time.Time         // of meta.Clock
}

func openBook(j Journal, now func() time.Time) (*book, error) {
	s, err := j.Load()
	if err != nil {
		return nil, err
	}
	b := &book{journal: j, now: now, meta: s.Meta, since: now(), used: s.Images, tasks: map[string]Record{}, tombs: map[string]Record{}}
	for _, r := range s.Tasks {
		b.shelve(r)
	}
	return b, nil
}

// page is one transaction under way.
type page struct {
	meta Meta
	// clock is how long agents with this journal have run.
	clock   time.Duration
	now     time.Time
	book    *book
	changed bool
	put     map[string]Record
	drop    map[string]bool
	used    []ImageUse // nil: as it is
}

// update makes one journal transaction of what change does. If change returns
// an error, nothing is written.
func (b *book) update(change func(p *page) error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.page()
	if err := change(p); err != nil {
		return err
	}
	if !p.changed && len(p.put) == 0 && len(p.drop) == 0 && p.used == nil {
		return nil
	}
	p.meta.Clock = p.clock
	c := Change{Meta: &p.meta, Put: slices.Collect(maps.Values(p.put)), Drop: slices.Collect(maps.Keys(p.drop)), Images: p.used}
	if err := b.journal.Commit(c); err != nil {
		return err
	}
	b.meta, b.since = p.meta, p.now
	for _, r := range p.put {
		b.shelve(r)
	}
	if p.used != nil {
		b.used = p.used
	}
	for id := range p.drop {
		delete(b.tasks, id)
		delete(b.tombs, id)
	}
	return nil
}

func (b *book) shelve(r Record) {
	to, from := b.tasks, b.tombs
	if r.Tomb {
		to, from = from, to
	}
	to[r.ID()] = r
	delete(from, r.ID())
}

// view shows what is known; nothing may be kept of it but what was cloned.
func (b *book) view(look func(p *page)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	look(b.page())
}

func (b *book) page() *page {
	now := b.now()
	return &page{meta: b.meta, clock: b.meta.Clock + max(0, now.Sub(b.since)), now: now, book: b, put: map[string]Record{}, drop: map[string]bool{}}
}

// task is a copy of a task's record.
func (p *page) task(id string) (Record, bool) {
	if r, ok := p.put[id]; ok {
		return r.clone(), true
	}
	r, ok := p.book.tasks[id]
	if !ok {
		r, ok = p.book.tombs[id]
	}
	return r.clone(), ok && !p.drop[id]
}

func (p *page) write(r Record) {
	p.put[r.ID()] = r
	delete(p.drop, r.ID())
}

func (p *page) forget(id string) {
	delete(p.put, id)
	p.drop[id] = true
}

// draw is the next n.
func (p *page) draw() int64 {
	p.changed = true
	p.meta.N++
	return p.meta.N
}

// say writes a record with an n of its own: what it shows now is news.
func (p *page) say(r Record) {
	r.N = p.draw()
	if r.ended() && r.EndedAt == 0 {
		r.EndedAt = p.clock
	}
	p.write(r)
}

// edit changes what the agent knows of itself.
func (p *page) edit() *Meta {
	p.changed = true
	return &p.meta
}

// all iterates over the records that are no tombstones, as they were before
// this transaction. They are not to be changed.
func (p *page) all(yield func(*Record) bool) {
	for _, r := range p.book.tasks {
		if !yield(&r) {
			return
		}
	}
}
