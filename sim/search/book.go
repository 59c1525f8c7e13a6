package search

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/lambdas/control/controltest/machine"
	"github.com/longshore-run/longshore/shared/wire"
)

// book gives everything a state is made of a small number, once.
type book struct {
	keys     []keyName
	keyOf    map[keyName]uint16
	items    []item
	itemOf   map[string]uint32
	letters  []letter
	letterOf map[string]uint32
	machines []*machine.Machine
	machOf   map[string]uint32
	words    []string
	wordOf   map[string]uint32
	renewals map[renewing]uint32
}

// renewing is a renewal of one version of a lease; it leads to another, or 0: it
// is none.
type renewing struct {
	item uint32
	by   *request
}

type keyName struct {
	kind control.Kind
	key  string
}

// item is one version of a record, as stored; item 0 is none.
type item struct {
	key     uint16
	version int64
	doc     []byte
	expires time.Time
	record  control.Record // decoded; never to be changed
}

// letter is a message on its way, from or to a machine.
type letter struct {
	to       int // the machine it is for; -1: the control plane
	from     int // the machine that sent it
	message  wire.Message
	sent     int64
	identity string
	name     string // in traces
}

func newBook() *book {
	return &book{keyOf: map[keyName]uint16{}, items: make([]item, 1), itemOf: map[string]uint32{}, letters: make([]letter, 1),
		letterOf: map[string]uint32{}, machOf: map[string]uint32{}, wordOf: map[string]uint32{}, renewals: map[renewing]uint32{}}
}

func (b *book) key(r control.Record) uint16 { return b.keyNamed(keyName{r.Kind(), r.Key()}) }

func (b *book) keyNamed(k keyName) uint16 {
	id, ok := b.keyOf[k]
	if !ok {
		id = uint16(len(b.keys))
		b.keys, b.keyOf[k] = append(b.keys, k), id
	}
	return id
}

// item is the number of a record with the version it has.
func (b *book) item(r control.Record) uint32 {
	doc, expires := controltest.Document(r)
	key, version := b.key(r), *r.Revision()
	name := fmt.Sprintf("%d/%d/%s", key, version, doc)
	id, ok := b.itemOf[name]
	if !ok {
		id = uint32(len(b.items))
		b.itemOf[name] = id
		back := reflect.New(reflect.TypeOf(r).Elem()).Interface().(control.Record)
		controltest.FromDocument(back, version, doc, expires)
		b.items = append(b.items, item{key, version, doc, expires, back})
	}
	return id
}

// copyOf is a copy of an item's record.
func (b *book) copyOf(id uint32) control.Record {
	it := &b.items[id]
	r := reflect.New(reflect.TypeOf(it.record).Elem()).Interface().(control.Record)
	copyInto(r, it.record)
	return r
}

// fill makes r a copy of an item, or blank.
func (b *book) fill(r control.Record, id uint32) {
	if id == 0 {
		control.Blank(r)
		return
	}
	copyInto(r, b.items[id].record)
}

func (b *book) letter(l letter) uint32 {
	doc, err := wire.Encode(l.message)
	if err != nil {
		panic(fmt.Sprintf("search: encode a message: %v", err))
	}
	name := fmt.Sprintf("%d/%d/%s", l.to, l.sent, doc)
	id, ok := b.letterOf[name]
	if !ok {
		id = uint32(len(b.letters))
		if l.message, err = wire.Decode(doc); err != nil {
			panic(fmt.Sprintf("search: decode a message: %v", err))
		}
		l.name = nameOf(l.message)
		b.letterOf[name] = id
		b.letters = append(b.letters, l)
	}
	return id
}

func (b *book) machine(m *machine.Machine) uint32 {
	doc, err := json.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("search: encode a machine: %v", err))
	}
	id, ok := b.machOf[string(doc)]
	if !ok {
		id = uint32(len(b.machines))
		b.machOf[string(doc)] = id
		b.machines = append(b.machines, m)
	}
	return id
}

func (b *book) word(w string) uint32 {
	id, ok := b.wordOf[w]
	if !ok {
		id = uint32(len(b.words))
		b.words, b.wordOf[w] = append(b.words, w), id
	}
	return id
}

// short is a task's name in traces: t1, t2 …
func short(id string) string {
	if s := strings.TrimLeft(id, "0"); s != "" && len(s) < 8 {
		return "t" + s
	}
	return id
}

// nameOf is a message's name in traces.
func nameOf(m wire.Message) string {
	switch m := m.(type) {
	case *wire.Report:
		return fmt.Sprintf("report %s/%d %s n%d", short(m.Task), m.Attempt, m.Status, m.N)
	case *wire.Refused:
		return fmt.Sprintf("refused %s/%d n%d", short(m.Task), m.Attempt, m.N)
	case *wire.Heartbeat:
		var list []string
		for _, e := range m.Inventory {
			list = append(list, fmt.Sprintf("%s/%d:%s", short(e.Task), e.Attempt, e.Phase))
		}
		docker := ""
		if m.Docker != wire.DockerOK {
			docker = " impaired"
		}
		return fmt.Sprintf("beat %s n%d%s [%s]", m.Incarnation, m.N, docker, strings.Join(list, " "))
	case *wire.Register:
		return fmt.Sprintf("register %s n%d", m.Incarnation, m.N)
	case *wire.Assign:
		return fmt.Sprintf("assign %s/%d", short(m.Task), m.Attempt)
	case *wire.Stop:
		return fmt.Sprintf("stop %s/%d", short(m.Task), m.Attempt)
	case *wire.Ack:
		return fmt.Sprintf("ack %s/%d", short(m.Task), m.Attempt)
	case *wire.Resync:
		var list []string
		for _, id := range m.Tasks {
			list = append(list, short(id))
		}
		return "resync " + strings.Join(list, " ")
	case *wire.Welcome:
		return fmt.Sprintf("welcome %s", m.Incarnation)
	case *wire.Fence:
		var list []string
		for _, a := range m.Closed {
			list = append(list, fmt.Sprintf("%s/%d", short(a.Task), a.Attempt))
		}
		end := ""
		if m.Terminal {
			end = " terminal"
		}
		return fmt.Sprintf("fence %s%s [%s]", m.Incarnation, end, strings.Join(list, " "))
	case *wire.Probe:
		return "probe"
	}
	return string(wire.TypeOf(m))
}
