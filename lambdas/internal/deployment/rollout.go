package deployment

import (
	"fmt"
	"slices"
	"time"
)

const (
	// provenFor is how long a task has to be healthy until it speaks for its revision.
	provenFor = time.Minute

	thresholdLeast, thresholdMost = 3, 200 // of the breaker, as ECS documents them

	// patience is for how many thresholds a task that is well shields its revision
	// without having proven it: some of those that crash after a while always are.
	patience = 4
)

// Threshold is how many failures trip the breaker: half of desired, at least 3, at most 200.
func Threshold(desired int) int {
	return min(max((desired+1)/2, thresholdLeast), thresholdMost)
}

// prove takes failures back where tasks of the primary have shown what it can do.
func (d *decision) prove() {
	p := d.primary
	for i := range d.members {
		m := &d.members[i]
		if m.Deployment != p.ID || m.Status != Running {
			continue
		}
		if m.Since.After(p.LastFailed) {
			p.InARow = 0
		}
		if !m.healthy() {
			continue
		}
		if d.in.Now.Sub(m.Since) < provenFor {
			if p.Failures > 0 || p.Unhealthy > 0 {
				d.wake(m.Since.Add(provenFor))
			}
			continue
		}
		if !p.Reached || m.Since.After(p.LastFailed) {
			p.Failures, p.Unhealthy = 0, 0
		}
		p.Reached = true
	}
}

// failed counts an unhealthy task of a rollout that is stopped.
func (d *decision) failed(m *member) {
	p := d.primary
	d.tell("", "(service %s) (task %s) failed container health checks.", d.in.Service.Name, m.ID)
	if m.Deployment != p.ID || p.Rollout != InProgress {
		return
	}
	p.Failures++
	p.Unhealthy++
	p.LastFailed = d.in.Now
	if d.tripped() {
		d.out.More = true
	}
}

// tripped says whether the primary has failed. In the first stage every failure
// counts, as long as no task of it is well; in the second, when one has shown that
// it can, only those of health checks do. What a failed deployment went back to is
// never given up: it is tried again, ever more slowly, for nothing would be left.
func (d *decision) tripped() bool {
	p, threshold := d.primary, Threshold(d.desired)
	switch {
	case !d.in.Service.Breaker || p.Rollout != InProgress || p.RollingBack:
		return false
	case p.Reached:
		return p.Unhealthy >= threshold
	case p.Failures < threshold || p.Failures >= patience*threshold:
		return p.Failures >= threshold
	}
	return !slices.ContainsFunc(d.members, func(m member) bool {
		return m.Deployment == p.ID && m.Status == Running && !m.ending && !m.Unhealthy && !m.Unproven
	})
}

// judge ends a rollout that has failed, and goes back if it is to.
func (d *decision) judge() {
	if !d.tripped() {
		return
	}
	p, name := d.primary, d.in.Service.Name
	p.Rollout, p.UpdatedAt = Failed, d.in.Now
	p.Reason = "ECS deployment circuit breaker: tasks failed to start."
	d.tellOf(p.ID, "SERVICE_DEPLOYMENT_FAILED", "(service %s) (deployment %s) deployment failed: tasks failed to start.", name, p.ID)
	if !d.in.Service.Rollback || p.Rollback == "" || d.deployment(p.Rollback) == nil {
		return
	}
	d.goBack(p.Rollback)
	d.tellOf(d.primary.ID, "SERVICE_DEPLOYMENT_IN_PROGRESS", "(service %s) rolling back to deployment %s.", name, d.primary.ID)
}

// goBack makes the deployment with that id primary again, and the first.
func (d *decision) goBack(id string) {
	back := *d.deployment(id)
	back.Primary, back.Rollout, back.RollingBack = true, InProgress, true
	back.Reason = fmt.Sprintf("ECS deployment circuit breaker: rolling back to deploymentId %s.", id)
	back.CreatedAt, back.UpdatedAt = d.in.Now, d.in.Now
	back.Reached, back.Failures, back.Unhealthy, back.InARow, back.Rollback = false, 0, 0, 0, ""
	all := []Deployment{back}
	for _, other := range d.out.Deployments {
		if other.ID != id {
			other.Primary = false
			all = append(all, other)
		}
	}
	d.out.Deployments, d.primary = all, &all[0]
}

// conclude completes a rollout that is through, drops deployments that have
// nothing any more, and says that the service is steady.
func (d *decision) conclude() {
	p, name := d.primary, d.in.Service.Name
	filled := p.Rollout != Failed && d.filled()
	sure := d.healthy >= d.minimum && (d.healthy > 0 || d.desired == 0)
	if filled && sure && p.Rollout == InProgress {
		p.Rollout, p.UpdatedAt, p.RollingBack, p.Rollback = Completed, d.in.Now, false, ""
		p.Reason = fmt.Sprintf("ECS deployment %s completed.", p.ID)
		p.Failures, p.Unhealthy = 0, 0
		d.tellOf(p.ID, "SERVICE_DEPLOYMENT_COMPLETED", "(service %s) (deployment %s) deployment completed.", name, p.ID)
	}
	switch {
	case !filled:
		d.out.Told.Steady = false
	case sure && !d.out.Told.Steady:
		d.tell("SERVICE_STEADY_STATE", "(service %s) has reached a steady state.", name)
		d.out.Told.Steady = true
	}
	d.drop()
}

// filled says that each place is filled by a task of the primary that runs, on an
// instance that may be silent for now, and that all others have ended, but for those
// that an instance that does not answer is to end.
func (d *decision) filled() bool {
	if len(d.out.Create) > 0 || d.out.More {
		return false
	}
	places := 0
	for i := range d.members {
		switch m := &d.members[i]; {
		case m.lingers():
		case d.hosts != nil && m.Draining && m.Busy && m.Status == Running && !m.ending:
			// It waits for the others of its instance, on which it has no place any more.
		case m.leave == stays && !m.ending && m.Deployment == d.primary.ID && m.Status == Running && !m.Unhealthy && !m.Unproven:
			if d.hosts == nil || d.hosts[m.Instance] {
				places++
			}
		default:
			return false
		}
	}
	return places == d.desired
}

// drop removes deployments that have nothing any more and are not gone back to.
func (d *decision) drop() {
	has := map[string]bool{d.primary.ID: true, d.primary.Rollback: d.primary.Rollout != Completed}
	for i := range d.members {
		if m := &d.members[i]; !m.lingers() || d.primary.Rollout != Completed {
			has[m.Deployment] = true
		}
	}
	d.out.Deployments = slices.DeleteFunc(d.out.Deployments, func(of Deployment) bool { return !has[of.ID] })
	d.primary = primaryOf(d.out.Deployments)
}
