package house

import (
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
)

// The words that these rules look for are put together here, so that this file has none of them.
var (
	notes = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X|HA` + `CK)\b`)
	hosts = regexp.MustCompile(`\b(registry\.(npm` + `js\.org|yarn` + `pkg\.com)|(files\.)?py` + `pi\.org|files\.python` + `hosted\.org|` +
		`(proxy|sum)\.go` + `lang\.org|(index\.)?cra` + `tes\.io|deb\.deb` + `ian\.org|repo1?\.ma` + `ven\.org|registry-1\.dock` + `er\.io)\b`)
	places = regexp.MustCompile(`(^|[\s"'=:(\x60,\[])/(wo` + `rk/(main|shared|\.)|Us` + `ers/[a-z]|opt/whe` + `els|bash_` + `jobs|tmp/bash_` + `jobs)`)
)

// sums hold hashes, in which any three letters may stand side by side.
var sums = []string{"go.sum", "package-lock.json", "requirements.txt"}

func checkNotes(t *tree) []Violation {
	return grep(t, notes, func(f *file) bool { return slices.Contains(sums, path.Base(f.path)) },
		"%q: finish it, or write an issue")
}

func checkAddresses(t *tree) []Violation {
	nothing := func(*file) bool { return false }
	return append(
		grep(t, hosts, nothing, "%q: which registry is used is the machine's setting, not the repository's"),
		grep(t, places, nothing, "%q: a path of one machine")...)
}

func grep(t *tree, pattern *regexp.Regexp, except func(*file) bool, format string) []Violation {
	var out []Violation
	for _, f := range t.files {
		if except(f) || !pattern.MatchString(f.data) {
			continue
		}
		n := 0
		for line := range strings.Lines(f.data) {
			n++
			if m := pattern.FindString(line); m != "" {
				out = append(out, Violation{Path: f.path, Line: n, Text: fmt.Sprintf(format, strings.TrimSpace(m))})
			}
		}
	}
	return out
}

const (
	alarmList  = "infra/testdata/alarms.txt" // written by infra's own tests from the template
	runbookDir = "docs/runbooks"
)

// procedures are runbooks that no alarm calls for: people decide on them.
var procedures = []string{"restore", "uninstall", "upgrade"}

// checkRunbooks compares the alarms of the stack with the pages that say what to do.
func checkRunbooks(t *tree) []Violation {
	var alarms []string
	list := t.find(alarmList)
	if list != nil {
		for line := range strings.Lines(list.data) {
			if name, _, _ := strings.Cut(strings.TrimSpace(line), " "); name != "" && !strings.HasPrefix(name, "#") {
				alarms = append(alarms, name)
			}
		}
	}
	var pages []string
	for _, f := range t.files {
		if f.dir() == runbookDir && path.Ext(f.path) == ".md" && path.Base(f.path) != "README.md" {
			if name := strings.TrimSuffix(path.Base(f.path), ".md"); !slices.Contains(procedures, name) {
				pages = append(pages, name)
			}
		}
	}
	var out []Violation
	for _, a := range alarms {
		if !slices.Contains(pages, a) {
			out = append(out, Violation{Path: alarmList, Text: fmt.Sprintf("alarm %s has no page %s/%s.md", a, runbookDir, a)})
		}
	}
	for _, p := range pages {
		if !slices.Contains(alarms, p) {
			out = append(out, Violation{Path: runbookDir + "/" + p + ".md", Text: "there is no such alarm in " + alarmList})
		}
	}
	if list != nil && len(alarms) == 0 {
		out = append(out, Violation{Path: alarmList, Text: "names no alarm"})
	}
	return out
}

// testName is a test as pages name it.
var testName = regexp.MustCompile("`(Test[A-Z][A-Za-z0-9_]*)`")

// checkNamedTests wants each test that a page of docs names to be there.
func checkNamedTests(t *tree) []Violation {
	there := map[string]bool{}
	for f := range t.goFiles {
		for _, d := range f.syntax.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && f.isTest() {
				there[fn.Name.Name] = true
			}
		}
	}
	var out []Violation
	for _, f := range t.files {
		if path.Ext(f.path) != ".md" || f.path != "SECURITY.md" && !strings.HasPrefix(f.path, "docs/") {
			continue
		}
		n := 0
		for line := range strings.Lines(f.data) {
			n++
			for _, m := range testName.FindAllStringSubmatch(line, -1) {
				if !there[m[1]] {
					out = append(out, Violation{Path: f.path, Line: n, Text: fmt.Sprintf("there is no test %s", m[1])})
				}
			}
		}
	}
	return out
}
