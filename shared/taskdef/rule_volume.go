package taskdef

import "fmt"

// volumeList judges the volumes and remembers their names for the mount points.
func (j *judge) volumeList() {
	for i, v := range j.def.Volumes {
		path := fmt.Sprintf("volumes[%d]", i)
		j.name(path+".name", v.Name)
		if j.volumes[v.Name] {
			j.invalid(path+".name", "repeats %s", show(v.Name))
		}
		j.volumes[v.Name] = true
		j.volume(path, v)
	}
}

func (j *judge) volume(path string, v Volume) {
	given := 0
	for _, is := range []bool{
		v.Host != nil, v.DockerVolumeConfiguration != nil, v.EfsVolumeConfiguration != nil,
		v.FsxWindowsFileServerVolumeConfiguration != nil, v.S3filesVolumeConfiguration != nil,
	} {
		if is {
			given++
		}
	}
	if given > 1 {
		j.invalid(path, "has %d configurations; allowed is one of host, dockerVolumeConfiguration", given)
	}
	if v.Host != nil && v.Host.SourcePath != "" {
		j.absolute(path+".host.sourcePath", v.Host.SourcePath)
	}
	if d := v.DockerVolumeConfiguration; d != nil {
		for _, key := range sortedKeys(d.DriverOpts) {
			if key == "" {
				j.invalid(path+".dockerVolumeConfiguration.driverOpts", "has an empty name")
			}
		}
		for _, key := range sortedKeys(d.Labels) {
			if key == "" {
				j.invalid(path+".dockerVolumeConfiguration.labels", "has an empty name")
			}
		}
	}
}

// mounts judges what is mounted into a container: no two at one place.
func (j *judge) mounts(path string, c ContainerDefinition) {
	taken := map[string]string{}
	place := func(at, folder string) {
		if !j.required(at, folder) {
			return
		}
		j.absolute(at, folder)
		if first, ok := taken[folder]; ok {
			j.invalid(at, "is %s, where %s is mounted already", show(folder), first)
		}
		taken[folder] = at
	}
	for i, m := range c.MountPoints {
		at := fmt.Sprintf("%s.mountPoints[%d]", path, i)
		if j.required(at+".sourceVolume", m.SourceVolume) && !j.volumes[m.SourceVolume] {
			j.invalid(at+".sourceVolume", "names no volume of the task: %s", show(m.SourceVolume))
		}
		place(at+".containerPath", m.ContainerPath)
	}
	if c.LinuxParameters == nil {
		return
	}
	for i, t := range c.LinuxParameters.Tmpfs {
		at := fmt.Sprintf("%s.linuxParameters.tmpfs[%d]", path, i)
		place(at+".containerPath", t.ContainerPath)
		if t.Size == nil {
			j.invalid(at+".size", "is required")
		}
		j.between(at+".size", t.Size, 1, maxMemory)
		for k, option := range t.MountOptions {
			j.tmpfsOption(fmt.Sprintf("%s.mountOptions[%d]", at, k), option)
		}
	}
}
