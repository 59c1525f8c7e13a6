package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

// traces is all that an agent writes, sends or shows.
func (r *rig) traces() map[string]string {
	r.t.Helper()
	all := map[string]string{"log": r.logs.String()}
	add := func(what string, v any) {
		text, err := json.Marshal(v)
		if err != nil {
			r.t.Fatal(err)
		}
		all[what] = string(text)
	}
	add("journal", r.state())
	add("look", r.agent.Look())
	var sent []string
	for _, m := range r.outbox.Sent() {
		text, err := wire.Encode(m)
		if err != nil {
			r.t.Fatal(err)
		}
		sent = append(sent, string(text))
	}
	add("messages", strings.Join(sent, "\n"))
	labels := []string{}
	for _, seen := range r.engine.Containers() {
		labels = append(labels, fmt.Sprint(seen.Labels))
	}
	add("labels", labels)
	for id := range r.engine.Containers() {
		all["a spec, printed"] += fmt.Sprintf("%+v", values)
		all["a spec, printed"] += fmt.Sprintf("%v %+v", login, agent.Need{ContainerID: id})
	}
	return all
}

// quoted is how an engine's errors repeat what they were sent.
func quoted() string {
	secret := values.Secrets["PASSWORD"]
	written, _ := json.Marshal(secret)
	return "invalid " + secret + ", " + strconv.Quote(secret) + ", " + strconv.QuoteToASCII(secret) + ", " + string(written) + ", " + values.Files["FILE"] + " and " +
		values.Files["BOTH"] + "; failed to initialize logging driver: splunk-token=" + values.LogOptions["splunk-token"]
}

// TestSecrets_LeaveNoTrace runs a task with canaries in every source through success and
// through each failure, and looks for them in all that the agent writes, sends or shows.
func TestSecrets_LeaveNoTrace(t *testing.T) {
	fail := func(at string, kind fault.Kind) func(r *rig) {
		return func(r *rig) {
			r.engine.Script = func(_ context.Context, verb string, _ agent.ContainerID) error {
				if verb == "image" && at == verb {
					return fault.New(kind, "Error response from daemon: user CANARY-user, password %q", login.Password)
				}
				if verb == at {
					return fault.New(kind, "Error response from daemon: %s; user CANARY-user, password CANARY-pass", quoted())
				}
				return nil
			}
		}
	}
	for name, c := range map[string]struct {
		before, during func(r *rig)
		story          string
	}{
		"success":               {story: "STOPPED 0"},
		"pull fails":            {before: fail("image", fault.NotFound), story: "STOPPED"},
		"pull may pass":         {before: fail("image", fault.Unavailable), story: "STOPPED"},
		"create fails":          {before: fail("create", fault.Invalid), story: "STOPPED"},
		"create may pass":       {before: fail("create", fault.Unavailable), story: "STOPPED"},
		"create is a conflict":  {before: fail("create", fault.Conflict), story: "REFUSED AGENT tcp[] udp[]"},
		"start fails":           {before: fail("start", fault.Invalid), story: "STOPPED"},
		"the engine says later": {during: func(r *rig) { r.engine.Fail(app(1, 1), quoted()) }, story: "STOPPED 0"},
		"the agent is killed": {during: func(r *rig) {
			r.kill()
			r.up()
			r.pass(time.Minute)
			r.engine.Fail(app(1, 1), quoted())
		}, story: "STOPPED 0"},
		"the journal is lost": {during: func(r *rig) {
			r.kill()
			for id := range r.state().Tasks {
				if err := r.journal.Commit(agent.Change{Drop: []string{id}}); err != nil {
					r.t.Fatal(err)
				}
			}
			r.engine.Fail(app(1, 1), quoted())
			r.up()
			r.pass(time.Minute)
		}, story: "STOPPED 0"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.provider = provider()
				if c.before != nil {
					c.before(r)
				}
				r.up()
				r.put(r.assign(1, 1, kept()))
				r.pass(5 * time.Second)
				if c.during != nil {
					c.during(r)
				}
				r.pass(time.Minute)
				r.engine.Exit(app(1, 1), 0)
				r.pass(time.Minute)
				r.ended(1, c.story)
				for what, text := range r.traces() {
					if strings.Contains(text, "CANARY") {
						t.Errorf("a secret is in: %s\n%s", what, text)
					}
				}
				r.down()
			})
		})
	}
}

// TestSecrets_TakenOutOfAnErrorLeaveWhatItMeans: its kind and its ports are still there to decide by.
func TestSecrets_TakenOutOfAnErrorLeaveWhatItMeans(t *testing.T) {
	bubble(t, func(r *rig) {
		r.provider = provider()
		r.engine.Script = func(_ context.Context, verb string, _ agent.ContainerID) error {
			if verb != "start" {
				return nil
			}
			return fault.Wrap(fault.Conflict, &agent.PortsTaken{TCP: []int{80}, Cause: fault.New(fault.Conflict, "%s", quoted())}, "CannotStartContainerError: port 80/tcp of this host is taken")
		}
		r.up()
		r.put(r.assign(1, 1, kept()))
		r.pass(time.Minute)
		r.ended(1, "REFUSED RESOURCE:PORTS tcp[80] udp[]")
		m := last[*wire.Refused](r)
		if strings.Contains(m.Reason, "CANARY") || !strings.Contains(m.Reason, "port 80/tcp of this host is taken: invalid ***, ") {
			r.t.Errorf("refused for %q", m.Reason)
		}
		r.down()
	})
}

// TestSecrets_AnEngineIsStillHeardOfWhatHasNone: only what may quote a secret is withheld.
func TestSecrets_AnEngineIsStillHeardOfWhatHasNone(t *testing.T) {
	bubble(t, func(r *rig) {
		r.provider = provider()
		r.engine.Script = func(_ context.Context, verb string, _ agent.ContainerID) error {
			if verb == "start" {
				return fault.New(fault.Invalid, "CannotStartContainerError: exec: no such file")
			}
			return nil
		}
		r.up()
		r.put(r.assign(1, 1), r.assign(2, 1, kept()))
		r.pass(time.Minute)
		for n := 1; n <= 2; n++ {
			all := r.reports(n)
			if m := all[len(all)-1]; m.Reason != "CannotStartContainerError: exec: no such file" || m.Cause != task.FailedCause {
				r.t.Errorf("task %d ended for %q", n, m.Reason)
			}
		}
		r.down()
	})
}
