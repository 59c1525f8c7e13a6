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
