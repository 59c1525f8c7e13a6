package output_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/longshore-run/longshore/cli/internal/output"
)

// FuzzFromYAML: a file of YAML is JSON that means the same when it is read again.
func FuzzFromYAML(f *testing.F) {
	for _, s := range []string{
		"family: web\ncontainerDefinitions:\n- {name: main, image: x, memory: 64}\n", "a: &x [1, 2]\nb: *x\n", "{}", "- 1\n- yes\n- 0x10\n- 1e3\n", "a: !!binary AAA=\n", "1: 2\n? [a]\n: b\n", "<<: {a: 1}\n", "a: 2026-01-02\n", "a: .nan\n",
		"a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\nd: [*c,*c]\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 4096 {
			return
		}
		once, err := output.FromYAML(text)
		if err != nil {
			return
		}
		if !json.Valid(once) {
			t.Fatalf("%q is not JSON", once)
		}
		again, err := output.FromYAML(once)
		if err != nil || !bytes.Equal(once, again) {
			t.Fatalf("%s\n%s, %v", once, again, err)
		}
	})
}
