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
	at := slices.IndexFunc(r.Failed, func(f Failed) bool { return f.Deployment == t.StartedBy })
	switch {
	case failed(t) && at < 0:
		r.Failed = append(r.Failed, Failed{t.StartedBy, 1, 1, t.StoppedAt})
	case failed(t):
		f := r.Failed[at]
		r.Failed[at] = Failed{f.Deployment, f.All + 1, f.InARow + 1, t.StoppedAt}
	case at >= 0 && t.StartedAt.After(r.Failed[at].Last):
		r.Failed[at].InARow = 0 // it was RUNNING since
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
// wanted them, or the instance is to blame.
var blameless = []task.Cause{
	task.UserCause, task.ServiceCause, task.LostCause, task.VanishedCause, task.FencedCause, task.ForcedDrainCause,
	task.HostGoneCause, task.ClusterGoneCause, task.ConfirmedOff,
}

// failed says whether a STOPPED task of a service counts as a failure of its
// deployment, as ECS counts them: it never was RUNNING, or was stopped because it
// was unhealthy.
func failed(t *Task) bool {
	if t.StopCause == task.UnhealthyCause {
		return true
	}
	return t.StartedAt.IsZero() && !slices.Contains(blameless, t.StopCause)
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
