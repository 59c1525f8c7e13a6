package search

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var only = flag.String("start", "", "search from this start only")

// openStart is a search at one of testdata's starts.
func openStart(name string) (*search, *state, error) {
	script, err := os.ReadFile(filepath.Join("testdata", "start", name+".txt"))
	if err != nil {
		return nil, nil, err
	}
	x, s := newSearch()
	if err := x.play(s, string(script)); err != nil {
		return nil, nil, fmt.Errorf("start %s: %w", name, err)
	}
	s.kicked, s.reaped = false, 0
	s.items = x.plain(s.items)
	x.base, x.since = s.items, s.clock
	return x, s, nil
}

func opened(t *testing.T, name string) (*search, *state) {
	t.Helper()
	x, s, err := openStart(name)
	if err != nil {
		t.Fatal(err)
	}
	return x, s
}

// Every start is a text that plays.
func TestStart_EachCanBePlayedAndSettles(t *testing.T) {
	for _, name := range startNames(t) {
		x, s := opened(t, name)
		if bad := x.settle(s, nil); bad != "" {
			t.Errorf("%s: %s", name, bad)
		}
	}
}
func startNames(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("testdata/start/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no starts: %v", err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".txt")
		if *only == "" || *only == name {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
