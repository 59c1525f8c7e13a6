package house

import (
	"go/ast"
	"path"
	"regexp"
	"strings"
)

// decoder are the names of functions that read what others wrote.
var decoder = regexp.MustCompile(`^(Decode|Parse|Unmarshal|Translate|From(Env|YAML)$)`)

// maxCorpus is how many inputs a fuzz target keeps in git: each is tried in every
// ordinary run of the tests.
const maxCorpus = 30

// checkFuzz wants every exported decoder to be fuzzed by its own package, and every
// fuzz target to keep a corpus.
func checkFuzz(t *tree) []Violation {
	corpora := map[string]int{}
	for _, f := range t.files {
		if strings.Contains(f.path, "/testdata/fuzz/") {
			corpora[path.Dir(f.path)]++
		}
	}
	var out []Violation
	fuzzed := map[string]bool{} // folder and name of a decoder that a fuzz target mentions
	for f := range t.goFiles {
		if !f.isTest() {
			continue
		}
		for _, d := range f.syntax.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(fn.Name.Name, "Fuzz") {
				continue
			}
			ast.Inspect(f.syntax, func(n ast.Node) bool { // with what helps it
				if id, ok := n.(*ast.Ident); ok {
					fuzzed[f.dir()+" "+id.Name] = true
				}
				return true
			})
			if n := corpora[f.dir()+"/testdata/fuzz/"+fn.Name.Name]; n == 0 || n > maxCorpus {
				out = append(out, f.at(fn, "%s has %d files in testdata/fuzz; 1 to %d are wanted", fn.Name.Name, n, maxCorpus))
			}
		}
	}
	for f := range t.goFiles {
		if f.isTest() || strings.HasPrefix(f.dir(), "test/") || strings.HasSuffix(f.syntax.Name.Name, "test") {
			continue
		}
		for _, d := range f.syntax.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if ok && decoder.MatchString(fn.Name.Name) && !fuzzed[f.dir()+" "+fn.Name.Name] {
				out = append(out, f.at(fn, "%s reads what others wrote, and no fuzz target of %s calls it", fn.Name.Name, f.dir()))
			}
		}
	}
	return out
}
