//go:build docker

package dockerengine

import (
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/volume"

	"github.com/longshore-run/longshore/shared/taskdef"
)

// sight is a container of a task as "docker inspect" shows it, with its volumes.
type sight struct {
	def     taskdef.TaskDefinition
	c       taskdef.ContainerDefinition
	task    string
	got     container.InspectResponse
	volumes map[string]volume.Volume
	cgroup  string // the version of control groups
	pause   string // the id of the task's pause container, if it has one
}

// pair is what an inspection shows and what it should.
type pair struct{ got, want any }

// shownAt is where "docker inspect" shows each member, and what. It is written
// without looking at how requests are made. One that has members of its own is
// shown by them.
var shownAt = map[string]func(s sight) pair{
	"family": func(s sight) pair {
		return pair{s.got.Config.Labels["com.amazonaws.ecs.task-definition-family"], s.def.Family}
	},
	"cpu": func(s sight) pair {
		return pair{s.got.HostConfig.CPUQuota * 1024 / s.got.HostConfig.CPUPeriod, number(s.def.CPU)}
	},
	"memory":      taskMemory,
	"networkMode": func(s sight) pair { return pair{string(s.got.HostConfig.NetworkMode), s.def.NetworkMode} },
	"pidMode":     func(s sight) pair { return pair{string(s.got.HostConfig.PidMode), s.namespace(s.def.PidMode)} },
	"ipcMode":     func(s sight) pair { return pair{string(s.got.HostConfig.IpcMode), s.namespace(s.def.IpcMode)} },

	"volumes[].name": mountsOf(func(s sight, m taskdef.MountPoint, v taskdef.Volume, at container.MountPoint) pair {
		return pair{s.volumeName(v), s.nameOf(v)}
	}),
	"volumes[].host.sourcePath": mountsOf(hostFolder),
	"volumes[].dockerVolumeConfiguration.scope": ofVolumes(func(v volume.Volume, d *taskdef.DockerVolumeConfiguration) pair {
		return pair{v.Labels["run.longshore.scope"], d.Scope}
	}),
	"volumes[].dockerVolumeConfiguration.autoprovision": ofVolumes(func(v volume.Volume, _ *taskdef.DockerVolumeConfiguration) pair { return pair{v.Name != "", true} }),
	"volumes[].dockerVolumeConfiguration.driver":        ofVolumes(func(v volume.Volume, d *taskdef.DockerVolumeConfiguration) pair { return pair{v.Driver, d.Driver} }),
	"volumes[].dockerVolumeConfiguration.driverOpts": ofVolumes(func(v volume.Volume, d *taskdef.DockerVolumeConfiguration) pair {
		return among(v.Options, d.DriverOpts)
	}),
	"volumes[].dockerVolumeConfiguration.labels": ofVolumes(func(v volume.Volume, d *taskdef.DockerVolumeConfiguration) pair { return among(v.Labels, d.Labels) }),

	box + "name":   func(s sight) pair { return pair{s.got.Config.Labels["com.amazonaws.ecs.container-name"], s.c.Name} },
	box + "image":  func(s sight) pair { return pair{s.got.Config.Image, s.c.Image} },
	box + "cpu":    func(s sight) pair { return pair{int(s.got.HostConfig.CPUShares), max(value(s.c.CPU), 2)} },
	box + "memory": func(s sight) pair { return pair{int(s.got.HostConfig.Memory), value(s.c.Memory) << 20} },
	box + "memoryReservation": func(s sight) pair {
		return pair{int(s.got.HostConfig.MemoryReservation), value(s.c.MemoryReservation) << 20}
	},
	box + "essential": func(s sight) pair {
		return pair{s.got.Config.Labels["run.longshore.essential"] != "false", s.c.IsEssential()}
	},
	box + "entryPoint":             func(s sight) pair { return pair{[]string(s.got.Config.Entrypoint), s.c.EntryPoint} },
	box + "command":                func(s sight) pair { return pair{[]string(s.got.Config.Cmd), s.c.Command} },
	box + "user":                   func(s sight) pair { return pair{s.got.Config.User, s.c.User} },
	box + "workingDirectory":       func(s sight) pair { return pair{s.got.Config.WorkingDir, s.c.WorkingDirectory} },
	box + "hostname":               func(s sight) pair { return pair{s.got.Config.Hostname, s.c.Hostname} },
	box + "privileged":             func(s sight) pair { return pair{s.got.HostConfig.Privileged, value(s.c.Privileged)} },
	box + "readonlyRootFilesystem": func(s sight) pair { return pair{s.got.HostConfig.ReadonlyRootfs, value(s.c.ReadonlyRootFilesystem)} },
	box + "interactive":            func(s sight) pair { return pair{s.got.Config.OpenStdin, value(s.c.Interactive)} },
	box + "pseudoTerminal":         func(s sight) pair { return pair{s.got.Config.Tty, value(s.c.PseudoTerminal)} },
	box + "stopTimeout":            func(s sight) pair { return pair{value(s.got.Config.StopTimeout), value(s.c.StopTimeout)} },
	box + "environment[].name":     environmentShown,
	box + "environment[].value":    environmentShown,
	box + "dockerLabels":           func(s sight) pair { return among(s.got.Config.Labels, s.c.DockerLabels) },
	box + "dockerSecurityOptions":  securityShown,
	box + "dnsServers":             func(s sight) pair { return pair{s.got.HostConfig.DNS, s.c.DNSServers} },
	box + "dnsSearchDomains":       func(s sight) pair { return pair{s.got.HostConfig.DNSSearch, s.c.DNSSearchDomains} },
	box + "extraHosts[].hostname":  hostsShown,
	box + "extraHosts[].ipAddress": hostsShown,

	box + "mountPoints[].sourceVolume": mountsOf(func(s sight, _ taskdef.MountPoint, v taskdef.Volume, at container.MountPoint) pair {
		return pair{s.isOf(v, at), true}
	}),
	box + "mountPoints[].containerPath": mountsOf(func(_ sight, m taskdef.MountPoint, _ taskdef.Volume, at container.MountPoint) pair {
		return pair{at.Destination, m.ContainerPath}
	}),
	box + "mountPoints[].readOnly": mountsOf(func(_ sight, m taskdef.MountPoint, _ taskdef.Volume, at container.MountPoint) pair {
		return pair{!at.RW, value(m.ReadOnly)}
	}),

	box + "systemControls[].namespace": sysctlsShown,
	box + "systemControls[].value":     sysctlsShown,
	box + "ulimits[].name":             ulimitsShown,
	box + "ulimits[].softLimit":        ulimitsShown,
	box + "ulimits[].hardLimit":        ulimitsShown,

	box + "portMappings[].containerPort":      portsShown,
	box + "portMappings[].hostPort":           portsShown,
	box + "portMappings[].protocol":           portsShown,
	box + "portMappings[].containerPortRange": rangesShown,

	box + "logConfiguration.logDriver": func(s sight) pair { return pair{s.got.HostConfig.LogConfig.Type, s.c.LogConfiguration.LogDriver} },
	box + "logConfiguration.options":   func(s sight) pair { return pair{s.got.HostConfig.LogConfig.Config, s.c.LogConfiguration.Options} },

	box + "healthCheck.command":     func(s sight) pair { return pair{s.got.Config.Healthcheck.Test, s.c.HealthCheck.Command} },
	box + "healthCheck.interval":    func(s sight) pair { return span(s.got.Config.Healthcheck.Interval, s.c.HealthCheck.Interval) },
	box + "healthCheck.timeout":     func(s sight) pair { return span(s.got.Config.Healthcheck.Timeout, s.c.HealthCheck.Timeout) },
	box + "healthCheck.retries":     func(s sight) pair { return pair{s.got.Config.Healthcheck.Retries, value(s.c.HealthCheck.Retries)} },
	box + "healthCheck.startPeriod": func(s sight) pair { return span(s.got.Config.Healthcheck.StartPeriod, s.c.HealthCheck.StartPeriod) },

	box + "links":                         linksShown,
	box + "volumesFrom[].sourceContainer": lentShown,
	box + "volumesFrom[].readOnly":        lentShown,
	box + "disableNetworking":             func(s sight) pair { return pair{s.got.Config.NetworkDisabled, value(s.c.DisableNetworking)} },

	box + "linuxParameters.initProcessEnabled": func(s sight) pair {
		return pair{value(s.got.HostConfig.Init), value(s.c.LinuxParameters.InitProcessEnabled)}
	},
	box + "linuxParameters.capabilities.add": func(s sight) pair { return capabilities(s.got.HostConfig.CapAdd, s.c.LinuxParameters.Capabilities.Add) },
	box + "linuxParameters.capabilities.drop": func(s sight) pair {
		return capabilities(s.got.HostConfig.CapDrop, s.c.LinuxParameters.Capabilities.Drop)
	},
	box + "linuxParameters.devices[].hostPath":      devicesShown,
	box + "linuxParameters.devices[].containerPath": devicesShown,
	box + "linuxParameters.devices[].permissions":   devicesShown,
	box + "linuxParameters.sharedMemorySize": func(s sight) pair {
		return pair{int(s.got.HostConfig.ShmSize), value(s.c.LinuxParameters.SharedMemorySize) << 20}
	},
	box + "linuxParameters.tmpfs[].containerPath": tmpfsShown,
	box + "linuxParameters.tmpfs[].size":          tmpfsShown,
	box + "linuxParameters.tmpfs[].mountOptions":  tmpfsShown,
	box + "linuxParameters.maxSwap": func(s sight) pair {
		return pair{int(s.got.HostConfig.MemorySwap), (value(s.c.Memory) + value(s.c.LinuxParameters.MaxSwap)) << 20}
	},
	box + "linuxParameters.swappiness": func(s sight) pair {
		if s.cgroup == "2" { // which knows none: Docker drops it, and says so when it makes the container
			return pair{}
		}
		return pair{int(value(s.got.HostConfig.MemorySwappiness)), value(s.c.LinuxParameters.Swappiness)}
	},
}

const box = "containerDefinitions[]."
