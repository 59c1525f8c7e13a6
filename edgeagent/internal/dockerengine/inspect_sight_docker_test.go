//go:build docker

package dockerengine

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/volume"
	"github.com/docker/go-connections/nat"

	"github.com/longshore-run/longshore/shared/taskdef"
)

// check holds an inspection against the definition, and notes which members it was
// about.
func (s sight) check(t *testing.T, seen map[string]bool) {
	t.Helper()
	one := s.def.Spec
	one.ContainerDefinitions = []taskdef.ContainerDefinition{s.c}
	one.Volumes = slices.DeleteFunc(slices.Clone(one.Volumes), func(v taskdef.Volume) bool {
		return !slices.ContainsFunc(s.c.MountPoints, func(m taskdef.MountPoint) bool { return m.SourceVolume == v.Name })
	})
	text, err := json.Marshal(one)
	if err != nil {
		t.Fatal(err)
	}
	for path, look := range shownAt {
		var tree map[string]any
		if err := json.Unmarshal(text, &tree); err != nil {
			t.Fatal(err)
		}
		if !drop(tree, strings.Split(path, ".")) {
			continue
		}
		if p := look(s); !reflect.DeepEqual(p.got, p.want) {
			t.Errorf("%s of container %s: docker inspect shows %#v, want %#v", path, s.c.Name, p.got, p.want)
		}
		seen[path] = true
	}
}

func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// among is what of all is wanted.
func among(all, want map[string]string) pair {
	got, asked := map[string]string{}, map[string]string{}
	for k, v := range want {
		got[k], asked[k] = all[k], v
	}
	return pair{got, asked}
}

func span(got time.Duration, want *int) pair {
	return pair{got, time.Duration(value(want)) * time.Second}
}

func sorted[T any](list []T, of func(T) string) []string {
	out := make([]string, 0, len(list))
	for _, e := range list {
		out = append(out, of(e))
	}
	slices.Sort(out)
	return out
}

func itself(s string) string { return s }

func taskMemory(s sight) pair {
	if s.c.Memory != nil {
		return pair{}
	}
	return pair{s.got.HostConfig.Memory, number(s.def.Memory) << 20}
}

func (s sight) namespace(mode string) string {
	if mode == "task" {
		return "container:" + s.pause
	}
	return mode
}

// nameOf is what the engine calls a volume of the definition.
func (s sight) nameOf(v taskdef.Volume) string {
	switch d := v.DockerVolumeConfiguration; {
	case v.Host != nil && v.Host.SourcePath != "":
		return v.Host.SourcePath
	case d != nil && d.Scope == "shared":
		return v.Name
	}
	return fmt.Sprintf("longshore-%s-%d-%s-%s-1", s.def.Family, s.def.Revision, v.Name, s.task[:12])
}

// volumeName is what of the mounts has the volume's name.
func (s sight) volumeName(v taskdef.Volume) string {
	for _, m := range s.got.Mounts {
		if m.Name == s.nameOf(v) || m.Source == s.nameOf(v) {
			return s.nameOf(v)
		}
	}
	return ""
}

func (s sight) isOf(v taskdef.Volume, at container.MountPoint) bool {
	return at.Name == s.nameOf(v) || at.Source == s.nameOf(v)
}

// mountsOf asks of every mount point.
func mountsOf(one func(sight, taskdef.MountPoint, taskdef.Volume, container.MountPoint) pair) func(sight) pair {
	return func(s sight) pair {
		var got, want []any
		for _, m := range s.c.MountPoints {
			v, _ := findVolume(s.def.Volumes, m.SourceVolume)
			i := slices.IndexFunc(s.got.Mounts, func(at container.MountPoint) bool { return at.Destination == m.ContainerPath })
			if i < 0 {
				return pair{"no mount at " + m.ContainerPath, "one"}
			}
			p := one(s, m, v, s.got.Mounts[i])
			got, want = append(got, p.got), append(want, p.want)
		}
		return pair{got, want}
	}
}

func hostFolder(_ sight, _ taskdef.MountPoint, v taskdef.Volume, at container.MountPoint) pair {
	if v.Host == nil || v.Host.SourcePath == "" {
		return pair{string(at.Type), "volume"}
	}
	return pair{string(at.Type) + " " + at.Source, "bind " + v.Host.SourcePath}
}

// ofVolumes asks of every named volume with a configuration.
func ofVolumes(one func(volume.Volume, *taskdef.DockerVolumeConfiguration) pair) func(sight) pair {
	return func(s sight) pair {
		var got, want []any
		for _, v := range s.def.Volumes {
			if have, ok := s.volumes[s.nameOf(v)]; ok && v.DockerVolumeConfiguration != nil {
				p := one(have, v.DockerVolumeConfiguration)
				got, want = append(got, p.got), append(want, p.want)
			}
		}
		return pair{got, want}
	}
}

func environmentShown(s sight) pair {
	want := sorted(s.c.Environment, func(e taskdef.KeyValuePair) string { return e.Name + "=" + e.Value })
	got := slices.DeleteFunc(slices.Clone(s.got.Config.Env), func(e string) bool { return !slices.Contains(want, e) })
	return pair{sorted(got, itself), want}
}

