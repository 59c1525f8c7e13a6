// Package difference tells in lines what differs between two JSON documents of
// the same kind, by path. Lists of objects that have names are compared by
// name. It is pure. Packages of the command import it.
package difference

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// Kind says what happened at a path.
type Kind string

const (
	Added   Kind = "+"
	Removed Kind = "-"
	Changed Kind = "~"
)

// Line is one difference; Old and New are compact JSON.
type Line struct {
	Kind     Kind
	Path     string
	Old, New string
}

func (l Line) String() string {
	switch l.Kind {
	case Added:
		return fmt.Sprintf("+ %s: %s", l.Path, l.New)
	case Removed:
		return fmt.Sprintf("- %s: %s", l.Path, l.Old)
	default:
		return fmt.Sprintf("~ %s: %s -> %s", l.Path, l.Old, l.New)
	}
}

// Of lists what to do to a to have b. The value of an object whose name secret
// picks is not shown.
func Of(a, b []byte, secret func(name string) bool) ([]Line, error) {
	var one, other any
	if err := json.Unmarshal(a, &one); err != nil {
		return nil, fmt.Errorf("compare: %w", err)
	}
	if err := json.Unmarshal(b, &other); err != nil {
		return nil, fmt.Errorf("compare: %w", err)
	}
	d := &differ{secret: secret}
	d.compare("", one, other)
	return d.lines, nil
}

type differ struct {
	lines  []Line
	secret func(string) bool
}

func (d *differ) say(k Kind, path string, a, b any) {
	if path == "" {
		path = "."
	}
	old, now := text(d.mask(a)), text(d.mask(b))
	if m := valueOf.FindStringSubmatch(path); m != nil && d.hidden(m[1]) {
		old, now = hidden, hidden
	}
	d.lines = append(d.lines, Line{k, path, old, now})
}

const hidden = "(hidden)"

var valueOf = regexp.MustCompile(`\[([^\[\]]*)\]\.value$`)

func (d *differ) hidden(name string) bool { return d.secret != nil && d.secret(name) }

// mask is v without the values of what is secret.
func (d *differ) mask(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		name, _ := v["name"].(string)
		for k, inner := range v {
			if out[k] = d.mask(inner); k == "value" && d.hidden(name) {
				out[k] = hidden
			}
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, inner := range v {
			out = append(out, d.mask(inner))
		}
		return out
	}
	return v
}

func text(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // it came from JSON
	return strings.TrimSpace(b.String())
}

func (d *differ) compare(path string, a, b any) {
	if reflect.DeepEqual(a, b) {
		return
	}
	oneMap, ok1 := a.(map[string]any)
	otherMap, ok2 := b.(map[string]any)
	if ok1 && ok2 {
		d.members(path, oneMap, otherMap, func(p, k string) string { return strings.TrimPrefix(p+"."+k, ".") })
		return
	}
	oneList, ok1 := a.([]any)
	otherList, ok2 := b.([]any)
	if ok1 && ok2 {
		d.lists(path, oneList, otherList)
		return
	}
	d.say(Changed, path, a, b)
}

func (d *differ) members(path string, a, b map[string]any, join func(path, key string) string) {
	keys := slices.Sorted(maps.Keys(a))
	for k := range b {
		if _, both := a[k]; !both {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	for _, k := range keys {
		one, in1 := a[k]
		other, in2 := b[k]
		switch p := join(path, k); {
		case !in1:
			d.say(Added, p, nil, other)
		case !in2:
			d.say(Removed, p, one, nil)
		default:
			d.compare(p, one, other)
		}
	}
}

func (d *differ) lists(path string, a, b []any) {
	one, ok1 := named(a)
	other, ok2 := named(b)
	if ok1 && ok2 {
		before := len(d.lines)
		d.members(path, one, other, func(p, k string) string { return p + "[" + k + "]" })
		if len(d.lines) == before { // the same ones, in another order
			d.say(Changed, path, names(a), names(b))
		}
		return
	}
	for i := range max(len(a), len(b)) {
		switch p := fmt.Sprintf("%s[%d]", path, i); {
		case i >= len(a):
			d.say(Added, p, nil, b[i])
		case i >= len(b):
			d.say(Removed, p, a[i], nil)
		default:
			d.compare(p, a[i], b[i])
		}
	}
}

// named are the objects of a list by their names, if each has one of its own.
func named(list []any) (map[string]any, bool) {
	out := map[string]any{}
	for _, n := range names(list) {
		out[n] = nil
	}
	if len(out) != len(list) {
		return nil, false
	}
	for i, n := range names(list) {
		out[n] = list[i]
	}
	return out, true
}

func names(list []any) []string {
	var out []string
	for _, v := range list {
		o, _ := v.(map[string]any)
		for _, key := range []string{"name", "key"} {
			if n, ok := o[key].(string); ok {
				out = append(out, n)
				break
			}
		}
	}
	return out
}
