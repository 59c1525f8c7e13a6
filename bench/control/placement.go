package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
)

// comparePlacement runs the benchmark of our placement function and that of
// swarmkit's scheduler, one after the other, and sets one beside the other. The
// latter is a module of its own, which Go compiles from its proxy.
func comparePlacement(out io.Writer) error {
	ours, err := benchmark(".", "./lambdas/internal/placement", "^BenchmarkPlan$/instances=(1000|10000)$/tasks=(1000|2000|10000|100000)$/default", "5x")
	if err != nil {
		return err
	}
	theirs, err := benchmark(filepath.Join("bench", "swarmkit"), "github.com/moby/swarmkit/v2/manager/scheduler", "^BenchmarkScheduler1kNodes(1|10)kTasks$", "3x")
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "\n== placement: microseconds for one task, by the clock on the wall")
	table(out, func(w io.Writer) {
		fmt.Fprintln(w, "ours\tswarmkit\tratio\t\tinstances and tasks of one plan")
		for _, row := range []struct {
			what, ours, theirs string
			tasks              float64
		}{
			{"1000, 1000", "instances=1000/tasks=1000/", "1kNodes1kTasks", 1000},
			{"1000, 10000", "instances=1000/tasks=10000/", "1kNodes10kTasks", 10_000},
			{"1000, 100000", "instances=1000/tasks=100000/", "", 100_000},
			{"10000, 2000 (one pass)", "instances=10000/tasks=2000/", "", 2000},
			{"10000, 100000", "instances=10000/tasks=100000/", "", 100_000},
		} {
			a, err := nanoseconds(ours, row.ours)
			if err != nil {
				fmt.Fprintf(w, "?\t?\t?\t\t%s: %s\n", row.what, err)
				continue
			}
			if row.theirs == "" {
				fmt.Fprintf(w, "%.2f\t\t\t\t%s\n", a/row.tasks/1e3, row.what)
				continue
			}
			b, err := nanoseconds(theirs, row.theirs)
			if err != nil {
				fmt.Fprintf(w, "%.2f\t?\t?\t\t%s: %s\n", a/row.tasks/1e3, row.what, err)
				continue
			}
			fmt.Fprintf(w, "%.2f\t%.1f\t1 : %.0f\t\t%s\n", a/row.tasks/1e3, b/row.tasks/1e3, b/a, row.what)
		}
	})
	return nil
}

func benchmark(dir, pkg, pattern, times string) (string, error) {
	var out bytes.Buffer
	cmd := exec.Command("go", "test", "-vet=off", "-run", "^$", "-bench", pattern, "-benchtime", times, "-timeout", "5m", pkg)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("benchmark of %s: %w", pkg, err)
	}
	return out.String(), nil
}

// nanoseconds of one run of the benchmark whose name holds a text.
func nanoseconds(output, name string) (float64, error) {
	found := regexp.MustCompile(`(?m)^Benchmark\S*` + regexp.QuoteMeta(name) + `\S*\s+\d+\s+([0-9.e+]+) ns/op`).FindStringSubmatch(output)
	if found == nil {
		return 0, fmt.Errorf("no benchmark %s ran", name)
	}
	return strconv.ParseFloat(found[1], 64)
}
