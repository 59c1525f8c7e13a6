package search

import (
	"encoding/binary"
	"encoding/json"
	"hash/maphash"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/wire"
)

// A shape names a state in which nothing is under way by what tells how it
// settles: its documents without versions, its epochs and the counters
// of its machines by their order, its times by how long they are over, to the
// third of a minute, and whether that was before the search began.

var (
	versions = regexp.MustCompile(`"version":\d+,?`)
	moments  = regexp.MustCompile(`"\d{4}-\d\d-\d\dT[^"]*"`)
	epochs   = regexp.MustCompile(`(?i)("\w*epoch":)(\d+)`)
	counters = regexp.MustCompile(`(?i)("n":)(\d+)`)
)

// form is what one thing brings into a shape.
type form struct {
	word   uint32 // what is left of its document
	times  []int64
	epochs []int64
	of     string // the instance whose counter these are values of
	counts []int64
}

func (x *search) formOf(doc []byte, of string) *form {
	f := &form{of: of}
	doc = versions.ReplaceAll(doc, nil)
	doc = moments.ReplaceAllFunc(doc, func(m []byte) []byte {
		at, err := time.Parse(`"`+time.RFC3339Nano+`"`, string(m))
		if err != nil {
			return m
		}
		f.times = append(f.times, at.Unix())
		return []byte("T")
	})
	numbers := func(of *regexp.Regexp, to *[]int64) {
		doc = of.ReplaceAllFunc(doc, func(m []byte) []byte {
			parts := of.FindSubmatch(m)
			n, _ := strconv.ParseInt(string(parts[2]), 10, 64)
			*to = append(*to, n)
			return parts[1]
		})
	}
	numbers(epochs, &f.epochs)
	numbers(counters, &f.counts)
	f.word = x.book.word(string(doc))
	return f
}

// forms are those of everything in a state.
func (x *search) forms(s *state) (all []*form) {
	once := func(known map[uint32]*form, id uint32, doc func() ([]byte, string)) {
		f := known[id]
		if f == nil {
			f = x.formOf(doc())
			known[id] = f
		}
		all = append(all, f)
	}
	for _, id := range s.items {
		if _, ok := x.book.items[id].record.(*control.Probe); !ok {
			once(x.memory.items, id, func() ([]byte, string) {
				it := &x.book.items[id]
				if t, ok := it.record.(*control.Task); ok {
					return it.doc, t.Instance
				}
				return it.doc, it.record.Key()
			})
		}
	}
	for _, id := range s.letters {
		once(x.memory.letters, id, func() ([]byte, string) {
			l := &x.book.letters[id]
			if _, ok := l.message.(*wire.Probe); ok {
				return []byte("probe"), ""
			}
			doc, _ := wire.Encode(l.message)
			return append(doc, time.Unix(l.sent, 0).UTC().AppendFormat(nil, `"`+time.RFC3339Nano+`"`)...), wire.HeaderOf(l.message).Instance
		})
	}
	for _, id := range s.machines {
		once(x.memory.machines, id, func() ([]byte, string) {
			doc, _ := json.Marshal(x.book.machines[id])
			return doc, x.book.machines[id].ID
		})
	}
	return all
}

// shape names a quiet state.
func (x *search) shape(s *state) uint64 {
	all := x.forms(s)
	var known ranks
	counts := make([]ranks, len(s.machines))
	ofWhom := func(f *form) *ranks {
		for i, id := range s.machines {
			if x.book.machines[id].ID == f.of {
				return &counts[i]
			}
		}
		return &known
	}
	for _, f := range all {
		for _, n := range f.epochs {
			known.add(n)
		}
		if len(f.counts) > 0 {
			of := ofWhom(f)
			for _, n := range f.counts {
				of.add(n)
			}
		}
	}
	buf := x.buf[:0]
	for i, id := range s.machines { // one that counts below what is known catches up
		top := counts[i][len(counts[i])-1]
		buf = binary.LittleEndian.AppendUint32(buf, uint32(top-x.book.machines[id].N))
	}
	for _, f := range all {
		buf = binary.LittleEndian.AppendUint32(buf, f.word)
		for _, at := range f.times {
			age := min(max(s.clock-at, 0), 3600)
			buf = append(buf, byte((age+10)/20), bit(at > x.since)|bit(at < x.since)<<1)
		}
		for _, n := range f.epochs {
			buf = append(buf, known.of(n))
		}
		if len(f.counts) > 0 {
			of := ofWhom(f)
			for _, n := range f.counts {
				buf = append(buf, of.of(n))
			}
		}
	}
	buf = append(buf, byte(len(s.ran)), bit(s.kicked)|bit(s.restored)<<1)
	x.buf = buf
	return maphash.Bytes(seed, buf)
}

// ranks are numbers by their order.
type ranks []int64

func (r *ranks) add(n int64) {
	if at, known := slices.BinarySearch(*r, n); !known {
		*r = slices.Insert(*r, at, n)
	}
}

func (r *ranks) of(n int64) byte {
	at, _ := slices.BinarySearch(*r, n)
	return byte(at)
}
