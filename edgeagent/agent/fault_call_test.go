package agent_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/edgeagent/agent/agenttest"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
)

// planed gives the rig a control plane that remembers.
func (r *rig) planed() *agenttest.Plane {
	p := agenttest.NewPlane(instance, r.epoch, r.inbox)
	r.outbox.OnSend = p.Hear
	return p
}

// agree wants the journal, the engine and the control plane to say the same.
func (r *rig) agree(p *agenttest.Plane) {
	r.t.Helper()
	for _, wrong := range p.Differs(r.state(), r.engine.Containers()) {
		r.t.Error(wrong)
	}
}

// What an engine may do with a call in place of answering it.
var spoils = map[string]func(ctx context.Context, call func() error) error{
	"hangs until its deadline": func(ctx context.Context, _ func() error) error {
		return cut(ctx, 3*time.Minute)
	},
	"is carried out and never answered": func(ctx context.Context, call func() error) error {
		return errors.Join(call(), cut(ctx, 3*time.Minute))
	},
	"is answered with 500": func(context.Context, func() error) error {
		return fault.New(fault.Unavailable, "500 Internal Server Error")
	},
	"is carried out and its answer is garbage": func(_ context.Context, call func() error) error {
		return errors.Join(call(), fault.New(fault.Unavailable, "invalid character '<' looking for beginning of value"))
	},
	"is carried out and its answer breaks off": func(_ context.Context, call func() error) error {
		return errors.Join(call(), fault.New(fault.Unavailable, "unexpected EOF"))
	},
}

// cut is a call that nobody answers.
func cut(ctx context.Context, deadline time.Duration) error {
	select {
	case <-ctx.Done():
	case <-time.After(deadline):
	}
	return fault.New(fault.Unavailable, "no answer")
}

// Every call that an agent makes of its engine is spoiled in every way, the first
// time, and all of them for ten minutes. Tasks that can no longer do what they
// were to do end and say so; nothing is started twice, and once the engine works
// the journal, the engine and the control plane agree and nothing is left.
func TestFault_WhateverBecomesOfAnyCallAllAgreeInTheEnd(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"info", "watch", "list", "ping", "image", "create", "start", "restart", "stop", "observe", "remove", "removetask"} {
		for how, spoil := range spoils {
			for _, once := range []bool{true, false} {
				name := verb + " " + how
				if once {
					name = "once " + name
				}
				t.Run(name, func(t *testing.T) { bubble(t, func(r *rig) { spoiled(r, verb, once, spoil) }) })
			}
		}
	}
}

func spoiled(r *rig, verb string, once bool, spoil func(context.Context, func() error) error) {
	var mu sync.Mutex
	began, hit := time.Now(), 0
	r.spoil = func(ctx context.Context, what string, _ agent.ContainerID, call func() error) error {
		mu.Lock()
		bad := what == verb && (once && hit == 0 || !once && time.Since(began) < 10*time.Minute)
		if bad {
			hit++
		}
		mu.Unlock()
		if bad {
			return spoil(ctx, call)
		}
		return call()
	}
	r.setting.CleanupWait = time.Minute
	r.engine.OnStart = func(c agent.ContainerID) agenttest.Program {
		switch c.Task {
		case id(1):
			return exits(7, 90*time.Second)(c)
		case id(2):
			return agenttest.Program{Deaf: true}
		}
		return agenttest.Program{}
	}
	p := r.planed()
	r.up()
	p.Assign(r.assign(1, 1))
	p.Assign(r.assign(2, 1))
	policy := &taskdef.RestartPolicy{Enabled: new(true), RestartAttemptPeriod: new(60)}
	p.Assign(r.assign(3, 1, taskdef.ContainerDefinition{Name: "app", Image: "busybox", RestartPolicy: policy}))
	p.Assign(r.assign(4, 1))
	r.pass(8 * time.Minute)
	r.engine.Exit(app(3, 1), 9)
	r.put(r.stop(2, 1))
	r.pass(30 * time.Minute)
	if hit == 0 {
		r.t.Fatal("no call was spoiled")
	}
	if b := last[*wire.Heartbeat](r); b.Docker != wire.DockerOK {
		r.t.Errorf("the engine is said to be impaired: %s", b.DockerReason)
	}
	r.agree(p)
	for n := 1; n <= 4; n++ {
		most := 1
		if n == 3 {
			most = 2
		}
		if got := r.engine.Starts(app(n, 1)); got > most {
			r.t.Errorf("task %d was started %d times", n, got)
		}
	}
	told := p.Tasks()
	for _, n := range []int{1, 2} {
		if !told[id(n)].Over() {
			r.t.Errorf("task %d is %+v", n, told[id(n)])
		}
	}
	for n, t := range told { // a call that failed once ends nothing
		if once && t.Over() && n != id(1) && n != id(2) {
			r.t.Errorf("task %s ended by it: %s", n[28:], t.Reason)
		}
	}
	r.put(r.stop(3, 1), r.stop(4, 1))
	r.pass(15 * time.Minute)
	r.agree(p)
	if n := len(r.engine.Containers()); n != 0 {
		r.t.Errorf("%d containers are left", n)
	}
	for id, rec := range r.state().Tasks {
		if !rec.Tomb || !rec.Acked {
			r.t.Errorf("task %s is not cleaned up: %s", id[28:], rec.State.Status)
		}
	}
	r.down()
}