func securityShown(s sight) pair {
	want := sorted(s.c.DockerSecurityOptions, func(o string) string { return strings.Replace(o, ":", "=", 1) })
	got := slices.DeleteFunc(slices.Clone(s.got.HostConfig.SecurityOpt), func(o string) bool { return !slices.Contains(want, o) }) // Docker adds of its own
	return pair{sorted(got, itself), want}
}

func hostsShown(s sight) pair {
	return pair{sorted(s.got.HostConfig.ExtraHosts, itself), sorted(s.c.ExtraHosts, func(h taskdef.HostEntry) string { return h.Hostname + ":" + h.IPAddress })}
}

func sysctlsShown(s sight) pair {
	want := map[string]string{}
	for _, c := range s.c.SystemControls {
		want[c.Namespace] = c.Value
	}
	return among(s.got.HostConfig.Sysctls, want)
}

func ulimitsShown(s sight) pair {
	return pair{
		sorted(s.got.HostConfig.Ulimits, func(u *container.Ulimit) string { return fmt.Sprint(u.Name, u.Soft, u.Hard) }),
		sorted(s.c.Ulimits, func(u taskdef.Ulimit) string {
			return fmt.Sprint(u.Name, int64(value(u.SoftLimit)), int64(value(u.HardLimit)))
		}),
	}
}

// portsShown: a published port leads where it should, on the port that was named or
// on any. On the host's own network there is nothing to publish.
func portsShown(s sight) pair {
	var got, want []string
	for _, p := range taskdef.Ports(s.def) {
		if p.Container != s.c.Name {
			continue
		}
		text := fmt.Sprintf("%d/%s", p.ContainerPort, p.Protocol)
		if s.def.NetworkMode == "host" {
			want = append(want, text)
			if slices.Contains(strings.Split(s.got.Config.Labels["run.longshore.ports"], ","), text) {
				got = append(got, text)
			}
			continue
		}
		bound := s.got.NetworkSettings.Ports[nat.Port(text)]
		want = append(want, text+" on "+hostPortName(p.HostPort))
		if i := slices.IndexFunc(bound, func(b nat.PortBinding) bool { return p.HostPort == 0 || b.HostPort == strconv.Itoa(p.HostPort) }); i >= 0 && bound[i].HostPort != "" {
			got = append(got, text+" on "+hostPortName(p.HostPort))
		}
	}
	return pair{got, want}
}

func hostPortName(n int) string {
	if n == 0 {
		return "any"
	}
	return strconv.Itoa(n)
}

// rangesShown: as many ports of the host in a row.
func rangesShown(s sight) pair {
	var got, want []string
	for _, row := range s.c.PortRows() {
		want = append(want, fmt.Sprint(row.First, "-", row.Last, " in a row"))
		first, in := 0, true
		for n := row.First; n <= row.Last; n++ {
			bound := s.got.NetworkSettings.Ports[nat.Port(fmt.Sprintf("%d/%s", n, row.Protocol))]
			if len(bound) == 0 {
				return pair{fmt.Sprint("nothing for ", n), "a port"}
			}
			at, _ := strconv.Atoi(bound[0].HostPort)
			if n == row.First {
				first = at
			}
			in = in && at-first == n-row.First
		}
		if in {
			got = append(got, fmt.Sprint(row.First, "-", row.Last, " in a row"))
		}
	}
	return pair{got, want}
}

func linksShown(s sight) pair {
	return pair{sorted(s.got.HostConfig.Links, itself), sorted(s.c.Links, func(l string) string {
		name, alias, named := strings.Cut(l, ":")
		if !named {
			alias = name
		}
		return "/" + s.nameOf(taskdef.Volume{Name: name}) + ":" + s.got.Name + "/" + alias
	})}
}

func lentShown(s sight) pair {
	return pair{sorted(s.got.HostConfig.VolumesFrom, itself), sorted(s.c.VolumesFrom, func(v taskdef.VolumeFrom) string {
		name := s.nameOf(taskdef.Volume{Name: v.SourceContainer})
		if value(v.ReadOnly) {
			name += ":ro"
		}
		return name
	})}
}

func capabilities(got, want []string) pair {
	bare := func(c string) string { return strings.TrimPrefix(c, "CAP_") }
	return pair{sorted(got, bare), sorted(want, bare)}
}

func devicesShown(s sight) pair {
	return pair{
		sorted(s.got.HostConfig.Devices, func(d container.DeviceMapping) string { return d.PathOnHost + d.PathInContainer + d.CgroupPermissions }),
		sorted(s.c.LinuxParameters.Devices, func(d taskdef.Device) string {
			may := ""
			for _, p := range d.Permissions {
				may += p[:1]
			}
			if may == "" {
				may = "rwm"
			}
			if d.ContainerPath == "" {
				d.ContainerPath = d.HostPath
			}
			return d.HostPath + d.ContainerPath + may
		}),
	}
}

func tmpfsShown(s sight) pair {
	want := map[string]string{}
	for _, f := range s.c.LinuxParameters.Tmpfs {
		want[f.ContainerPath] = strings.Join(append(slices.Clone(f.MountOptions), fmt.Sprintf("size=%dm", value(f.Size))), ",")
	}
	return pair{maps.Clone(s.got.HostConfig.Tmpfs), want}
}
