//go:build sim || soak

package search

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var oneMutant = flag.String("mutant", "", "plant this mutant only")

// mutant is one mistake, planted in real files: each edit replaces a text that is
// there exactly once.
type mutant struct {
	name, says string
	caught     []string // what a fault it is found by begins with: one of these
	start      string   // where a search finds it soon, among which kinds, within which bound
	kinds      string
	bound      budget
	edits      []edit
}

type edit struct{ file, old, new string }

// plantedEnv says to the test binary with all mutants which of them is on.
const plantedEnv = "LONGSHORE_PLANTED"

// huntEnv says to it for which mutant to search.
const huntEnv = "LONGSHORE_HUNT"

// TestMain is a hunt where a mutant is planted, the tests elsewhere.
func TestMain(m *testing.M) {
	if name, hunts := os.LookupEnv(huntEnv); hunts {
		if err := json.NewEncoder(os.Stdout).Encode(hunt(name)); err != nil {
			panic(err)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// catch is what a hunt came to.
type catch struct {
	Fault  *Fault
	States int
	Took   time.Duration
	Err    string
}

// hunt searches where a mutant is soon found.
func hunt(name string) (c catch) {
	m, err := readMutant(name)
	if err != nil {
		return catch{Err: err.Error()}
	}
	x, s, err := openStart(m.start)
	if err == nil {
		err = x.allow(m.kinds)
	}
	if err != nil {
		return catch{Err: err.Error()}
	}
	s.left = m.bound
	begun := time.Now()
	f, found := x.explore(m.start, s, limit{states: 2_000_000})
	return catch{Fault: found, States: f.States, Took: time.Since(begun)}
}

func readMutant(name string) (*mutant, error) {
	text, err := os.ReadFile(filepath.Join("testdata", "mutant", name+".txt"))
	if err != nil {
		return nil, err
	}
	m := &mutant{name: name, bound: budget{Operations: 2, Preempt: 2, Machine: 2}}
	head, rest, _ := strings.Cut(string(text), "\n-- ")
	for line := range strings.Lines(head) {
		word, arg, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "#":
			m.says = arg
		case "caught":
			m.caught = strings.Fields(arg)
		case "start":
			m.start = arg
		case "kinds":
			m.kinds = arg
			m.bound.Again, m.bound.Crash = bit(strings.Contains(arg, "redeliver")), bit(strings.Contains(arg, "crash"))
		case "bound":
			err = m.bound.parse(arg)
		default:
			err = fmt.Errorf("%s: no such word: %s", name, word)
		}
		if err != nil {
			return nil, err
		}
	}
	for part := range strings.SplitSeq(rest, "\n-- ") {
		file, body, _ := strings.Cut(part, " --\n")
		old, replacement, ok := strings.Cut(body, "\n==>\n")
		if !ok {
			return nil, fmt.Errorf("%s: an edit of %s says not what by what", name, file)
		}
		m.edits = append(m.edits, edit{file, old, strings.TrimSuffix(replacement, "\n")})
	}
	return m, nil
}

func mutants(t *testing.T) (all []*mutant) {
	t.Helper()
	files, err := filepath.Glob("testdata/mutant/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		m, err := readMutant(strings.TrimSuffix(filepath.Base(f), ".txt"))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

// planting applies every mutant to the real files, each asleep until its name is
// in the environment: one build holds them all.
func planting(t *testing.T, all []*mutant) (overlay string) {
	t.Helper()
	type change struct {
		at, end int
		edit
		by string
	}
	root, dir := "../..", t.TempDir()
	replace := map[string]string{}
	add := func(file string, content []byte) {
		real, err := filepath.Abs(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		replace[real] = filepath.Join(dir, fmt.Sprintf("%d.go", len(replace)))
		if err := os.WriteFile(replace[real], content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	changes := map[string][]change{}
	texts := map[string]string{}
	for _, m := range all {
		for _, e := range m.edits {
			if texts[e.file] == "" {
				b, err := os.ReadFile(filepath.Join(root, e.file))
				if err != nil {
					t.Fatal(err)
				}
				texts[e.file] = string(b)
			}
			if n := strings.Count(texts[e.file], e.old); n != 1 {
				t.Errorf("mutant %s no longer applies: what it replaces is in %s %d times:\n%s", m.name, e.file, n, e.old)
				continue
			}
			at := strings.Index(texts[e.file], e.old)
			changes[e.file] = append(changes[e.file], change{at, at + len(e.old), e, m.name})
		}
	}
	packages := map[string]string{}
	for file, list := range changes {
		slices.SortFunc(list, func(a, b change) int { return cmp.Compare(b.at, a.at) })
		text := texts[file]
		for i, c := range list {
			if i > 0 && c.end > list[i-1].at {
				t.Errorf("mutants %s and %s replace the same text of %s", c.by, list[i-1].by, file)
			}
			text = text[:c.at] + c.new + text[c.end:]
		}
		add(file, []byte(text))
		packages[filepath.Dir(file)] = filepath.Base(filepath.Dir(file))
	}
	for folder, name := range packages {
		add(filepath.Join(folder, "planted.go"), fmt.Appendf(nil, "package %s\n\nimport \"os\"\n\nvar plantedName = os.Getenv(%q)\n\nfunc planted(name string) bool { return plantedName == name }\n", name, plantedEnv))
	}
	if t.Failed() {
		t.FailNow()
	}
	doc, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	overlay = filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, doc, 0o600); err != nil {
		t.Fatal(err)
	}
	return overlay
}

// Each of the mistakes is found, and what a search finds with none planted, in
// the same code and by the same bound, is nothing.
func TestMutants_EachIsCaught(t *testing.T) {
	all := mutants(t)
	bin := filepath.Join(t.TempDir(), "search.test")
	build := exec.Command("go", "test", "-tags", "sim", "-c", "-overlay", planting(t, all), "-o", bin, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build with the mutants: %v\n%s", err, out)
	}
	var table strings.Builder
	caught := 0
	for _, m := range all {
		if *oneMutant != "" && *oneMutant != m.name {
			continue
		}
		c := send(t, bin, m.name, plantedEnv+"="+m.name)
		switch {
		case c.Fault == nil:
			t.Errorf("%s: %s: not caught (%d states, %s)", m.name, m.says, c.States, c.Took)
			continue
		case !slices.ContainsFunc(m.caught, func(p string) bool {
			return strings.HasPrefix(strings.TrimPrefix(c.Fault.Broken, "(while settling) "), p)
		}):
			t.Errorf("%s: caught by %q, and not by one of %v\n%s", m.name, c.Fault.Broken, m.caught, c.Fault)
		}
		caught++
		fmt.Fprintf(&table, "\n%s: %s\n    %s\n    %d steps, %d states, %s, from %s:\n", m.name, m.says, c.Fault.Broken, len(c.Fault.Trace), c.States, c.Took.Round(time.Millisecond), m.start)
		for _, l := range c.Fault.Trace {
			fmt.Fprintf(&table, "      %s\n", l)
		}
		if n := len(c.Fault.Settle); n > 0 {
			fmt.Fprintf(&table, "      … and %d steps of settling\n", n)
		}
		if healthy := send(t, bin, m.name, plantedEnv+"="); healthy.Fault != nil {
			t.Errorf("%s: the same is found with nothing planted:\n%s", m.name, healthy.Fault)
		}
	}
	t.Logf("%d mutants, %d caught%s", len(all), caught, table.String())
}

// send has the binary search for a mutant; env says which is planted.
func send(t *testing.T, bin, name string, env ...string) (c catch) {
	t.Helper()
	run := exec.Command(bin)
	run.Env = append(os.Environ(), append(env, huntEnv+"="+name)...)
	var out, bad bytes.Buffer
	run.Stdout, run.Stderr = &out, &bad
	if err := run.Run(); err != nil {
		t.Fatalf("hunt %s: %v\n%s", name, err, bad.Bytes())
	}
	if err := json.Unmarshal(out.Bytes(), &c); err != nil || c.Err != "" {
		t.Errorf("hunt %s: %v %s", name, err, c.Err)
	}
	return c
}
