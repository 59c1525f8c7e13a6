// Package house holds the rules of this repository as checks of its files: which room may import
// which, what every package says about itself, what tests may not do. Each rule is a function of
// a file tree, so a tree of three lines in memory proves that it catches what it is for.
//
// It parses files in this process and runs no Go command: `go list` called from a test is cached
// as passing. Only repo_test.go at the root imports it.
package house

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Violation is one breach of a rule.
type Violation struct {
	Rule string
	Path string
	Line int // 0 where it is about the whole file or folder
	Text string
}

func (v Violation) String() string {
	where := v.Path
	if v.Line > 0 {
		where = fmt.Sprintf("%s:%d", v.Path, v.Line)
	}
	return fmt.Sprintf("%s: %s (rule %s)", where, v.Text, v.Rule)
}

// rule is one law of the house.
type rule struct {
	name  string
	check func(*tree) []Violation
}

// Rules lists the names of all rules.
func Rules() []string {
	names := make([]string, len(rules))
	for i, r := range rules {
		names[i] = r.name
	}
	return names
}

// Check applies every rule to a repository's files.
func Check(files fs.FS) ([]Violation, error) {
	t, err := load(files)
	if err != nil {
		return nil, err
	}
	var all []Violation
	for _, r := range rules {
		for _, v := range r.check(t) {
			v.Rule = r.name
			all = append(all, v)
		}
	}
	slices.SortFunc(all, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Text, b.Text))
	})
	return all, nil
}

// file is one text file of the repository; syntax is nil where it is not Go.
type file struct {
	path   string
	data   string
	syntax *ast.File
	fset   *token.FileSet
}

func (f *file) dir() string    { return path.Dir(f.path) }
func (f *file) isTest() bool   { return strings.HasSuffix(f.path, "_test.go") }
func (f *file) in(r room) bool { return r.holds(f.dir()) }

func (f *file) at(n ast.Node, format string, args ...any) Violation {
	return Violation{Path: f.path, Line: f.fset.Position(n.Pos()).Line, Text: fmt.Sprintf(format, args...)}
}

// imports yields each import with its path unquoted.
func (f *file) imports(yield func(*ast.ImportSpec, string) bool) {
	for _, spec := range f.syntax.Imports {
		if !yield(spec, strings.Trim(spec.Path.Value, `"`)) {
			return
		}
	}
}

func (f *file) importsPath(want string) bool {
	for _, p := range f.imports {
		if p == want {
			return true
		}
	}
	return false
}

// uses finds each mention of pkg.name, where pkg is imported by that path under any name, whether it is
// called or passed on as a value.
func (f *file) uses(pkgPath string, names ...string) []*ast.SelectorExpr {
	local := ""
	for spec, p := range f.imports {
		if p != pkgPath {
			continue
		}
		local = path.Base(p)
		if spec.Name != nil {
			local = spec.Name.Name
		}
	}
	if local == "" {
		return nil
	}
	var found []*ast.SelectorExpr
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok || !slices.Contains(names, sel.Sel.Name) {
			return true
		}
		if id, ok := sel.X.(*ast.Ident); ok && id.Name == local {
			found = append(found, sel)
		}
		return true
	})
	return found
}

// tree is the repository: all its text files and, parsed, all its Go files.
type tree struct {
	files []*file
}

// made are the folders that git ignores, and git's own.
var made = []string{".git", ".tools", ".local", "bin", "dist", "cdk.out", "node_modules"}

func load(files fs.FS) (*tree, error) {
	t := &tree{}
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains(made, d.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || name == ".git" { // in a worktree .git is a file
			return nil
		}
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		if slices.Contains(data[:min(len(data), 8000)], 0) {
			return nil // not text
		}
		f, err := parse(name, data)
		if err != nil {
			return err
		}
		t.files = append(t.files, f)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the repository: %w", err)
	}
	return t, nil
}

func parse(name string, data []byte) (*file, error) {
	f := &file{path: name, data: string(data)}
	if path.Ext(name) != ".go" || strings.Contains("/"+name, "/testdata/") {
		return f, nil
	}
	f.fset = token.NewFileSet()
	var err error
	f.syntax, err = parser.ParseFile(f.fset, name, data, parser.ParseComments|parser.SkipObjectResolution)
	return f, err
}

// goFiles yields the Go files.
func (t *tree) goFiles(yield func(*file) bool) {
	for _, f := range t.files {
		if f.syntax != nil && !yield(f) {
			return
		}
	}
}

// each applies a check to every Go file.
func (t *tree) each(check func(*file) []Violation) []Violation {
	var all []Violation
	for f := range t.goFiles {
		all = append(all, check(f)...)
	}
	return all
}

// find returns the file of that path, or nil.
func (t *tree) find(name string) *file {
	i := slices.IndexFunc(t.files, func(f *file) bool { return f.path == name })
	if i < 0 {
		return nil
	}
	return t.files[i]
}
