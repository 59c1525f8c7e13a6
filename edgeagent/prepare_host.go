package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/longshore-run/longshore/edgeagent/internal/endpoint"
	"github.com/longshore-run/longshore/edgeagent/internal/hostprep"
)

// prepareHost makes of the machine what the agent has no right to do itself, or takes
// it away again. Several calls are as one.
func prepareHost(files, args []string, lookup func(string) (string, bool), environ []string, stdout, stderr io.Writer) int {
	undo := len(args) == 1 && args[0] == "-remove"
	if len(args) > 0 && !undo {
		return misused(stderr, fmt.Sprintf("prepare-host: %q is not known; it takes -remove or nothing", strings.Join(args, " ")))
	}
	c, err := readConfig(orServiceFiles(files), lookup, environ) // a fault elsewhere does not matter here
	if errors.As(err, new(unreadable)) {
		fmt.Fprintln(stderr, err)
		return exitFault
	}
	if err := errors.Join(c.checkEndpoint()...); err != nil {
		fmt.Fprintln(stderr, err)
		return exitFault
	}
	_, noSix := os.Stat("/proc/net/if_inet6")
	host := hostprep.Host{Run: hostprep.Command, Own: endpoint.Own, IPv6: noSix == nil}
	want := hostprep.Want{Endpoint: hostprep.Endpoint(c.TaskEndpoint), Block: c.BlockMetadata}
	ctx := context.Background()
	if undo {
		if err := host.Undo(ctx, want); err != nil {
			fmt.Fprintln(stderr, err)
			return exitFault
		}
		if err := hostprep.Forget(c.DataDir); err != nil {
			fmt.Fprintln(stderr, err)
			return exitFault
		}
		fmt.Fprintln(stdout, "the machine is as it was")
		return exitOK
	}
	found, err := host.Prepare(ctx, want)
	if err = errors.Join(err, os.MkdirAll(c.DataDir, 0o700), hostprep.Write(c.DataDir, found, now())); err != nil {
		fmt.Fprintln(stderr, err)
		if os.Geteuid() != 0 {
			fmt.Fprintln(stderr, "prepare-host needs to be root")
		}
		return exitFault
	}
	fmt.Fprintln(stdout, "the machine is prepared")
	return exitOK
}
