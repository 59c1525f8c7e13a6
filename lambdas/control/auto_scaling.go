package control

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/logkey"
)

const (
	// countAutoScalingFaults counts calls of Auto Scaling that failed; each is made
	// again by a later run.
	countAutoScalingFaults = "AutoScalingFaults"
	// groupFaultsMost ends what one run asks of Auto Scaling: more would fail too,
	// and each takes its time-out.
	groupFaultsMost = 3
	// hookGrace is how long after the deadline, when its tasks are asked to stop, an
	// instance that is not drained is given up: longer than any stopTimeout.
	hookGrace = 3 * time.Minute
)

// Groups is what is told to Auto Scaling groups. Each call is safe to make again.
// found is false if there is nothing any more that it could be about.
type Groups interface {
	// SetUnhealthy says that the host of an EC2 instance is to be replaced.
	SetUnhealthy(ctx context.Context, ec2 string) (found bool, err error)
	// Continue lets a termination that waits go on.
	Continue(ctx context.Context, h Hook) (found bool, err error)
	// Extend has a termination wait for one more of its hook's time-outs.
	Extend(ctx context.Context, h Hook) (found bool, err error)
}

// IngestTermination drains the instance that is to be terminated, and answers when
// that is done. Nothing is answered for a hook or group that is not ours to answer
// for. Where no instance of ours runs there is nothing to wait for.
func (c *Control) IngestTermination(ctx context.Context, h Hook) error {
	if h.EC2 == "" || h.Group == "" || h.Name == "" {
		return fault.Field("detail", "must have EC2InstanceId, AutoScalingGroupName and LifecycleHookName")
	}
	if c.Groups == nil || h.Name != c.Setting.LifecycleHook || !c.ours(h.Group) {
		c.Log.InfoContext(ctx, "termination left to others", "group", h.Group, "hook", h.Name, "ec2", h.EC2)
		return nil
	}
	known := false
	if err := c.hostsOn(ctx, h.EC2, func(l Lease) error {
		known = true
		if err := c.learnOf(ctx, l.ID, func(x *Leaving) { x.hold(h) }); err != nil {
			return err
		}
		if err := c.answerHook(ctx, l.ID); err != nil { // else the reaper's runs do
			c.groupFault(ctx, err, logkey.Instance, l.ID)
		}
		return nil
	}); err != nil || known {
		return err
	}
	_, err := c.Groups.Continue(ctx, h)
	if err != nil {
		c.groupFault(ctx, err, "ec2", h.EC2)
		return fmt.Errorf("let the termination of %s go on: %w", h.EC2, err)
	}
	c.Log.InfoContext(ctx, "termination answered: nothing of ours is there", "group", h.Group, "ec2", h.EC2)
	return nil
}

// ours says whether a group is among those whose instances are ours.
func (c *Control) ours(group string) bool {
	return slices.ContainsFunc(c.Setting.AutoScalingGroups, func(name string) bool {
		start, some := strings.CutSuffix(name, "*")
		return name == group || some && strings.HasPrefix(group, start)
	})
}

// hold takes a termination that waits. One that was answered is not asked again,
// and one from before the last, delivered late, does not take its place.
func (x *Leaving) hold(h Hook) {
	if x.Hook != nil && !h.At.After(x.Hook.At) {
		return
	}
	x.Hook, x.Overruled = &h, false
}

