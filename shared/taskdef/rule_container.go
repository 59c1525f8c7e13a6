package taskdef

import (
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	maxTimeout = 86_400 // seconds: a day
	maxImage   = 255
)

var (
	imageForm  = regexp.MustCompile(`^[A-Za-z0-9_./:#-]+$`)
	digestForm = regexp.MustCompile(`^sha256:[A-Fa-f0-9]{64}$`)
	hostForm   = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?$`)
	userForm   = regexp.MustCompile(`^[A-Za-z0-9_.][A-Za-z0-9_.$-]*(:[A-Za-z0-9_.][A-Za-z0-9_.$-]*)?$`)
)

func (j *judge) containers() {
	list := j.def.ContainerDefinitions
	switch {
	case len(list) == 0:
		j.invalid("containerDefinitions", "is required: at least one container")
		return
	case len(list) > maxContainers:
		j.invalid("containerDefinitions", "are %d; allowed are %d", len(list), maxContainers)
	}
	if !slices.ContainsFunc(list, ContainerDefinition.IsEssential) {
		j.invalid("containerDefinitions", "has no essential container; at least one must be essential")
	}
	seen := map[string]bool{}
	for i, c := range list {
		path := fmt.Sprintf("containerDefinitions[%d]", i)
		j.name(path+".name", c.Name)
		if c.Name != "" && seen[c.Name] {
			j.invalid(path+".name", "repeats %s", show(c.Name))
		}
		seen[c.Name] = true
		j.image(path+".image", c.Image)
		j.containerSize(path, c)
		j.environment(path+".environment", c.Environment)
		j.process(path, c)
		j.network(path, c)
		j.mounts(path, c)
		j.linux(path, c)
		j.log(path+".logConfiguration", c.LogConfiguration)
		j.resources(path+".resourceRequirements", c.ResourceRequirements)
		j.watch(path, c)
	}
	j.hostPorts()
}

func (j *judge) image(path, image string) {
	if !j.required(path, image) {
		return
	}
	name, digest, has := strings.Cut(image, "@")
	switch {
	case len(name) > maxImage:
		j.invalid(path, "is %d characters long before its digest; allowed are %d", len(name), maxImage)
	case !imageForm.MatchString(name):
		j.invalid(path, "is %s; allowed are letters, digits and _ - . / : #", show(image))
	case has && !digestForm.MatchString(digest):
		j.invalid(path, "has the digest %s; allowed is sha256: and 64 hexadecimal digits", show(digest))
	}
}

func (j *judge) containerSize(path string, c ContainerDefinition) {
	j.between(path+".cpu", c.CPU, 0, maxTaskCPU)
	j.memory(path, c)
	if j.def.Memory == "" && value(c.Memory) == 0 && value(c.MemoryReservation) == 0 {
		j.invalid(path+".memory", "or memoryReservation is required where the task has no memory of its own")
	}
}

// limit is a number and the name of its member.
type limit struct {
	name string
	n    *int
}

// memory judges the limits of one container; an override is judged by it too.
func (j *judge) memory(path string, c ContainerDefinition) {
	for _, m := range []limit{{".memory", c.Memory}, {".memoryReservation", c.MemoryReservation}} {
		if m.n != nil && *m.n != 0 {
			j.between(path+m.name, m.n, minMemory, maxMemory)
		}
	}
	hard, soft := value(c.Memory), value(c.MemoryReservation)
	if hard > 0 && soft > hard {
		j.invalid(path+".memoryReservation", "is %d; it must not exceed memory, which is %d", soft, hard)
	}
}

func (j *judge) environment(path string, list []KeyValuePair) {
	for i, e := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		switch {
		case e.Name == "":
			j.invalid(at+".name", "is required")
		case strings.ContainsAny(e.Name, "=\x00"):
			j.invalid(at+".name", "is %s; it must not hold = or a zero byte", show(e.Name))
		}
		if strings.Contains(e.Value, "\x00") {
			j.invalid(at+".value", "must not hold a zero byte")
		}
	}
}

// process judges how the container's process is started and stopped.
func (j *judge) process(path string, c ContainerDefinition) {
	j.between(path+".stopTimeout", c.StopTimeout, 0, maxTimeout)
	j.between(path+".startTimeout", c.StartTimeout, 0, maxTimeout)
	if c.User != "" && !userForm.MatchString(c.User) {
		j.invalid(path+".user", "is %s; allowed are user, user:group, uid, uid:gid, user:gid, uid:group", show(c.User))
	}
	if c.WorkingDirectory != "" {
		j.absolute(path+".workingDirectory", c.WorkingDirectory)
	}
	for i, s := range c.EntryPoint {
		j.argument(fmt.Sprintf("%s.entryPoint[%d]", path, i), s)
	}
	for i, s := range c.Command {
		j.argument(fmt.Sprintf("%s.command[%d]", path, i), s)
	}
	for _, key := range sortedKeys(c.DockerLabels) {
		if key == "" {
			j.invalid(path+".dockerLabels", "has an empty name")
		}
	}
	for i, option := range c.DockerSecurityOptions {
		j.securityOption(fmt.Sprintf("%s.dockerSecurityOptions[%d]", path, i), option)
	}
}

func (j *judge) argument(path, s string) {
	if strings.Contains(s, "\x00") {
		j.invalid(path, "must not hold a zero byte")
	}
}

func (j *judge) securityOption(path, option string) {
	kind, rest, _ := strings.Cut(option, ":")
	switch {
	case option == "no-new-privileges":
	case (kind == "apparmor" || kind == "label") && rest != "":
	case kind == "credentialspec":
		j.add(Unsupported, path, "%s is not supported: instances do not join an Active Directory", show(option))
	default:
		j.invalid(path, "is %s; allowed: no-new-privileges, apparmor:PROFILE, label:VALUE", show(option))
	}
}

func (j *judge) resources(path string, list []ResourceRequirement) {
	seen := map[string]bool{}
	for i, r := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		if !j.required(at+".type", r.Type) {
			continue
		}
		if seen[r.Type] {
			j.invalid(at+".type", "repeats %s", show(r.Type))
		}
		seen[r.Type] = true
		if r.Type != ResourceGPU || r.SharingStrategy != nil {
			continue
		}
		n, err := strconv.ParseUint(r.Value, 10, 8)
		switch {
		case r.Value == "":
			j.invalid(at+".value", "is required")
		case r.Value == "ALL":
			j.add(Unsupported, at+".value", "\"ALL\" is not supported: name the number of GPUs")
		case err != nil || n == 0 || n > maxGPUs:
			j.invalid(at+".value", "is %s; allowed is a number of GPUs, 1 to %d", show(r.Value), maxGPUs)
		}
	}
}

// maxGPUs is more than any instance has.
const maxGPUs = 64

func (j *judge) address(path, address string) {
	if _, err := netip.ParseAddr(address); err != nil {
		j.invalid(path, "is %s; allowed is an IP address", show(address))
	}
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
