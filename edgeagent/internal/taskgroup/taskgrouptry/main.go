// Command taskgrouptry makes or removes one group of a task by systemd, for the test of
// the packaged unit: with the rights that the unit leaves the agent. It ships with nothing,
// and nothing can import it.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/longshore-run/longshore/edgeagent/internal/taskgroup"
)

func main() {
	if err := try(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// try is ensure, remove or sweep, of attempt 1 of a task of an instance.
func try(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("usage: taskgrouptry ensure|remove|sweep INSTANCE TASK")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	g, err := taskgroup.Open(ctx, args[1], "systemd", "2", taskgroup.Root, taskgroup.DefaultPeriod, slog.Default())
	if err != nil {
		return err
	}
	switch task := args[2]; args[0] {
	case "ensure":
		parent, err := g.Ensure(ctx, task, 1, 512, 64)
		if err == nil {
			fmt.Println("made", parent)
		}
		return err
	case "remove":
		return g.Remove(ctx, task, 1)
	}
	return g.Sweep(ctx, func(string, int) bool { return false })
}
