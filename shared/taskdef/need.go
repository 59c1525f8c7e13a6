package taskdef

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Resources is what a task takes from an instance.
type Resources struct {
	CPU       int   `json:"cpu"`    // CPU units, 1024 to a core
	MemoryMiB int   `json:"memory"` // MiB
	TCP       []int `json:"tcp"`    // static ports of the host, sorted
	UDP       []int `json:"udp"`    // static ports of the host, sorted
	GPUs      int   `json:"gpus"`   // whole ones
}

// Needs is what a task of def with these overrides takes. The task's own size wins; else it is the sum of its
// containers, where a reservation counts before a limit. A port the engine picks is not needed in advance. Overrides
// that Apply would refuse are passed over.
func Needs(def TaskDefinition, over TaskOverride) Resources {
	spec, _ := merge(def.Spec, over)
	r := Resources{TCP: []int{}, UDP: []int{}}
	for _, c := range spec.ContainerDefinitions {
		r.CPU += value(c.CPU)
		r.MemoryMiB += c.ReservedMemory()
		r.GPUs += c.GPUs()
	}
	if n, ok := parseCPU(spec.CPU); ok {
		r.CPU = n
	}
	if n, ok := parseMemory(spec.Memory); ok {
		r.MemoryMiB = n
	}
	for _, p := range ports(spec) {
		switch {
		case p.HostPort == 0:
		case p.Protocol == "udp":
			r.UDP = append(r.UDP, p.HostPort)
		default:
			r.TCP = append(r.TCP, p.HostPort)
		}
	}
	slices.Sort(r.TCP)
	slices.Sort(r.UDP)
	r.TCP, r.UDP = slices.Compact(r.TCP), slices.Compact(r.UDP)
	return r
}

// GPUs is how many whole GPUs the container asks for.
func (c ContainerDefinition) GPUs() int {
	total := 0
	for _, r := range c.ResourceRequirements {
		if n, err := strconv.ParseUint(r.Value, 10, 8); err == nil && r.Type == ResourceGPU {
			total += int(n)
		}
	}
	return total
}

// Port is one published port, with what is left out filled in.
type Port struct {
	Container     string
	ContainerPort int
	HostPort      int    // 0: the engine picks one
	Protocol      string // tcp or udp
}

// PortRow is a range of a container's ports, for which the host gives as many in a row.
type PortRow struct {
	First, Last int
	Protocol    string // tcp or udp
}

// maxRow is how many ports one range may have: each costs the host a rule and a proxy, and a row of free ones is soon hard
// to find.
const maxRow = 1000

// PortRows are the container's port ranges, in its order.
func (c ContainerDefinition) PortRows() []PortRow {
	var rows []PortRow
	for _, p := range c.PortMappings {
		if r, ok := p.row(); ok && p.ContainerPortRange != "" {
			rows = append(rows, r)
		}
	}
	return rows
}

// row is the mapping's container ports, of which it may have one; false if they are none.
func (p PortMapping) row() (PortRow, bool) {
	r := PortRow{Protocol: cmp.Or(p.Protocol, "tcp")}
	if p.ContainerPortRange == "" {
		r.First, r.Last = value(p.ContainerPort), value(p.ContainerPort)
		return r, r.First > 0
	}
	first, last, ok := strings.Cut(p.ContainerPortRange, "-")
	a, errA := strconv.ParseUint(first, 10, 16)
	b, errB := strconv.ParseUint(last, 10, 16)
	if !ok || errA != nil || errB != nil || a == 0 || a >= b || b-a >= maxRow {
		return PortRow{}, false
	}
	r.First, r.Last = int(a), int(b)
	return r, true
}

// located is a port and the mapping it comes from.
type located struct {
	Port
	path string
}

// Ports are the published ports of a definition, in its order. In network mode host a port is the host's own.
func Ports(def TaskDefinition) []Port {
	list := []Port{}
	for _, p := range ports(def.Spec) {
		list = append(list, p.Port)
	}
	return list
}

func ports(s Spec) []located {
	var list []located
	for i, c := range s.ContainerDefinitions {
		for k, p := range c.PortMappings {
			if p.ContainerPort == nil || s.Network() == NetworkNone {
				continue
			}
			port := located{
				Port{Container: c.Name, ContainerPort: *p.ContainerPort, HostPort: value(p.HostPort), Protocol: p.Protocol},
				fmt.Sprintf("containerDefinitions[%d].portMappings[%d]", i, k),
			}
			if port.Protocol == "" {
				port.Protocol = "tcp"
			}
			if s.Network() == NetworkHost {
				port.HostPort = port.ContainerPort
			}
			list = append(list, port)
		}
	}
	return list
}
