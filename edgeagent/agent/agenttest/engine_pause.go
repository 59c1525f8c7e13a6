package agenttest

import (
	"context"
	"errors"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// together are containers of one task, who see each other's processes and shared
// memory, and neither the host's nor another task's. Who has lost its parent is
// buried, and the end of the one that holds the namespaces ends all in them.
func together(b *bench) {
	task := b.spec(script("echo mine >/dev/shm/mark", "test $$ != 1", "sleep 4711"), func(d *taskdef.TaskDefinition) {
		d.PidMode, d.IpcMode = taskdef.NamespaceTask, taskdef.NamespaceTask
		d.ContainerDefinitions = append(d.ContainerDefinitions, taskdef.ContainerDefinition{
			Name: "other", Image: b.image, Memory: new(64), Command: script(
				"test $$ != 1",
				"until grep -q mine /dev/shm/mark; do sleep 0.05; done",
				"until grep -q 4711 /proc/[0-9]*/cmdline; do sleep 0.05; done",
				"sh -c 'sh -c \"exit 0\" & sh -c \"exit 0\" &'",
				"while grep -q '^State:.*Z' /proc/[0-9]*/status 2>/dev/null; do sleep 0.05; done",
			),
		})
	})
	of := func(name string) agent.Spec {
		s := task
		s.Container = name
		return s
	}
	pause := of(agent.PauseContainer)
	if id, err := b.Image(b.ctx, agent.PauseImage, agent.Login{}); err != nil || id == "" {
		b.Fatalf("image of the pause container: %q, %v", id, err)
	}
	b.Cleanup(func() {
		ctx := context.WithoutCancel(b.ctx)
		for _, name := range []string{"other", "main", agent.PauseContainer} {
			id := of(name).ContainerID
			b.must(errors.Join(b.Stop(ctx, id, 0), b.Remove(ctx, id)))
		}
	})
	for _, s := range []agent.Spec{pause, task, of("other")} {
		_, err := b.Create(b.ctx, s)
		b.must(err)
	}
	if err := b.Start(b.ctx, task.ContainerID); !fault.Is(err, fault.Invalid) {
		b.Fatalf("started before what it joins: %v", err)
	}
	for _, s := range []agent.Spec{pause, task, of("other")} {
		b.must(b.Start(b.ctx, s.ContainerID))
	}
	b.exits(b.ended(of("other").ContainerID), 0)
	if s := b.observe(pause.ContainerID); !s.Running || s.ContainerID != pause.ContainerID {
		b.Fatalf("the pause container is seen as %+v", s)
	}
	b.must(b.Stop(b.ctx, pause.ContainerID, patience))
	b.exits(b.ended(pause.ContainerID), 0)
	b.exits(b.ended(task.ContainerID), 137)
}
