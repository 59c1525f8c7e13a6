package house

import (
	"go/ast"
	"regexp"
	"strings"
)

const threatModel = "SECURITY.md"

// proof is a test that the threat model names; … stands for the rest of its name.
var proof = regexp.MustCompile("`(Test[A-Za-z0-9_]+)(…?)`")

// checkProofs keeps the threat model from resting on tests that are not there.
func checkProofs(t *tree) []Violation {
	page := t.find(threatModel)
	if page == nil {
		return nil
	}
	var tests []string
	for f := range t.goFiles {
		if !f.isTest() {
			continue
		}
		for _, d := range f.syntax.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(fn.Name.Name, "Test") {
				tests = append(tests, fn.Name.Name)
			}
		}
	}
	var out []Violation
	for _, m := range proof.FindAllStringSubmatch(page.data, -1) {
		there := false
		for _, name := range tests {
			there = there || name == m[1] || m[2] != "" && strings.HasPrefix(name, m[1])
		}
		if !there {
			out = append(out, Violation{Path: threatModel, Text: m[1] + m[2] + " is no test of this repository"})
		}
	}
	return out
}
