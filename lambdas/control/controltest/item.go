package controltest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
)

// encode is a record as the store keeps it: JSON, as exact as the real store's
// attributes.
func encode(r control.Record) item {
	var doc bytes.Buffer
	e := json.NewEncoder(&doc)
	e.SetEscapeHTML(false) // or json.RawMessage would change
	if err := e.Encode(r); err != nil {
		panic(fmt.Sprintf("controltest: encode %s %s: %v", r.Kind(), r.Key(), err))
	}
	it := item{version: *r.Revision(), doc: doc.Bytes(), rows: rowsOf(r)}
	if at := control.ExpiresAt(r); at != nil && !at.IsZero() {
		it.expires = control.ExpirySecond(*at)
	}
	return it
}

// decode fills an emptied record.
func decode(it item, r control.Record) {
	control.Blank(r)
	if err := json.Unmarshal(it.doc, r); err != nil {
		panic(fmt.Sprintf("controltest: decode %s: %v", r.Kind(), err))
	}
	settle(reflect.ValueOf(r).Elem())
	*r.Revision() = it.version
	if at := control.ExpiresAt(r); at != nil {
		*at = it.expires
	}
}

// settle puts times into UTC and makes a missing json.RawMessage nil again,
// which JSON does not do by itself.
func settle(v reflect.Value) {
	switch x := v.Addr().Interface().(type) {
	case *time.Time:
		*x = x.UTC()
		return
	case *json.RawMessage:
		if string(*x) == "null" {
			*x = nil
		}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for _, member := range v.Fields() {
			settle(member)
		}
	case reflect.Slice:
		for i := range v.Len() {
			settle(v.Index(i))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			settle(v.Elem())
		}
	}
}