// leavings goes on with the instances whose hosts are about to go: it ends words
// that did not come true, and answers the groups that wait.
func (r *reaping) leavings(ctx context.Context) error {
	var leases []Lease
	var ledgers []*Ledger
	for _, l := range r.scan.Leases {
		if l.Draining {
			leases, ledgers = append(leases, l), append(ledgers, &Ledger{ID: l.ID})
		}
	}
	if err := load(ctx, r.c.Store, ledgers); err != nil {
		return fmt.Errorf("load the ledgers of drained instances: %w", err)
	}
	faults := 0
	var first error
	for i, l := range ledgers {
		if l.Leaving == nil || outOfTime(ctx) {
			continue
		}
		var err error
		if l.holdsHook() && r.c.Groups != nil && faults < groupFaultsMost {
			if err := r.c.answerHook(ctx, l.ID); err != nil {
				faults++
				r.c.groupFault(ctx, err, logkey.Instance, l.ID)
			}
		} else if leases[i].Stage != StageLost { // what is LOST is drained for good, or returns
			err = r.c.learnOf(ctx, l.ID, func(x *Leaving) {
				if x.expire(r.c.Now()); r.c.Groups == nil { // it was switched off: nobody will answer
					x.Hook = nil
				}
			})
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// groupFault notes that Auto Scaling could not be told. It fails no run: the next
// one tells it.
func (c *Control) groupFault(ctx context.Context, err error, about ...any) {
	c.Metrics.Count(countAutoScalingFaults, 1)
	c.Log.WarnContext(ctx, "the Auto Scaling group is not told; a later run tells it", append([]any{logkey.Error, err}, about...)...)
}

// answerHook lets a termination go on if the instance is drained, or should have
// been long ago; else it has it wait. It may be killed between the call and the
// note that it was made: then the call is made again, and finds nothing.
func (c *Control) answerHook(ctx context.Context, id string) error {
	l, in := &Ledger{ID: id}, &Instance{ID: id}
	if err := c.Store.Load(ctx, l, in); err != nil {
		return err
	}
	if !l.holdsHook() || l.Leaving.Overruled { // a person wants it to work: the group's own time-out decides
		return nil
	}
	k := &Cluster{Name: l.Cluster}
	if err := c.Store.Load(ctx, k); err != nil {
		return err
	}
	h, deadline := *l.Leaving.Hook, c.drainDeadline(l, in, k)
	over := !deadline.IsZero() && c.Now().After(deadline.Add(hookGrace))
	if l.Open > 0 && !over {
		found, err := c.Groups.Extend(ctx, h)
		if err != nil || found {
			return err
		}
		return c.hookOver(ctx, id, h, "it waits no longer")
	}
	_, err := c.Groups.Continue(ctx, h)
	if err != nil {
		return err
	}
	return c.hookOver(ctx, id, h, fmt.Sprintf("answered with %d tasks left", l.Open))
}

// hookOver notes that nobody waits for an answer any more.
func (c *Control) hookOver(ctx context.Context, id string, h Hook, how string) error {
	c.Log.InfoContext(ctx, "termination of its host", logkey.Instance, id, "group", h.Group, "ec2", h.EC2, logkey.Reason, how)
	return c.learnOf(ctx, id, func(x *Leaving) {
		if x.Hook == nil || x.Hook.Token != h.Token || !x.Hook.pending() {
			return
		}
		answered := *x.Hook
		answered.AnsweredAt = c.Now()
		x.Hook = &answered
	})
}

// tellGroups has the hosts of instances that are LOST replaced by their Auto
// Scaling groups, where that is wanted. It comes last, and fails nothing.
func (r *reaping) tellGroups(ctx context.Context) {
	if r.c.Groups == nil || !r.c.Setting.SetInstanceHealth || r.holds != "" {
		return
	}
	due := slices.DeleteFunc(slices.Clone(r.scan.Leases), func(l Lease) bool {
		return l.Stage != StageLost || l.EC2 == "" || l.GroupTold == l.Epoch
	})
	// In any order, so that what always fails does not keep others from their turn.
	rand.Shuffle(len(due), func(i, j int) { due[i], due[j] = due[j], due[i] })
	faults := 0
	for _, l := range due {
		if faults >= groupFaultsMost || outOfTime(ctx) {
			return
		}
		if err := r.c.tellGroup(ctx, l); err != nil {
			faults++
			r.c.groupFault(ctx, err, logkey.Instance, l.ID)
		}
	}
}

// tellGroup says that a LOST instance's host is unhealthy, once in each epoch. The
// group ends the host, and whatever runs there: so it waits until all is closed
// that will be, for as long as somebody wants a task kept there, and while the zone's
// brake is engaged: then what is LOST may be our own fault, and no host is to end for
// it. A task that waits for its end to be confirmed is helped by the host's.
func (c *Control) tellGroup(ctx context.Context, judged Lease) error {
	lease, l, brake := &Lease{ID: judged.ID}, &Ledger{ID: judged.ID}, &Brake{Zone: zoneOf(judged)}
	if err := c.Store.Load(ctx, lease, l, brake); err != nil {
		return err
	}
	if brake.Engaged {
		return nil
	}
	if lease.Stage != StageLost || lease.Epoch != judged.Epoch || !lease.Sent.Equal(judged.Sent) || lease.GroupTold == lease.Epoch ||
		l.Version == 0 || l.Status == Inactive || l.neverReturns() || l.Stale > 0 {
		return nil
	}
	if waits, err := c.wantedThere(ctx, l); err != nil || waits {
		return err
	}
	found, err := c.Groups.SetUnhealthy(ctx, lease.EC2)
	if err != nil {
		return err
	}
	c.Log.WarnContext(ctx, "host of a LOST instance set Unhealthy", logkey.Instance, l.ID, "ec2", lease.EC2, "inGroup", found)
	return c.decide(ctx, "note that the group of instance "+l.ID+" was told", func() ([]Write, error) {
		if err := c.Store.Load(ctx, lease); err != nil {
			return nil, err
		}
		if lease.Version == 0 || lease.Stage != StageLost || lease.Epoch != judged.Epoch {
			return nil, errGiveUp
		}
		lease.GroupTold = lease.Epoch
		return []Write{Put(lease)}, nil
	})
}

// wantedThere says whether somebody wants a task of a LOST instance to be there when
// it returns, as far as the index shows all: if not, it is taken for so.
func (c *Control) wantedThere(ctx context.Context, l *Ledger) (bool, error) {
	if l.Open == 0 {
		return false, nil
	}
	ids, _, err := c.Store.TaskIDs(ctx, TaskQuery{OnInstance: l.ID}, Page{})
	if err != nil {
		return true, fmt.Errorf("list the open tasks of instance %s: %w", l.ID, err)
	}
	tasks := tasksOf(ids)
	if err := load(ctx, c.Store, tasks); err != nil {
		return true, fmt.Errorf("load the tasks of instance %s: %w", l.ID, err)
	}
	open := slices.DeleteFunc(tasks, func(t *Task) bool { return !t.LastStatus.Open() || t.Instance != l.ID })
	policies, err := c.policiesOf(ctx, open)
	if err != nil || len(open) < l.Open {
		return true, err
	}
	return slices.ContainsFunc(open, func(t *Task) bool { p := policies.of(t); return p.asked || !p.confirmed }), nil
}
