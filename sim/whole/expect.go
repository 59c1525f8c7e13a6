package whole

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
)

// expect waits until what is expected holds, at once where no time is given.
//
//	expect a STOPPED exit 3 within 10m        a task's status, its container's code …
//	expect a STOPPED cause exited             … or why it ended
//	expect a WAITING                          it waits, and says why
//	expect a started 1                        how often a container of it was started
//	expect h0 CONNECTED|SUSPECT|LOST|FENCED
//	expect web running 3                      of a service, with a container that runs
//	expect all STOPPED                        every task
//	expect reaped 0                           instances, so far
//	expect sent 400                           at most so many messages in any second, so far
func (x *telling) expect(args []string) error {
	var within time.Duration
	if n := len(args); n > 2 && args[n-2] == "within" {
		var err error
		if within, err = time.ParseDuration(args[n-1]); err != nil {
			return err
		}
		args = args[:n-2]
	}
	until := time.Now().Add(within)
	for {
		bad, err := x.met(args)
		if err != nil || bad == "" || x.broken != "" {
			return err
		}
		if !time.Now().Before(until) {
			return fmt.Errorf("expected %s: %s", strings.Join(args, " "), bad)
		}
		x.until(time.Now().Add(min(time.Second, time.Until(until))))
	}
}

// met says how things are if they are not as expected.
func (x *telling) met(args []string) (bad string, err error) {
	number := func(have int, more func(have, want int) bool) (string, error) {
		want, err := strconv.Atoi(args[len(args)-1])
		if err != nil || more(have, want) {
			return "", err
		}
		return fmt.Sprint("it is ", have), nil
	}
	same := func(have, want int) bool { return have == want }
	name := args[0]
	id := x.tasks[name]
	switch {
	case name == "reaped":
		return number(x.counts["instance reaped"], same)
	case name == "sent":
		return number(x.busiest, func(have, want int) bool { return have <= want })
	case name == "all":
		for name := range x.tasks {
			if bad, err := x.met(append([]string{name}, args[1:]...)); bad != "" || err != nil {
				return name + ": " + bad, err
			}
		}
		return "", nil
	case id != "" && args[1] == "started":
		started := 0
		for _, h := range x.hosts {
			for c, n := range h.engine.starts {
				if c.Task == id {
					started += n
				}
			}
		}
		return number(started, same)
	case id != "":
		return x.metTask(x.check.tasks[id], args[1:])
	case args[1] == "running":
		running := 0
		for _, t := range x.check.tasks {
			if t.Service == name && t.LastStatus == "RUNNING" && x.runs(t) {
				running++
			}
		}
		return number(running, same)
	}
	for i, h := range x.hosts {
		if name == fmt.Sprint("h", i) {
			lease := &control.Lease{ID: h.id}
			must(x.store.Load(context.Background(), lease))
			if string(lease.Stage) != args[1] {
				return fmt.Sprintf("it is %s %s", lease.Stage, lease.StageReason), nil
			}
			return "", nil
		}
	}
	return "", fmt.Errorf("nothing is called %q", name)
}

func (x *telling) metTask(t *control.Task, args []string) (bad string, err error) {
	have := fmt.Sprintf("it is %s desired %s, %s %q %s", t.LastStatus, t.DesiredStatus, t.StopCause, t.StoppedReason, t.WaitingReason)
	if args[0] == "WAITING" {
		if t.LastStatus != "PROVISIONING" || t.WaitingReason == "" {
			return have, nil
		}
		return "", nil
	}
	if string(t.LastStatus) != args[0] {
		return have, nil
	}
	for i := 1; i+1 < len(args); i += 2 {
		switch args[i] {
		case "exit":
			code := "none"
			if len(t.Containers) > 0 && t.Containers[0].ExitCode != nil {
				code = fmt.Sprint(*t.Containers[0].ExitCode)
			}
			if code != args[i+1] {
				return have + ", exit code " + code, nil
			}
		case "cause":
			if string(t.StopCause) != args[i+1] {
				return have, nil
			}
		default:
			return "", fmt.Errorf("not understood: %q; exit and cause are allowed", args[i])
		}
	}
	return "", nil
}
