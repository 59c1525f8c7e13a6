// Command longshore runs tasks and services on machines you own, through the ECS
// API of a Longshore installation.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/mattn/go-isatty"
	_ "golang.org/x/crypto/x509roots/fallback" // for an image that holds nothing else

	"github.com/longshore-run/longshore/cli/command"
)

// version is set by tools/build.
var version = "unknown"

func main() {
	interrupts := make(chan os.Signal, 2)
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM)
	os.Exit(command.Run(context.Background(), command.Program{
		Out: os.Stdout, Err: os.Stderr, In: os.Stdin, Lookup: os.LookupEnv, Now: time.Now, Every: time.Second,
		Interrupts: interrupts, Version: version, Terminal: terminal,
	}, os.Args[1:]))
}

func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}
