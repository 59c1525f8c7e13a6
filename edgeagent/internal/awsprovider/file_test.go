package awsprovider

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/taskdef"
)

const filesAt = "arn:aws:s3:::bucket/"

func files(names ...string) taskdef.ContainerDefinition {
	var d taskdef.ContainerDefinition
	for _, n := range names {
		d.EnvironmentFiles = append(d.EnvironmentFiles, taskdef.EnvironmentFile{Type: "s3", Value: filesAt + n})
	}
	return d
}

func TestVariables_AreReadByTheRulesOfECS(t *testing.T) {
	for text, want := range map[string]map[string]string{
		"":                         {},
		"A=1\nB=2":                 {"A": "1", "B": "2"},
		"A=1\r\nB=2\r\n":           {"A": "1", "B": "2"},
		"# a=comment\nA=#no":       {"A": "#no"},
		" # no comment=1":          {" # no comment": "1"},
		"A=b=c==":                  {"A": "b=c=="},
		"A=\n=b\n=\nnothing\n\n":   {},
		`A="quotes are part of it`: {"A": `"quotes are part of it`},
		"A= blanks too ":           {"A": " blanks too "},
		"A=$B\nexport C=d":         {"A": "$B", "export C": "d"},
		"A=1\nA=2":                 {"A": "2"},
		"Ä=ö":                      {"Ä": "ö"},
	} {
		got, err := variables(text)
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"A=1\nB=" + canary + "\x00":                "line 2 has a zero byte",
		"A=1\nB=" + strings.Repeat(canary, 20_000): "line 2 is longer than 65536 bytes",
	} {
		if _, err := variables(text); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), canary) {
			t.Errorf("%.20q: %v, want %s", text, err, want)
		}
	}
}

func TestValues_OfSeveralFilesTheFirstCounts(t *testing.T) {
	c, _, p := bench(t, Auth{})
	c.objects = map[string]string{"bucket/a.env": "A=first\nB=2", "bucket/dir/b c.env": "A=second\nC=3"}
	v, err := p.Values(t.Context(), need(files("a.env", "dir/b c.env")))
	if err != nil || !maps.Equal(v.Files, map[string]string{"A": "first", "B": "2", "C": "3"}) {
		t.Errorf("%q, %v", v.Files, err)
	}
	if c.asked[0] != "s3 us-east-1 key-of-exec" {
		t.Errorf("asked %v", c.asked)
	}
}

func TestValues_AFileOfAnotherRegionIsFetchedThere(t *testing.T) {
	c, _, p := bench(t, Auth{})
	c.objects, c.buckets = map[string]string{"bucket/a.env": "A=1"}, map[string]string{"bucket": "eu-central-1"}
	v, err := p.Values(t.Context(), need(files("a.env")))
	if err != nil || v.Files["A"] != "1" || len(c.asked) != 2 || c.asked[1] != "s3 eu-central-1 key-of-exec" {
		t.Errorf("%q, %v; asked %v", v.Files, err, c.asked)
	}
}

func TestValues_ErrorsNameTheFileAndNothingInIt(t *testing.T) {
	for what, c := range map[string]struct {
		text  string
		fails answer
		kind  fault.Kind
		says  string
	}{
		"no such file": {kind: fault.Invalid, says: "NoSuchKey"},
		"denied":       {text: canary, fails: answer{403, "AccessDenied", "Access Denied"}, kind: fault.Denied, says: "AccessDenied: Access Denied"},
		"throttled":    {text: canary, fails: answer{503, "SlowDown", "Reduce your request rate."}, kind: fault.Unavailable, says: "SlowDown"},
		"too large":    {text: strings.Repeat(canary+"\n", 200_000), kind: fault.Invalid, says: "larger than 1048576 bytes"},
		"a zero byte":  {text: "A=" + canary + "\x00", kind: fault.Invalid, says: "line 1 has a zero byte"},
		"a long line":  {text: "A=" + strings.Repeat(canary, 20_000), kind: fault.Invalid, says: "line 1 is longer"},
		"too much":     {text: many(20), kind: fault.Invalid, says: "allowed are 1048576"},
	} {
		t.Run(what, func(t *testing.T) {
			cloud, _, p := bench(t, Auth{})
			if c.text != "" {
				cloud.objects["bucket/x.env"] = c.text
			}
			if c.fails.status != 0 {
				cloud.fails["s3"] = c.fails
			}
			d := files("x.env")
			if what == "too much" { // in two files, each of which would do
				cloud.objects["bucket/y.env"] = strings.ReplaceAll(c.text, "V", "W")
				d = files("x.env", "y.env")
			}
			_, err := p.Values(t.Context(), need(d))
			tells(t, err, c.kind, "ResourceInitializationError: ", c.says)
			if what != "too much" && !strings.HasPrefix(err.Error(), "ResourceInitializationError: failed to download env files: "+filesAt+"x.env: ") {
				t.Errorf("%q does not name the file as ECS does", err)
			}
		})
	}
}

// many is a file of n variables that are large each.
func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "V%d=%s\n", i, strings.Repeat("x", 40_000))
	}
	return b.String()
}

func FuzzVariables(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		all, err := variables(text)
		if err != nil {
			if len(err.Error()) > 100 {
				t.Errorf("a long error: %v", err)
			}
			return
		}
		var again strings.Builder
		for name, value := range all {
			if name == "" || value == "" || strings.ContainsAny(name, "=\x00\n") || strings.ContainsAny(value, "\x00\n") || strings.HasPrefix(name, "#") {
				t.Errorf("no variable: %q=%q", name, value)
			}
			fmt.Fprintf(&again, "%s=%s\n", name, value)
		}
		if back, err := variables(again.String()); err == nil && len(back) != len(all) {
			t.Errorf("written again and read: %q, not %q", back, all)
		}
	})
}
