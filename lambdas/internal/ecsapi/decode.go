package ecsapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/fault"
)

// decode reads a request into a struct, strictly: a member the struct does not
// have, a value of another type, a choice that is none and a required member
// that is missing are errors that name the member. Fields are tagged
//
//	json:"name"      the member
//	need:"true"      must be there and not be empty
//	one:"A|B"        the strings allowed
//	others:"why"     ECS has other strings, and Longshore does not
//	judged:"control" the use case knows the strings allowed
//	refuse:"why"     ECS has it and Longshore does not: it may only stand for absence
//
// and are string, *int, seconds, bool, *bool, []string, structs, slices of structs, or
// json.RawMessage, which holds a member that somebody else decodes.
func decode(body []byte, into any) error {
	if len(bytes.TrimSpace(body)) == 0 {
		body = []byte("{}")
	}
	if !json.Valid(body) {
		return fault.New(fault.Invalid, "the request is not JSON").WithCode(control.SerializationException)
	}
	d := &decoder{}
	d.object("", body, reflect.ValueOf(into).Elem())
	return d.err
}

// decoder keeps the first fault of a request.
type decoder struct{ err error }

func (d *decoder) fail(code, path, format string, args ...any) {
	if d.err == nil {
		d.err = fault.Field(path, format, args...).WithCode(code)
	}
}

func (d *decoder) wrong(path string, raw []byte, allowed string) {
	if path == "" {
		path = "the request"
	}
	d.fail(control.SerializationException, path, "is %s; allowed is %s", what(raw), allowed)
}

func (d *decoder) object(path string, raw []byte, into reflect.Value) {
	if raw = bytes.TrimSpace(raw); raw[0] != '{' {
		d.wrong(path, raw, "an object")
		return
	}
	fields := fieldsOf(into.Type())
	seen := map[string]bool{}
	for name, value := range members(raw) {
		at := name
		if path != "" {
			at = path + "." + name
		}
		i, ok := fields[name]
		switch {
		case seen[name]:
			d.fail(control.SerializationException, at, "is given twice")
		case !ok:
			d.unknown(at, name, fields)
		default:
			d.member(at, value, into.Type().Field(i), into.Field(i))
		}
		seen[name] = true
	}
	for i := range into.NumField() {
		f := into.Type().Field(i)
		if f.Tag.Get("need") == "true" && empty(into.Field(i)) {
			at := f.Tag.Get("json")
			if path != "" {
				at = path + "." + at
			}
			d.fail(control.InvalidParameterException, at, "is required")
		}
	}
}

func empty(v reflect.Value) bool {
	return v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0
}

func (d *decoder) unknown(at, name string, fields map[string]int) {
	hint := ""
	for known := range fields {
		if strings.EqualFold(known, name) {
			hint = "; did you mean " + known + "?"
		}
	}
	d.fail(control.InvalidParameterException, fmt.Sprintf("%.100s", at), "is not a member of this request%s", hint)
}

func (d *decoder) member(at string, raw []byte, f reflect.StructField, into reflect.Value) {
	if string(raw) == "null" {
		return
	}
	if why := f.Tag.Get("refuse"); why != "" {
		if !asksNothing(raw) {
			d.fail(control.InvalidParameterException, asked(at, raw), "is not supported: %s", why)
		}
		return
	}
	if raws, ok := reflect.TypeAssert[*json.RawMessage](into.Addr()); ok {
		*raws = slices.Clone(raw)
		return
	}
	d.value(at, raw, f, into)
}

func (d *decoder) value(at string, raw []byte, f reflect.StructField, into reflect.Value) {
	switch into.Kind() {
	case reflect.String:
		if raw[0] != '"' {
			d.wrong(at, raw, "a string")
			return
		}
		d.text(at, raw, f, into)
	case reflect.Bool:
		if raw[0] != 't' && raw[0] != 'f' {
			d.wrong(at, raw, "true or false")
			return
		}
		into.SetBool(raw[0] == 't')
	case reflect.Int:
		n, err := strconv.ParseInt(string(raw), 10, 32)
		if err != nil {
			d.wrong(at, raw, "a whole number")
			return
		}
		into.SetInt(n)
	case reflect.Float64: // a time
		n, err := strconv.ParseFloat(string(raw), 64)
		if err != nil {
			d.wrong(at, raw, "a number")
			return
		}
		into.SetFloat(n)
	case reflect.Pointer:
		p := reflect.New(into.Type().Elem())
		d.value(at, raw, f, p.Elem())
		into.Set(p)
	case reflect.Struct:
		d.object(at, raw, into)
	case reflect.Slice:
		d.list(at, raw, f, into)
	default:
		panic("ecsapi: a request has a field of type " + into.Type().String())
	}
}

func (d *decoder) text(at string, raw []byte, f reflect.StructField, into reflect.Value) {
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		d.wrong(at, raw, "a string")
		return
	}
	if one := f.Tag.Get("one"); one != "" && s != "" && !slices.Contains(strings.Split(one, "|"), s) {
		allowed := strings.ReplaceAll(one, "|", ", ")
		if others := f.Tag.Get("others"); others != "" {
			d.fail(control.InvalidParameterException, at, "%.60s is not supported: %s; allowed: %s", s, others, allowed)
		} else {
			d.fail(control.InvalidParameterException, at, "is %.60q; allowed: %s", s, allowed)
		}
	}
	into.SetString(s)
}

func (d *decoder) list(at string, raw []byte, f reflect.StructField, into reflect.Value) {
	if raw[0] != '[' {
		d.wrong(at, raw, "a list")
		return
	}
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		d.wrong(at, raw, "a list")
		return
	}
	all := reflect.MakeSlice(into.Type(), len(items), len(items))
	for i, item := range items {
		d.value(at+"["+strconv.Itoa(i)+"]", bytes.TrimSpace(item), f, all.Index(i))
	}
	into.Set(all)
}

// members yields an object's members as they stand, in their order.
func members(raw []byte) func(yield func(name string, value []byte) bool) {
	return func(yield func(string, []byte) bool) {
		dec := json.NewDecoder(bytes.NewReader(raw))
		_, _ = dec.Token() // raw is valid JSON and begins with {
		for dec.More() {
			token, err := dec.Token()
			name, ok := token.(string)
			var value json.RawMessage
			if err != nil || !ok || dec.Decode(&value) != nil || !yield(name, bytes.TrimSpace(value)) {
				return
			}
		}
	}
}

// fieldsOf are a struct's fields by member name; those of embedded structs too.
func fieldsOf(t reflect.Type) map[string]int {
	out := map[string]int{}
	for i := range t.NumField() {
		out[t.Field(i).Tag.Get("json")] = i
	}
	return out
}

// asksNothing says whether a value stands for absence.
func asksNothing(raw []byte) bool {
	switch raw[0] {
	case '{', '[':
		return len(bytes.TrimSpace(raw[1:len(raw)-1])) == 0
	}
	return string(raw) == "null" || string(raw) == "false" || string(raw) == `""`
}

// asked names what of a refused member is asked for: the member in it, if it is
// an object.
func asked(at string, raw []byte) string {
	if raw[0] == '{' {
		for name, value := range members(raw) {
			if !asksNothing(value) {
				return fmt.Sprintf("%s.%.60s", at, name)
			}
		}
	}
	return at
}

// what says what a JSON value is, for messages.
func what(raw []byte) string {
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case 't', 'f':
		return string(raw)
	case 'n':
		return "null"
	}
	return fmt.Sprintf("the number %.40s", raw)
}
