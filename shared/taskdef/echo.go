package taskdef

import (
	"cmp"
	"slices"
)

// Registration is what registering adds to an Input.
type Registration struct {
	Region, Account string
	Partition       string // "" is aws
	Revision        int
	At              Instant
	By              string
}

// Echo makes the registered definition of a valid Input: what was given, in meaning unchanged, with the members that ECS
// always shows filled in, and roles as ARNs. Nothing is added inside the members of a list that were given (ECS adds the protocol of a port
// mapping, for one), as clients compare those with what they sent. Tags are not part of it.
func Echo(in Input, r Registration) TaskDefinition {
	def := TaskDefinition{
		TaskDefinitionArn:  ARN(r.Region, r.Account, in.Family, r.Revision),
		Spec:               in.Spec,
		Revision:           r.Revision,
		Status:             StatusActive,
		RequiresAttributes: requirements(in.Spec),
		Compatibilities:    []string{"EXTERNAL", "EC2"},
		RegisteredAt:       r.At,
		RegisteredBy:       r.By,
	}
	partition := cmp.Or(r.Partition, "aws")
	def.TaskRoleArn = RoleARN(partition, r.Account, in.TaskRoleArn)
	def.ExecutionRoleArn = RoleARN(partition, r.Account, in.ExecutionRoleArn)
	def.CPU = plain(in.CPU, parseCPU)
	def.Memory = plain(in.Memory, parseMemory)
	def.Volumes = present(in.Volumes)
	def.PlacementConstraints = present(in.PlacementConstraints)
	def.ContainerDefinitions = slices.Clone(in.ContainerDefinitions)
	for i := range def.ContainerDefinitions {
		c := &def.ContainerDefinitions[i]
		if c.CPU == nil {
			c.CPU = new(0)
		}
		if c.Essential == nil {
			c.Essential = new(true)
		}
		c.PortMappings = present(c.PortMappings)
		c.Environment = present(c.Environment)
		c.MountPoints = present(c.MountPoints)
		c.VolumesFrom = present(c.VolumesFrom)
		c.SystemControls = present(c.SystemControls)
	}
	return def
}

// present makes an absent list an empty one.
func present[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
