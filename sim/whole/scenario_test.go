package whole

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
)

func readScenario(t *testing.T, file string) *Scenario {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s, err := ParseScenario(strings.TrimSuffix(filepath.Base(file), ".txt"), string(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// tell plays a scenario in a bubble of its own.
func tell(t *testing.T, s *Scenario, o Option) (r *Result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { r = Tell(t.Context(), s, o) })
	return r
}

// What others reported of their systems, played on this one; testdata/scenario says
// where each comes from.
func TestScenario(t *testing.T) {
	files, err := filepath.Glob("testdata/scenario/*.txt")
	if err != nil || len(files) < 10 {
		t.Fatal(len(files), "scenarios", err)
	}
	for _, file := range files {
		s := readScenario(t, file)
		t.Run(s.Name, func(t *testing.T) {
			o := Option{Seed: 1}
			if r := tell(t, s, o); r.Wrong != "" {
				o.Trace = true
				again := tell(t, s, o)
				t.Errorf("%s\nagain, with the end of its trace: %s\n%s", r.Wrong, again.Wrong, again.Tail(*lines))
			}
		})
	}
}

func TestParseScenario_AFaultNamesItsLine(t *testing.T) {
	for text, want := range map[string]string{
		"hosts 1\n\nhost 2":         `x, line 3: no such command: "host"`,
		"# nothing\n":               "x: nothing happens in it",
		"run a":                     "x, line 1: run takes 2 to 2 arguments, not 1",
		"hosts 1\nrun a job size=3": `x, line 2: no such member: "size"; cluster, memory and tag are allowed`,
	} {
		if _, err := ParseScenario("x", text); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestTell_WhatIsNotAsExpectedIsSaidWithItsLine(t *testing.T) {
	for text, want := range map[string]string{
		"hosts 1\nwait 2m\nrun a job\nexpect a started 2":     "x, line 4: expected a started 2: it is 0",
		"hosts 1\nwait 2m\nexpect h0 LOST within 1m":          "x, line 3: expected h0 LOST: it is CONNECTED ",
		"hosts 1\nwait 2m\nexpect b RUNNING":                  `x, line 3: nothing is called "b"`,
		"hosts 1\nengine h0 breaks":                           `x, line 2: engine: not understood: "breaks"`,
		"hosts 1\nwait 2m\nrun a job\nwait 1m\nexpect a sunk": "x, line 5: expected a sunk: it is ",
	} {
		s, err := ParseScenario("x", text)
		if err != nil {
			t.Fatal(err)
		}
		if r := tell(t, s, Option{Seed: 1}); !strings.HasPrefix(r.Wrong, want) {
			t.Errorf("%q: %s, want %s", text, r.Wrong, want)
		}
	}
}

func FuzzParseScenario(f *testing.F) {
	files, err := filepath.Glob("testdata/scenario/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseScenario("x", text)
		if (s == nil) == (err == nil) {
			t.Fatalf("%v, %v", s, err)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "x") {
			t.Fatalf("the fault does not say where: %v", err)
		}
	})
}
