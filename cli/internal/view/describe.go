package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/longshore-run/longshore/cli/internal/output"
)

// fields is a table of names and values; empty values are left out.
type fields struct{ output.Table }

func (f *fields) put(name string, value any) {
	cell, ok := value.(output.Cell)
	if !ok {
		cell = output.Cell{Text: fmt.Sprint(value)}
	}
	if cell.Text != "" {
		f.Add(output.Cell{Text: name, Colour: output.Faint}, cell)
	}
}

func (f *fields) time(name string, now time.Time, at *time.Time) {
	if at != nil {
		f.put(name, at.UTC().Format(time.RFC3339)+" ("+age(now, at)+" ago)")
	}
}

func (f *fields) tags(all []types.Tag) {
	for _, t := range all {
		f.put("tag", aws.ToString(t.Key)+"="+aws.ToString(t.Value))
	}
}

// Task is all about a task.
func Task(now time.Time, t *types.Task, host string) *output.Table {
	var f fields
	f.put("task", aws.ToString(t.TaskArn))
	f.put("definition", Definition(t.TaskDefinitionArn))
	f.put("status", status(Status(t)))
	f.put("desired", aws.ToString(t.DesiredStatus))
	f.put("waits for", output.Cell{Text: Waiting(t), Colour: output.Warn})
	if t.ContainerInstanceArn != nil {
		f.put("instance", ID(aws.ToString(t.ContainerInstanceArn))+" ("+cmp.Or(host, "?")+")")
	}
	f.put("zone", aws.ToString(t.AvailabilityZone))
	f.put("connectivity", string(t.Connectivity))
	f.put("disconnected", Kept(t))
	f.put("health", string(t.HealthStatus))
	f.put("attempt", attribute(t.Attributes, "longshore.attempt"))
	f.put("group", aws.ToString(t.Group))
	f.put("started by", aws.ToString(t.StartedBy))
	f.put("cpu", aws.ToString(t.Cpu))
	f.put("memory", aws.ToString(t.Memory))
	f.time("created", now, t.CreatedAt)
	f.time("started", now, t.StartedAt)
	f.time("stopping", now, t.StoppingAt)
	f.time("stopped", now, t.StoppedAt)
	f.put("stop code", string(t.StopCode))
	f.put("reason", aws.ToString(t.StoppedReason))
	f.tags(t.Tags)
	for _, c := range t.Containers {
		f.put("container "+aws.ToString(c.Name), container(c))
	}
	return &f.Table
}

func container(c types.Container) string {
	parts := []string{aws.ToString(c.LastStatus) + " " + aws.ToString(c.Image)}
	if c.ExitCode != nil {
		parts = append(parts, fmt.Sprintf("exit code %d", *c.ExitCode))
	}
	if c.HealthStatus != "" && c.HealthStatus != types.HealthStatusUnknown {
		parts = append(parts, string(c.HealthStatus))
	}
	for _, b := range c.NetworkBindings {
		parts = append(parts, fmt.Sprintf("%s:%d->%d/%s", aws.ToString(b.BindIP), aws.ToInt32(b.HostPort), aws.ToInt32(b.ContainerPort), b.Protocol))
	}
	if why := aws.ToString(c.Reason); why != "" {
		parts = append(parts, why)
	}
	return strings.Join(parts, ", ")
}

// Instance is all about an instance.
func Instance(now time.Time, i *types.ContainerInstance) *output.Table {
	var f fields
	f.put("instance", aws.ToString(i.ContainerInstanceArn))
	f.put("ec2", aws.ToString(i.Ec2InstanceId))
	f.put("status", status(State(i)))
	f.put("reason", aws.ToString(i.StatusReason))
	if Drained(i) {
		f.put("drained", "yes: nothing is left on it")
	}
	f.put("agent connected", i.AgentConnected)
	f.put("running", i.RunningTasksCount)
	f.put("pending", i.PendingTasksCount)
	f.put("cpu used", used(i, "CPU"))
	f.put("memory used", used(i, "MEMORY"))
	for _, name := range []string{"PORTS", "PORTS_UDP", "GPU"} {
		what := map[string]string{"PORTS": "tcp ports taken", "PORTS_UDP": "udp ports taken", "GPU": "gpus free"}[name]
		f.put(what, strings.Join(resource(i.RemainingResources, name).StringSetValue, " "))
	}
	if v := i.VersionInfo; v != nil {
		f.put("agent", aws.ToString(v.AgentVersion))
		f.put("engine", aws.ToString(v.DockerVersion))
	}
	if i.HealthStatus != nil {
		f.put("engine health", string(i.HealthStatus.OverallStatus))
	}
	f.time("registered", now, i.RegisteredAt)
	all := slices.Clone(i.Attributes)
	slices.SortFunc(all, func(a, b types.Attribute) int { return cmp.Compare(aws.ToString(a.Name), aws.ToString(b.Name)) })
	for _, a := range all {
		text := aws.ToString(a.Name)
		if v := aws.ToString(a.Value); v != "" {
			text += "=" + v
		}
		f.put("attribute", text)
	}
	f.tags(i.Tags)
	return &f.Table
}

// Cluster is all about a cluster.
func Cluster(k *types.Cluster) *output.Table {
	var f fields
	f.put("cluster", aws.ToString(k.ClusterArn))
	f.put("status", status(aws.ToString(k.Status)))
	f.put("instances", k.RegisteredContainerInstancesCount)
	f.put("running tasks", k.RunningTasksCount)
	f.put("pending tasks", k.PendingTasksCount)
	f.put("active services", k.ActiveServicesCount)
	f.tags(k.Tags)
	return &f.Table
}

// Service is all about a service but for its deployments.
func Service(now time.Time, s *types.Service) *output.Table {
	var f fields
	f.put("service", aws.ToString(s.ServiceArn))
	f.put("status", status(aws.ToString(s.Status)))
	f.put("strategy", string(s.SchedulingStrategy))
	f.put("definition", Definition(s.TaskDefinition))
	f.put("tasks", fmt.Sprintf("%d desired, %d running, %d pending", s.DesiredCount, s.RunningCount, s.PendingCount))
	if c := s.DeploymentConfiguration; c != nil {
		f.put("deployment", fmt.Sprintf("%d%% to %d%%", aws.ToInt32(c.MinimumHealthyPercent), aws.ToInt32(c.MaximumPercent)))
		if b := c.DeploymentCircuitBreaker; b != nil && b.Enable {
			text := "on"
			if b.Rollback {
				text = "on, rolls back"
			}
			f.put("circuit breaker", text)
		}
	}
	f.time("created", now, s.CreatedAt)
	f.tags(s.Tags)
	if n := len(s.Events); n > 0 {
		f.put("last event", Event(s.Events[0]))
	}
	return &f.Table
}
