package deployment

import (
	"cmp"
	"slices"
)

// Ranks of what is stopped first: least is lost.
const (
	rankWaiting = iota
	rankPending
	rankUnhealthy
	rankSilent
	rankUnproven
	rankDraining
	rankUnfinished // of a deployment that never was COMPLETED
	rankOld
	rankPrimary
)

func (d *decision) rank(m *member) int {
	switch {
	case m.Status == Waiting:
		return rankWaiting
	case m.Status == Pending:
		return rankPending
	case m.Unhealthy:
		return rankUnhealthy
	case m.Silent:
		return rankSilent
	case m.Unproven:
		return rankUnproven
	case m.Draining:
		return rankDraining
	case m.Deployment == d.primary.ID && d.primary.Rollout != Failed:
		return rankPrimary
	}
	if of := d.deployment(m.Deployment); of == nil || of.Rollout != Completed {
		return rankUnfinished
	}
	return rankOld
}

// markSurplus chooses n of keepers that need not stay, protected ones last.
func (d *decision) markSurplus(keepers []*member, n int) {
	keepers = slices.Clone(keepers)
	for ; n > 0; n-- {
		i := d.first(keepers)
		keepers[i].leave = surplus
		keepers = slices.Delete(keepers, i, i+1)
	}
}

// first is the index of the one to stop first: what is not protected, then by rank,
// then where the service has most, by zone and by instance, then the newest.
func (d *decision) first(of []*member) int {
	zone, instance := map[string]int{}, map[string]int{}
	for i := range d.members {
		if m := &d.members[i]; !m.ending && m.leave != surplus {
			zone[m.Zone]++
			instance[m.Instance]++
		}
	}
	best := 0
	for i := range of {
		a, b := of[i], of[best]
		if cmp.Or(
			a.guard(d.in.Now)-b.guard(d.in.Now),
			cmp.Compare(d.rank(a), d.rank(b)),
			cmp.Compare(zone[b.Zone], zone[a.Zone]),
			cmp.Compare(instance[b.Instance], instance[a.Instance]),
			b.CreatedAt.Compare(a.CreatedAt),
			cmp.Compare(a.ID, b.ID),
		) < 0 {
			best = i
		}
	}
	return best
}

// stopLeavers stops what is to go, as far as the minimum and protection allow.
func (d *decision) stopLeavers() {
	var leavers []*member
	for i := range d.members {
		m := &d.members[i]
		if m.leave == stays || m.ending {
			continue
		}
		if m.protected(d.in.Now) {
			d.wake(m.ProtectedUntil)
			continue
		}
		leavers = append(leavers, m)
	}
	for len(leavers) > 0 {
		i := d.first(leavers)
		m := leavers[i]
		leavers = slices.Delete(leavers, i, i+1)
		if d.mayStop(m) && d.stop(m, string(m.leave)) && m.leave == unhealthy {
			d.failed(m)
		}
	}
}

// mayStop says whether a stop takes nothing that the minimum needs. What runs
// without being surely healthy may be back in a moment (its instance is silent, its
// health check slow), so it too is stopped only while there are enough without it.
func (d *decision) mayStop(m *member) bool {
	switch {
	case m.Status == Waiting || m.Status == Pending:
		return true
	case d.hosts != nil && (m.Draining || !d.hosts[m.Instance] && !m.Silent):
		// It goes with its instance, after all others.
		return !m.Busy
	case d.hosts != nil && m.Unhealthy && !m.Silent:
		return true // nothing can take its place while it is there
	case m.healthy():
		return d.healthy > d.minimum
	}
	return d.healthy >= d.minimum || m.Unhealthy && !m.Silent && d.inTheWay() > 0
}
