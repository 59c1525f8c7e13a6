package supervise

import (
	"slices"
	"time"

	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// PauseName is the container that holds the namespaces which a task's containers
// share (pidMode or ipcMode task), by ECS's name for it. No definition can have a
// container of this name.
const PauseName = "~internal~ecs~pause~namespace"

// OnNamespace is what is awaited of the pause container: that it runs, and so
// holds namespaces to join.
const OnNamespace Condition = "NAMESPACE"

// pauseTimeout is how long a pause container may take to stop: it ends at once,
// unless SIGTERM came before its handler was there.
const pauseTimeout = 2 * time.Second

// reasonPause is ECS's for an essential container's end, and which one it was.
const reasonPause = "Essential container in task exited: the pause container, which held the task's namespaces"

// Pauses says whether a task needs a pause container.
func Pauses(def *taskdef.TaskDefinition) bool {
	return def.PidMode == taskdef.NamespaceTask || def.IpcMode == taskdef.NamespaceTask
}

// Pause says whether this is its task's pause container, which is made, watched,
// stopped and removed like any other, and shown to nobody.
func (c *Container) Pause() bool { return c.Name == PauseName }

// pause is a pause container to come. The task cannot do without it.
func pause() Container {
	return Container{
		Name: PauseName, Essential: true, StopTimeout: pauseTimeout, Phase: Waiting,
		Shown: task.Container{Name: PauseName, Status: task.ContainerPending},
	}
}

// released wants the end of a task of which only the pause container is left.
func (t *Task) released(now time.Time) {
	left := slices.ContainsFunc(t.Containers, func(c Container) bool { return c.Pause() && c.Phase != Stopped })
	if left && !slices.ContainsFunc(t.Containers, func(c Container) bool { return !c.Pause() && c.Phase != Stopped }) {
		t.want(Order{Cause: task.ExitedCause, Reason: task.EndOf(task.ExitedCause).Reason}, now)
	}
}

// exited is why a task ends whose essential container c has.
func (c *Container) exited() Order {
	if c.Pause() {
		return Order{Cause: task.ExitedCause, Reason: reasonPause}
	}
	return Order{Cause: task.ExitedCause, Reason: task.EndOf(task.ExitedCause).Reason}
}
