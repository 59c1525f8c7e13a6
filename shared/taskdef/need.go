package taskdef

import (
	"fmt"
	"slices"
	"strconv"
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
