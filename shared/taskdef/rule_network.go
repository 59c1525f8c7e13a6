package taskdef

import (
	"fmt"
	"regexp"
	"strings"
)

const maxPort = 65_535

var portNameForm = regexp.MustCompile(`^[a-z0-9_][a-z0-9_-]{0,63}$`)

// network judges how a container is reached and what it can reach.
func (j *judge) network(path string, c ContainerDefinition) {
	if j.def.Network() == NetworkNone && len(c.PortMappings) > 0 {
		j.invalid(path+".portMappings", "must be empty in network mode none")
	}
	if value(c.DisableNetworking) && len(c.PortMappings) > 0 {
		j.invalid(path+".portMappings", "must be empty with disableNetworking")
	}
	for i, p := range c.PortMappings {
		at := fmt.Sprintf("%s.portMappings[%d]", path, i)
		j.port(at, p)
		if p.Name != "" {
			if !portNameForm.MatchString(p.Name) {
				j.invalid(at+".name", "is %s; allowed are up to 64 lower-case letters, digits, _ and -, not - first", show(p.Name))
			}
			if j.portNames[p.Name] {
				j.invalid(at+".name", "repeats %s", show(p.Name))
			}
			j.portNames[p.Name] = true
		}
	}
	j.rows(path, c.PortMappings)
	if h := c.Hostname; h != "" && (len(h) > 63 || !hostForm.MatchString(h)) {
		j.invalid(path+".hostname", "is %s; allowed are up to 63 letters, digits, hyphens and dots", show(h))
	}
	for i, s := range c.DNSServers {
		j.address(fmt.Sprintf("%s.dnsServers[%d]", path, i), s)
	}
	for i, s := range c.DNSSearchDomains {
		if s != "." && !hostForm.MatchString(strings.TrimSuffix(s, ".")) {
			j.invalid(fmt.Sprintf("%s.dnsSearchDomains[%d]", path, i), "is %s; allowed is a domain", show(s))
		}
	}
	for i, h := range c.ExtraHosts {
		at := fmt.Sprintf("%s.extraHosts[%d]", path, i)
		if j.required(at+".hostname", h.Hostname) && strings.ContainsAny(h.Hostname, ": \t\n") {
			j.invalid(at+".hostname", "is %s; it must not hold a colon or a space", show(h.Hostname))
		}
		if j.required(at+".ipAddress", h.IPAddress) && h.IPAddress != "host-gateway" {
			j.address(at+".ipAddress", h.IPAddress)
		}
	}
}

func (j *judge) port(at string, p PortMapping) {
	switch {
	case p.ContainerPortRange != "":
		j.portRange(at, p)
		return
	case p.ContainerPort == nil:
		j.invalid(at+".containerPort", "is required")
		return
	}
	j.between(at+".containerPort", p.ContainerPort, 1, maxPort)
	j.between(at+".hostPort", p.HostPort, 0, maxPort)
	host := value(p.HostPort)
	if j.def.Network() == NetworkHost && host != 0 && host != *p.ContainerPort {
		j.invalid(at+".hostPort", "is %d; in network mode host it must be absent or the container's port, %d", host, *p.ContainerPort)
	}
}

func (j *judge) portRange(at string, p PortMapping) {
	if p.ContainerPort != nil || value(p.HostPort) != 0 {
		j.invalid(at+".containerPortRange", "excludes containerPort and hostPort")
	}
	if _, ok := p.row(); !ok {
		j.invalid(at+".containerPortRange", "is %s; allowed is FIRST-LAST within 1 to %d, at most %d ports", show(p.ContainerPortRange), maxPort, maxRow)
	}
	if j.def.Network() == NetworkHost {
		j.invalid(at+".containerPortRange", "is not possible in network mode host")
	}
}

// rows refuses a range of a container's ports that another mapping of it meets.
func (j *judge) rows(path string, list []PortMapping) {
	for i, p := range list {
		a, _ := p.row()
		for k, other := range list[:i] {
			b, _ := other.row()
			switch {
			case p.ContainerPortRange == "" && other.ContainerPortRange == "": // one port may be published twice
			case a.Protocol == b.Protocol && a.First <= b.Last && b.First <= a.Last && a.Last > 0 && b.Last > 0:
				j.invalid(fmt.Sprintf("%s.portMappings[%d]", path, i), "has ports in common with portMappings[%d], where one of them is a range", k)
			}
		}
	}
}

// hostPorts refuses a port of the host that two mappings of the task want.
func (j *judge) hostPorts() {
	taken := map[Port]string{}
	for _, p := range ports(j.def) {
		if p.HostPort == 0 {
			continue
		}
		key := Port{HostPort: p.HostPort, Protocol: p.Protocol}
		if first, ok := taken[key]; ok {
			j.invalid(p.path+".hostPort", "is %d/%s, which %s takes already", p.HostPort, p.Protocol, first)
			continue
		}
		taken[key] = p.path
	}
}
