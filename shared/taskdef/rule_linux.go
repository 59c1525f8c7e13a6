package taskdef

import (
	"fmt"
	"slices"
	"strings"
)

// What a tmpfs may be mounted with; those of the second list take a value.
var (
	tmpfsFlags = []string{
		"defaults", "ro", "rw", "suid", "nosuid", "dev", "nodev", "exec", "noexec", "sync", "async", "dirsync", "remount", "mand",
		"nomand", "atime", "noatime", "diratime", "nodiratime", "bind", "rbind", "unbindable", "runbindable", "private", "rprivate",
		"shared", "rshared", "slave", "rslave", "relatime", "norelatime", "strictatime", "nostrictatime",
	}
	tmpfsValues = []string{"mode", "uid", "gid", "nr_inodes", "nr_blocks", "mpol"}
)

// The kernel parameters that belong to the IPC namespace.
var ipcControls = []string{
	"kernel.msgmax", "kernel.msgmnb", "kernel.msgmni", "kernel.sem", "kernel.shmall", "kernel.shmmax", "kernel.shmmni",
	"kernel.shm_rmid_forced",
}

func (j *judge) tmpfsOption(path, option string) {
	name, _, has := strings.Cut(option, "=")
	if slices.Contains(tmpfsFlags, name) && !has || slices.Contains(tmpfsValues, name) {
		return
	}
	j.invalid(path, "is %s; allowed: %s, and with a value: %s", show(option),
		strings.Join(tmpfsFlags, ", "), strings.Join(tmpfsValues, ", "))
}

func (j *judge) linux(path string, c ContainerDefinition) {
	j.ulimits(path+".ulimits", c.Ulimits)
	j.controls(path+".systemControls", c.SystemControls)
	l := c.LinuxParameters
	if l == nil {
		return
	}
	path += ".linuxParameters"
	j.between(path+".sharedMemorySize", l.SharedMemorySize, 1, maxMemory)
	j.between(path+".maxSwap", l.MaxSwap, 0, maxMemory)
	j.between(path+".swappiness", l.Swappiness, 0, 100)
	switch {
	case l.MaxSwap != nil && value(c.Memory) == 0 && j.def.Memory == "":
		j.invalid(path+".maxSwap", "needs memory, the limit that it comes on top of")
	case l.Swappiness != nil && l.MaxSwap == nil:
		j.invalid(path+".swappiness", "needs maxSwap")
	}
	for i, d := range l.Devices {
		at := fmt.Sprintf("%s.devices[%d]", path, i)
		if j.required(at+".hostPath", d.HostPath) {
			j.absolute(at+".hostPath", d.HostPath)
		}
		if d.ContainerPath != "" {
			j.absolute(at+".containerPath", d.ContainerPath)
		}
	}
}

func (j *judge) ulimits(path string, list []Ulimit) {
	seen := map[string]bool{}
	for i, u := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		if j.required(at+".name", u.Name) && seen[u.Name] {
			j.invalid(at+".name", "repeats %s", show(u.Name))
		}
		seen[u.Name] = true
		for _, l := range []limit{{".softLimit", u.SoftLimit}, {".hardLimit", u.HardLimit}} {
			if l.n == nil {
				j.invalid(at+l.name, "is required")
			} else if *l.n < -1 {
				j.invalid(at+l.name, "is %d; allowed is -1 (no limit) or more", *l.n)
			}
		}
		if soft, hard := value(u.SoftLimit), value(u.HardLimit); hard >= 0 && (soft > hard || soft == -1) {
			j.invalid(at+".softLimit", "is %d; it must not exceed hardLimit, which is %d", soft, hard)
		}
	}
}

func (j *judge) controls(path string, list []SystemControl) {
	seen := map[string]bool{}
	for i, s := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		j.required(at+".value", s.Value)
		if !j.required(at+".namespace", s.Namespace) {
			continue
		}
		if seen[s.Namespace] {
			j.invalid(at+".namespace", "repeats %s", show(s.Namespace))
		}
		seen[s.Namespace] = true
		net := strings.HasPrefix(s.Namespace, "net.")
		switch {
		case net && j.def.Network() == NetworkHost:
			j.invalid(at+".namespace", "is %s, which is the host's own in network mode host", show(s.Namespace))
		case !net && !strings.HasPrefix(s.Namespace, "fs.mqueue.") && !slices.Contains(ipcControls, s.Namespace):
			j.invalid(at+".namespace", "is %s; allowed: net.*, fs.mqueue.*, %s", show(s.Namespace), strings.Join(ipcControls, ", "))
		case !net && j.def.IpcMode == NamespaceHost:
			j.invalid(at+".namespace", "is %s, which is the host's own in IPC mode host", show(s.Namespace))
		}
	}
}

// needed are the options without which a log driver cannot start.
var needed = map[string][]string{
	"awslogs": {"awslogs-group", "awslogs-region"},
	"splunk":  {"splunk-token", "splunk-url"},
	"gelf":    {"gelf-address"},
}

func (j *judge) log(path string, l *LogConfiguration) {
	if l == nil {
		return
	}
	if !j.required(path+".logDriver", l.LogDriver) {
		return
	}
	for _, option := range needed[l.LogDriver] {
		secret := slices.ContainsFunc(l.SecretOptions, func(s Secret) bool { return s.Name == option })
		if l.Options[option] == "" && !secret {
			j.invalid(path+".options", "lacks %s, which the log driver %s needs", option, l.LogDriver)
		}
	}
	if l.LogDriver == "none" && len(l.Options) > 0 {
		j.invalid(path+".options", "must be empty with the log driver none")
	}
	if l.LogDriver == "none" && len(l.SecretOptions) > 0 {
		j.invalid(path+".secretOptions", "must be empty with the log driver none")
	}
}
