package controltest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/lambdas/control"
)

// What DynamoDB counts by.
const (
	readUnit   = 4096
	writeUnit  = 1024
	batchItems = 100     // of a BatchGetItem
	pageBytes  = 1 << 20 // of a query or a scan
	perItem    = 3       // of a map or a list
	perMember  = 1
)

// Bill adds up what DynamoDB would count of the store's calls, as the real adapter
// makes them: requests, items and their bytes, read and write units with those of
// the indexes. It is what the items cost, not what travels: JSON on the wire is
// some twice as much. Nil counts nothing.
type Bill struct {
	Requests, Items int
	Bytes           int64
	Read, Write     float64
}

func (b *Bill) request(n int) {
	if b != nil {
		b.Requests += n
	}
}

// load counts strong reads: one GetItem, or BatchGetItems, each item rounded up.
func (b *Bill) load(items map[key]item, records []control.Record) {
	if b == nil {
		return
	}
	seen := map[key]bool{}
	for _, r := range records {
		seen[key{r.Kind(), r.Key()}] = true
	}
	for k := range seen {
		size := items[k].bytes
		b.Items++
		b.Bytes += int64(size)
		b.Read += float64(max(1, ceil(size, readUnit)))
	}
	b.Requests += max(1, ceil(len(seen), batchItems))
}

// write counts one write, or check, of an item: by the larger of what it was and is,
// twice in a transaction; and each row of an index that comes or goes.
func (b *Bill) write(before, after item, transaction bool) {
	if b == nil {
		return
	}
	size := max(before.bytes, after.bytes)
	units := float64(max(1, ceil(size, writeUnit)))
	if transaction {
		units *= 2
	}
	for _, r := range before.rows {
		if !slices.Contains(after.rows, r) {
			units++
		}
	}
	for _, r := range after.rows {
		if !slices.Contains(before.rows, r) {
			units++
		}
	}
	b.Items++
	b.Bytes += int64(size)
	b.Write += units
}

// query counts the read of an index's page, eventually consistent. A row is the
// item's key and the index's: names and values.
func (b *Bill) query(rows []row, more bool) {
	if b == nil {
		return
	}
	size := 0
	for _, r := range rows {
		size += len("id") + len(r.id) + len("waiting") + len(r.list) + len("since") + len(r.sort)
	}
	b.Items += len(rows)
	b.Bytes += int64(size)
	b.Requests += max(1, ceil(size, pageBytes))
	b.Read += float64(max(1, ceil(size, readUnit))) / 2
	if more { // one more is asked for, to know that there are more
		b.Items++
	}
}

// scan counts the strong read of all items of a kind.
func (b *Bill) scan(kind control.Kind, items map[key]item) {
	if b == nil {
		return
	}
	size := 0
	for _, it := range items {
		size += it.bytes
	}
	b.Items += len(items)
	b.Bytes += int64(size)
	b.Read += float64(max(1, ceil(size, readUnit)))
	switch kind { // probes, brakes and the guard come with the leases
	case control.ProbeKind, control.BrakeKind, control.GuardKind:
	default:
		b.Requests += max(1, ceil(size, pageBytes))
	}
}

func ceil(n, unit int) int { return (n + unit - 1) / unit }

// size is an item's in DynamoDB, with the attributes that indexes find it by.
func (it item) size() int {
	if it.doc == nil {
		return 0
	}
	n := SizeOf(it.doc)
	for _, r := range it.rows {
		n += len("waiting") + min(len(r.list), 48)
	}
	return n
}

// SizeOf is about what DynamoDB counts of a JSON object stored as native
// attributes: names and values; what is zero is not stored.
func SizeOf(doc []byte) int {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	var v map[string]any
	if err := d.Decode(&v); err != nil {
		panic(fmt.Sprintf("controltest: size of an item: %v", err))
	}
	n := 0
	for name, member := range v {
		if size, stored := sizeOf(member); stored {
			n += len(name) + size
		}
	}
	return n
}

func sizeOf(v any) (size int, stored bool) {
	switch v := v.(type) {
	case nil:
		return 0, false
	case bool:
		return 1, v
	case string:
		return len(v), v != ""
	case json.Number:
		return (len(strings.TrimLeft(v.String(), "-"))+1)/2 + 1, v.String() != "0"
	case []any:
		size = perItem
		for _, x := range v {
			s, _ := sizeOf(x)
			size += s + perMember
		}
		return size, true
	case map[string]any:
		size = perItem
		for name, x := range v {
			if s, ok := sizeOf(x); ok {
				size += len(name) + s + perMember
			}
		}
		return size, true
	}
	panic(fmt.Sprintf("controltest: no size of %T", v))
}
