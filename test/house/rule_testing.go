package house

import (
	"go/ast"
	"go/build/constraint"
	"regexp"
	"slices"
	"strings"
)

// checkSleep lets files pass that use synctest: there Sleep moves the bubble's clock and waits for nothing.
func checkSleep(t *tree) []Violation {
	return t.each(func(f *file) []Violation {
		if !f.isTest() || f.importsPath("testing/synctest") {
			return nil
		}
		var out []Violation
		for _, use := range f.uses("time", "Sleep") {
			out = append(out, f.at(use, "time.Sleep in a test: wait for the thing itself, with a deadline"))
		}
		return out
	})
}

func checkSkip(t *tree) []Violation {
	return t.each(func(f *file) []Violation {
		if !f.isTest() {
			return nil
		}
		var out []Violation
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if ok && slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, sel.Sel.Name) {
				out = append(out, f.at(sel, "a test is never skipped: what it needs and lacks is a failure that names what mends it"))
			}
			return true
		})
		return out
	})
}

// known are build tags that name no lane of `make test`: systems, and the long forms.
var known = []string{"linux", "darwin", "unix", "amd64", "arm64", "race", "soak"}

var lanesLine = regexp.MustCompile(`(?m)^LANES \?= (.*)$`)

// checkLanes keeps a test file from hiding behind a tag that nothing sets.
func checkLanes(t *tree) []Violation {
	var lanes []string
	if makefile := t.find("Makefile"); makefile != nil {
		if m := lanesLine.FindStringSubmatch(makefile.data); m != nil {
			lanes = strings.Fields(m[1])
		}
	}
	return t.each(func(f *file) []Violation {
		var out []Violation
		for _, group := range f.syntax.Comments {
			for _, c := range group.List {
				if c.Pos() > f.syntax.Package || !constraint.IsGoBuild(c.Text) {
					continue
				}
				expr, err := constraint.Parse(c.Text)
				if err != nil {
					out = append(out, f.at(c, "build constraint: %v", err))
					continue
				}
				for _, tag := range tagsOf(expr) {
					if f.isTest() && !slices.Contains(lanes, tag) && !slices.Contains(known, tag) {
						out = append(out, f.at(c, "tag %s names no lane of the Makefile, so nothing runs this test", tag))
					}
				}
			}
		}
		return out
	})
}

func tagsOf(e constraint.Expr) []string {
	switch e := e.(type) {
	case *constraint.TagExpr:
		return []string{e.Tag}
	case *constraint.NotExpr:
		return tagsOf(e.X)
	case *constraint.AndExpr:
		return append(tagsOf(e.X), tagsOf(e.Y)...)
	case *constraint.OrExpr:
		return append(tagsOf(e.X), tagsOf(e.Y)...)
	}
	return nil
}
