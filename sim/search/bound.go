package search

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// parseBound reads a budget: "operations=2 preempt=1 …"; what is not named is
// what it was.
func (l *budget) parse(text string) error {
	v := reflect.ValueOf(l).Elem()
	for word := range strings.FieldsSeq(text) {
		name, n, _ := strings.Cut(word, "=")
		field := v.FieldByNameFunc(func(f string) bool { return strings.EqualFold(f, name) })
		number, err := strconv.ParseUint(n, 10, 5)
		if !field.IsValid() || err != nil {
			return fmt.Errorf("bound %q is none", word)
		}
		field.SetUint(number)
	}
	return nil
}

func (l budget) String() string {
	var out []string
	v := reflect.ValueOf(l)
	for i := range v.NumField() {
		if n := v.Field(i).Uint(); n > 0 {
			out = append(out, fmt.Sprintf("%s=%d", strings.ToLower(v.Type().Field(i).Name), n))
		}
	}
	return strings.Join(out, " ")
}

// allow restricts a search to some kinds, by their names without spaces.
func (x *search) allow(names string) error {
	x.allowed = map[kind]bool{}
	for name := range strings.FieldsSeq(names) {
		known := false
		for _, k := range kinds {
			if strings.ReplaceAll(string(k), " ", "") == name {
				x.allowed[k], known = true, true
			}
		}
		if !known {
			return fmt.Errorf("no kind of operation is named %q", name)
		}
	}
	return nil
}
