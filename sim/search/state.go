package search

import (
	"encoding/binary"
	"hash/maphash"
	"slices"

	"github.com/longshore-run/longshore/lambdas/control"
)

// state is everything at one moment. States share nothing that is changed: who
// makes one of another copies what differs.
type state struct {
	items    []uint32 // what is stored, by key
	letters  []uint32 // what is on its way, sorted; the same one may be there twice
	machines []uint32
	clock    int64
	runs     []running
	left     budget
	kicked   bool     // admission was woken and has not run since
	ran      []uint32 // tasks whose container was ever started, as words
	made     uint8    // tasks submitted
	reaped   uint8    // instances reaped in this search
	restored bool     // the tables went back: what ran may run again
}

// running is a use case under way.
type running struct {
	at     *place
	letter uint32 // it is about this one, which comes again if it fails
	kept   bool   // which is still on its way
	now    bool   // it went last: to go on with another is a pre-emption (only step by step)
	since  *place // it waits at any place from here to at: between them it only read (only in leaps)
	fresh  bool   // nothing has changed since it waits
}

// budget is what a search may still do.
type budget struct {
	Operations uint8 // begun
	Preempt    uint8 // times one use case waits in the middle for another
	Machine    uint8 // steps of machines
	Refuse     uint8 // assigns refused
	Exit       uint8 // containers that end by themselves
	Lag        uint8 // index queries that miss the newest writes
	Conflict   uint8 // transactions cancelled though nothing changed
	Unsure     uint8 // commits whose answer is lost
	Again      uint8 // letters delivered once more
	Crash      uint8 // use cases killed between two calls
}

// guards are the bits between the numbers of a packed budget.
const guards = 0x820820820820820

// packed is the budget as one number: six bits for each, the highest a guard.
func (l *budget) packed() (p uint64) {
	for _, n := range [...]uint8{l.Operations, l.Preempt, l.Machine, l.Refuse, l.Exit, l.Lag, l.Conflict, l.Unsure, l.Again, l.Crash} {
		p = p<<6 | uint64(min(n, 31))
	}
	return p
}

// covers says whether a packed budget is in nothing below another.
func covers(a, b uint64) bool { return ((a|guards)-b)&guards == guards }

// visited are the states that were seen, and with which budgets: one seen with
// more left to do has all that follows of one with less.
type visited struct {
	one  map[uint64]uint64
	more map[uint64][]uint64
}

// add says whether a state is new.
func (v *visited) add(h uint64, l *budget) bool {
	p := l.packed()
	was, ok := v.one[h]
	switch {
	case !ok || covers(p, was):
		v.one[h] = p
		return true
	case covers(was, p):
		return false
	}
	for _, was := range v.more[h] {
		if covers(was, p) {
			return false
		}
	}
	v.more[h] = append(v.more[h], p)
	return true
}

func (s *state) clone() *state {
	c := *s
	return &c
}

var seed = maphash.MakeSeed()

// hash names the state but for its budget; running use cases count as a set.
func (s *state) hash(buf []byte) (uint64, []byte) {
	buf = buf[:0]
	put := func(all []uint32) {
		buf = binary.LittleEndian.AppendUint16(buf, uint16(len(all)))
		for _, x := range all {
			buf = binary.LittleEndian.AppendUint32(buf, x)
		}
	}
	put(s.items)
	put(s.letters)
	put(s.machines)
	put(s.ran)
	buf = binary.LittleEndian.AppendUint64(buf, uint64(s.clock))
	for _, r := range s.runs {
		buf = binary.LittleEndian.AppendUint32(buf, r.at.id)
		buf = binary.LittleEndian.AppendUint32(buf, r.letter)
		if r.since != nil {
			buf = binary.LittleEndian.AppendUint32(buf, r.since.id)
		}
		buf = append(buf, bit(r.kept)|bit(r.now)<<1|bit(r.fresh)<<2)
	}
	buf = append(buf, bit(s.kicked)|bit(s.restored)<<1, s.made, s.reaped)
	return maphash.Bytes(seed, buf), buf
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// withRuns sets the running use cases in their order.
func (s *state) withRuns(runs []running) {
	slices.SortFunc(runs, func(a, b running) int {
		if a.at.id != b.at.id {
			return int(a.at.id) - int(b.at.id)
		}
		return int(a.letter) - int(b.letter)
	})
	s.runs = runs
}

func (s *state) withLetter(id uint32) {
	at, _ := slices.BinarySearch(s.letters, id)
	s.letters = slices.Insert(slices.Clone(s.letters), at, id)
}

func (s *state) withoutLetter(id uint32) {
	if at, ok := slices.BinarySearch(s.letters, id); ok {
		s.letters = slices.Delete(slices.Clone(s.letters), at, at+1)
	}
}

func (s *state) withMachine(i int, id uint32) {
	s.machines = slices.Clone(s.machines)
	s.machines[i] = id
}

// find is the number of a stored item, 0 if it is missing or its time is over.
func (b *book) find(s *state, key uint16) uint32 {
	low, high := 0, len(s.items)
	for low < high {
		if at := (low + high) / 2; b.items[s.items[at]].key < key {
			low = at + 1
		} else {
			high = at
		}
	}
	if low == len(s.items) {
		return 0
	}
	if it := &b.items[s.items[low]]; it.key != key || b.over(it, s.clock) {
		return 0
	}
	return s.items[low]
}

func (b *book) over(it *item, clock int64) bool {
	return !it.expires.IsZero() && it.expires.Unix() <= clock
}

// with stores an item; without removes a key.
func (b *book) with(items []uint32, id uint32) []uint32 {
	key := b.items[id].key
	at, found := slices.BinarySearchFunc(items, key, func(i uint32, k uint16) int { return int(b.items[i].key) - int(k) })
	out := slices.Clone(items)
	if found {
		out[at] = id
		return out
	}
	return slices.Insert(out, at, id)
}

func (b *book) without(items []uint32, key uint16) []uint32 {
	return slices.DeleteFunc(slices.Clone(items), func(i uint32) bool { return b.items[i].key == key })
}

// recordOf is a stored record of a state, nil if there is none.
func recordOf[P control.Record](b *book, s *state, key P) P {
	var none P
	k, ok := b.keyOf[keyName{key.Kind(), key.Key()}]
	if !ok {
		return none
	}
	if id := b.find(s, k); id != 0 {
		return b.items[id].record.(P)
	}
	return none
}

// recordsOf are the stored records of one type.
func recordsOf[P control.Record](b *book, items []uint32) (out []P) {
	for _, id := range items {
		if r, ok := b.items[id].record.(P); ok {
			out = append(out, r)
		}
	}
	return out
}
