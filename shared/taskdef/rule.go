package taskdef

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/shared/taskdef/query"
)

// The counts ECS allows.
const (
	maxContainers  = 10
	maxConstraints = 10
	maxName        = 255
)

var nameForm = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// judge gathers the broken rules of one definition.
type judge struct {
	Faults
	def       Spec
	volumes   map[string]bool
	portNames map[string]bool
}

// rules are those that a well-typed Input must keep.
func rules(in Input) Faults {
	j := judge{def: in.Spec, volumes: map[string]bool{}, portNames: map[string]bool{}}
	if size := len(encode(in)); size > MaxSize {
		j.invalid("", "is %d bytes long; allowed are %d", size, MaxSize)
	}
	j.name("family", in.Family)
	j.taskSize()
	j.compatibilities()
	j.constraints()
	j.volumeList()
	j.containers()
	j.outside()
	j.group()
	return append(j.Faults, tagRules("tags", in.Tags)...)
}

// name is for what ECS calls a name: of a family, a container, a volume.
func (j *judge) name(path, name string) {
	switch {
	case name == "":
		j.invalid(path, "is required")
	case len(name) > maxName:
		j.invalid(path, "is %d characters long; allowed are %d", len(name), maxName)
	case !nameForm.MatchString(name):
		j.invalid(path, "is %s; allowed are letters, digits, hyphens and underscores", show(name))
	}
}

func (j *judge) required(path, value string) bool {
	if value == "" {
		j.invalid(path, "is required")
	}
	return value != ""
}

func (j *judge) between(path string, n *int, least, most int) {
	if n != nil && (*n < least || *n > most) {
		j.invalid(path, "is %d; allowed is %d to %d", *n, least, most)
	}
}

func (j *judge) absolute(path, folder string) {
	switch {
	case !strings.HasPrefix(folder, "/"):
		j.invalid(path, "is %s; it must be an absolute path", show(folder))
	case strings.Contains(folder, "\x00"):
		j.invalid(path, "must not hold a zero byte")
	}
}

func (j *judge) taskSize() {
	j.taskCPU("cpu", j.def.CPU)
	j.taskMemory("memory", j.def.Memory)
	j.sum()
}

func (j *judge) taskCPU(path, s string) {
	n, ok := parseCPU(s)
	switch {
	case s == "":
	case !ok:
		j.invalid(path, `is %s; allowed are CPU units as "1024" or cores as "1 vCPU"`, show(s))
	default:
		j.between(path, &n, minTaskCPU, maxTaskCPU)
	}
}

func (j *judge) taskMemory(path, s string) {
	n, ok := parseMemory(s)
	switch {
	case s == "":
	case !ok:
		j.invalid(path, `is %s; allowed are MiB as "1024" or "1 GB"`, show(s))
	default:
		j.between(path, &n, minMemory, maxMemory)
	}
}

// sum holds the containers against the size of their task.
func (j *judge) sum() {
	taskCPU, cpuOK := parseCPU(j.def.CPU)
	taskMemory, memoryOK := parseMemory(j.def.Memory)
	cpu, memory := 0, 0
	for i, c := range j.def.ContainerDefinitions {
		cpu += value(c.CPU)
		memory += c.ReservedMemory()
		if m := value(c.Memory); j.def.Memory != "" && memoryOK && m > taskMemory {
			j.invalid(fmt.Sprintf("containerDefinitions[%d].memory", i), "is %d; the task's memory is %d", m, taskMemory)
		}
	}
	if j.def.CPU != "" && cpuOK && cpu > taskCPU {
		j.invalid("cpu", "is %d; its containers ask for %d together", taskCPU, cpu)
	}
	if j.def.Memory != "" && memoryOK && memory > taskMemory {
		j.invalid("memory", "is %d; its containers reserve %d together", taskMemory, memory)
	}
}

func (j *judge) compatibilities() {
	const path = "requiresCompatibilities"
	list := j.def.RequiresCompatibilities
	if len(list) == 0 {
		return
	}
	if !slices.Contains(list, "EC2") && !slices.Contains(list, "EXTERNAL") {
		j.add(Unsupported, path, "names %s alone, which is not supported: tasks run on your own instances; allowed: EC2, EXTERNAL",
			show(strings.Join(list, ", ")))
	}
	for i, c := range list {
		if slices.Index(list, c) < i {
			j.invalid(fmt.Sprintf("%s[%d]", path, i), "repeats %s", show(c))
		}
	}
}

func (j *judge) constraints() {
	if n := len(j.def.PlacementConstraints); n > maxConstraints {
		j.invalid("placementConstraints", "are %d; allowed are %d", n, maxConstraints)
	}
	for i, c := range j.def.PlacementConstraints {
		path := fmt.Sprintf("placementConstraints[%d]", i)
		j.required(path+".type", c.Type)
		if !j.required(path+".expression", c.Expression) {
			continue
		}
		if _, err := query.Parse(c.Expression); err != nil {
			j.invalid(path+".expression", "cannot be used: %s", err.Error())
		}
	}
}
