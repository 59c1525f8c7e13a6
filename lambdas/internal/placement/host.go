package placement

import (
	"maps"
	"slices"
)

// host is an instance with what the plan has taken from it so far.
type host struct {
	in     *Instance
	free   Size
	tcp    map[int]bool // taken
	udp    map[int]bool
	groups map[string]bool
	open   int
	placed map[string]int // tasks of a group that this plan put here
	at     int            // among the plan's hosts
	zone   string
}

func newHosts(all []Instance) []*host {
	hosts, out := make([]host, len(all)), make([]*host, len(all))
	for i := range all {
		hosts[i] = host{in: &all[i], free: all[i].Free, open: all[i].Open, at: i, zone: all[i].Attributes[ZoneAttribute]}
		out[i] = &hosts[i]
	}
	return out
}

// lacks is the first thing t needs that h has not, or "".
func (h *host) lacks(t *Task, shape string) string {
	switch {
	case t.Needs.GPUs > h.free.GPUs:
		return ReasonGPU
	case t.Distinct && (h.in.Groups[t.Group] || h.groups[t.Group]):
		return ReasonDistinct
	case t.Needs.MemoryMiB > h.free.MemoryMiB:
		return ReasonMemory
	case t.Needs.CPU > h.free.CPU:
		return ReasonCPU
	case taken(t.Needs.TCP, h.in.TakenTCP, h.tcp) || taken(t.Needs.UDP, h.in.TakenUDP, h.udp):
		return ReasonPorts
	case taken(t.Needs.TCP, h.in.RefusedTCP) || taken(t.Needs.UDP, h.in.RefusedUDP):
		return ReasonPorts // a stranger on the host has it
	case h.in.RefusedShapes[shape]:
		return ReasonRefused
	}
	return ""
}

func taken(ports []int, sets ...map[int]bool) bool {
	return slices.ContainsFunc(ports, func(p int) bool {
		return slices.ContainsFunc(sets, func(s map[int]bool) bool { return s[p] })
	})
}

// holdsEmpty says whether t would fit h if h had no tasks.
func (h *host) holdsEmpty(t *Task) bool {
	r := h.in.Registered
	return t.Needs.CPU <= r.CPU && t.Needs.MemoryMiB <= r.MemoryMiB && t.Needs.GPUs <= r.GPUs &&
		!taken(t.Needs.TCP, h.in.ReservedTCP) && !taken(t.Needs.UDP, h.in.ReservedUDP)
}

// room is the share of t's scarcest need that is free on h.
func (h *host) room(t *Task) float64 {
	least := 1e18
	for _, r := range [][2]int{{h.free.CPU, t.Needs.CPU}, {h.free.MemoryMiB, t.Needs.MemoryMiB}, {h.free.GPUs, t.Needs.GPUs}} {
		if r[1] > 0 {
			least = min(least, float64(r[0])/float64(r[1]))
		}
	}
	return least
}

func (h *host) take(t *Task) {
	h.free.CPU -= t.Needs.CPU
	h.free.MemoryMiB -= t.Needs.MemoryMiB
	h.free.GPUs -= t.Needs.GPUs
	h.open++
	h.tcp = with(h.tcp, t.Needs.TCP...)
	h.udp = with(h.udp, t.Needs.UDP...)
	if t.Distinct {
		h.groups = with(h.groups, t.Group)
	}
	if h.placed == nil {
		h.placed = map[string]int{}
	}
	h.placed[t.Group]++
}

func with[K comparable](set map[K]bool, more ...K) map[K]bool {
	if len(more) == 0 {
		return set
	}
	if set == nil {
		return maps.Collect(func(yield func(K, bool) bool) {
			for _, k := range more {
				if !yield(k, true) {
					return
				}
			}
		})
	}
	for _, k := range more {
		set[k] = true
	}
	return set
}
