package dockerengine

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/go-connections/nat"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// attach gives the container its network and publishes its ports. In mode host
// nothing is published: the ports are the host's own, and a label remembers
// which to show as bindings.
func attach(r *createRequest, spec agent.Spec, c taskdef.ContainerDefinition) {
	mode := spec.Definition.Network()
	r.Host.NetworkMode = container.NetworkMode(mode)
	r.Host.DNS = some(c.DNSServers)
	r.Host.DNSSearch = some(c.DNSSearchDomains)
	for _, h := range c.ExtraHosts {
		r.Host.ExtraHosts = append(r.Host.ExtraHosts, h.Hostname+":"+h.IPAddress)
	}
	r.Config.NetworkDisabled = value(c.DisableNetworking)
	for _, link := range c.Links {
		name, alias, named := strings.Cut(link, ":")
		if !named {
			alias = name
		}
		r.Host.Links = append(r.Host.Links, nameOf(spec, name)+":"+alias)
	}
	var own []string
	for _, p := range taskdef.Ports(*spec.Definition) {
		if p.Container != c.Name {
			continue
		}
		port := portOf(p.ContainerPort, p.Protocol)
		if mode == taskdef.NetworkHost {
			own = append(own, string(port))
			continue
		}
		if r.Config.ExposedPorts == nil {
			r.Config.ExposedPorts, r.Host.PortBindings = nat.PortSet{}, nat.PortMap{}
		}
		r.Config.ExposedPorts[port] = struct{}{}
		// 0 lets Docker pick a port that is free when the container starts.
		r.Host.PortBindings[port] = append(r.Host.PortBindings[port], nat.PortBinding{HostPort: strconv.Itoa(p.HostPort)})
	}
	if r.Rows = c.PortRows(); len(r.Rows) > 0 {
		r.Config.Labels[labelRows] = rowLabel(r.Rows)
		if r.Config.ExposedPorts == nil {
			r.Config.ExposedPorts = nat.PortSet{}
		}
		for _, row := range r.Rows {
			for n := row.First; n <= row.Last; n++ {
				r.Config.ExposedPorts[portOf(n, row.Protocol)] = struct{}{}
			}
		}
	}
	if len(own) > 0 {
		r.Config.Labels[labelPorts] = strings.Join(own, ",")
	}
}

// confine sets what the kernel lets the container do.
func confine(r *createRequest, c taskdef.ContainerDefinition) {
	for _, s := range c.SystemControls {
		if r.Host.Sysctls == nil {
			r.Host.Sysctls = map[string]string{}
		}
		r.Host.Sysctls[s.Namespace] = s.Value
	}
	l := c.LinuxParameters
	if l == nil {
		return
	}
	if value(l.InitProcessEnabled) {
		r.Host.Init = l.InitProcessEnabled
	}
	r.Host.ShmSize = int64(value(l.SharedMemorySize)) * mib
	if l.Capabilities != nil {
		r.Host.CapAdd = some(l.Capabilities.Add)
		r.Host.CapDrop = some(l.Capabilities.Drop)
	}
	for _, t := range l.Tmpfs {
		if r.Host.Tmpfs == nil {
			r.Host.Tmpfs = map[string]string{}
		}
		options := append([]string(nil), t.MountOptions...)
		if n := value(t.Size); n > 0 {
			options = append(options, fmt.Sprintf("size=%dm", n))
		}
		r.Host.Tmpfs[t.ContainerPath] = strings.Join(options, ",")
	}
}

func ulimits(list []taskdef.Ulimit) []*container.Ulimit {
	var out []*container.Ulimit
	for _, u := range list {
		out = append(out, &container.Ulimit{Name: u.Name, Soft: int64(value(u.SoftLimit)), Hard: int64(value(u.HardLimit))})
	}
	return out
}

// letters are Docker's for what a device may be used for.
var letters = map[string]string{"read": "r", "write": "w", "mknod": "m"}

func devices(list []taskdef.Device) []container.DeviceMapping {
	var out []container.DeviceMapping
	for _, d := range list {
		m := container.DeviceMapping{PathOnHost: d.HostPath, PathInContainer: d.ContainerPath}
		if m.PathInContainer == "" {
			m.PathInContainer = d.HostPath
		}
		for _, p := range d.Permissions {
			m.CgroupPermissions += letters[p]
		}
		if m.CgroupPermissions == "" {
			m.CgroupPermissions = "rwm"
		}
		out = append(out, m)
	}
	return out
}

// securityOptions turns ECS's kind:value into Docker's kind=value; the colon is
// deprecated there.
func securityOptions(list []string) []string {
	var out []string
	for _, option := range list {
		if kind, rest, ok := strings.Cut(option, ":"); ok && !strings.Contains(kind, "=") {
			option = kind + "=" + rest
		}
		out = append(out, option)
	}
	return out
}
