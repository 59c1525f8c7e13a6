package controltest

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/task"
)

var recordTests = []suiteTest{
	{"Load_GivesBackEveryMemberOfEveryKind", func(t *storeTest) {
		for seed := range uint64(4) {
			wrote, want := filledTwice(filling{}, seed)
			t.put(wrote...)
			t.compare(wrote, want, 1)
			for _, r := range wrote {
				t.commit(control.Delete(r))
			}
		}
	}},
	{"Load_GivesBackEveryMemberWrittenOverAnother", func(t *storeTest) {
		first, _ := filledTwice(filling{}, 11)
		t.put(first...)
		second, want := filledTwice(filling{}, 12)
		for i, r := range second {
			sameKey(first[i], r)
			sameKey(first[i], want[i])
			*r.Revision() = 1
		}
		t.put(second...)
		t.compare(second, want, 2)
	}},
	{"Load_GivesBackEmptySlicesAndMapsOrNilAsTheirTagsSay", func(t *storeTest) {
		wrote, want := filledTwice(filling{empty: true}, 0)
		t.put(wrote...)
		t.compare(wrote, want, 1)
	}},
	{"Load_GivesBackRecordsOfNothingButAKey", func(t *storeTest) {
		wrote := Every()
		var want []control.Record
		for _, r := range wrote {
			blank := reflect.New(reflect.TypeOf(r).Elem()).Interface().(control.Record)
			sameKey(r, blank)
			want = append(want, blank)
		}
		t.put(wrote...)
		t.compare(wrote, want, 1)
	}},
	{"Load_LeavesOfWhatIsMissingNothingButTheKey", func(t *storeTest) {
		records := Every()
		for _, r := range records {
			filling{seed: 5}.fill(r)
			*r.Revision() = 9
		}
		t.load(records...)
		for _, r := range records {
			blank := reflect.New(reflect.TypeOf(r).Elem()).Interface().(control.Record)
			sameKey(r, blank)
			if !reflect.DeepEqual(r, blank) {
				t.Errorf("a missing %s was loaded as %+v", r.Kind(), r)
			}
		}
	}},
	{"Load_OfHundredsFillsEachInItsPlace", func(t *storeTest) {
		var tasks []control.Record
		for i := range 230 {
			tasks = append(tasks, &control.Task{ID: newID(), Priority: i + 1})
		}
		t.put(tasks...)
		var all []control.Record
		for _, r := range tasks {
			all = append(all, &control.Task{ID: r.Key()}, &control.Instance{ID: r.Key()})
		}
		all = append(all, &control.Task{ID: tasks[0].Key()}) // twice
		t.load(all...)
		for i := range tasks {
			if got := all[2*i].(*control.Task); got.Priority != i+1 || got.Version != 1 {
				t.Fatalf("task %d is %+v", i, got)
			}
			if got := all[2*i+1].(*control.Instance); got.Version != 0 {
				t.Fatalf("an instance that is not there is %+v", got)
			}
		}
		if got := all[len(all)-1].(*control.Task); got.Priority != 1 {
			t.Fatalf("the one asked for twice is %+v", got)
		}
		t.load() // nothing
	}},
	{"Load_OfOneRecordTwiceGivesCopiesThatShareNothing", func(t *storeTest) {
		r := &control.Task{ID: newID(), Tags: map[string]string{"a": "1"}, Containers: []task.Container{{Name: "x"}}}
		t.put(r)
		a, b := &control.Task{ID: r.ID}, &control.Task{ID: r.ID}
		t.load(a, b)
		a.Tags["a"], a.Containers[0].Name, r.Tags["a"] = "2", "y", "3"
		c := &control.Task{ID: r.ID}
		t.load(c)
		if b.Tags["a"] != "1" || b.Containers[0].Name != "x" || c.Tags["a"] != "1" {
			t.Fatalf("copies share: %v %v %v", b.Tags, b.Containers, c.Tags)
		}
	}},
	{"Load_GivesBackABigRecord", func(t *storeTest) {
		r := &control.Task{ID: newID(), Tags: map[string]string{}}
		for i := range 1000 {
			r.Tags[fmt.Sprintf("tag-%d", i)] = fmt.Sprintf("%0200d", i)
		}
		for range 10 {
			zero := 0
			r.Containers = append(r.Containers, task.Container{Name: "c", ExitCode: &zero})
		}
		t.put(r)
		got := &control.Task{ID: r.ID}
		t.load(got)
		if len(got.Tags) != 1000 || got.Tags["tag-999"] != r.Tags["tag-999"] || len(got.Containers) != 10 || got.Containers[9].ExitCode == nil {
			t.Fatalf("%d tags, containers %+v", len(got.Tags), got.Containers)
		}
	}},
}

// filledTwice fills two sets of records alike: one to write, one as it must come
// back.
func filledTwice(f filling, seed uint64) (wrote, want []control.Record) {
	f.seed, f.entries, f.expires = seed, 120, time.Now().Add(time.Hour)
	wrote, want = Every(), Every()
	for i := range wrote {
		sameKey(wrote[i], want[i])
		for _, r := range []control.Record{wrote[i], want[i]} {
			f.fill(r)
		}
		kept(want[i])
	}
	return wrote, want
}

// sameKey gives to the key of from.
func sameKey(from, to control.Record) {
	control.Blank(to)
	a, b := reflect.ValueOf(from).Elem(), reflect.ValueOf(to).Elem()
	copied := reflect.New(a.Type())
	copied.Elem().Set(a)
	control.Blank(copied.Interface().(control.Record))
	b.Set(copied.Elem())
}

// compare loads each of wrote anew and wants it to be want, at a version.
func (t *storeTest) compare(wrote, want []control.Record, version int64) {
	t.Helper()
	for i, r := range wrote {
		got := reflect.New(reflect.TypeOf(r).Elem()).Interface().(control.Record)
		sameKey(r, got)
		t.load(got)
		*want[i].Revision() = version
		if reflect.DeepEqual(got, want[i]) {
			continue
		}
		for _, d := range differences(reflect.ValueOf(got).Elem(), reflect.ValueOf(want[i]).Elem()) {
			t.Errorf("%s.%s", r.Kind(), d)
		}
	}
}

func differences(got, want reflect.Value) []string {
	var out []string
	for i := range got.NumField() {
		g, w := got.Field(i).Interface(), want.Field(i).Interface()
		if reflect.DeepEqual(g, w) {
			continue
		}
		if at, ok := g.(time.Time); ok {
			g = at.Format(time.RFC3339Nano)
			w = w.(time.Time).Format(time.RFC3339Nano)
		}
		out = append(out, fmt.Sprintf("%s is %#v, want %#v", got.Type().Field(i).Name, g, w))
	}
	slices.Sort(out)
	return out
}
