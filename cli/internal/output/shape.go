package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"sort"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// JSON writes a value of the SDK as the API has it: members under the API's own
// names, in the SDK's order, absent ones left out; the lists of an answer are
// always there. Times are written as text, as the aws command does. What already
// is JSON stays.
func JSON(v any) ([]byte, error) {
	var b bytes.Buffer
	if err := write(&b, reflect.ValueOf(v)); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, b.Bytes(), "", "    "); err != nil {
		return nil, fmt.Errorf("write JSON: %w", err)
	}
	return out.Bytes(), nil
}

var (
	timeType = reflect.TypeFor[time.Time]()
	rawType  = reflect.TypeFor[json.RawMessage]()
)

func write(b *bytes.Buffer, v reflect.Value) error {
	if !v.IsValid() {
		b.WriteString("null")
		return nil
	}
	switch {
	case v.Type() == timeType:
		return plain(b, v.Interface().(time.Time).UTC().Format("2006-01-02T15:04:05.000Z07:00"))
	case v.Type() == rawType:
		if v.Len() == 0 {
			b.WriteString("null")
			return nil
		}
		b.Write(v.Bytes())
		return nil
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			b.WriteString("null")
			return nil
		}
		return write(b, v.Elem())
	case reflect.Struct:
		return writeStruct(b, v)
	case reflect.Slice, reflect.Array:
		return writeList(b, v)
	case reflect.Map:
		return writeMap(b, v)
	default:
		return plain(b, v.Interface())
	}
}

func plain(b *bytes.Buffer, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	b.Write(text)
	return nil
}

func writeStruct(b *bytes.Buffer, v reflect.Value) error {
	b.WriteByte('{')
	first := true
	answer := strings.HasSuffix(v.Type().Name(), "Output")
	for i := range v.NumField() {
		f := v.Type().Field(i)
		field := v.Field(i)
		if !f.IsExported() || f.Name == "ResultMetadata" || absent(field, answer) {
			continue
		}
		if !first {
			b.WriteByte(',')
		}
		first = false
		if err := plain(b, member(f)); err != nil {
			return err
		}
		b.WriteByte(':')
		if err := write(b, field); err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}

// absent says whether the API did not have a member: the SDK's enums are strings
// without a pointer.
func absent(v reflect.Value, answer bool) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Interface:
		return v.IsNil()
	case reflect.Slice:
		return v.IsNil() && !answer
	case reflect.String:
		return v.Len() == 0
	default:
		return false
	}
}

// member is the API's name of a field: the SDK's with a small letter, or what a
// struct of our own says.
func member(f reflect.StructField) string {
	if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
		return name
	}
	r, n := utf8.DecodeRuneInString(f.Name)
	return string(unicode.ToLower(r)) + f.Name[n:]
}

func writeList(b *bytes.Buffer, v reflect.Value) error {
	b.WriteByte('[')
	for i := range v.Len() {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := write(b, v.Index(i)); err != nil {
			return err
		}
	}
	b.WriteByte(']')
	return nil
}

func writeMap(b *bytes.Buffer, v reflect.Value) error {
	keys := v.MapKeys()
	sort.Slice(keys, func(i, j int) bool { return fmt.Sprint(keys[i]) < fmt.Sprint(keys[j]) })
	b.WriteByte('{')
	for i, k := range keys {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := plain(b, fmt.Sprint(k)); err != nil {
			return err
		}
		b.WriteByte(':')
		if err := write(b, v.MapIndex(k)); err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}
