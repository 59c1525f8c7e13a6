package taskdef

import (
	"slices"
	"strings"
)

// The attributes that ECS's definitions require of instances, and its agents have.
const (
	attributeLog        = "com.amazonaws.ecs.capability.logging-driver."
	attributePrivileged = "com.amazonaws.ecs.capability.privileged-container"
	attributeSELinux    = "com.amazonaws.ecs.capability.selinux"
	attributeAppArmor   = "com.amazonaws.ecs.capability.apparmor"
	attributePlugin     = "ecs.capability.docker-plugin."
	attributeOrder      = "ecs.capability.container-ordering"
	attributeHealth     = "ecs.capability.container-health-check"
	attributeRestart    = "ecs.capability.container-restart-policy"
	attributeProcessor  = "ecs.cpu-architecture"
)

// Capabilities are the attributes that an agent tells by itself of what it can do with containers. One that does not
// tell them would drop what a definition asks for, so placement goes by them. The other attributes of a definition are
// what a host has; operators may tell them.
func Capabilities() []string { return []string{attributeOrder, attributeHealth, attributeRestart} }

// requirements are the attributes an instance must have to run s, sorted by name. They are ECS's own names, for what not
// every instance can do; what every agent does is not listed.
func requirements(s Spec) []Attribute {
	found := map[Attribute]bool{}
	for _, name := range roleRequirements(s) {
		found[Attribute{Name: name}] = true
	}
	for _, c := range s.ContainerDefinitions {
		if l := c.LogConfiguration; l != nil && l.LogDriver != "" {
			found[Attribute{Name: attributeLog + l.LogDriver}] = true
		}
		if value(c.Privileged) {
			found[Attribute{Name: attributePrivileged}] = true
		}
		for _, option := range c.DockerSecurityOptions {
			switch {
			case strings.HasPrefix(option, "label:"):
				found[Attribute{Name: attributeSELinux}] = true
			case strings.HasPrefix(option, "apparmor:"):
				found[Attribute{Name: attributeAppArmor}] = true
			}
		}
		if len(c.DependsOn) > 0 {
			found[Attribute{Name: attributeOrder}] = true
		}
		if c.HealthCheck.Checks() {
			found[Attribute{Name: attributeHealth}] = true
		}
		if r := c.RestartPolicy; r != nil && value(r.Enabled) {
			found[Attribute{Name: attributeRestart}] = true
		}
	}
	for _, v := range s.Volumes {
		if d := v.DockerVolumeConfiguration; d != nil && d.Driver != "" {
			found[Attribute{Name: attributePlugin + d.Driver}] = true
		}
	}
	if p := s.RuntimePlatform; p != nil && p.CPUArchitecture != "" {
		found[Attribute{Name: attributeProcessor, Value: strings.ToLower(p.CPUArchitecture)}] = true
	}
	list := make([]Attribute, 0, len(found))
	for a := range found {
		list = append(list, a)
	}
	slices.SortFunc(list, func(a, b Attribute) int { return strings.Compare(a.Name, b.Name) })
	return list
}
