package control

import (
	"context"
	"fmt"

	"github.com/longshore-run/longshore/shared/task"
)

// SubmitState hears what somebody who is not our agent says of tasks. Theirs are
// none: whoever registers through the API gets no work. So there is nothing to
// note of a task that is over or unknown, and what is said of one that lives is
// refused: its own agent reports it, and nobody else may.
func (c *Control) SubmitState(ctx context.Context, cluster string, tasks ...string) error {
	if err := c.cluster(ctx, cluster); err != nil {
		return err
	}
	all := tasksOf(unique(tasks))
	if err := load(ctx, c.Store, all); err != nil {
		return fmt.Errorf("submit state: %w", err)
	}
	for _, t := range all {
		if t.Version > 0 && t.Cluster == cluster && t.LastStatus != task.Stopped {
			return invalid("task", "%s is reported by the longshore-agent that runs it, through its queue; states are not taken here", t.ID)
		}
	}
	return nil
}
