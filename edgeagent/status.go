package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
)

// socketName is the socket in the data directory by which status asks the agent.
const socketName = "agent.sock"

// exitUnwell is status's answer for an agent that runs and cannot do its work.
const exitUnwell = 3

// status shows what the agent on this machine knows.
func status(files, args []string, lookup func(string) (string, bool), environ []string, stdout, stderr io.Writer) int {
	output, err := outputFlag("status", args)
	if err != nil {
		return misused(stderr, err.Error())
	}
	c, err := readConfig(orServiceFiles(files), lookup, environ) // where its data is; a fault elsewhere does not matter here
	if errors.As(err, new(unreadable)) {
		fmt.Fprintln(stderr, err)
		return exitFault
	}
	socket := filepath.Join(c.DataDir, socketName)
	l, raw, err := ask(socket)
	if err != nil {
		fmt.Fprintf(stderr, "no agent answers at %s: %v\nsee: systemctl status longshore-agent; journalctl -u longshore-agent\n", socket, err)
		return exitFault
	}
	if output == "json" {
		_, err = stdout.Write(raw)
	} else {
		err = show(stdout, l, time.Now())
	}
	switch {
	case err != nil:
		fmt.Fprintln(stderr, err)
		return exitFault
	case !well(l):
		return exitUnwell
	}
	return exitOK
}

func ask(socket string) (l agent.Look, raw []byte, err error) {
	if _, err = os.Stat(socket); err != nil {
		return l, nil, err
	}
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	answer, err := client.Get("http://localhost/v1/status")
	if err != nil {
		return l, nil, err
	}
	defer answer.Body.Close()
	if raw, err = io.ReadAll(answer.Body); err != nil {
		return l, nil, err
	}
	if answer.StatusCode != http.StatusOK {
		return l, nil, fmt.Errorf("%s: %s", answer.Status, strings.TrimSpace(string(raw)))
	}
	return l, raw, json.Unmarshal(raw, &l)
}

// well says whether the agent can do its work.
func well(l agent.Look) bool {
	limited := !l.TaskLimitsWanted || l.TaskLimits != nil && l.TaskLimits.OK
	return limited && l.Registered && !l.Deregistered && l.NoRoom == "" && l.Docker.OK && l.Commands.OK && l.Heartbeats.OK
}

// show is status for people.
func show(to io.Writer, l agent.Look, now time.Time) error {
	w := tabwriter.NewWriter(to, 0, 4, 2, ' ', 0)
	line := func(name, format string, args ...any) { fmt.Fprintf(w, name+"\t"+format+"\n", args...) }
	switch {
	case l.Deregistered:
		line("state", "deregistered: ends once what it has is stopped")
	case !l.Registered:
		line("state", "not registered yet")
	default:
		line("state", "registered in cluster %s, epoch %d", l.Cluster, l.Epoch)
	}
	line("instance", "%s", cmp.Or(l.ContainerInstanceARN, l.Instance))
	line("agent", "%s", l.Version)
	line("docker", "%s", health(l.Docker, "OK", "IMPAIRED"))
	line("commands", "%s", health(l.Commands, "the queue answers", "NOT READ"))
	beat := "none was sent yet"
	if !l.HeartbeatSent.IsZero() {
		beat = fmt.Sprintf("sent %s ago, every %s", now.Sub(l.HeartbeatSent).Round(time.Second), l.HeartbeatEvery)
	}
	line("heartbeat", "%s", health(l.Heartbeats, beat, "NOT SENT"))
	if h := l.TaskEndpoint; h != nil {
		line("task endpoint", "%s", health(*h, "roles and metadata are served", "NOT SERVED"))
	} else {
		line("task endpoint", "off: tasks with a role are placed elsewhere")
	}
	if h := l.MetadataBlock; h != nil {
		line("instance metadata", "%s", health(*h, "containers on bridges are kept from it", "MAY BE REACHED by containers"))
	} else {
		line("instance metadata", "open to containers, as LONGSHORE_BLOCK_INSTANCE_METADATA says")
	}
	if h := l.TaskLimits; h != nil {
		line("task limits", "%s", health(*h, "hold for the containers of a task together", "HOLD FOR EACH container"))
	}
	if i := l.Images; i != nil {
		line("images", "%s", images(*i, now))
	}
	if l.NoRoom != "" {
		line("room", "NONE: %s", l.NoRoom)
	}
	open, waiting := 0, 0
	for _, t := range l.Tasks {
		switch {
		case !t.Ended():
			open++
		case !t.Acknowledged:
			waiting++
		}
	}
	line("tasks", "%s", counted(open, waiting, len(l.Tasks)-open-waiting, l.Tombstones))
	if err := w.Flush(); err != nil || len(l.Tasks) == 0 {
		return err
	}
	fmt.Fprintln(to)
	w = tabwriter.NewWriter(to, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "TASK\tATTEMPT\tDEFINITION\tLAST\tDESIRED\tHEALTH\tREASON")
	for _, t := range l.Tasks {
		last := string(t.Status)
		if t.Refused != "" {
			last = "REFUSED"
		}
		fmt.Fprintf(w, "%s\t%d\t%s:%d\t%s\t%s\t%s\t%s\n", t.ID, t.Attempt, t.Family, t.Revision, last, t.Desired, cmp.Or(string(t.Health), "-"), cmp.Or(t.Refused, t.Reason, "-"))
	}
	return w.Flush()
}

// images says how the engine's images and their disk are.
func images(i agent.ImagesLook, now time.Time) string {
	text := fmt.Sprintf("%d, %d of them pulled here", i.Known, i.Tracked)
	if i.DiskWhy == "" {
		text += fmt.Sprintf("; disk %.0f %% full, %d MiB free", i.DiskUsed, i.DiskFreeMiB)
	} else {
		text += "; disk unknown: " + i.DiskWhy
	}
	switch {
	case i.Cleanup == "off":
		text += "; not cleaned up"
	case i.CleanedAt.IsZero():
		text += "; nothing to clean up yet"
	default:
		text += fmt.Sprintf("; cleaned up %s ago, %d removed and %d MiB freed since the start", now.Sub(i.CleanedAt).Round(time.Second), i.Removed, i.FreedBytes>>20)
	}
	if i.PullsRunning+i.PullsWaiting > 0 {
		text += fmt.Sprintf("; %d pulls go on, %d wait", i.PullsRunning, i.PullsWaiting)
	}
	return text
}

// counted says how many tasks there are of each sort; a sort without any is left out.
func counted(open, waiting, kept, remembered int) string {
	parts := []string{fmt.Sprintf("%d open", open)}
	for _, sort := range []struct {
		n    int
		what string
	}{{waiting, "ended and not acknowledged"}, {kept, "ended and not cleaned up"}, {remembered, "remembered by their end"}} {
		if sort.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", sort.n, sort.what))
		}
	}
	return strings.Join(parts, ", ")
}

func health(h agent.Health, good, bad string) string {
	if h.OK {
		return good
	}
	return bad + ": " + h.Why
}

// outputFlag reads -o json, all that commands which show something take.
func outputFlag(command string, args []string) (output string, err error) {
	flags := flag.NewFlagSet(command, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&output, "o", "text", "")
	switch err := flags.Parse(args); {
	case err != nil:
		return "", fmt.Errorf("%s: %w; it takes -o json or -o text", command, err)
	case flags.NArg() > 0:
		return "", fmt.Errorf("%s: %q is not known; it takes -o json or -o text", command, flags.Arg(0))
	case output != "json" && output != "text":
		return "", fmt.Errorf("%s: -o is %q: it must be json or text", command, output)
	}
	return output, nil
}
