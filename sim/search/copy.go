package search

import (
	"reflect"
	"time"
)

// copyInto makes a record one that shares nothing with another of its type. It is
// what reading the record's document again comes to, and costs a tenth.
func copyInto(to, from any) { copyValue(reflect.ValueOf(to).Elem(), reflect.ValueOf(from).Elem()) }

var timeType = reflect.TypeFor[time.Time]()

func copyValue(to, from reflect.Value) {
	switch from.Kind() {
	case reflect.Pointer:
		if from.IsNil() {
			to.SetZero()
			return
		}
		to.Set(reflect.New(from.Type().Elem()))
		copyValue(to.Elem(), from.Elem())
	case reflect.Slice:
		if from.IsNil() {
			to.SetZero()
			return
		}
		to.Set(reflect.MakeSlice(from.Type(), from.Len(), from.Len()))
		if plainKind(from.Type().Elem()) {
			reflect.Copy(to, from)
			return
		}
		for i := range from.Len() {
			copyValue(to.Index(i), from.Index(i))
		}
	case reflect.Map:
		if from.IsNil() {
			to.SetZero()
			return
		}
		to.Set(reflect.MakeMapWithSize(from.Type(), from.Len()))
		for each := from.MapRange(); each.Next(); {
			value := reflect.New(from.Type().Elem()).Elem()
			copyValue(value, each.Value())
			to.SetMapIndex(each.Key(), value)
		}
	case reflect.Struct:
		to.Set(from)
		if plainKind(from.Type()) {
			return
		}
		for i := range from.NumField() {
			if !plainKind(from.Field(i).Type()) {
				copyValue(to.Field(i), from.Field(i))
			}
		}
	default:
		to.Set(from)
	}
}

// plainKind says whether a copy of a value of that type shares nothing with it.
func plainKind(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface, reflect.Func, reflect.Chan:
		return false
	case reflect.Array:
		return plainKind(t.Elem())
	case reflect.Struct:
		if t == timeType {
			return true
		}
		for f := range t.Fields() {
			if !plainKind(f.Type) {
				return false
			}
		}
	}
	return true
}
