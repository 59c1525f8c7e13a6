package control

import (
	"context"
	"fmt"
	"time"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/logkey"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

const (
	// spotNotice is how long before EC2 takes a Spot instance it says so.
	spotNotice = 2 * time.Minute
	// wordOutlives is how long after a host was to go it is believed to be going.
	wordOutlives = 10 * time.Minute
	// stopsBefore is how long before the host goes its tasks are asked to stop: the
	// reaper, which does it, comes by once a minute, and then they have their
	// stopTimeout.
	stopsBefore = 90 * time.Second
)

// learn changes what is known of the end of an instance's host, and makes its
// status follow. It says whether anything changed. What is stored is never
// changed in place.
func (l *Ledger) learn(lease *Lease, now time.Time, change func(*Leaving)) bool {
	x := Leaving{Asked: l.Status == Draining} // so far a person's wish, if anybody's
	if l.Leaving != nil {
		x = *l.Leaving
	}
	before := x
	x.expire(now) // what is over is not brought back by what comes
	change(&x)
	if l.Leaving == nil && !x.stands() || l.Leaving != nil && x.same(&before) {
		return false
	}
	if l.Leaving = nil; x.stands() {
		l.Leaving = &x
	}
	if l.Status != Inactive {
		l.drain(lease, x.Asked || x.drains(), now)
	}
	lease.Draining = l.Status == Draining || l.holdsHook()
	return true
}

// holdsHook says whether an Auto Scaling group waits for the instance.
func (l *Ledger) holdsHook() bool { return l.Leaving != nil && l.Leaving.Hook.pending() }

// ask is a person's wish for or against draining: it counts more than what is
// known of the host, until something new is said.
func (l *Ledger) ask(lease *Lease, drains bool, now time.Time) bool {
	if l.Leaving == nil {
		return l.drain(lease, drains, now)
	}
	return l.learn(lease, now, func(x *Leaving) { x.Asked, x.Overruled = drains, !drains })
}

// forgetHost ends what is known of a host with the instance's life; only a
// termination that waits is still to be answered.
func (l *Ledger) forgetHost(lease *Lease) {
	var kept *Leaving
	if l.holdsHook() {
		kept = &Leaving{Hook: l.Leaving.Hook}
	}
	l.Leaving, lease.Draining = kept, kept != nil
}

// returned is a host that was LOST and is heard again: what EC2 had said was of
// its last run.
func (l *Ledger) returned(lease *Lease, now time.Time) {
	l.learn(lease, now, func(x *Leaving) {
		x.Event = nil
		if !x.Hook.pending() {
			x.Hook = nil
		}
	})
}

// say takes what the agent says of its host; nil: nothing is to come.
func (x *Leaving) say(c *Coming) {
	if c != nil && !c.same(x.Agent) {
		x.Overruled = false
	}
	x.Agent = c
}

// hear takes what EC2 says.
func (x *Leaving) hear(c *Coming) {
	if !c.same(x.Event) {
		x.Overruled = false
	}
	x.Event = c
}

// expire ends words that did not come true.
func (x *Leaving) expire(now time.Time) {
	if x.Event != nil && !x.Event.Until.IsZero() && now.After(x.Event.Until) {
		x.Event = nil
	}
	if x.Hook != nil && !x.Hook.pending() && now.Sub(x.Hook.AnsweredAt) > wordOutlives {
		x.Hook = nil
	}
}

// comingFrom is a beat's notice; nil for none.
func comingFrom(n *wire.Notice) *Coming {
	if n == nil {
		return nil
	}
	return &Coming{Cause: LeavingCause(n.Kind), At: n.At}
}

// noticeText is a notice as its lease keeps it, to see whether a beat says
// anything new.
func noticeText(n *wire.Notice) string {
	if n == nil {
		return ""
	}
	return fmt.Sprintf("%s %s %s", n.Kind, n.Action, n.At.UTC().Format(time.RFC3339))
}

// notice takes a beat's word of its host's end.
func (v *visit) notice() {
	if v.clone || v.ledger.Status == Inactive {
		return
	}
	v.lease.Notice = noticeText(v.m.Notice)
	v.ledger.learn(v.lease, v.now, func(x *Leaving) { x.say(comingFrom(v.m.Notice)) })
}

// tellMoved wakes whom a change of an instance's status concerns.
func (c *Control) tellMoved(ctx context.Context, before, after *Ledger) {
	if before.Status == after.Status {
		return
	}
	why := "nothing more is to come"
	if after.Leaving.stands() {
		why = after.Leaving.foremost().String()
	}
	c.Log.InfoContext(ctx, "status of an instance set for its host", logkey.Status, string(after.Status), logkey.Instance, after.ID, logkey.Cluster, after.Cluster, logkey.Reason, why)
	if after.Status == Active {
		c.kick(ctx, Kick{Cluster: after.Cluster, Instance: after.ID})
	}
	c.kickServices(ctx, Kick{Cluster: after.Cluster}) // to leave it; or a DAEMON to come back
}

// forced is why a task is stopped at the deadline of an instance's draining.
func (l *Ledger) forced(in *Instance) (task.Cause, string) {
	cause := task.ForcedDrainCause
	if l.Leaving.drains() {
		switch l.Leaving.foremost().Cause {
		case SpotLeaving:
			cause = task.SpotCause
		case AutoScalingLeaving:
			cause = task.TerminationCause
		case RebalanceLeaving:
		}
	}
	if cause == task.ForcedDrainCause {
		return cause, drainedReason
	}
	return cause, task.EndOf(cause).Text(in.EC2InstanceID)
}

// Interruption is EC2's warning that it takes a Spot instance.
type Interruption struct {
	EC2InstanceID string
	Action        string // terminate, stop or hibernate
	At            time.Time
}

// IngestInterruption drains an instance whose host EC2 said it will take: the
// same that its agent says in its beats, for where an agent can not see it. A
// warning from before the agent's last start is of an earlier run of the host.
func (c *Control) IngestInterruption(ctx context.Context, i Interruption) error {
	if i.EC2InstanceID == "" {
		return fault.Field("detail.instance-id", "must be set")
	}
	coming := &Coming{Cause: SpotLeaving, At: i.At.Add(spotNotice), Until: i.At.Add(spotNotice + wordOutlives)}
	if i.Action == "hibernate" { // it begins at once
		coming.At = i.At
	}
	if c.Now().After(coming.Until) {
		return nil
	}
	return c.hostsOn(ctx, i.EC2InstanceID, func(l Lease) error {
		return c.learnIf(ctx, l.ID, func(now *Lease) bool { return i.At.After(now.RegisterSent) }, func(x *Leaving) { x.hear(coming) })
	})
}

// hostsOn calls do for each instance of an EC2 instance that is not LOST.
func (c *Control) hostsOn(ctx context.Context, ec2 string, do func(Lease) error) error {
	scan, err := c.Store.Leases(ctx)
	if err != nil {
		return fmt.Errorf("find the lease of %s: %w", ec2, err)
	}
	for _, l := range scan.Leases {
		if l.EC2 == ec2 && l.Stage != StageLost {
			if err := do(l); err != nil {
				return err
			}
		}
	}
	return nil
}

// learnOf is learn as a use case of its own.
func (c *Control) learnOf(ctx context.Context, id string, change func(*Leaving)) error {
	return c.learnIf(ctx, id, func(*Lease) bool { return true }, change)
}

// learnIf is learnOf where the lease, as read with the ledger, still holds.
func (c *Control) learnIf(ctx context.Context, id string, holds func(*Lease) bool, change func(*Leaving)) error {
	lease, l := &Lease{ID: id}, &Ledger{ID: id}
	var before Ledger
	err := c.decide(ctx, "note what comes to the host of instance "+id, func() ([]Write, error) {
		if err := c.Store.Load(ctx, lease, l); err != nil {
			return nil, err
		}
		before = *l
		if lease.Version == 0 || l.Version == 0 || !holds(lease) || !l.learn(lease, c.Now(), change) {
			return nil, errGiveUp
		}
		return []Write{Put(l), Put(lease)}, nil
	})
	if err == nil {
		c.tellMoved(ctx, &before, l)
	}
	return err
}
