// Command longshore-agent runs a container instance's tasks: it takes commands
// from the instance's queue, has Docker carry them out, and reports. This
// package only reads settings and wires adapters to the loops of
// edgeagent/agent; it decides nothing about tasks. Nothing can import it.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/edgeagent/internal/awsprovider"
	"github.com/longshore-run/longshore/edgeagent/internal/dockerengine"
	"github.com/longshore-run/longshore/edgeagent/internal/endpoint"
	"github.com/longshore-run/longshore/edgeagent/internal/introspect"
	"github.com/longshore-run/longshore/edgeagent/internal/journal"
	"github.com/longshore-run/longshore/edgeagent/internal/pause"
	"github.com/longshore-run/longshore/edgeagent/internal/sqsqueue"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/logkey"
	"github.com/longshore-run/longshore/shared/wire"
)

// version is set by the linker.
var version = "unknown"

// Exit codes. A supervisor must not restart after exitTerminal.
const (
	exitOK       = 0
	exitFault    = 1
	exitUsage    = 2
	exitTerminal = 5
)

const usage = `usage: longshore-agent [-env-file FILE]... [COMMAND]

Without a command the agent runs, until SIGTERM or SIGINT; containers go on.

  status [-o json]         show what the agent on this machine knows; exit code 3:
                           it runs and cannot do its work, 1: it does not answer
  check-config [-o json]   read the settings, name every fault in them, and end
  prepare-host [-remove]   give the machine the address of the task endpoint, and keep
                           containers from the instance metadata service; with -remove
                           take both away again. It needs to be root; the agent does not
                           do it itself
  version                  print the version

Settings are environment variables; those of a FILE (lines of NAME=value) count
where the environment has none, and of several the last. Without -env-file,
check-config, status and prepare-host read what the service is started with: /etc/ecs/ecs.config and
/etc/longshore/agent.env, where they are there. Settings of ECS's agent (ECS_*)
count where their meaning is the same and ours (LONGSHORE_*) is not set.

Exit code 5 means that this container instance was deregistered: do not start
the agent again by itself.
`

func main() {
	if len(os.Args) == 2 && os.Args[1] == pause.Command {
		pause.Run() // in a container, where there is nothing else
		return
	}
	os.Exit(run(os.Args[1:], os.LookupEnv, os.Environ(), os.Stdout, os.Stderr))
}

func run(args []string, lookup func(string) (string, bool), environ []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("longshore-agent", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() { fmt.Fprint(stderr, usage) }
	var files []string
	flags.Func("env-file", "", func(file string) error { files = append(files, file); return nil })
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		return exitUsage
	}
	switch command, rest := flags.Arg(0), flags.Args(); {
	case command == "help":
		fmt.Fprint(stdout, usage)
		return exitOK
	case command == "":
		c, err := readConfig(files, lookup, environ)
		for _, w := range c.warnings {
			fmt.Fprintln(stderr, "warning:", w)
		}
		if err != nil {
			fmt.Fprintln(stderr, err)
			return exitFault
		}
		return serve(c, stderr)
	case command == "check-config":
		return checkConfig(files, rest[1:], lookup, environ, stdout, stderr)
	case command == "status":
		return status(files, rest[1:], lookup, environ, stdout, stderr)
	case command == "prepare-host":
		return prepareHost(files, rest[1:], lookup, environ, stdout, stderr)
	case command == "version" && len(rest) == 1:
		fmt.Fprintln(stdout, version)
		return exitOK
	case command == "version":
		return misused(stderr, "version takes no argument")
	default:
		return misused(stderr, fmt.Sprintf("%q is no command: status, check-config, prepare-host and version are, and none runs the agent", command))
	}
}

// misused says what is wrong with a command line, after what is right.
func misused(stderr io.Writer, fault string) int {
	fmt.Fprintf(stderr, "%s\n%s\n", usage, fault)
	return exitUsage
}

// serve runs the agent until it is told to leave.
func serve(c settings, stderr io.Writer) int {
	if _, set := c.lookup("GOGC"); !set {
		debug.SetGCPercent(40) // a small heap is worth more here than speed
	}
	log := slog.New(slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: c.level()}))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	switch err := serveUntil(ctx, c, log); {
	case errors.Is(err, agent.ErrTerminal):
		log.Error("the agent ends for good", logkey.Reason, err.Error())
		return exitTerminal
	case err != nil && ctx.Err() == nil:
		log.Error("the agent ends", logkey.Error, err)
		return exitFault
	}
	log.Info("the agent leaves; containers go on")
	return exitOK
}

