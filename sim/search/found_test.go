package search

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Every fault that a search has found in the control plane is kept as the text it
// was told in. Followed again step by step, it breaks nothing any more.
func TestFound_WhatOnceBrokeHolds(t *testing.T) {
	files, err := filepath.Glob("testdata/found/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenario is kept: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			follow(t, string(text))
		})
	}
}

// follow takes the steps of a scenario by their names, and lets its end settle.
func follow(t *testing.T, text string) {
	t.Helper()
	var x *search
	var s *state
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if name, ok := strings.CutPrefix(line, "start "); ok && x == nil {
			x, s = opened(t, name)
			x.telling = true
			s.left = budget{9, 9, 30, 9, 9, 9, 9, 9, 9, 9}
			continue
		}
		// A use case may make further calls on its way to the one that is named.
		for range 30 {
			next, reached, may := towards(t, x, s, line)
			if next == nil {
				t.Fatalf("%s\nis not what may happen here:\n%s", line, strings.Join(may, "\n"))
			}
			if s = next; reached {
				break
			}
		}
	}
	for len(s.runs) > 0 { // what is under way ends
		var next *state
		x.proceed(s, 0, "", func(_ string, n *state, broken string) {
			if next == nil {
				next = n
			}
			if broken != "" {
				t.Fatal(broken)
			}
		})
		s = next
	}
	if bad := x.settle(s, func(l string) { t.Log(l) }); bad != "" {
		t.Fatal(bad)
	}
}

// towards is the step of that name; where there is none, the next call of the use
// case that it is of.
func towards(t *testing.T, x *search, s *state, line string) (next *state, reached bool, may []string) {
	t.Helper()
	who, _, _ := strings.Cut(line, ": ")
	x.steps(s, func(label string, n *state, broken string) {
		may = append(may, label)
		exact := named(label) == named(line)
		if !exact && (next != nil || !strings.HasPrefix(label, who+": ") || strings.Contains(label, "[cancelled]") || strings.Contains(label, "lost]")) || reached {
			return
		}
		if next, reached = n, exact; broken != "" {
			t.Fatalf("%s: %s", label, broken)
		}
	})
	return next, reached, may
}

// named is a step's name whatever the order of what it reads and writes.
func named(label string) string {
	who, what, _ := strings.Cut(label, ": ")
	words := strings.FieldsFunc(what, func(r rune) bool { return r == ' ' || r == ',' })
	slices.Sort(words)
	return who + ": " + strings.Join(words, " ")
}
