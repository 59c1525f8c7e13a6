package taskdef

import (
	"fmt"
	"strconv"
	"strings"
)

// walk compares a document with the tree of its members. quiet is set inside a refused member: what is refused is told
// once, but what ECS itself would not take is still told.
type walk struct {
	faults Faults
	quiet  bool
}

func (w *walk) object(path string, s *schema, n node) {
	for _, double := range n.doubles {
		w.faults.add(Malformed, join(path, double), "is given twice")
	}
	for i, name := range n.names {
		at := join(path, name)
		below, ok := s.below[name]
		if !ok {
			w.unknown(at, s, name)
			continue
		}
		w.member(at, below, n.items[i])
	}
}

func (w *walk) unknown(at string, s *schema, name string) {
	hint := ""
	if near := s.near(name); near != "" {
		hint = fmt.Sprintf("; did you mean %s?", near)
	}
	w.faults.add(Unknown, at, "is not a member of %s%s", s.of, hint)
}

func (w *walk) member(at string, s *schema, n node) {
	if n.shape == '0' {
		return
	}
	refused := s.State != Run && !n.asksNothing()
	if refused && !w.quiet {
		w.refuse(at, "", s.Why)
		w.quiet = true
		defer func() { w.quiet = false }()
	}
	w.typed(at, s, n)
}

// refuse tells why something of ECS does not run here; what names a value, if it is not the member itself.
func (w *walk) refuse(at, what, why string) {
	w.faults.add(Unsupported, at, "%sis not supported: %s", what, why)
}

func (w *walk) typed(at string, s *schema, n node) {
	switch s.Type {
	case Object:
		if w.shaped(at, s, n, '{') {
			w.object(at, s, n)
		}
	case Objects, Strings, Integers:
		if w.shaped(at, s, n, '[') {
			w.list(at, s, n)
		}
	case StringMap:
		if w.shaped(at, s, n, '{') {
			w.stringMap(at, n)
		}
	case String:
		if w.shaped(at, s, n, 's') {
			w.choice(at, s, n.text)
		}
	case Integer:
		w.integer(at, n, s.Type.String())
	case Boolean:
		w.shaped(at, s, n, 'b')
	}
}

func (w *walk) shaped(at string, s *schema, n node, shape byte) bool {
	if n.shape == shape {
		return true
	}
	w.wrong(at, n, s.Type.String())
	return false
}

func (w *walk) wrong(at string, n node, allowed string) {
	w.faults.add(WrongType, at, "is %s; allowed is %s", n.what(), allowed)
}

func (w *walk) list(at string, s *schema, n node) {
	for i, item := range n.items {
		in := at + "[" + strconv.Itoa(i) + "]"
		switch {
		case s.Type == Objects && item.shape == '{':
			w.object(in, s, item)
		case s.Type == Objects:
			w.wrong(in, item, Object.String())
		case s.Type == Integers:
			w.integer(in, item, Integer.String())
		case item.shape == 's':
			w.choice(in, s, item.text)
		default:
			w.wrong(in, item, String.String())
		}
	}
}

func (w *walk) stringMap(at string, n node) {
	for _, double := range n.doubles {
		w.faults.add(Malformed, join(at, double), "is given twice")
	}
	for i, item := range n.items {
		if item.shape != 's' {
			w.wrong(join(at, n.names[i]), item, String.String())
		}
	}
}

// integer takes what ECS's 32 bits hold, written plainly.
func (w *walk) integer(at string, n node, allowed string) {
	if n.shape != 'n' {
		w.wrong(at, n, allowed)
		return
	}
	if _, err := strconv.ParseInt(n.text, 10, 32); err != nil {
		w.wrong(at, n, allowed+" between -2147483648 and 2147483647")
	}
}

func (w *walk) choice(at string, s *schema, text string) {
	if len(s.Choices) == 0 || text == "" {
		return
	}
	c, ok := s.choice(text)
	switch {
	case !ok:
		w.faults.invalid(at, "is %s; allowed: %s", show(text), s.offer())
	case c.State != Run && !w.quiet:
		w.refuse(at, show(text)+" ", c.Why)
	}
}

// join adds a name to a path; a name that would read as more than one is quoted.
func join(path, name string) string {
	if strings.ContainsAny(name, ".[] \t\n\"") || name == "" || len(name) > 60 {
		name = show(name)
	}
	if path == "" {
		return name
	}
	return path + "." + name
}
