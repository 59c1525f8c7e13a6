package agent_test

import (
	"encoding/json"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
)

const capability = "com.amazonaws.ecs.capability.task-iam-role"

// address is an endpoint that serves or does not.
type address struct {
	mu     sync.Mutex
	serves bool
}

func (a *address) set(serves bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.serves = serves
}

func (a *address) Capabilities() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.serves {
		return nil
	}
	return []string{capability}
}

func (a *address) Environment(id agent.ContainerID, def *taskdef.TaskDefinition) (map[string]string, error) {
	if a.Capabilities() == nil {
		if def.TaskRoleArn != "" {
			return nil, fault.New(fault.Unavailable, "no address")
		}
		return nil, nil
	}
	return map[string]string{"WHO": id.Container, "ROLE": def.TaskRoleArn, "GIVEN": "by the agent", agent.RegionVariable: "the agent's"}, nil
}

// withRole is an assign of a task with a role.
func (r *rig) withRole(n int, network string) *wire.Assign {
	m := r.assign(n, 1)
	m.ServiceName = "front"
	m.Definition = json.RawMessage(taskdef.Canonical(taskdef.TaskDefinition{Revision: 3, Spec: taskdef.Spec{
		Family: "web", TaskRoleArn: "arn:aws:iam::000000000000:role/longshore/a", NetworkMode: network,
		ContainerDefinitions: []taskdef.ContainerDefinition{{Name: "app", Image: "busybox", Environment: []taskdef.KeyValuePair{{Name: "GIVEN", Value: "by the user"}}}},
	}}))
	return m
}

func TestEndpoint_ContainersAreToldOfItAtTheirCreation(t *testing.T) {
	bubble(t, func(r *rig) {
		r.endpoint = &address{serves: true}
		r.up()
		r.put(r.withRole(1, ""))
		want := map[string]string{"WHO": "app", "ROLE": "arn:aws:iam::000000000000:role/longshore/a", "GIVEN": "by the agent", agent.RegionVariable: "the agent's"}
		if got := r.engine.Spec(app(1, 1)).Environment; !maps.Equal(got, want) {
			t.Errorf("it was given %v, want %v", got, want)
		}
		s, ok := r.agent.Served(id(1))
		if !ok || s.ServiceName != "front" || s.Definition.TaskRoleArn != want["ROLE"] || s.Status != task.Running {
			t.Errorf("its containers are shown %+v, %t", s, ok)
		}
		r.put(r.stop(1, 1))
		r.pass(time.Minute)
		if _, ok := r.agent.Served(id(1)); ok {
			t.Error("the task has ended and is shown to its containers")
		}
		if _, ok := r.agent.Served(id(2)); ok {
			t.Error("a task that never was is shown")
		}
	})
}

// What a definition says of the region in a file counts; of its credentials, nothing does.
func TestEndpoint_AFileMaySayTheRegionAndNoMore(t *testing.T) {
	bubble(t, func(r *rig) {
		p := provider()
		p.OnValues = func(agent.Need) (agent.Values, error) {
			return agent.Values{Files: map[string]string{agent.RegionVariable: "the file's", "GIVEN": "by the file"}}, nil
		}
		r.provider, r.endpoint = p, &address{serves: true}
		r.up()
		r.put(r.assign(1, 1, kept()))
		if got := r.engine.Spec(app(1, 1)).Environment; got[agent.RegionVariable] != "the file's" || got["GIVEN"] != "by the agent" {
			t.Errorf("it was given %q", got)
		}
	})
}

// A container must not run without the role that its program counts on. The endpoint
// may only be late, so it is waited for.
func TestEndpoint_ATaskWithARoleWaitsForItAndEndsWithoutIt(t *testing.T) {
	bubble(t, func(r *rig) {
		e := &address{}
		r.endpoint = e
		r.up()
		r.put(r.withRole(1, ""), r.withRole(2, "none"), r.assign(3, 1))
		r.pass(time.Second)
		r.starts(1, 1, 0)
		r.starts(3, 1, 1)
		e.set(true)
		r.pass(time.Minute)
		r.starts(1, 1, 1)
		e.set(false)
		r.put(r.withRole(4, ""))
		r.pass(10 * time.Minute)
		r.starts(4, 1, 0)
		if got := last[*wire.Report](r); got.Task != id(4) || got.Status != task.Stopped || !strings.Contains(got.Reason, "no address") {
			t.Errorf("reported %+v", got)
		}
	})
}

func TestEndpoint_SwitchedOffARoleIsRefusedInWords(t *testing.T) {
	bubble(t, func(r *rig) {
		r.up()
		r.put(r.withRole(1, "host"), r.withRole(2, "none"))
		r.pass(10 * time.Minute)
		r.starts(1, 1, 0)
		r.starts(2, 1, 1) // it could not ask anybody anyhow
		if got := r.reports(1); len(got) == 0 || !strings.Contains(got[len(got)-1].Reason, "LONGSHORE_TASK_ENDPOINT is off") {
			t.Errorf("reported %q", r.story(1))
		}
	})
}

// Placement goes by what was registered: a change is registered at once, and once.
func TestOffer_RegistersAgainWhenWhatIsServedChanges(t *testing.T) {
	bubble(t, func(r *rig) {
		e := &address{}
		r.endpoint = e
		r.up()
		before := len(sent[*wire.Register](r)) // an agent that has just read its engine may say it twice
		registers := func(more int, has bool) {
			t.Helper()
			r.agent.Offer()
			r.pass(time.Second)
			r.agent.Offer()
			r.pass(time.Second)
			all := sent[*wire.Register](r)
			if _, got := all[len(all)-1].Attributes[capability]; len(all) != before+more || got != has || !r.agent.Look().Registered {
				t.Errorf("%d registers more, the last with it: %t; want %d, %t", len(all)-before, got, more, has)
			}
		}
		registers(0, false)
		e.set(true)
		registers(1, true)
		r.put(r.withRole(1, "")) // goes on meanwhile
		e.set(false)
		registers(2, false)
		r.starts(1, 1, 1)
	})
}

// The answer to a register that is out of date by then is not the last word.
func TestOffer_WhatChangesBeforeTheWelcomeIsRegistered(t *testing.T) {
	bubble(t, func(r *rig) {
		e := &address{}
		r.endpoint = e
		r.set(func() { r.mute = true })
		r.up()
		e.set(true)
		r.agent.Offer() // nothing is welcomed yet
		r.set(func() { r.mute = false })
		r.put(r.welcome("first", r.epoch))
		r.pass(time.Minute)
		all := sent[*wire.Register](r)
		if _, has := all[len(all)-1].Attributes[capability]; !has || !r.agent.Look().Registered {
			t.Errorf("the last of %d registers has it: %t", len(all), has)
		}
	})
}

// A welcome that is left of an earlier session says nothing of what this one offers.
func TestOffer_AnOldWelcomeDoesNotKeepANewSessionFromRegistering(t *testing.T) {
	bubble(t, func(r *rig) {
		r.up()
		r.down()
		before := len(sent[*wire.Register](r))
		r.endpoint = &address{serves: true}
		r.inbox.Put(r.welcome("first", r.epoch))
		r.up()
		r.pass(time.Minute)
		all := sent[*wire.Register](r)
		if _, has := all[len(all)-1].Attributes[capability]; len(all) == before || !has {
			t.Errorf("%d registers more, the last has it: %t", len(all)-before, has)
		}
	})
}
