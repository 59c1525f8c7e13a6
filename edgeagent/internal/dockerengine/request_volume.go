package dockerengine

import (
	"strings"

	dockermount "github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/volume"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// volumeRequest is a named volume that a container mounts.
type volumeRequest struct {
	volume.CreateOptions
	Shared bool // it outlives the task, and other tasks may use it
	Make   bool // it may be made if it is not there
}

// mount gives the container its mount points, and the request the volumes they
// need.
func mount(r *createRequest, instance string, spec agent.Spec, c taskdef.ContainerDefinition) error {
	made := map[string]bool{}
	for _, m := range c.MountPoints {
		v, ok := findVolume(spec.Definition.Volumes, m.SourceVolume)
		if !ok {
			return fault.New(fault.Invalid, "%s: container %s mounts %q, which is no volume of its task", cannotCreate, c.Name, m.SourceVolume)
		}
		source, kind := "", dockermount.TypeVolume
		if v.Host != nil && v.Host.SourcePath != "" {
			source, kind = v.Host.SourcePath, dockermount.TypeBind
		} else {
			need := volumeOf(instance, spec, v)
			source = need.Name
			if !made[source] {
				made[source] = true
				r.Volumes = append(r.Volumes, need)
			}
		}
		addMount(r, kind, source, m)
	}
	for _, v := range c.VolumesFrom {
		from := nameOf(spec, v.SourceContainer)
		if value(v.ReadOnly) {
			from += ":ro"
		}
		r.Host.VolumesFrom = append(r.Host.VolumesFrom, from)
	}
	return nil
}

// addMount prefers Docker's older form, in which a folder of the host that is
// not there is made, as ECS promises. That form parts its fields by colons, so
// a path with one of its own takes the newer.
func addMount(r *createRequest, kind dockermount.Type, source string, m taskdef.MountPoint) {
	readOnly := value(m.ReadOnly)
	if strings.Contains(source+m.ContainerPath, ":") {
		r.Host.Mounts = append(r.Host.Mounts, dockermount.Mount{Type: kind, Source: source, Target: m.ContainerPath, ReadOnly: readOnly})
		return
	}
	bind := source + ":" + m.ContainerPath
	if readOnly {
		bind += ":ro"
	}
	r.Host.Binds = append(r.Host.Binds, bind)
}

// volumeOf is the named volume behind a volume of the task without a folder of
// the host. A shared one has the name the user gave it, so that tasks meet.
func volumeOf(instance string, spec agent.Spec, v taskdef.Volume) volumeRequest {
	d := value(v.DockerVolumeConfiguration)
	if d.Scope == taskdef.ScopeShared {
		return volumeRequest{
			CreateOptions: volume.CreateOptions{Name: v.Name, Driver: d.Driver, DriverOpts: d.DriverOpts, Labels: sharedLabels(d.Labels)},
			Shared:        true, Make: value(d.Autoprovision),
		}
	}
	return volumeRequest{
		CreateOptions: volume.CreateOptions{
			Name: nameOf(spec, v.Name), Driver: d.Driver, DriverOpts: d.DriverOpts,
			Labels: volumeLabels(instance, spec, v.Name, d.Labels),
		},
		Make: true,
	}
}

// sharedLabels name no instance and no task: the volume is nobody's.
func sharedLabels(user map[string]string) map[string]string {
	labels := userLabels(user)
	labels[labelScope] = taskdef.ScopeShared
	return labels
}

func findVolume(all []taskdef.Volume, name string) (taskdef.Volume, bool) {
	for _, v := range all {
		if v.Name == name {
			return v, true
		}
	}
	return taskdef.Volume{}, false
}
