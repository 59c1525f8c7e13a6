package taskdef_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/shared/taskdef"
)

var update = flag.Bool("update", false, "write the golden files anew")

const examples = "../../examples/taskdefs"

// lines is an error's faults, a line each.
func lines(err error) string {
	faults, ok := errors.AsType[taskdef.Faults](err)
	if err != nil && !ok {
		return "not a Faults: " + err.Error()
	}
	var b strings.Builder
	for _, f := range faults {
		b.WriteString(f.Error() + "\n")
	}
	return b.String()
}

// golden compares with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (run with -update and read the difference)\ngot:\n%s\nwant:\n%s", path, got, want)
	}
}

func exampleFiles(t *testing.T) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(examples, "*.json"))
	if err != nil || len(paths) != 7 {
		t.Fatalf("found %d examples, want 7 (%v)", len(paths), err)
	}
	files := map[string][]byte{}
	for _, path := range paths {
		body, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(path)] = body
	}
	return files
}

func TestDecode_EachExampleRegisters(t *testing.T) {
	for name, body := range exampleFiles(t) {
		if _, err := taskdef.Decode(body); err != nil {
			t.Errorf("%s: %s", name, lines(err))
		}
	}
}

func TestDecode_TheMinimalExampleRegisters(t *testing.T) {
	in, err := taskdef.Decode(exampleFiles(t)["12-minimal-and-defaults.json"])
	if err != nil {
		t.Fatal(err)
	}
	def := taskdef.Echo(in, taskdef.Registration{Region: "eu-west-1", Account: "000000000000", Revision: 3, At: 1_700_000_000_123, By: "arn:aws:iam::000000000000:user/ops"})
	golden(t, "12-minimal-and-defaults.echo", string(taskdef.Canonical(def))+"\n")
}
