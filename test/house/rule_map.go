package house

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

var (
	// link is where a page points to: a path of this repository and a heading.
	link = regexp.MustCompile(`\]\(([^)\s#]*)(?:#([^)\s]*))?\)`)
	// elsewhere is a link that leads out of the repository.
	elsewhere = regexp.MustCompile(`^[a-z]+:`)
	// shown is what a heading shows of a link.
	shown = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	// unwritten is what a heading's anchor leaves out.
	unwritten = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// checkLinks wants each link of a page to lead somewhere, and its heading to be there.
func checkLinks(t *tree) []Violation {
	there := map[string]bool{}
	for _, f := range t.files {
		for p := f.path; !there[p] && p != "."; p = path.Dir(p) {
			there[p] = true
		}
	}
	var out []Violation
	for _, f := range t.files {
		if path.Ext(f.path) != ".md" {
			continue
		}
		n := 0
		for line := range strings.Lines(f.data) {
			n++
			for _, m := range link.FindAllStringSubmatch(line, -1) {
				if elsewhere.MatchString(m[1]) {
					continue
				}
				to := f.path
				if m[1] != "" {
					to = path.Join(f.dir(), m[1])
				}
				page := t.find(to)
				switch {
				case !there[to]:
					out = append(out, Violation{Path: f.path, Line: n, Text: "a link leads to " + to + ", which is not there"})
				case m[2] != "" && page != nil && path.Ext(to) == ".md" && !anchors(page)[m[2]]:
					out = append(out, Violation{Path: f.path, Line: n, Text: fmt.Sprintf("a link leads to #%s, and %s has no such heading", m[2], to)})
				}
			}
		}
	}
	return out
}

// anchors are the names of a page's headings, as links write them.
func anchors(f *file) map[string]bool {
	all := map[string]bool{}
	code := false
	for line := range strings.Lines(f.data) {
		if strings.HasPrefix(line, "```") {
			code = !code
		}
		if code || !strings.HasPrefix(line, "#") {
			continue
		}
		text := shown.ReplaceAllString(strings.TrimSpace(strings.TrimLeft(line, "#")), "$1")
		all[strings.ReplaceAll(unwritten.ReplaceAllString(strings.ToLower(text), ""), " ", "-")] = true
	}
	return all
}

const theMap = "ARCHITECTURE.md"

// checkMap wants the map to name each room of the agent, the control plane and the command.
func checkMap(t *tree) []Violation {
	page := t.find(theMap)
	if page == nil {
		return nil
	}
	seen := map[string]bool{}
	var out []Violation
	for f := range t.goFiles {
		parts := strings.Split(f.dir(), "/")
		if len(parts) != 3 || parts[1] != "internal" || seen[f.dir()] {
			continue
		}
		seen[f.dir()] = true
		if !named(sectionOf(page.data, parts[0]), parts[2]) {
			out = append(out, Violation{Path: theMap, Text: "does not name " + f.dir()})
		}
	}
	return out
}

// sectionOf is what the map has below a folder: the lines from its own to the next blank one.
func sectionOf(text, folder string) string {
	_, after, _ := strings.Cut(text, "\n"+folder+"/")
	section, _, _ := strings.Cut(after, "\n\n")
	return section
}

// named says whether a text names a room: its name, and not as a word of an explanation.
func named(text, room string) bool {
	text = regexp.MustCompile(`\([^)]*\)`).ReplaceAllString(text, "")
	return regexp.MustCompile(`(?:^|\s)` + regexp.QuoteMeta(room) + `(?:\s|$)`).MatchString(text)
}
