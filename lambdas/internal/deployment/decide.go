package deployment

import (
	"fmt"
	"slices"
	"time"
)

// Decide says what a service needs now. It may be asked at any time and as often
// as one likes: once all it says is done and nothing else changes, it says nothing
// more.
func Decide(in Input) Output {
	d := &decision{in: in, out: Output{Told: in.Told, Deployments: slices.Clone(in.Deployments)}}
	d.live = max(in.Live, len(in.Tasks))
	d.out.Hidden = d.live > len(in.Tasks)
	d.count()
	if in.Service.Deleted {
		d.windDown()
		return d.out
	}
	if d.primary = primaryOf(d.out.Deployments); d.primary == nil {
		return d.out
	}
	if p := d.primary; p.Rollout == "" {
		p.Rollout, p.Reason = InProgress, fmt.Sprintf("ECS deployment %s in progress.", p.ID)
	}
	if !d.out.Hidden {
		d.prove()
		d.judge()
	}
	d.classify()
	if in.Service.Strategy == Daemon {
		d.daemon()
	} else {
		d.replica()
	}
	d.tellStops()
	if !d.out.Hidden {
		d.conclude()
		d.tellTrouble()
	}
	return d.out
}

// decision is a Decide on its way.
type decision struct {
	in      Input
	out     Output
	primary *Deployment // one of out.Deployments
	members []member
	hosts   map[string]bool // of a Daemon

	desired, minimum, maximum int
	live                      int  // those that are hidden too
	healthy                   int  // surely, after the stops decided so far
	want, room                int  // creations wanted, and allowed by the maximum
	slowed                    bool // creations wait for the throttle
}

// member is a task with what it is to the service.
type member struct {
	Task
	// leave is why it is not one of those that are to stay, "" if it is.
	leave leave
	stop  bool // decided now
	// ending: that was decided, now or before, or it ends by itself.
	ending bool
}

// leave is why a task is to go.
type leave string

const (
	stays     leave = ""
	old       leave = "its deployment is not the primary one"
	draining  leave = "its instance is to be emptied"
	unhealthy leave = "it is unhealthy"
	surplus   leave = "there are more than desired"
	misplaced leave = "the service does not belong on its instance"
)

// count takes in what does not depend on the deployments.
func (d *decision) count() {
	s := d.in.Service
	d.desired = s.Desired
	if s.Strategy == Daemon {
		d.hosts = map[string]bool{}
		for _, h := range d.in.Hosts {
			d.hosts[h.ID] = true
		}
		d.desired = len(d.hosts)
	}
	d.minimum = (d.desired*s.MinimumPercent + 99) / 100
	d.maximum = d.desired * s.MaximumPercent / 100
	if s.Confirmed {
		d.minimum, d.maximum = min(d.minimum, max(d.desired-1, 0)), min(d.maximum, d.desired)
	}
	for _, t := range d.in.Tasks {
		m := member{Task: t, ending: t.ToStop || t.Status == Stopping}
		if m.Since.IsZero() {
			m.Since = t.CreatedAt
		}
		if m.healthy() && (d.hosts == nil || d.hosts[t.Instance]) {
			d.healthy++
		}
		d.members = append(d.members, m)
	}
}

// healthy says that it surely serves: nobody asked it to end, nothing speaks
// against it, and its instance is heard (U7).
func (m *member) healthy() bool {
	return m.Status == Running && !m.ending && !m.Unhealthy && !m.Unproven && !m.Silent
}

func (m *member) protected(now time.Time) bool { return m.ProtectedUntil.After(now) }

// guard is 1 for a protected task, to compare by.
func (m *member) guard(now time.Time) int {
	if m.protected(now) {
		return 1
	}
	return 0
}

// lingers says that it was asked to end on an instance that does not answer:
// nothing waits for it, though it counts as live until the reaper has closed it.
func (m *member) lingers() bool { return m.ending && m.Silent }

func primaryOf(deployments []Deployment) *Deployment {
	for i := range deployments {
		if deployments[i].Primary {
			return &deployments[i]
		}
	}
	return nil
}

func (d *decision) deployment(id string) *Deployment {
	for i := range d.out.Deployments {
		if d.out.Deployments[i].ID == id {
			return &d.out.Deployments[i]
		}
	}
	return nil
}

// classify says of each task whether it is to stay, surplus apart.
func (d *decision) classify() {
	for i := range d.members {
		m := &d.members[i]
		switch {
		case m.Draining:
			m.leave = draining
		case d.hosts != nil && !d.hosts[m.Instance] && !(m.Silent && m.Deployment == d.primary.ID):
			// A Daemon's task on an instance that is lost or kept is left to the reaper.
			m.leave = misplaced
		case m.Deployment != d.primary.ID && d.primary.Rollout != Failed:
			// What a failed deployment was to replace goes on serving.
			m.leave = old
		case m.Unhealthy && d.primary.Rollout != Failed:
			m.leave = unhealthy
		default:
			m.leave = stays
		}
	}
}

// keepers are the primary's tasks that are to stay; those of all deployments once
// it has failed, for the others are not replaced then.
func (d *decision) keepers() []*member {
	var out []*member
	for i := range d.members {
		if m := &d.members[i]; m.leave == stays && !m.ending && (m.Deployment == d.primary.ID || d.primary.Rollout == Failed) {
			out = append(out, m)
		}
	}
	return out
}

// windDown stops all that a deleted service has, protected or not.
func (d *decision) windDown() {
	for i := range d.members {
		if m := &d.members[i]; !m.ending {
			d.stop(m, "its service is deleted")
		}
	}
	d.tellStops()
	d.out.Done = d.live == 0
}

// stop decides a stop, unless there are as many as may be.
func (d *decision) stop(m *member, why string) bool {
	if d.full() {
		return false
	}
	if m.healthy() && (d.hosts == nil || d.hosts[m.Instance]) {
		d.healthy--
	}
	m.stop, m.ending = true, true
	d.out.Stop = append(d.out.Stop, Stop{Task: m.ID, Why: why})
	return true
}

// full says that no more fits into this decision.
func (d *decision) full() bool {
	if d.in.Limit <= 0 || len(d.out.Stop)+len(d.out.Create) < d.in.Limit {
		return false
	}
	d.out.More = true
	return true
}

// wake asks for another decision at t.
func (d *decision) wake(t time.Time) {
	if t.After(d.in.Now) && (d.out.Next.IsZero() || t.Before(d.out.Next)) {
		d.out.Next = t
	}
}
