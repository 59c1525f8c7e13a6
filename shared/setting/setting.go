// Package setting holds the typed settings of our programs. A program reads
// its settings with FromEnv; infra and the local stack write them with Env, so
// that a setting is named in one place. It reads no environment itself.
package setting

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// FromEnv fills the struct that into points to. Fields are tagged
//
//	env:"NAME"  the variable    def:"…"  its default    need:"true"  must be set
//	min:"…" max:"…"  bounds of a number or duration      one:"a|b"   allowed values
//	secret:"true"    its value is in no error, and is not to be shown
//
// and may be string, bool, int, time.Duration, []string (comma separated) or
// []int. The error joins every fault found, each naming its variable and what
// is allowed.
func FromEnv(into any, lookup func(string) (string, bool)) error {
	var faults []error
	for f, v := range fields(into) {
		name := f.Tag.Get("env")
		text, ok := lookup(name)
		if !ok || text == "" {
			text = f.Tag.Get("def")
		}
		if text == "" {
			if f.Tag.Get("need") == "true" {
				faults = append(faults, fmt.Errorf("%s must be set", name))
			}
			continue
		}
		if err := set(v, f.Tag, text); err != nil {
			if f.Tag.Get("secret") == "true" {
				text = hidden
			}
			faults = append(faults, fmt.Errorf("%s=%q: %w", name, text, err))
		}
	}
	return errors.Join(faults...)
}

// hidden stands for the value of a secret.
const hidden = "(hidden)"

// Shown is Env for people to see: secrets are hidden.
func Shown(s any) map[string]string {
	all := Env(s)
	for f := range fields(s) {
		if name := f.Tag.Get("env"); all[name] != "" && f.Tag.Get("secret") == "true" {
			all[name] = hidden
		}
	}
	return all
}

// Env is the inverse of FromEnv: the variables that make it return s. Empty
// values and those that equal their default are left out.
func Env(s any) map[string]string {
	out := map[string]string{}
	for f, v := range fields(s) {
		text := format(v)
		if v.Kind() == reflect.Slice && v.Len() == 0 && !v.IsNil() {
			text = "," // a list of nothing, which is not the default
		}
		if text == "" || text == canonical(f) {
			continue
		}
		out[f.Tag.Get("env")] = text
	}
	return out
}

// Names lists the variables of a settings struct, sorted.
func Names(s any) []string {
	var out []string
	for f := range fields(s) {
		out = append(out, f.Tag.Get("env"))
	}
	slices.Sort(out)
	return out
}

func fields(s any) func(func(reflect.StructField, reflect.Value) bool) {
	v := reflect.Indirect(reflect.ValueOf(s))
	return func(yield func(reflect.StructField, reflect.Value) bool) {
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.Tag.Get("env") != "" && !yield(f, v.Field(i)) {
				return
			}
		}
	}
}

// canonical is the default as format would write it ("1m" and "60s" are one).
func canonical(f reflect.StructField) string {
	v := reflect.New(f.Type).Elem()
	def := f.Tag.Get("def")
	if def == "" || set(v, f.Tag, def) != nil {
		return def
	}
	return format(v)
}

func set(v reflect.Value, tag reflect.StructTag, text string) error {
	switch v.Interface().(type) {
	case string:
		if one := tag.Get("one"); one != "" && !slices.Contains(strings.Split(one, "|"), text) {
			return fmt.Errorf("must be one of %s", strings.ReplaceAll(one, "|", ", "))
		}
		v.SetString(text)
	case bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return errors.New("must be true or false")
		}
		v.SetBool(b)
	case time.Duration:
		return setBounded(v, tag, text, "a duration such as 90s", parseDuration)
	case int:
		return setBounded(v, tag, text, "a whole number", parseInt)
	case []string:
		v.Set(reflect.ValueOf(split(text)))
	case []int:
		all := []int{}
		for _, part := range split(text) {
			n, err := strconv.Atoi(part)
			if err != nil {
				return fmt.Errorf("must be whole numbers separated by commas, not %q", part)
			}
			all = append(all, n)
		}
		v.Set(reflect.ValueOf(all))
	default:
		panic("setting: unsupported type " + v.Type().String())
	}
	return nil
}

func setBounded(v reflect.Value, tag reflect.StructTag, text, what string, parse func(string) (int64, error)) error {
	n, err := parse(text)
	if err != nil {
		return fmt.Errorf("must be %s", what)
	}
	for _, bound := range []struct {
		text string
		bad  func(limit int64) bool
		word string
	}{
		{tag.Get("min"), func(l int64) bool { return n < l }, "at least"},
		{tag.Get("max"), func(l int64) bool { return n > l }, "at most"},
	} {
		if bound.text == "" {
			continue
		}
		limit, err := parse(bound.text)
		if err != nil {
			panic("setting: bad bound " + bound.text)
		}
		if bound.bad(limit) {
			return fmt.Errorf("must be %s %s", bound.word, bound.text)
		}
	}
	v.SetInt(n)
	return nil
}

func parseDuration(s string) (int64, error) {
	d, err := time.ParseDuration(s)
	return int64(d), err
}

func parseInt(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) }

func format(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case string:
		return x
	case bool:
		return strconv.FormatBool(x)
	case time.Duration:
		return x.String()
	case int:
		return strconv.Itoa(x)
	case []string:
		return strings.Join(x, ",")
	case []int:
		parts := make([]string, len(x))
		for i, n := range x {
			parts[i] = strconv.Itoa(n)
		}
		return strings.Join(parts, ",")
	}
	panic("setting: unsupported type " + v.Type().String())
}

func split(s string) []string {
	out := []string{}
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}
