package output_test

import (
	"strings"
	"testing"

	"github.com/longshore-run/longshore/cli/internal/output"
)

const hostile = "\x1b[2J\x9b1m\rOK\x07\u202e\u0085\nlast"

func TestTable_ATextOfAnAgentMovesNoCursor(t *testing.T) {
	table := &output.Table{Head: []string{"REASON"}}
	table.Add(hostile)
	table.Add(output.Cell{Text: hostile, Colour: output.Bad})
	var b strings.Builder
	if err := table.Write(&b, false); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); strings.ContainsAny(got, "\x1b\r\x07\u009b\u202e\u0085") || strings.Count(got, "\n") != 3 || !strings.Contains(got, "OK") {
		t.Fatalf("%q", got)
	}
}

func TestVisible_KeepsWhatPeopleWrite(t *testing.T) {
	for _, text := range []string{"", "plain", "größer · 大きい", "a\nb"} {
		if got := output.VisibleLines(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}
