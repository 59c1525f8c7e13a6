// This program says under which licences the modules are that are compiled in, and
// fails where one is not allowed or THIRD_PARTY.md is out of date; with -write it
// writes that page. It asks nobody: what is compiled is in Go's module cache.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/test/licence"
)

const page = "THIRD_PARTY.md"

func main() {
	write := flag.Bool("write", false, "write "+page)
	tags := flag.String("tags", "", "build tags of the tests that count")
	flag.Parse()
	if err := run(*write, *tags); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(write bool, tags string) error {
	shipped, err := modules("./edgeagent", "./lambdas/...", "./cli")
	if err != nil {
		return err
	}
	all, err := modules("-test", "-tags="+tags, "./...")
	if err != nil {
		return err
	}
	names := map[string][]string{}
	var faults []error
	for i := range all {
		m := &all[i]
		m.Shipped = slices.ContainsFunc(shipped, func(s licence.Module) bool { return s.Path == m.Path })
		found, err := licence.Of(*m)
		if err == nil {
			err = licence.Check(*m, found)
		}
		names[m.Path], faults = found, append(faults, err)
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	list := licence.List(all, names)
	if write {
		return os.WriteFile(page, []byte(list), 0o644)
	}
	if have, err := os.ReadFile(page); err != nil || string(have) != list {
		return fmt.Errorf("%s is not what is compiled; write it with: make licences ARGS=-write", page)
	}
	fmt.Printf("== licences: %d modules, %d of them ship: ok\n", len(all), len(shipped))
	return nil
}

// modules are those of which a package is compiled in, less this one.
func modules(args ...string) ([]licence.Module, error) {
	cmd := exec.Command("go", append([]string{"list", "-deps", "-f", "{{with .Module}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list what is compiled: %w", err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	slices.Sort(lines)
	var all []licence.Module
	for _, line := range slices.Compact(lines) {
		if f := strings.Split(line, "\t"); len(f) == 3 && f[1] != "" {
			all = append(all, licence.Module{Path: f[0], Version: f[1], Dir: f[2]})
		}
	}
	return all, nil
}
