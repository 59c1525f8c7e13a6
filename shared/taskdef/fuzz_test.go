package taskdef_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/longshore-run/longshore/shared/taskdef"
)

// orderly says that an error is what the package promises: a Faults that says something at each of its paths.
func orderly(t *testing.T, err error) {
	t.Helper()
	faults, ok := errors.AsType[taskdef.Faults](err)
	if !ok || len(faults) == 0 {
		t.Fatalf("the error is %T %v, want a Faults", err, err)
	}
	for _, f := range faults {
		if f.Message == "" || f.Kind == "" {
			t.Fatalf("an empty fault: %+v", f)
		}
	}
}

func FuzzDecode(f *testing.F) {
	paths, err := filepath.Glob(filepath.Join(examples, "*.json"))
	if err != nil || len(paths) == 0 {
		f.Fatalf("no examples: %v", err)
	}
	for _, path := range paths {
		body, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	for _, body := range []string{
		"", "null", "[]", `{"family":1}`, `{"family":"f","Family":2}`, `{"a.b[0]":{}}`, beside(""), two(`"dependsOn":[{"containerName":"b","condition":"START"}]`, "", ""),
		with(`"portMappings":[{"containerPort":80,"hostPort":80}],"systemControls":[{"namespace":"net.x","value":"1"}]`),
		beside(`"volumes":[{"name":"v","host":{}}],"cpu":"1 vCPU","memory":"NaNGB","placementConstraints":[{"type":"memberOf","expression":"attribute:a =~ (b"}]`),
		`{"family":"f","containerDefinitions":[{"name":"a","image":"x","memory":2147483647},{"name":"b","image":"x","memory":2147483647}]}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		in, err := taskdef.Decode(body)
		if err != nil {
			orderly(t, err)
			return
		}
		if err := taskdef.Validate(in); err != nil {
			t.Fatalf("decoded, and then not valid: %v", err)
		}
		def := taskdef.Echo(in, taskdef.Registration{Region: "r", Account: "1", Revision: 1})
		back, err := taskdef.ParseStored(taskdef.Canonical(def))
		if err != nil || !reflect.DeepEqual(back, def) {
			t.Fatalf("stored and read: %v\n%s\n%s", err, taskdef.Canonical(def), taskdef.Canonical(back))
		}
		same, err := taskdef.Apply(def, taskdef.TaskOverride{})
		if err != nil || string(taskdef.Canonical(same)) != string(taskdef.Canonical(def)) {
			t.Fatalf("no overrides changed it: %v\n%s", err, taskdef.Canonical(same))
		}
		n := taskdef.Needs(def, taskdef.TaskOverride{})
		if n.CPU < 0 || n.MemoryMiB < 6 || n.GPUs < 0 {
			t.Fatalf("needs %+v", n)
		}
	})
}

func FuzzDecodeOverride(f *testing.F) {
	for _, body := range []string{
		"", "null", "{}", `{"cpu":"256"}`, containers(`{"name":"a","command":["x"],"environment":[{"name":"A","value":"b"}],"memory":64}`),
		containers(`{"name":"b"}`), containers(`{"name":"a","memoryReservation":9999}`),
	} {
		f.Add([]byte(body))
	}
	def := registered(f, beside(""))
	f.Fuzz(func(t *testing.T, body []byte) {
		over, err := taskdef.DecodeOverride(body)
		if err != nil {
			orderly(t, err)
			return
		}
		taskdef.EchoOverride(def, over)
		merged, err := taskdef.Apply(def, over)
		if err != nil {
			orderly(t, err)
			return
		}
		if a, b := taskdef.Needs(def, over), taskdef.Needs(merged, taskdef.TaskOverride{}); !reflect.DeepEqual(a, b) {
			t.Fatalf("%+v before the merge, %+v after", a, b)
		}
	})
}

// FuzzParseStored: what was stored is read, and written the same.
func FuzzParseStored(f *testing.F) {
	f.Add(taskdef.Canonical(registered(f, beside(""))))
	f.Add([]byte(`{"family":"f","registeredAt":1.5,"containerDefinitions":[null]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		def, err := taskdef.ParseStored(body)
		if err != nil {
			orderly(t, err)
			return
		}
		once := taskdef.Canonical(def)
		again, err := taskdef.ParseStored(once)
		if err != nil || string(taskdef.Canonical(again)) != string(once) {
			t.Fatalf("%v\n%s\n%s", err, once, taskdef.Canonical(again))
		}
	})
}

// FuzzParseReference: what is read as the name of a definition is a family, and a
// revision that is none or from 1; it is its own name.
func FuzzParseReference(f *testing.F) {
	for _, s := range []string{"", "web", "web:3", "web:03", "web:99999999999", "arn:aws:ecs:us-east-1:000000000000:task-definition/web:3", "arn:aws:ecs:::task-definition/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := taskdef.ParseReference(s)
		if err != nil {
			orderly(t, err)
			if len(err.Error()) > 1024 {
				t.Fatalf("the error has %d bytes", len(err.Error()))
			}
			return
		}
		if r.Family == "" || r.Revision < 0 || len(r.Family) > 255 {
			t.Fatalf("%q is %+v", s, r)
		}
		if r.Revision == 0 {
			return
		}
		again, err := taskdef.ParseReference(taskdef.ARN(r.Region, r.Account, r.Family, r.Revision))
		if err != nil || again != r {
			t.Fatalf("%q is %+v and then %+v, %v", s, r, again, err)
		}
	})
}

// FuzzUnmarshalJSON: a time is read to the millisecond, whatever its form.
func FuzzUnmarshalJSON(f *testing.F) {
	for _, s := range []string{"0", "-0.001", "1767323045.25", "1e12", "NaN", `"x"`, "null", "0x1p-2"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var i, again taskdef.Instant
		if err := i.UnmarshalJSON(data); err != nil {
			if len(err.Error()) > 1024 {
				t.Fatalf("the error has %d bytes", len(err.Error()))
			}
			return
		}
		text, err := i.MarshalJSON()
		if err != nil || again.UnmarshalJSON(text) != nil || again != i {
			t.Fatalf("%s is %d, written as %s and read as %d, %v", data, i, text, again, err)
		}
	})
}
