package control

import (
	"fmt"
	"strings"

	"github.com/longshore-run/longshore/shared/schedule"
)

// arn is the name of something of ours in ECS's form.
func (c *Control) arn(resource string) string {
	return fmt.Sprintf("arn:%s:ecs:%s:%s:%s", c.Setting.Partition, c.Setting.Region, c.Setting.Account, resource)
}

// TaskARN is a task's ARN, in ECS's long form.
func (c *Control) TaskARN(cluster, id string) string { return c.longARN("task", cluster, id) }

// InstanceARN is a container instance's ARN, in ECS's long form.
func (c *Control) InstanceARN(cluster, id string) string {
	return c.longARN("container-instance", cluster, id)
}

// longARN leaves what is an ARN already as it is: one of another installation,
// which a caller gave for an id, is named so when it is not found.
func (c *Control) longARN(kind, cluster, id string) string {
	if strings.HasPrefix(id, "arn:") {
		return id
	}
	return c.arn(kind + "/" + cluster + "/" + id)
}

// RuleARN is the ARN of a schedule's EventBridge rule.
func (c *Control) RuleARN(name string) string {
	return fmt.Sprintf("arn:%s:events:%s:%s:rule/%s", c.Setting.Partition, c.Setting.Region, c.Setting.Account, schedule.RuleName(c.Setting.StackName, name))
}

// ClusterARN is a cluster's ARN.
func (c *Control) ClusterARN(cluster string) string { return c.arn("cluster/" + cluster) }

// ContainerARN is the ARN of a task's container.
func (c *Control) ContainerARN(cluster, task, id string) string {
	return c.arn("container/" + cluster + "/" + task + "/" + id)
}

// DefinitionARN is a task definition's ARN.
func (c *Control) DefinitionARN(family string, number int) string {
	return c.NamedDefinitionARN(DefinitionName(family, number))
}

// NamedDefinitionARN is the ARN of family:revision.
func (c *Control) NamedDefinitionARN(name string) string { return c.arn("task-definition/" + name) }

// ServiceARN is a service's ARN, in ECS's long form.
func (c *Control) ServiceARN(cluster, name string) string { return c.longARN("service", cluster, name) }

// ServiceRevisionARN is the ARN of a service's revision.
func (c *Control) ServiceRevisionARN(cluster, service, id string) string {
	return c.arn("service-revision/" + cluster + "/" + service + "/" + id)
}

// ServiceDeploymentARN is the ARN of a row of a service's history.
func (c *Control) ServiceDeploymentARN(cluster, service, id string) string {
	return c.arn("service-deployment/" + cluster + "/" + service + "/" + id)
}
