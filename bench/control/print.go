package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

func table(out io.Writer, rows func(w io.Writer)) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	rows(w)
	_ = w.Flush() // to a terminal or a file: what fails there is seen there
}

func printLines(out io.Writer, lines []line) {
	table(out, func(w io.Writer) {
		fmt.Fprintln(w, "DynamoDB requests\tSQS requests\titems\tKB\tread units\twrite units\tCPU\tallocated KB\t\twhat")
		for _, l := range lines {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\t%s\n", short(l.Requests), short(l.Sends), short(l.Items), short(l.Bytes/1024),
				short(l.Read), short(l.Write), l.CPU.Round(10*time.Microsecond), short(l.Allocated/1024), l.What)
		}
	})
}

// short is a number with as many digits as say something.
func short(v float64) string {
	switch {
	case v == float64(int64(v)):
		return fmt.Sprintf("%d", int64(v))
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

func printGrowth(out io.Writer, base, instances, tasks []line) {
	of := func(lines []line, what string) (line, bool) {
		for _, l := range lines {
			if l.What == what {
				return l, true
			}
		}
		return line{}, false
	}
	times := func(a, b float64) string {
		if a == 0 {
			return "-"
		}
		return "×" + short(float64(int(100*b/a))/100)
	}
	table(out, func(w io.Writer) {
		fmt.Fprintln(w, "requests\tread units\twrite units\tCPU\t|\trequests\tread units\twrite units\tCPU\t\t")
		fmt.Fprintln(w, "instances ×10\t\t\t\t|\ttasks ×10\t\t\t\t\twhat")
		for _, a := range base {
			i, ok1 := of(instances, a.What)
			t, ok2 := of(tasks, a.What)
			if !ok1 || !ok2 {
				continue
			}
			row := func(b line) string {
				return times(a.Requests+a.Sends, b.Requests+b.Sends) + "\t" + times(a.Read, b.Read) + "\t" + times(a.Write, b.Write) + "\t" + times(float64(a.CPU), float64(b.CPU))
			}
			fmt.Fprintf(w, "%s\t|\t%s\t\t%s\n", row(i), row(t), a.What)
		}
	})
}
