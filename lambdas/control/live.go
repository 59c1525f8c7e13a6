package control

import (
	"context"
	"slices"

	"github.com/longshore-run/longshore/shared/task"
)

// countDown takes a service's task, which has just become STOPPED, off its live
// count in the transaction that makes it so and no other (I4), and counts it as
// failed if its deployment is to blame. live is nil for other tasks.
func countDown(live *Live, t *Task) []Write {
	if live == nil || live.Version == 0 {
		return nil
	}
	live.down(t)
	return []Write{Put(live)}
}

func (r *Live) down(t *Task) {
	r.Live--
	if slices.Contains(blameless, t.StopCause) {
		return
	}
	at := slices.IndexFunc(r.Failed, func(f Failed) bool { return f.Deployment == t.StartedBy })
	if at < 0 {
		at = len(r.Failed)
		r.Failed = append(r.Failed, Failed{Deployment: t.StartedBy})
	}
	f := &r.Failed[at]
	f.All++
	f.Last = t.StoppedAt
	if t.StartedAt.IsZero() {
		f.InARow++
	}
}

// of is what a deployment has failed.
func (r *Live) of(deployment string) Failed {
	for _, f := range r.Failed {
		if f.Deployment == deployment {
			return f
		}
	}
	return Failed{Deployment: deployment}
}

// blameless are the ends of which a deployment can not be the cause: somebody
// wanted them, or the instance is to blame. Whoever stops a task because it is
// unhealthy counts it then.
var blameless = []task.Cause{
	task.UserCause, task.ServiceCause, task.UnhealthyCause, task.LostCause, task.VanishedCause, task.FencedCause,
	task.ForcedDrainCause, task.HostGoneCause, task.ClusterGoneCause, task.ConfirmedOff, task.KeptOutCause,
	task.HostStoppedCause, task.SpotCause, task.TerminationCause,
}

// lives are the live counts that one transaction changes, each once.
type lives map[string]*Live

// down counts a task that has just become STOPPED off its service's live count;
// once for each task given.
func (s lives) down(ctx context.Context, store Store, t *Task) error {
	if t.Service == "" {
		return nil
	}
	live := &Live{Cluster: t.Cluster, Service: t.Service}
	if s[live.Key()] == nil {
		if err := store.Load(ctx, live); err != nil {
			return err
		}
		s[live.Key()] = live
	}
	if live = s[live.Key()]; live.Version > 0 {
		live.down(t)
	}
	return nil
}

func (s lives) writes() []Write {
	var out []Write
	for _, live := range s {
		if live.Version > 0 {
			out = append(out, Put(live))
		}
	}
	return out
}
