package taskdef

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"unicode/utf8"
)

// MaxOverride is the most characters that overrides may have, written as compact JSON.
const MaxOverride = 8192

// DecodeOverride reads and judges the overrides member of RunTask or StartTask; paths in its Faults begin with
// overrides. Nothing at all, or null, is no overrides. What depends on the definition is judged by Apply.
func DecodeOverride(data []byte) (TaskOverride, error) {
	var over TaskOverride
	if text := bytes.TrimSpace(data); len(text) == 0 || string(text) == "null" {
		return over, nil
	}
	faults, ok := decode(data, "overrides", overrideSchema(), &over)
	if ok {
		faults = append(faults, overrideRules(over)...)
	}
	if len(faults) > 0 {
		return TaskOverride{}, faults
	}
	return over, nil
}

func overrideRules(over TaskOverride) Faults {
	var j judge
	if n := utf8.RuneCount(encode(over)); n > MaxOverride {
		j.invalid("overrides", "have %d characters; allowed are %d", n, MaxOverride)
	}
	j.taskCPU("overrides.cpu", over.CPU)
	j.taskMemory("overrides.memory", over.Memory)
	j.role("overrides.taskRoleArn", over.TaskRoleArn)
	j.role("overrides.executionRoleArn", over.ExecutionRoleArn)
	seen := map[string]bool{}
	for i, c := range over.ContainerOverrides {
		path := fmt.Sprintf("overrides.containerOverrides[%d]", i)
		if j.required(path+".name", c.Name) && seen[c.Name] {
			j.invalid(path+".name", "repeats %s", show(c.Name))
		}
		seen[c.Name] = true
		j.between(path+".cpu", c.CPU, 0, maxTaskCPU)
		j.environment(path+".environment", c.Environment)
		j.environmentFiles(path+".environmentFiles", c.EnvironmentFiles)
		j.resources(path+".resourceRequirements", c.ResourceRequirements)
		for k, s := range c.Command {
			j.argument(fmt.Sprintf("%s.command[%d]", path, k), s)
		}
	}
	return j.Faults
}

// Apply makes the definition that a task with these overrides runs. It refuses overrides that name no container, and
// a result that does not fit together. Its roles are ARNs, its attributes those that it requires itself. Neither argument is
// changed.
func Apply(def TaskDefinition, over TaskOverride) (TaskDefinition, error) {
	var again TaskOverride
	faults, _ := decode(encode(over), "overrides", overrideSchema(), &again)
	faults = append(faults, overrideRules(over)...)
	spec, unknown := merge(def.Spec, over)
	faults = append(faults, unknown...)
	if len(faults) == 0 {
		faults = mergedFaults(spec)
	}
	if len(faults) > 0 {
		return TaskDefinition{}, faults
	}
	spec.TaskRoleArn = roleOf(def.TaskDefinitionArn, spec.TaskRoleArn)
	spec.ExecutionRoleArn = roleOf(def.TaskDefinitionArn, spec.ExecutionRoleArn)
	def.Spec = spec
	def.RequiresAttributes = requirements(spec)
	return def, nil
}

// mergedFaults judges what overrides have changed.
func mergedFaults(spec Spec) Faults {
	j := judge{def: spec}
	j.taskSize()
	for i, c := range spec.ContainerDefinitions {
		j.containerSize(fmt.Sprintf("containerDefinitions[%d]", i), c)
	}
	j.together()
	for i, f := range j.Faults {
		j.Faults[i] = Fault{Path: "overrides", Message: "lead to a definition whose " + f.Error(), Kind: f.Kind}
	}
	return j.Faults
}

// merge lays overrides over a copy of s, and tells those that name no container.
func merge(s Spec, over TaskOverride) (Spec, Faults) {
	var faults Faults
	s.ContainerDefinitions = slices.Clone(s.ContainerDefinitions)
	for i, o := range over.ContainerOverrides {
		at := slices.IndexFunc(s.ContainerDefinitions, func(c ContainerDefinition) bool { return c.Name == o.Name })
		if at < 0 {
			faults.invalid(fmt.Sprintf("overrides.containerOverrides[%d].name", i), "names no container of %s: %s", s.Family, show(o.Name))
			continue
		}
		s.ContainerDefinitions[at] = mergeContainer(s.ContainerDefinitions[at], o)
	}
	s.CPU = cmp.Or(plain(over.CPU, parseCPU), s.CPU)
	s.Memory = cmp.Or(plain(over.Memory, parseMemory), s.Memory)
	s.TaskRoleArn = cmp.Or(over.TaskRoleArn, s.TaskRoleArn)
	s.ExecutionRoleArn = cmp.Or(over.ExecutionRoleArn, s.ExecutionRoleArn)
	return s, faults
}

func mergeContainer(c ContainerDefinition, o ContainerOverride) ContainerDefinition {
	if o.Command != nil {
		c.Command = slices.Clone(o.Command)
	}
	c.Environment = slices.Clone(c.Environment)
	for _, e := range o.Environment {
		// Every variable of the name goes, so that of several the overriding one holds.
		first := slices.IndexFunc(c.Environment, func(have KeyValuePair) bool { return have.Name == e.Name })
		if first < 0 {
			c.Environment = append(c.Environment, e)
			continue
		}
		c.Environment[first] = e
		rest := slices.DeleteFunc(slices.Clone(c.Environment[first+1:]), func(have KeyValuePair) bool { return have.Name == e.Name })
		c.Environment = append(c.Environment[:first+1], rest...)
	}
	// ECS takes an override's files instead of the definition's. None are no override: clients send back empty lists.
	if len(o.EnvironmentFiles) > 0 {
		c.EnvironmentFiles = slices.Clone(o.EnvironmentFiles)
	}
	if o.CPU != nil {
		c.CPU = new(*o.CPU)
	}
	if o.Memory != nil {
		c.Memory = new(*o.Memory)
	}
	if o.MemoryReservation != nil {
		c.MemoryReservation = new(*o.MemoryReservation)
	}
	if o.ResourceRequirements != nil {
		c.ResourceRequirements = slices.Clone(o.ResourceRequirements)
	}
	return c
}

// EchoOverride is how DescribeTasks shows overrides: with an entry for each container, in the definition's order, and roles
// as ARNs.
func EchoOverride(def TaskDefinition, over TaskOverride) TaskOverride {
	shown := over
	shown.TaskRoleArn = roleOf(def.TaskDefinitionArn, over.TaskRoleArn)
	shown.ExecutionRoleArn = roleOf(def.TaskDefinitionArn, over.ExecutionRoleArn)
	shown.ContainerOverrides = []ContainerOverride{}
	for _, c := range def.ContainerDefinitions {
		entry := ContainerOverride{Name: c.Name}
		for _, o := range over.ContainerOverrides {
			if o.Name == c.Name {
				entry = o
			}
		}
		shown.ContainerOverrides = append(shown.ContainerOverrides, entry)
	}
	if shown.InferenceAcceleratorOverrides == nil {
		shown.InferenceAcceleratorOverrides = []InferenceAcceleratorOverride{}
	}
	return shown
}
