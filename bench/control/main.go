// Command control measures what the control plane costs as it grows: the real use
// cases over a store in memory that adds up what DynamoDB would bill. It prints a
// table a size, how each line grows as instances or tasks grow tenfold, and what an
// idle instance costs a month. Nothing imports it; `make bench-control` runs it.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench-control:", err)
		os.Exit(1)
	}
}

// leastInstances are as many as the lines are measured with.
const leastInstances = 300

// size is how large an installation is: of the tasks one in fifty waits.
type size struct {
	Instances int `json:"instances"`
	Tasks     int `json:"tasks"`
}

func (s size) String() string { return fmt.Sprintf("%d instances, %d tasks", s.Instances, s.Tasks) }

// result is what was measured at one size.
type result struct {
	size
	Lines []line `json:"lines"`
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("bench-control", flag.ContinueOnError)
	format := flags.String("o", "table", "table or json")
	instances := flags.Int("instances", 1000, "how many at the least, 300 or more; ten times as many at the most")
	tasks := flags.Int("tasks", 10_000, "how many at the least, no fewer than instances; ten times as many at the most")
	counts := flags.Bool("counts", true, "measure the use cases")
	placement := flags.Bool("placement", false, "also the placement function, beside swarmkit's scheduler (in the project's folder; compiles for some minutes at first)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *format != "table" && *format != "json" || flags.NArg() > 0 {
		return fmt.Errorf("-o is table or json, and nothing else follows")
	}
	if *instances < leastInstances || *tasks < *instances {
		return fmt.Errorf("-instances is %d or more, -tasks no fewer", leastInstances)
	}
	if *counts {
		if err := measureAll(out, *instances, *tasks, *format == "json"); err != nil {
			return err
		}
	}
	if *placement {
		return comparePlacement(out)
	}
	return nil
}

// measureAll measures four sizes and prints them.
func measureAll(out io.Writer, instances, tasks int, asJSON bool) error {
	var results []result
	for _, s := range []size{{instances, tasks}, {10 * instances, tasks}, {instances, 10 * tasks}, {10 * instances, 10 * tasks}} {
		fmt.Fprintf(os.Stderr, "bench-control: %s …\n", s)
		lines, err := measure(s)
		if err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
		results = append(results, result{s, lines})
	}
	if asJSON {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(results)
	}
	for _, r := range results {
		fmt.Fprintf(out, "\n== %s\n", r.size)
		printLines(out, r.Lines)
	}
	fmt.Fprintf(out, "\n== growth: %s, and ten times as many\n", results[0].size)
	printGrowth(out, results[0].Lines, results[1].Lines, results[2].Lines)
	fmt.Fprintln(out, "\n== a month of an idle installation, by the counts above (docs/design/cost.md)")
	printMonth(out, results)
	return nil
}
