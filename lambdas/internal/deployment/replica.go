package deployment

// replica keeps desired tasks of the primary deployment, and replaces all others
// between the minimum and the maximum.
func (d *decision) replica() {
	keepers := d.keepers()
	d.markSurplus(keepers, len(keepers)-d.desired)
	if d.primary.Rollout != Failed {
		d.want = max(d.desired-len(keepers), 0)
	}
	d.room = max(d.maximum-d.live, 0)
	d.stopLeavers()
	if d.want == 0 || d.out.Hidden || d.throttled() {
		return
	}
	limping := 0
	for _, m := range d.members {
		if m.leave == unhealthy && (m.stop || !m.ending) {
			limping++
		}
	}
	for range min(d.want, d.room) {
		if d.full() {
			break
		}
		d.out.Create = append(d.out.Create, Creation{Deployment: d.primary.ID})
	}
	d.out.Replaces = min(limping, len(d.out.Create))
}

// inTheWay is how many unhealthy tasks have to go for creations to find room:
// stopping those costs nothing, and without it nothing might ever move.
func (d *decision) inTheWay() int {
	if d.out.Hidden || d.primary.Rollout == Failed {
		return 0
	}
	n := d.want - d.room
	for _, m := range d.members {
		if m.ending {
			n--
		}
	}
	return n
}
