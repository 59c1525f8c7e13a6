package dynamostore

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/schema"
)

// A record is stored as native attributes under its JSON names, with JSON's
// idea of what survives, so that the in-memory store and this one agree:
//
//   - numbers are exact to int64; durations are nanoseconds; zero numbers,
//     strings, booleans and times are left out, which keeps items small;
//   - a nil slice or map comes back nil, an empty one empty, unless its tag says
//     omitempty: then both come back nil;
//   - a time keeps its nanosecond and comes back in UTC. It is text of fixed
//     width, so that times compare as text in conditions;
//   - expiresAt, which DynamoDB reads, is a number of seconds, rounded up;
//   - json.RawMessage is kept byte for byte, as text.
//
// Attributes that this code does not know are left alone by reads and writes:
// a newer version may have written them while it was being rolled out.

type attributes = map[string]types.AttributeValue

// timeLayout is RFC 3339 with all nine digits.
const timeLayout = "2006-01-02T15:04:05.000000000Z"

var (
	timeType = reflect.TypeFor[time.Time]()
	rawType  = reflect.TypeFor[json.RawMessage]()
)

// field is one member of a struct that is stored.
type field struct {
	name      string
	index     int
	omitEmpty bool
	expiry    bool
}

var plans sync.Map // reflect.Type → []field

// planOf lists the members of a struct type. It panics for what the records do
// not need and this code therefore does not do.
func planOf(t reflect.Type) []field {
	if p, ok := plans.Load(t); ok {
		return p.([]field)
	}
	var plan []field
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || !f.IsExported() || name == "" || name == "-" {
			panic(fmt.Sprintf("dynamostore: %s.%s must be an exported, tagged member", t, f.Name))
		}
		plan = append(plan, field{
			name: name, index: i,
			omitEmpty: strings.Contains(options, "omitempty"),
			expiry:    name == schema.TTL,
		})
	}
	plans.Store(t, plan)
	return plan
}

// encode is a record's members as attributes, without keys and without what is
// derived for indexes.
func encode(r control.Record) attributes {
	v := reflect.ValueOf(r).Elem()
	out := attributes{}
	for _, f := range planOf(v.Type()) {
		if f.expiry {
			if at := v.Field(f.index).Interface().(time.Time); !at.IsZero() {
				out[f.name] = number(control.ExpirySecond(at).Unix())
			}
		} else if a := encodeMember(v.Field(f.index), f.omitEmpty); a != nil {
			out[f.name] = a
		}
	}
	return out
}

// names lists every attribute that encode may write for a kind of record.
func names(r control.Record) []string {
	var out []string
	for _, f := range planOf(reflect.TypeOf(r).Elem()) {
		out = append(out, f.name)
	}
	return out
}

// encodeMember is nil for what is left out of a struct.
func encodeMember(v reflect.Value, omitEmpty bool) types.AttributeValue {
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		if v.IsNil() || omitEmpty && v.Len() == 0 {
			return nil
		}
	case reflect.Struct:
		if v.IsZero() || v.Type() == timeType && v.Interface().(time.Time).IsZero() {
			return nil
		}
	default:
		if v.IsZero() {
			return nil
		}
	}
	return encodeValue(v)
}

