package supervise

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

// fail ends a task because a container of it could not be brought up. name is
// ECS's for what went wrong, unless the error begins with one.
func (t *Task) fail(c *Container, name string, err error, now time.Time) {
	text := named(name, err)
	c.Shown.Reason = text
	t.want(Order{Cause: task.FailedCause, Reason: text}, now)
}

// Initialization is how ECS names the want of what a task needs from other services.
const Initialization = "ResourceInitializationError"

// named is an error's text with ECS's name for it in front, bounded.
func named(name string, err error) string {
	text := err.Error()
	head, _, ok := strings.Cut(text, ":")
	if !ok || head != Initialization && (!strings.HasPrefix(head, "Cannot") || !strings.HasSuffix(head, "Error")) {
		text = name + ": " + text
	}
	return text[:min(len(text), wire.MaxReason)]
}

// refuse handles an error that says the host lacks what the ledger thought it
// has. A task of which nothing was started is refused; it says whether it dealt
// with the error.
func (t *Task) refuse(c *Container, r Result, now time.Time) bool {
	code := wire.RefusedPort
	if e := codeOf(r.Err); e == wire.RefusedMemory || e == wire.RefusedGPU {
		code = e
	} else if !fault.Is(r.Err, fault.Conflict) {
		return false
	}
	if c.later(now, portTries) {
		return true
	}
	if t.Started() || t.Desired == task.DesiredStopped {
		return false
	}
	t.Refusal = &Refusal{Code: code, Reason: r.Err.Error()}
	if code == wire.RefusedPort {
		if t.Refusal.Ports = r.Taken; len(r.Taken) == 0 {
			t.Refusal.Ports = c.Ports
		}
		if len(t.Refusal.Ports) == 0 { // something else of the host's is taken
			t.Refusal.Code = wire.RefusedAgent
		}
	}
	return true
}

func codeOf(err error) wire.RefusalCode {
	for e := err; e != nil; {
		f, ok := errors.AsType[*fault.Error](e)
		if ok && f.Code != "" {
			return wire.RefusalCode(f.Code)
		}
		u, ok := e.(interface{ Unwrap() error })
		if !ok {
			return ""
		}
		e = u.Unwrap()
	}
	return ""
}

func portReason(ports []Port) string {
	var all []string
	for _, p := range ports {
		all = append(all, fmt.Sprintf("%d/%s", p.Number, p.Protocol))
	}
	return "ports of the host are in use by something else: " + strings.Join(all, ", ")
}
