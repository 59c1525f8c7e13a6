package deployment

// daemon keeps one task on each host: the old one is stopped, within the minimum,
// before the new one is created, for there is never room for two.
func (d *decision) daemon() {
	on := map[string][]*member{}
	for _, m := range d.keepers() {
		on[m.Instance] = append(on[m.Instance], m)
	}
	for _, keepers := range on {
		d.markSurplus(keepers, len(keepers)-1)
	}
	d.stopLeavers()
	taken := map[string]bool{}
	for _, m := range d.members {
		taken[m.Instance] = true
	}
	for _, h := range d.in.Hosts {
		if !taken[h.ID] && d.primary.Rollout != Failed {
			d.want++
		}
	}
	if d.want == 0 || d.out.Hidden || d.throttled() {
		return
	}
	for _, h := range d.in.Hosts {
		if taken[h.ID] {
			continue
		}
		if d.full() {
			return
		}
		taken[h.ID] = true
		d.out.Create = append(d.out.Create, Creation{Deployment: d.primary.ID, Instance: h.ID})
	}
}
