// Command cmd brings the local stack up and down, runs its reaper, and shows the
// main job. `make local-up`, `local-down`, `local-tick` and `demo` run it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/longshore-run/longshore/test/local"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "local:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("usage: cmd ready|up|down|tick|audit|demo")
	}
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	dir := filepath.Join(root, ".local")
	switch args[0] {
	case "ready":
		return ready(root, dir)
	case "up":
		return up(ctx, root, dir)
	case "down":
		return down(dir)
	case "tick":
		s, err := local.Open(dir)
		if err != nil {
			return err
		}
		if err := s.Tick(ctx); err != nil {
			return err
		}
		fmt.Println("tick: the reaper ran")
		return nil
	case "audit":
		s, err := local.Open(dir)
		if err != nil {
			return err
		}
		answer, err := s.Audit(ctx)
		fmt.Printf("%s\n", answer)
		return err
	case "demo":
		return demo(ctx, root, dir)
	}
	return fmt.Errorf("unknown command %q; known: ready, up, down, tick, audit, demo", args[0])
}

// ready says what would refuse an up or a demo, before anything is built for it.
func ready(root, dir string) error {
	if _, err := options(root, dir); err != nil {
		return err
	}
	if local.Exists(dir) {
		return fmt.Errorf("a local stack is there already in %s; take it down with: make local-down", dir)
	}
	return nil
}

func up(ctx context.Context, root, dir string) error {
	o, err := options(root, dir)
	if err != nil {
		return err
	}
	if err := ready(root, dir); err != nil {
		return err
	}
	s, err := local.Up(ctx, o)
	if err != nil && local.Exists(dir) {
		return errors.Join(err, fmt.Errorf("what was started is still there for a look: %s; take it down with: make local-down", dir))
	}
	if err != nil {
		return err
	}
	fmt.Printf("\nAPI      %s\nagents   %d, logs in .local/agents/N/log\nnext     . .local/env && dist/cli/%s/longshore instances list\n", s.API(), s.Options.Agents, runtime.GOARCH)
	return nil
}

func down(dir string) error {
	// Not the interrupted context: taking down is what an interrupt wants.
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := local.Down(ctx, dir); err != nil {
		return err
	}
	fmt.Println("down: no agent, container, process or queue of it is left")
	return nil
}

// options are read from the variables that `make local-up` documents.
func options(root, dir string) (local.Options, error) {
	o := local.Options{Root: root, Dir: dir, Progress: os.Stdout, LogLevel: os.Getenv("LOG_LEVEL")}
	var errs []error
	number := func(name string, into *int, least, most int) {
		text := os.Getenv(name)
		if text == "" {
			return
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < least || n > most {
			errs = append(errs, fmt.Errorf("%s=%q: must be a whole number from %d to %d", name, text, least, most))
		}
		*into = n
	}
	duration := func(name string, into *time.Duration) {
		text := os.Getenv(name)
		if text == "" {
			return
		}
		d, err := time.ParseDuration(text)
		if err != nil || d < time.Second {
			errs = append(errs, fmt.Errorf("%s=%q: must be a duration of a second or more, such as 90s", name, text))
		}
		*into = d
	}
	number("AGENTS", &o.Agents, 1, 20)
	number("PORT", &o.Port, 1, 65535)
	duration("HEARTBEAT", &o.HeartbeatEvery)
	duration("SUSPECT_AFTER", &o.SuspectAfter)
	duration("REAP_AFTER", &o.ReapAfter)
	duration("CLEANUP_WAIT", &o.CleanupWait)
	return o, errors.Join(errs...)
}