func encodeValue(v reflect.Value) types.AttributeValue {
	switch v.Type() {
	case timeType:
		return text(formatTime(v.Interface().(time.Time)))
	case rawType:
		return text(string(v.Bytes()))
	}
	switch v.Kind() {
	case reflect.String:
		return text(v.String())
	case reflect.Bool:
		return &types.AttributeValueMemberBOOL{Value: v.Bool()}
	case reflect.Int, reflect.Int64:
		return number(v.Int())
	case reflect.Pointer:
		if v.IsNil() {
			return &types.AttributeValueMemberNULL{Value: true}
		}
		return encodeValue(v.Elem())
	case reflect.Slice:
		list := make([]types.AttributeValue, 0, v.Len())
		for i := range v.Len() {
			list = append(list, encodeValue(v.Index(i)))
		}
		return &types.AttributeValueMemberL{Value: list}
	case reflect.Map:
		m := make(attributes, v.Len())
		for it := v.MapRange(); it.Next(); {
			m[it.Key().String()] = encodeValue(it.Value())
		}
		return &types.AttributeValueMemberM{Value: m}
	case reflect.Struct:
		m := attributes{}
		for _, f := range planOf(v.Type()) {
			if a := encodeMember(v.Field(f.index), f.omitEmpty); a != nil {
				m[f.name] = a
			}
		}
		return &types.AttributeValueMemberM{Value: m}
	}
	panic("dynamostore: records hold no " + v.Type().String())
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

func formatTime(t time.Time) string { return t.UTC().Format(timeLayout) }

// decode fills an emptied record from an item's attributes.
func decode(item attributes, r control.Record) error {
	if err := decodeStruct(item, reflect.ValueOf(r).Elem()); err != nil {
		return fmt.Errorf("decode %s %s: %w", r.Kind(), r.Key(), err)
	}
	return nil
}

func decodeStruct(item attributes, v reflect.Value) error {
	for _, f := range planOf(v.Type()) {
		a, ok := item[f.name]
		if !ok {
			continue
		}
		if err := decodeMember(a, v.Field(f.index), f); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return nil
}

func decodeMember(a types.AttributeValue, v reflect.Value, f field) error {
	if !f.expiry {
		return decodeValue(a, v)
	}
	var seconds int64
	if err := decodeValue(a, reflect.ValueOf(&seconds).Elem()); err != nil {
		return err
	}
	v.Set(reflect.ValueOf(time.Unix(seconds, 0).UTC()))
	return nil
}

func decodeValue(a types.AttributeValue, v reflect.Value) error {
	if v.Kind() == reflect.Pointer {
		if _, null := a.(*types.AttributeValueMemberNULL); null {
			return nil
		}
		v.Set(reflect.New(v.Type().Elem()))
		return decodeValue(a, v.Elem())
	}
	switch a := a.(type) {
	case *types.AttributeValueMemberS:
		return decodeText(a.Value, v)
	case *types.AttributeValueMemberN:
		if v.Kind() == reflect.Int || v.Kind() == reflect.Int64 {
			n, err := strconv.ParseInt(a.Value, 10, v.Type().Bits())
			v.SetInt(n)
			return err
		}
	case *types.AttributeValueMemberBOOL:
		if v.Kind() == reflect.Bool {
			v.SetBool(a.Value)
			return nil
		}
	case *types.AttributeValueMemberL:
		if v.Kind() == reflect.Slice {
			return decodeList(a.Value, v)
		}
	case *types.AttributeValueMemberM:
		if v.Kind() == reflect.Struct && v.Type() != timeType {
			return decodeStruct(a.Value, v)
		}
		if v.Kind() == reflect.Map {
			return decodeMap(a.Value, v)
		}
	}
	return fmt.Errorf("%T is not a %s", a, v.Type())
}

func decodeText(s string, v reflect.Value) error {
	switch {
	case v.Type() == timeType:
		t, err := time.Parse(time.RFC3339Nano, s)
		v.Set(reflect.ValueOf(t.UTC()))
		return err
	case v.Type() == rawType:
		v.SetBytes([]byte(s))
		return nil
	case v.Kind() == reflect.String:
		v.SetString(s)
		return nil
	}
	return fmt.Errorf("text is not a %s", v.Type())
}

func decodeList(list []types.AttributeValue, v reflect.Value) error {
	v.Set(reflect.MakeSlice(v.Type(), len(list), len(list)))
	for i, a := range list {
		if err := decodeValue(a, v.Index(i)); err != nil {
			return fmt.Errorf("[%d]: %w", i, err)
		}
	}
	return nil
}

func decodeMap(m attributes, v reflect.Value) error {
	v.Set(reflect.MakeMapWithSize(v.Type(), len(m)))
	for k, a := range m {
		elem := reflect.New(v.Type().Elem()).Elem()
		if err := decodeValue(a, elem); err != nil {
			return fmt.Errorf("[%q]: %w", k, err)
		}
		v.SetMapIndex(reflect.ValueOf(k).Convert(v.Type().Key()), elem)
	}
	return nil
}
