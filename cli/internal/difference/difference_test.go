package difference_test

import (
	"strings"
	"testing"

	"github.com/longshore-run/longshore/cli/internal/difference"
)

func lines(t *testing.T, a, b string, secret func(string) bool) string {
	t.Helper()
	all, err := difference.Of([]byte(a), []byte(b), secret)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, l := range all {
		out = append(out, l.String())
	}
	return strings.Join(out, "\n")
}

func TestOf_TellsByPathAndName(t *testing.T) {
	got := lines(t,
		`{"family":"web","cpu":"256","containerDefinitions":[{"name":"main","image":"a:1","environment":[{"name":"A","value":"1"},{"name":"B","value":"2"}],"command":["x","y"]},{"name":"old"}]}`,
		`{"family":"web","memory":"512","containerDefinitions":[{"name":"new"},{"name":"main","image":"a:2","environment":[{"name":"B","value":"3"}],"command":["x"]}]}`, nil)
	want := `~ containerDefinitions[main].command[1]: "y" -> `
	if strings.Contains(got, want) {
		t.Error("a removed element is told as changed")
	}
	for _, want := range []string{
		`- containerDefinitions[main].command[1]: "y"`,
		`- containerDefinitions[main].environment[A]: {"name":"A","value":"1"}`,
		`~ containerDefinitions[main].environment[B].value: "2" -> "3"`,
		`~ containerDefinitions[main].image: "a:1" -> "a:2"`,
		`+ containerDefinitions[new]: {"name":"new"}`,
		`- containerDefinitions[old]: {"name":"old"}`,
		`- cpu: "256"`,
		`+ memory: "512"`,
	} {
		if !strings.Contains(got+"\n", want+"\n") {
			t.Errorf("%s is not in:\n%s", want, got)
		}
	}
	if n := strings.Count(got, "\n") + 1; n != 8 {
		t.Errorf("%d lines:\n%s", n, got)
	}
}

func TestOf_TellsNothingOfWhatIsTheSame(t *testing.T) {
	if got := lines(t, `{"a":[1,{"name":"x"}],"b":{}}`, `{ "b": {}, "a": [1, {"name":"x"}] }`, nil); got != "" {
		t.Error(got)
	}
}

func TestOf_TellsAnotherOrder(t *testing.T) {
	if got := lines(t, `{"c":[{"name":"a"},{"name":"b"}]}`, `{"c":[{"name":"b"},{"name":"a"}]}`, nil); got != `~ c: ["a","b"] -> ["b","a"]` {
		t.Error(got)
	}
}

func TestOf_HidesWhatIsSecret(t *testing.T) {
	got := lines(t,
		`{"environment":[{"name":"PASSWORD","value":"old"},{"name":"GONE_PASSWORD","value":"old"}]}`,
		`{"environment":[{"name":"PASSWORD","value":"new"}],"containers":[{"environment":[{"name":"A_PASSWORD","value":"new"},{"name":"PLAIN","value":"shown"}]}]}`,
		func(name string) bool { return strings.Contains(name, "PASSWORD") })
	if strings.Contains(got, `"old"`) || strings.Contains(got, `"new"`) || !strings.Contains(got, "~ environment[PASSWORD].value: (hidden) -> (hidden)") || !strings.Contains(got, `"shown"`) {
		t.Error(got)
	}
}
