package journal_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
)

var update = flag.Bool("update", false, "write the journal and the state of this format anew")

// A journal outlives the program that wrote it: what testdata holds was written once,
// and every agent reads all of it. What newer records add to it comes in with -update
// some time; a change of what is there needs another Format, and this file stays.
func TestOpen_ReadsAllThatAnOlderReleaseWrote(t *testing.T) {
	file, state := filepath.Join("testdata", "format-1.db"), filepath.Join("testdata", "format-1.json")
	if *update {
		writeGolden(t, file, state)
	}
	want, err := os.ReadFile(state)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "journal.db"), written, 0o600); err != nil {
		t.Fatal(err)
	}
	got, how := closed(t, dir, owner)
	if how.Fresh || how.MovedTo != "" {
		t.Fatalf("it is not used: %+v", how)
	}
	if lacks := missing("", parsed(t, want), parsed(t, indented(t, got))); lacks != "" {
		t.Error("what an older release wrote is lost: " + lacks)
	}
	if again, how := closed(t, dir, owner); how.Fresh || !reflect.DeepEqual(again, got) {
		t.Errorf("written anew it is %+v, not %+v", again, got)
	}
}

func writeGolden(t *testing.T, file, state string) {
	t.Helper()
	dir := t.TempDir()
	j, _ := open(t, dir, owner)
	s, err := j.Load()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	fillIn(reflect.ValueOf(&s.Meta).Elem(), &n)
	s.Meta.Hardware, s.Meta.Identity = owner.Hardware, owner.Identity
	c := agent.Change{Meta: &s.Meta}
	for range 2 { // one with all there is, one with nothing that may be left out
		r := agent.Record{}
		if len(c.Put) == 0 {
			fillIn(reflect.ValueOf(&r).Elem(), &n)
		}
		r.State.ID = fmt.Sprintf("%032x", len(c.Put)+1)
		c.Put = append(c.Put, r)
	}
	if err := j.Commit(c); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	s, _ = closed(t, dir, owner)
	written, err := os.ReadFile(filepath.Join(dir, "journal.db"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{file: written, state: indented(t, s)} {
		if err := os.WriteFile(name, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// fillIn gives every member a value of its own.
func fillIn(v reflect.Value, n *int) {
	*n++
	switch at := v.Addr().Interface().(type) {
	case *time.Time:
		*at = time.Unix(1_800_000_000+int64(*n), 1000*int64(*n)).UTC()
		return
	case *json.RawMessage:
		*at = fmt.Appendf(nil, `{"n":%d}`, *n)
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprint("s", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(*n % 100))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(*n % 100))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(*n))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillIn(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillIn(v.Index(0), n)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fillIn(key, n)
		fillIn(value, n)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fillIn(v.Field(i), n)
			}
		}
	default:
		panic("a journal holds a " + v.Type().String())
	}
}

func indented(t *testing.T, s agent.State) []byte {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	if err := e.Encode(s); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func parsed(t *testing.T, text []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// missing says where got lacks something of want or has something else.
func missing(path string, want, got any) string {
	w, isMap := want.(map[string]any)
	g, both := got.(map[string]any)
	if isMap && both {
		for name, value := range w {
			if lacks := missing(path+"."+name, value, g[name]); lacks != "" {
				return lacks
			}
		}
		return ""
	}
	a, isList := want.([]any)
	b, bothLists := got.([]any)
	if isList && bothLists && len(a) == len(b) {
		for i := range a {
			if lacks := missing(fmt.Sprintf("%s[%d]", path, i), a[i], b[i]); lacks != "" {
				return lacks
			}
		}
		return ""
	}
	if !reflect.DeepEqual(want, got) {
		return fmt.Sprintf("%s is %v, not %v", path, got, want)
	}
	return ""
}
