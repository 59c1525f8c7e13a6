package main

import (
	"bytes"
	"errors"
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
	fmt.Fprintln(out, "\n== placement: microseconds for one task; CPU is what our process computed, which others on the machine do not lengthen")
	table(out, func(w io.Writer) {
		fmt.Fprintln(w, "ours, CPU\tours\tswarmkit\tratio\t\tinstances and tasks of one plan")
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
			a, errA := figure(ours, row.ours, "ns/op")
			cpu, errC := figure(ours, row.ours, "cpu-ns/placement")
			if err := errors.Join(errA, errC); err != nil {
				fmt.Fprintf(w, "?\t?\t?\t?\t\t%s: %s\n", row.what, err)
				continue
			}
			theirTime, ratio := "", ""
			if row.theirs != "" {
				b, err := figure(theirs, row.theirs, "ns/op")
				if err != nil {
					fmt.Fprintf(w, "?\t?\t?\t?\t\t%s: %s\n", row.what, err)
					continue
				}
				theirTime, ratio = fmt.Sprintf("%.1f", b/row.tasks/1e3), fmt.Sprintf("1 : %.0f", b/a)
			}
			fmt.Fprintf(w, "%.2f\t%.2f\t%s\t%s\t\t%s\n", cpu/1e3, a/row.tasks/1e3, theirTime, ratio, row.what)
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

// figure is a benchmark's figure of some unit; the name holds a text.
func figure(output, name, unit string) (float64, error) {
	found := regexp.MustCompile(`(?m)^Benchmark\S*` + regexp.QuoteMeta(name) + `\S*\s.*?([0-9.e+]+) ` + regexp.QuoteMeta(unit) + `\b`).FindStringSubmatch(output)
	if found == nil {
		return 0, fmt.Errorf("no benchmark %s tells %s", name, unit)
	}
	return strconv.ParseFloat(found[1], 64)
}