func serveUntil(ctx context.Context, c settings, log *slog.Logger) error {
	log.Info("the agent begins", "version", version, logkey.Cluster, c.Cluster)
	started(log)
	cloud, err := newCloud(ctx, c, log)
	if err != nil {
		return err
	}
	identity, err := cloud.whoAmI(ctx, c.DataDir, log)
	if err != nil {
		return err
	}
	cloud.fillIn(ctx, &c.Agent, identity, log)
	instance := wire.InstanceID(identity)

	limits := dockerengine.DefaultLimits()
	limits.Pull, limits.PullSilence = c.PullTimeout, c.PullSilence
	limits.Pulls = c.Pulls
	limits.Create, limits.Start = c.CreateTimeout, c.StartTimeout
	groups := &taskLimits{settings: c, instance: instance, log: log}
	engine, err := dockerengine.New(c.DockerHost, instance, c.Cluster,
		dockerengine.WithPolicy(dockerengine.Policy(c.PullPolicy)), dockerengine.WithLimits(limits),
		dockerengine.WithTaken(prober(c.DockerHost)), dockerengine.WithGroups(groups.open, c.TaskLimits != limitsOff))
	if err != nil {
		return err
	}
	book, how, err := journal.Open(c.DataDir, journal.Owner{Hardware: hardware(ctx, engine, log), Identity: identity}, newID, now(), journal.WithReserve(int64(c.ReserveMiB)<<20))
	if err != nil {
		return err
	}
	if how.MovedTo != "" {
		log.Warn("the journal is not used: it was moved aside, and this is a new incarnation", logkey.Reason, how.Why, "file", how.MovedTo)
	}
	auth, err := awsprovider.ParseAuth(c.AuthType, c.AuthData)
	if err != nil {
		return errors.Join(err, book.Close(), engine.Close())
	}
	if how.Unreserved != "" {
		log.Warn("no room is kept for the journal, should its disk be full", logkey.Reason, how.Unreserved)
	}
	var a *agent.Agent
	server, err := newEndpoint(c, cloud.region, engine, cloud.roles, func(id string) (agent.Served, bool) { return a.Served(id) }, log)
	if err != nil {
		return errors.Join(err, book.Close(), engine.Close())
	}
	config := agent.Config{
		Setting: c.Agent, Identity: identity, Session: newID(), Version: version,
		Engine: engine, Images: engine, Journal: book, Reserve: book, Log: log, Now: now, Host: cloud.hostOf(c),
		Provider: awsprovider.New(cloud.calls, cloud.roles, auth, now),
		Inbox:    sqsqueue.NewInbox(cloud.queues, c.CommandQueueNameStart+instance),
		Outbox:   sqsqueue.NewOutbox(cloud.queues, c.ReportsQueueURL, c.HeartbeatsQueueURL),
		Taken:    prober(c.DockerHost),
		FreeDisk: func() int64 { return freeDisk(c.DataDir) },
	}
	if server != nil {
		config.Endpoint = server
	}
	if a, err = agent.New(config); err == nil {
		err = runVisibly(ctx, a, server, groups, c, log)
	}
	return errors.Join(err, book.Close(), engine.Close())
}

// hardware is this machine's id, "" if it cannot be known before the engine
// answers: then the journal is taken for its own.
func hardware(ctx context.Context, engine agent.Engine, log *slog.Logger) string {
	const patience = 30 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		info, err := engine.Info(ctx)
		if err == nil {
			return info.HardwareID
		}
		select {
		case <-ctx.Done():
			log.Warn("the engine does not answer: the agent goes on without it", logkey.Error, err)
			return ""
		case <-time.After(time.Second):
		}
		if !fault.Is(err, fault.Unavailable) {
			log.Warn("the engine", logkey.Error, err)
		}
	}
}

func newID() string { return rand.Text() }

// runVisibly runs the agent; its containers may ask of their tasks meanwhile, and people
// and tools of this machine look.
func runVisibly(ctx context.Context, a *agent.Agent, server *endpoint.Server, limits *taskLimits, c settings, log *slog.Logger) error {
	looks, stop := context.WithCancel(ctx)
	var served sync.WaitGroup
	if server != nil {
		server.Look() // before the first container is made
		served.Go(func() { server.Serve(looks, a.Offer) })
	}
	machine := machineLook{settings: c, server: server, limits: limits}
	served.Go(func() { machine.watch(looks, log) })
	look := func() agent.Look { return machine.add(a.Look()) }
	served.Go(func() {
		introspect.Serve(looks, introspect.Handler(look, dockerengine.Name), filepath.Join(c.DataDir, socketName), c.Introspection, log)
	})
	served.Go(func() { notify(looks, a.Look, log) })
	served.Go(func() { stayThin(looks, log) })
	err := a.Run(ctx)
	stop()
	served.Wait()
	return err
}
