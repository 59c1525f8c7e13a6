package agenttest

import (
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
)

func checked(command ...string) change {
	return first(func(c *taskdef.ContainerDefinition) {
		c.HealthCheck = &taskdef.HealthCheck{Command: command, Interval: new(5), Timeout: new(2), Retries: new(1)}
	})
}

func restartEnded(b *bench) {
	s := b.spec(Quit(4))
	end := b.run(s)
	b.must(b.Restart(b.ctx, s.ContainerID, end.StartedAt))
	var again agent.Seen
	b.until(func() bool {
		again = b.observe(s.ContainerID)
		return again.ExitCode != nil && again.StartedAt.After(end.StartedAt)
	}, "the end of the second run")
	// The answer was lost, and it is asked for once more: that run has been.
	b.must(b.Restart(b.ctx, s.ContainerID, end.StartedAt))
	if got := b.observe(s.ContainerID); got.Running || !got.StartedAt.Equal(again.StartedAt) {
		b.Fatalf("it ran a third time: %+v", got)
	}
}

func restartRunning(b *bench) {
	s := b.spec(Sleep(0))
	b.start(s)
	before := b.observe(s.ContainerID)
	b.must(b.Restart(b.ctx, s.ContainerID, before.StartedAt))
	if got := b.observe(s.ContainerID); !got.Running || !got.StartedAt.Equal(before.StartedAt) {
		b.Fatalf("it was seen as %+v, now as %+v", before, got)
	}
}

func restartMissing(b *bench) {
	b.kind(b.Restart(b.ctx, b.spec(nil).ContainerID, time.Now()), fault.NotFound)
}

func unchecked(b *bench) {
	for _, change := range []change{func(*taskdef.TaskDefinition) {}, checked("NONE")} {
		s := b.spec(Sleep(0), change)
		b.start(s)
		if got := b.observe(s.ContainerID); got.Health != "" || !got.HealthAt.IsZero() {
			b.Fatalf("nothing checks it, and its health is %q", got.Health)
		}
	}
}

func checkedUnknown(b *bench) {
	s := b.spec(Sleep(0), checked("CMD-SHELL", "sleep 1"))
	s.Definition.ContainerDefinitions[0].HealthCheck.Interval = new(300) // no outcome comes before it is looked at
	b.create(s)
	if got := b.observe(s.ContainerID); got.Health != "" {
		b.Fatalf("it does not run, and its health is %q", got.Health)
	}
	b.must(b.Start(b.ctx, s.ContainerID))
	if got := b.observe(s.ContainerID); got.Health != task.HealthUnknown {
		b.Fatalf("before any outcome its health is %q", got.Health)
	}
	b.must(b.Stop(b.ctx, s.ContainerID, 0))
	if got := b.ended(s.ContainerID); got.Health != "" {
		b.Fatalf("it has ended, and its health is %q", got.Health)
	}
}
