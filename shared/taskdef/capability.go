package taskdef

import (
	"slices"
	"strings"
)

// The attributes by which an agent says what it does with a task's roles. ECS's agents tell them by these names. One is
// told only by an agent that does it where it runs: placement gives it no task that needs it otherwise.
const (
	CapabilityTaskRole         = "com.amazonaws.ecs.capability.task-iam-role"
	CapabilityTaskRoleHost     = "com.amazonaws.ecs.capability.task-iam-role-network-host" // in network mode host
	CapabilityPullECR          = "ecs.capability.execution-role-ecr-pull"
	CapabilityPrivateRegistry  = "ecs.capability.private-registry-authentication.secretsmanager"
	CapabilityEnvironmentFiles = "ecs.capability.env-files.s3"
	CapabilitySecretsSSM       = "ecs.capability.secrets.ssm.environment-variables"
	CapabilitySecretsASM       = "ecs.capability.secrets.asm.environment-variables"
	CapabilityLogSecretsSSM    = "ecs.capability.secrets.ssm.bootstrap.log-driver"
	CapabilityLogSecretsASM    = "ecs.capability.secrets.asm.bootstrap.log-driver"
)

// CapabilityTaskLimits is ECS's name for what an agent tells that keeps a task's cpu and memory for its containers
// together. Placement does not go by it by itself: where it is not told each container is bounded. Constraints may ask for it.
const CapabilityTaskLimits = "ecs.capability.task-cpu-mem-limit"

// attributeLogsRole is that of a host whose awslogs driver writes with the execution role. It is shown, as the drivers
// themselves are, but placement does not go by it: Docker has credentials of its own for its logs, or says that it lacks them.
const attributeLogsRole = "ecs.capability.execution-role-awslogs"

// RoleCapabilities are all of them.
func RoleCapabilities() []string {
	return []string{
		CapabilityTaskRole, CapabilityTaskRoleHost, CapabilityPullECR, CapabilityPrivateRegistry,
		CapabilityEnvironmentFiles, CapabilitySecretsSSM, CapabilitySecretsASM, CapabilityLogSecretsSSM, CapabilityLogSecretsASM,
	}
}

// PlacedBy says whether placement goes by a required attribute of this name: whether agents that can tell it.
func PlacedBy(name string) bool {
	return slices.Contains(Capabilities(), name) || slices.Contains(RoleCapabilities(), name)
}

// roleRequirements are those of them that a task of s needs.
func roleRequirements(s Spec) (names []string) {
	need := func(name string, needed bool) {
		if needed {
			names = append(names, name)
		}
	}
	host := s.Network() == NetworkHost
	need(CapabilityTaskRole, s.TaskRoleArn != "" && !host)
	need(CapabilityTaskRoleHost, s.TaskRoleArn != "" && host)
	for _, c := range s.ContainerDefinitions {
		need(CapabilityPullECR, s.ExecutionRoleArn != "" && c.RepositoryCredentials == nil && ecrForm.MatchString(c.Image))
		need(CapabilityPrivateRegistry, c.RepositoryCredentials != nil)
		need(CapabilityEnvironmentFiles, len(c.EnvironmentFiles) > 0)
		need(CapabilitySecretsSSM, slices.ContainsFunc(c.Secrets, Secret.isParameter))
		need(CapabilitySecretsASM, slices.ContainsFunc(c.Secrets, Secret.isSecret))
		if l := c.LogConfiguration; l != nil {
			need(attributeLogsRole, s.ExecutionRoleArn != "" && l.LogDriver == "awslogs")
			need(CapabilityLogSecretsSSM, slices.ContainsFunc(l.SecretOptions, Secret.isParameter))
			need(CapabilityLogSecretsASM, slices.ContainsFunc(l.SecretOptions, Secret.isSecret))
		}
	}
	return names
}

func (s Secret) isSecret() bool { return strings.Contains(s.ValueFrom, ":secretsmanager:") }

func (s Secret) isParameter() bool { return !s.isSecret() }
