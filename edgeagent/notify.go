package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/logkey"
)

// statusEvery is how often systemd is told how the agent is, where no watchdog asks
// for more.
const statusEvery = 30 * time.Second

// started tells systemd that the settings are good and the agent runs. It does not
// wait for the network, nor for Docker: a start that waits would be ended as failed.
func started(log *slog.Logger) { tell(log, daemon.SdNotifyReady) }

// notify tells systemd, until ctx ends, that the agent lives and how it is. A look
// needs the locks that every loop needs: an agent that is stuck says nothing, and is
// started anew by the watchdog.
func notify(ctx context.Context, look func() agent.Look, log *slog.Logger) {
	every := statusEvery
	if limit, err := daemon.SdWatchdogEnabled(false); err != nil {
		log.Warn("the watchdog's setting", logkey.Error, err)
	} else if limit > 0 {
		every = min(every, limit/3)
	}
	for {
		tell(log, daemon.SdNotifyWatchdog+"\nSTATUS="+strings.ReplaceAll(summary(look()), "\n", " "))
		select {
		case <-ctx.Done():
			tell(log, daemon.SdNotifyStopping)
			return
		case <-time.After(every):
		}
	}
}

func tell(log *slog.Logger, state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		log.Warn("tell systemd", logkey.Error, err)
	}
}

// summary is an agent in one line.
func summary(l agent.Look) string {
	open := 0
	for _, t := range l.Tasks {
		if !t.Ended() {
			open++
		}
	}
	switch {
	case l.Deregistered:
		return "deregistered: ends once what it has is stopped"
	case !l.Docker.OK:
		return "Docker is IMPAIRED: " + l.Docker.Why
	case l.NoRoom != "":
		return l.NoRoom
	case !l.Registered:
		return "not registered yet"
	case !l.Commands.OK:
		return "no commands: " + l.Commands.Why
	case !l.Heartbeats.OK:
		return "no heartbeats: " + l.Heartbeats.Why
	}
	return fmt.Sprintf("%d tasks in cluster %s", open, l.Cluster)
}
