//go:build docker

package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/edgeagent/internal/journal"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
)

// A thousand finished tasks, with their definitions, wait in a real agent's journal
// for their acknowledgement: what its process holds, beside one without.
func TestProgram_WithAThousandFinishedTasksIsSmall(t *testing.T) {
	p := newProgram(t)
	r := p.welcomed()
	hear(p, "a second heartbeat", func(b *wire.Heartbeat) bool { return len(b.Inventory) == 0 })
	idle := p.resident()
	p.signal(syscall.SIGTERM)

	const tasks = 1000
	j, how, err := journal.Open(filepath.Join(p.dir, "data"), journal.Owner{Identity: r.Identity}, func() string { return "none" }, time.Now())
	if err != nil || how.Fresh {
		t.Fatalf("%v, %+v", err, how)
	}
	state, err := j.Load()
	if err != nil {
		t.Fatal(err)
	}
	definition := []byte(taskdef.Canonical(taskdef.TaskDefinition{Revision: 1, Spec: taskdef.Spec{Family: "program",
		ContainerDefinitions: []taskdef.ContainerDefinition{p.container("app", strings.Repeat("true; ", 200))}}}))
	c := agent.Change{Meta: &state.Meta}
	for n := range tasks {
		state.Meta.N++
		rec := agent.Record{N: state.Meta.N, Epoch: 100, Cluster: "default", Family: "program", Revision: 1, Definition: definition}
		rec.State.ID, rec.State.Attempt, rec.State.Status, rec.State.Desired = fmt.Sprintf("%032x", n+1), 1, task.Stopped, task.DesiredStopped
		rec.State.Cause, rec.State.Reason, rec.EndedAt = task.ExitedCause, task.EndOf(task.ExitedCause).Reason, state.Meta.Clock+1
		c.Put = append(c.Put, rec)
	}
	if err := j.Commit(c); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	p.start()
	for range 3 {
		hear(p, "an inventory of all", func(b *wire.Heartbeat) bool { return len(b.Inventory) == tasks })
	}
	full := p.resident()
	for n := 0; n < 12 && full > idle+15<<10; n++ { // what is not collected yet is not held
		hear(p, "one more inventory of all", func(b *wire.Heartbeat) bool { return len(b.Inventory) == tasks })
		full = min(full, p.resident())
	}
	t.Logf("resident: %d KiB idle, %d KiB with %d finished tasks", idle, full, tasks)
	if full > idle+15<<10 {
		t.Errorf("%d KiB with %d finished tasks that wait, %d KiB without", full, tasks, idle)
	}
}
