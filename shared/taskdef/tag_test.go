package taskdef_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/shared/taskdef"
)

func TestValidateTags_KeepsECSsLimits(t *testing.T) {
	tag := func(k, v string) taskdef.Tag { return taskdef.Tag{Key: k, Value: v} }
	var many []taskdef.Tag
	for i := range 51 {
		many = append(many, tag(fmt.Sprint("k", i), ""))
	}
	for _, c := range []struct {
		sentence string
		tags     []taskdef.Tag
		want     string
	}{
		{"fifty", many[:50], ""},
		{"the longest", []taskdef.Tag{tag(strings.Repeat("é", 128), strings.Repeat("é", 256))}, ""},
		{"every sign", []taskdef.Tag{tag("longshore:on_Disconnect", "a b_.:/=+-@9")}, ""},
		{"fifty-one", many, "t are 51; allowed are 50\n"},
		{"no key", []taskdef.Tag{tag("", "v")}, "t[0].key is required\n"},
		{"long key", []taskdef.Tag{tag(strings.Repeat("é", 129), "")}, "t[0].key is 129 characters long; allowed are 128\n"},
		{"long value", []taskdef.Tag{tag("k", strings.Repeat("é", 257))}, "t[0].value is 257 characters long; allowed are 256\n"},
		{"reserved key", []taskdef.Tag{tag("AwS:x", "")}, "t[0].key is \"AwS:x\"; the prefix aws: is reserved\n"},
		{"reserved value", []taskdef.Tag{tag("k", "aws:x")}, "t[0].value is \"aws:x\"; the prefix aws: is reserved\n"},
		{"one key twice", []taskdef.Tag{tag("k", ""), tag("k", "")}, "t[1].key repeats \"k\"\n"},
		{"other case", []taskdef.Tag{tag("k", ""), tag("K", "")}, ""},
		{"signs", []taskdef.Tag{tag("a*", "b?")}, "t[0].key holds '*'; allowed are letters, digits, spaces and _ . : / = + - @\n" +
			"t[0].value holds '?'; allowed are letters, digits, spaces and _ . : / = + - @\n"},
	} {
		t.Run(c.sentence, func(t *testing.T) {
			if got := lines(taskdef.ValidateTags("t", c.tags)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	judge(t, []verdict{{"in a definition", beside(`"tags":[{"key":"aws:x","value":"y"}]`), []string{`tags[0].key is "aws:x"; the prefix aws: is reserved`}}})
}
