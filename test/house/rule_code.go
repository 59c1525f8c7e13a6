package house

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strings"
)

// rules are the laws, in the order in which a reader would want them broken to him.
var rules = []rule{
	{"walls", checkWalls},
	{"package comment", checkPackageComments},
	{"package name", checkPackageNames},
	{"time is an argument", checkClock},
	{"shared is quiet", checkQuietShared},
	{"mains only wire", checkMains},
	{"no sleep in tests", checkSleep},
	{"no skipped test", checkSkip},
	{"every lane is run", checkLanes},
	{"no stray note", checkNotes},
	{"no address of a machine", checkAddresses},
	{"a runbook per alarm", checkRunbooks},
	{"decoders are fuzzed", checkFuzz},
	{"proofs are there", checkProofs},
	{"a named test is there", checkNamedTests},
	{"links lead somewhere", checkLinks},
	{"the map names every room", checkMap},
}

// checkPackageComments wants every package to say what it is, in one file of it.
func checkPackageComments(t *tree) []Violation {
	first := map[string]*file{}
	commented := map[string]bool{}
	for f := range t.goFiles {
		if f.isTest() {
			continue
		}
		if first[f.dir()] == nil {
			first[f.dir()] = f
		}
		doc := f.syntax.Doc.Text()
		name := f.syntax.Name.Name
		if name != "main" && strings.HasPrefix(doc, "Package "+name+" ") || name == "main" && doc != "" {
			commented[f.dir()] = true
		}
	}
	var out []Violation
	for dir, f := range first {
		if !commented[dir] {
			out = append(out, Violation{Path: f.path, Text: fmt.Sprintf(
				"package %s has no comment that begins with its name and says what it is, what it does not do and who may import it", f.syntax.Name.Name)})
		}
	}
	return out
}

// nameless are package names that say nothing about what is inside.
var nameless = []string{"util", "utils", "common", "helper", "helpers", "types", "models", "base", "manager", "misc"}

func checkPackageNames(t *tree) []Violation {
	return t.each(func(f *file) []Violation {
		name := strings.TrimSuffix(f.syntax.Name.Name, "_test")
		if slices.Contains(nameless, name) || strings.Contains(name, "_") {
			return []Violation{f.at(f.syntax.Name, "package name %s says nothing; name it after the one thing it is about", name)}
		}
		return nil
	})
}

// timeless are the places whose time comes from outside.
var timeless = []room{
	"shared/...", "lambdas/control", "lambdas/internal/placement/...", "lambdas/internal/deployment/...",
}

func checkClock(t *tree) []Violation {
	return t.each(func(f *file) []Violation {
		pure := slices.ContainsFunc(timeless, f.in) || f.path == "edgeagent/internal/supervise/plan.go"
		if f.isTest() || !pure {
			return nil
		}
		var out []Violation
		clock := []string{"Now", "Since", "Until"}
		if f.in("lambdas/control") {
			clock = clock[:2] // a context's deadline is of the real clock, and Until is how to read it
		}
		for _, use := range f.uses("time", clock...) {
			out = append(out, f.at(use, "time.%s here: take now as an argument, or a Now func() time.Time from main", use.Sel.Name))
		}
		return out
	})
}

func checkQuietShared(t *tree) []Violation {
	return t.each(func(f *file) []Violation {
		if f.isTest() || !f.in("shared/...") {
			return nil
		}
		var out []Violation
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if s, ok := n.(*ast.GoStmt); ok {
				out = append(out, f.at(s, "shared starts no goroutine"))
			}
			return true
		})
		for _, use := range f.uses("time", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick", "Sleep") {
			out = append(out, f.at(use, "shared waits for nothing"))
		}
		for _, use := range f.uses("fmt", "Print", "Printf", "Println") {
			out = append(out, f.at(use, "shared prints nothing"))
		}
		return out
	})
}

// mainLines is how long the main of a function may be.
const mainLines = 60

func checkMains(t *tree) []Violation {
	return t.each(func(f *file) []Violation {
		if ok, _ := path.Match("lambdas/*/*.go", f.path); !ok || f.syntax.Name.Name != "main" || f.isTest() {
			return nil
		}
		if path.Base(f.path) != "main.go" {
			return []Violation{{Path: f.path, Text: "a function has one main.go; what is more belongs into a use case or an adapter"}}
		}
		if n := strings.Count(f.data, "\n"); n > mainLines {
			return []Violation{{Path: f.path, Text: fmt.Sprintf("%d lines, more than the %d of a main that only wires", n, mainLines)}}
		}
		return nil
	})
}
