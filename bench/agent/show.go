package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// measured is one mode and size: the times of each contender, round by round.
type measured struct {
	Mode  string
	Size  int
	Times map[string][]time.Duration
}

func (m *measured) add(took map[string]time.Duration) {
	if m.Times == nil {
		m.Times = map[string][]time.Duration{}
	}
	for name, t := range took {
		m.Times[name] = append(m.Times[name], t)
	}
}

func (m *measured) median(name string) time.Duration { return median(m.Times[name]) }

// ratio is the median of the agent's time over another's of the same round, so
// that a machine that is busy for a while counts for both.
func (m *measured) ratio(other string) float64 {
	var all []float64
	for i, t := range m.Times[other] {
		all = append(all, float64(m.Times[byAgent][i])/float64(t))
	}
	return median(all)
}

func median[T float64 | time.Duration](all []T) T {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// figure is a number beside the times, and what it may be: 0 for anything.
type figure struct {
	What  string
	Is    float64
	Bound float64
	Unit  string
}

// target is what the agent may take, over the bare loop.
const target = 1.10

func show(out io.Writer, all []measured, figures []figure) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "network\tat once\trounds\t%s\t%s\t%s\tover bare loop\tover Swarm\t\n", byAgent, byBare, bySwarm)
	for _, m := range all {
		swarm, over := "-", "-"
		if len(m.Times[bySwarm]) > 0 {
			swarm, over = ms(m.median(bySwarm)), fmt.Sprintf("%.2f", m.ratio(bySwarm))
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\t%s\t%.2f%s\t%s\t\n", m.Mode, m.Size, len(m.Times[byAgent]), ms(m.median(byAgent)), ms(m.median(byBare)), swarm,
			m.ratio(byBare), within(m.ratio(byBare), target), over)
	}
	_ = w.Flush() // to a terminal or a file: what fails there is seen there
	fmt.Fprintln(out, "Medians; received → the last container runs, by the engine's word. The ratios are medians of each round's.")
	for _, f := range figures {
		if f.Bound == 0 {
			fmt.Fprintf(out, "%s: %.1f %s\n", f.What, f.Is, f.Unit)
			continue
		}
		fmt.Fprintf(out, "%s: %.1f %s of %.0f%s\n", f.What, f.Is, f.Unit, f.Bound, within(f.Is, f.Bound))
	}
}

func within(is, bound float64) string {
	if is > bound {
		return " (!)"
	}
	return ""
}

func ms(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }

// kilobytes is the line of a name of /proc/PID/status.
func kilobytes(status, name string) int64 {
	for line := range strings.Lines(status) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			kb, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kb
		}
	}
	return 0
}
