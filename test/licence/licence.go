// Package licence knows under which licences the modules are that Longshore is
// built of, by the sentences that make each licence what it is, and which of them
// are allowed. It calls nobody and runs no Go command. The command beside it and
// its own tests import it.
package licence

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Module is a module that is compiled in.
type Module struct {
	Path, Version string
	// Dir is where its files are.
	Dir string
	// Shipped says that a program that ships holds it; others only tests and the
	// deployment hold.
	Shipped bool
}

// known are the licences by SPDX's names, and what each of their texts says.
var known = []struct {
	name string
	says []string
	not  string // what a wider licence says beside it
}{
	{"Apache-2.0", []string{"apache license", "version 2.0, january 2004"}, ""},
	{"MIT", []string{"permission is hereby granted, free of charge, to any person obtaining a copy", "the above copyright notice and this permission notice shall be included"}, ""},
	{"BSD-3-Clause", []string{"redistributions of source code must retain", "redistributions in binary form must reproduce", "endorse or promote products"}, "advertising materials"},
	{"BSD-2-Clause", []string{"redistributions of source code must retain", "redistributions in binary form must reproduce"}, "endorse or promote products"},
	{"ISC", []string{"permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted"}, ""},
	{"MPL-2.0", []string{"mozilla public license version 2.0"}, ""},
	{"GPL", []string{"gnu general public license"}, "secondary license"}, // MPL-2.0 speaks of it
	{"LGPL", []string{"gnu lesser general public license"}, "secondary license"},
	{"AGPL", []string{"gnu affero general public license"}, "secondary license"},
	{"BUSL-1.1", []string{"business source license"}, ""},
	{"SSPL-1.0", []string{"server side public license"}, ""},
}

// shippable are the licences of what a program of ours may hold; what only tests
// hold may also be under those of testable.
var (
	shippable = []string{"Apache-2.0", "MIT", "BSD-2-Clause", "BSD-3-Clause", "ISC"}
	testable  = []string{"MPL-2.0"}
)

// In are the licences that a text holds.
func In(text string) []string {
	text = strings.Join(strings.Fields(strings.ToLower(text)), " ")
	text = strings.ReplaceAll(text, "public license, version", "public license version") // both are written
	var names []string
	for _, k := range known {
		missing := slices.ContainsFunc(k.says, func(s string) bool { return !strings.Contains(text, s) })
		if !missing && (k.not == "" || !strings.Contains(text, k.not)) {
			names = append(names, k.name)
		}
	}
	return names
}

// Of are the licences of a module, by the files of its root.
func Of(m Module) ([]string, error) {
	entries, err := os.ReadDir(m.Dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Path, err)
	}
	var names, files []string
	for _, e := range entries {
		upper := strings.ToUpper(e.Name())
		if e.IsDir() || !strings.HasPrefix(upper, "LICENSE") && !strings.HasPrefix(upper, "LICENCE") && !strings.HasPrefix(upper, "COPYING") || upper == "LICENSE.DOCS" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(m.Dir, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Path, err)
		}
		files = append(files, e.Name())
		names = append(names, In(string(text))...)
	}
	slices.Sort(names)
	switch names = slices.Compact(names); {
	case len(files) == 0:
		return nil, fmt.Errorf("%s has no file with a licence", m.Path)
	case len(names) == 0:
		return nil, fmt.Errorf("%s: nobody here knows the licence in %s; read it, and add it to test/licence if it may be used", m.Path, strings.Join(files, ", "))
	}
	return names, nil
}

// Check says which of a module's licences are not allowed for it.
func Check(m Module, names []string) error {
	allowed := shippable
	if !m.Shipped {
		allowed = slices.Concat(shippable, testable)
	}
	for _, name := range names {
		if !slices.Contains(allowed, name) {
			return fmt.Errorf("%s is under %s; allowed are %s", m.Path, name, strings.Join(allowed, ", "))
		}
	}
	return nil
}

// List is the page that names what ships, and under which licences.
func List(all []Module, names map[string][]string) string {
	var b strings.Builder
	b.WriteString("# What Longshore's programs are built of\n\nThe modules that the agent, the functions or the command hold, beside Go's own standard library (BSD-3-Clause). " +
		"Written by `make licences ARGS=-write`; `make check` holds it against what is compiled.\n\n| module | version | licence |\n|---|---|---|\n")
	for _, m := range all {
		if m.Shipped {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", m.Path, m.Version, strings.Join(names[m.Path], ", "))
		}
	}
	return b.String()
}
