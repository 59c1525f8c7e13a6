// Command agent measures how long containers take to run once their command was
// received: by the real agent, by a bare loop of the same Docker calls with the
// same parallelism, and by Docker Swarm, in turns on one engine. It plays the
// control plane and SQS to the agent. Nothing imports it; `make bench-agent`
// runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench-agent:", err)
		os.Exit(1)
	}
}

// options are what the command line says.
type options struct {
	agent  string
	modes  []string
	sizes  []int
	rounds int
	swarm  bool
}

func parse(args []string) (options, error) {
	o := options{sizes: []int{1, 10, 50}, modes: []string{"bridge", "host"}}
	flags := flag.NewFlagSet("bench-agent", flag.ContinueOnError)
	flags.StringVar(&o.agent, "agent", "", "the agent's program, as make build makes it")
	flags.IntVar(&o.rounds, "rounds", 5, "how often each is measured, 1 to 100; three times as often with one task, half as often with 50")
	flags.BoolVar(&o.swarm, "swarm", true, "measure Docker Swarm, too: the engine must be in no swarm, joins one of its own, and leaves it")
	flags.Func("modes", "network modes (default bridge,host)", func(text string) error {
		o.modes = strings.Split(text, ",")
		for _, m := range o.modes {
			if m != "bridge" && m != "host" {
				return fmt.Errorf("%q: bridge and host are measured", m)
			}
		}
		return nil
	})
	flags.Func("sizes", "how many tasks at once, 1 to 200 each (default 1,10,50)", func(text string) error {
		o.sizes = nil
		for s := range strings.SplitSeq(text, ",") {
			n, err := strconv.Atoi(s)
			if err != nil || n < 1 || n > 200 {
				return fmt.Errorf("%q: want numbers from 1 to 200", s)
			}
			o.sizes = append(o.sizes, n)
		}
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case o.agent == "":
		return o, errors.New("-agent names no program")
	case o.rounds < 1 || o.rounds > 100:
		return o, errors.New("-rounds is 1 to 100")
	case flags.NArg() > 0:
		return o, fmt.Errorf("%q: nothing follows the flags", flags.Arg(0))
	}
	return o, nil
}

// often is how many rounds a size gets: a short one is noisy, a long one slow.
func (o options) often(size int) int {
	switch {
	case size == 1:
		return 3 * o.rounds
	case size >= 50:
		return max(1, o.rounds/2)
	}
	return o.rounds
}

func run(ctx context.Context, args []string) (err error) {
	o, err := parse(args)
	if err != nil {
		return err
	}
	b, err := newBench(ctx, o)
	if err != nil {
		return err
	}
	var all []measured
	var figures []figure
	defer func() { // also of a run that was ended before its end
		show(os.Stdout, all, figures)
		err = errors.Join(err, b.close())
	}()
	for _, mode := range o.modes {
		if err := b.warm(ctx, mode); err != nil {
			return err
		}
		for _, size := range o.sizes {
			m := measured{Mode: mode, Size: size}
			for round := range o.often(size) {
				fmt.Fprintf(os.Stderr, "bench-agent: %s, %d at once, round %d of %d …\n", mode, size, round+1, o.often(size))
				took, err := b.round(ctx, mode, size, round)
				if err != nil {
					return fmt.Errorf("%s, %d at once: %w", mode, size, err)
				}
				m.add(took)
			}
			all = append(all, m)
		}
	}
	most := slices.Max(o.sizes)
	fmt.Fprintf(os.Stderr, "bench-agent: what the agent holds with %d tasks …\n", most)
	figures, err = b.weigh(ctx, o.modes[0], most)
	return err
}
