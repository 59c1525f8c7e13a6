package controltest

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/schema"
)

// Every makes one empty record of each kind, with a key that no other has.
func Every() []control.Record { return every(newID()) }

// Filled makes one record of each kind with every member set, always alike.
func Filled() []control.Record {
	records := every("0123456789abcdef0123456789abcdef")
	for _, r := range records {
		filling{entries: 2, expires: time.Unix(4_000_000_000, 0)}.fill(r)
		kept(r)
	}
	return records
}

func every(id string) []control.Record {
	return []control.Record{
		&control.Task{ID: id},
		&control.Instance{ID: id},
		&control.Ledger{ID: id},
		&control.Lease{ID: id},
		&control.Probe{ID: id},
		&control.Guard{},
		&control.Brake{Zone: "zone-" + id},
		&control.Cluster{Name: "cluster-" + id},
		&control.QueueState{Cluster: "cluster-" + id},
		&control.Settings{Principal: "arn:aws:iam::000000000000:user/" + id},
		&control.Family{Name: "family-" + id},
		&control.Definition{Family: "family-" + id, Number: 7},
		&control.Token{Scope: "RunTask#cluster-" + id, Token: "token/" + id + " ü"},
		&control.Schedule{Name: "schedule-" + id},
		&control.Live{Cluster: "cluster-" + id, Service: "service-" + id},
		&control.Service{Cluster: "cluster-" + id, Name: "service-" + id},
		&control.ServiceEvents{Cluster: "cluster-" + id, Service: "service-" + id},
		&control.ServiceRevision{Cluster: "cluster-" + id, Service: "service-" + id, ID: "12345678901234567"},
		&control.ServiceDeployment{Cluster: "cluster-" + id, Service: "service-" + id, ID: id},
	}
}

// A filling sets members that are not part of the key.
type filling struct {
	seed    uint64
	entries int // of a map
	expires time.Time
	// empty makes slices and maps empty and leaves all else zero.
	empty  bool
	random *rand.Rand
}

// fill sets every member of r but its key and version, whatever members it has.
// What a member is set to depends on its name, not on those around it.
func (f filling) fill(r control.Record) {
	key := r.Key()
	v := reflect.ValueOf(r).Elem()
	for i := range v.NumField() {
		field := v.Type().Field(i)
		before := reflect.New(field.Type).Elem()
		before.Set(v.Field(i))
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		hash := fnv.New64a()
		hash.Write([]byte(string(r.Kind()) + "." + field.Name))
		f.random = rand.New(rand.NewPCG(f.seed, hash.Sum64()))
		f.value(v.Field(i), 0)
		if r.Key() != key || field.Name == "Version" {
			v.Field(i).Set(before)
		}
		if name == schema.TTL && !f.empty {
			v.Field(i).Set(reflect.ValueOf(f.expires))
		}
	}
}

func (f filling) value(v reflect.Value, depth int) {
	switch x := v.Addr().Interface().(type) {
	case *time.Time:
		if !f.empty {
			*x = time.Unix(f.random.Int64N(4e9), f.random.Int64N(1e9)).In(time.FixedZone("there", 5400))
		}
		return
	case *json.RawMessage:
		if !f.empty {
			*x = json.RawMessage(`{"z":1.0,"a":[1e2,"<&>ü` + "\u2028" + `"],"n":9007199254740993,"e":{}}`)
		}
		return
	}
	switch v.Kind() {
	case reflect.Slice:
		n := 3
		if f.empty {
			n = 0
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			f.value(v.Index(i), depth+1)
		}
	case reflect.Map:
		f.mapped(v, depth)
	case reflect.Struct:
		for _, member := range v.Fields() {
			f.value(member, depth+1)
		}
	default:
		if !f.empty {
			f.scalar(v, depth)
		}
	}
}

func (f filling) mapped(v reflect.Value, depth int) {
	v.Set(reflect.MakeMap(v.Type()))
	if f.empty {
		return
	}
	for i := range f.entries {
		elem := reflect.New(v.Type().Elem()).Elem()
		f.value(elem, depth+1)
		v.SetMapIndex(reflect.ValueOf(fmt.Sprintf("key %d/ü.#:\"%d", i, f.random.Int())), elem)
	}
}

func (f filling) scalar(v reflect.Value, depth int) {
	texts := []string{"plain", "ünïcödé 🚢", "with\nline\tand \"quotes\" \\ <&>", "\u2028\u0001", " ", "0", "null", strings.Repeat("long ", 20)}
	numbers := []int64{math.MaxInt64, math.MinInt64, 1 << 53, -(1<<53 + 1), 1, -1}
	switch v.Kind() {
	case reflect.String:
		v.SetString(texts[f.random.IntN(len(texts))])
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(numbers[f.random.IntN(len(numbers))])
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.value(v.Elem(), depth+1)
	default:
		panic("controltest: records hold no " + v.Type().String())
	}
}

// kept is what a store gives back of a filled record: times in UTC, its expiry
// in whole seconds, nil where an empty slice or map is left out.
func kept(r control.Record) {
	keep(reflect.ValueOf(r).Elem())
	if at := control.ExpiresAt(r); at != nil && !at.IsZero() {
		*at = control.ExpirySecond(*at)
	}
}

func keep(v reflect.Value) {
	if at, ok := reflect.TypeAssert[*time.Time](v.Addr()); ok {
		*at = at.UTC()
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Field(i)
			left := strings.Contains(v.Type().Field(i).Tag.Get("json"), ",omitempty")
			if k := f.Kind(); left && (k == reflect.Slice || k == reflect.Map) && f.Len() == 0 {
				f.SetZero()
			}
			keep(f)
		}
	case reflect.Slice:
		for i := range v.Len() {
			keep(v.Index(i))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			keep(v.Elem())
		}
	}
}
