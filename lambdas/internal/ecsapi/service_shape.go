package ecsapi

import (
	"cmp"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/taskdef"
)

type breakerShape struct {
	Enable   bool `json:"enable"`
	Rollback bool `json:"rollback"`
}

type configurationShape struct {
	Breaker        breakerShape `json:"deploymentCircuitBreaker"`
	MaximumPercent int          `json:"maximumPercent"`
	MinimumPercent int          `json:"minimumHealthyPercent"`
	Strategy       string       `json:"strategy"`
	BakeTime       int          `json:"bakeTimeInMinutes"`
}

func configuration(maximum, minimum int, breaker, rollback bool) configurationShape {
	return configurationShape{breakerShape{breaker, rollback}, maximum, minimum, "ROLLING", 0}
}

type controllerShape struct {
	Type string `json:"type"`
}

type deploymentShape struct {
	ID                 string          `json:"id"`
	Status             string          `json:"status"`
	TaskDefinition     string          `json:"taskDefinition"`
	DesiredCount       int             `json:"desiredCount"`
	PendingCount       int             `json:"pendingCount"`
	RunningCount       int             `json:"runningCount"`
	FailedTasks        int             `json:"failedTasks"`
	CreatedAt          taskdef.Instant `json:"createdAt"`
	UpdatedAt          taskdef.Instant `json:"updatedAt"`
	LaunchType         string          `json:"launchType"`
	RolloutState       string          `json:"rolloutState"`
	RolloutStateReason string          `json:"rolloutStateReason"`
}

type eventShape struct {
	ID        string          `json:"id"`
	CreatedAt taskdef.Instant `json:"createdAt"`
	Message   string          `json:"message"`
}

type constraintShape struct {
	Type       string `json:"type"`
	Expression string `json:"expression,omitempty"`
}

type strategyShape struct {
	Type  string `json:"type"`
	Field string `json:"field,omitempty"`
}

// revisionCount is how many tasks of a revision there are.
type revisionCount struct {
	ARN       string `json:"arn"`
	Requested int    `json:"requestedTaskCount"`
	Running   int    `json:"runningTaskCount"`
	Pending   int    `json:"pendingTaskCount"`
}

type serviceShape struct {
	ServiceARN         string             `json:"serviceArn"`
	ServiceName        string             `json:"serviceName"`
	ClusterARN         string             `json:"clusterArn"`
	Status             string             `json:"status"`
	DesiredCount       int                `json:"desiredCount"`
	RunningCount       int                `json:"runningCount"`
	PendingCount       int                `json:"pendingCount"`
	TaskDefinition     string             `json:"taskDefinition"`
	LaunchType         string             `json:"launchType"`
	SchedulingStrategy string             `json:"schedulingStrategy"`
	Configuration      configurationShape `json:"deploymentConfiguration"`
	Controller         controllerShape    `json:"deploymentController"`
	Deployments        []deploymentShape  `json:"deployments"`
	Events             []eventShape       `json:"events"`
	CurrentDeployment  string             `json:"currentServiceDeployment,omitempty"`
	CurrentRevisions   []revisionCount    `json:"currentServiceRevisions"`
	CreatedAt          taskdef.Instant    `json:"createdAt"`
	CreatedBy          string             `json:"createdBy,omitempty"`
	Constraints        []constraintShape  `json:"placementConstraints"`
	Strategy           []strategyShape    `json:"placementStrategy"`
	LoadBalancers      []struct{}         `json:"loadBalancers"`
	Registries         []struct{}         `json:"serviceRegistries"`
	HealthGrace        *int               `json:"healthCheckGracePeriodSeconds,omitempty"`
	Tags               []taskdef.Tag      `json:"tags"`
	PropagateTags      string             `json:"propagateTags"`
	ManagedTags        bool               `json:"enableECSManagedTags"`
	Exec               bool               `json:"enableExecuteCommand"`
	Rebalancing        string             `json:"availabilityZoneRebalancing"`
}

func (h *Handler) showService(v *control.ServiceView, tags bool) serviceShape {
	s := serviceShape{
		ServiceARN: h.control.ServiceARN(v.Cluster, v.Name), ServiceName: v.Name, ClusterARN: h.control.ClusterARN(v.Cluster),
		Status: string(v.Status), DesiredCount: v.Desired, RunningCount: v.Tasks.Running, PendingCount: v.Tasks.Pending,
		TaskDefinition: h.control.DefinitionARN(v.Family, v.Number), LaunchType: v.Launch, SchedulingStrategy: v.Strategy,
		Configuration: configuration(v.MaximumPercent, v.MinimumPercent, v.Breaker, v.Service.Rollback), Controller: controllerShape{"ECS"},
		Deployments: []deploymentShape{}, Events: []eventShape{}, CurrentRevisions: []revisionCount{},
		CreatedAt: instant(v.CreatedAt), CreatedBy: v.CreatedBy,
		Constraints: []constraintShape{}, Strategy: []strategyShape{}, LoadBalancers: []struct{}{}, Registries: []struct{}{},
		Tags: tagList(v.Service.Tags, tags), PropagateTags: cmp.Or(v.PropagateTags, "NONE"), ManagedTags: v.ManagedTags, Rebalancing: v.Rebalancing,
	}
	if v.Rollout != "" {
		s.CurrentDeployment = h.control.ServiceDeploymentARN(v.Cluster, v.Name, v.Rollout)
	}
	if v.HasHealthGrace {
		seconds := int(v.HealthGrace.Seconds())
		s.HealthGrace = &seconds
	}
	for _, p := range v.Constraints {
		s.Constraints = append(s.Constraints, constraintShape{p.Type, p.Expression})
	}
	for _, p := range v.Placement {
		s.Strategy = append(s.Strategy, strategyShape{p.Type, p.Field})
	}
	for _, e := range v.Events {
		s.Events = append(s.Events, eventShape{requestID(e.ID), instant(e.At), e.Message})
	}
	for _, d := range v.Deployments {
		s.Deployments = append(s.Deployments, h.showDeployment(v, &d))
		s.CurrentRevisions = append(s.CurrentRevisions, h.showRevisionCount(v.Cluster, v.Name, d.Revision(), d))
	}
	return s
}

func (h *Handler) showDeployment(v *control.ServiceView, d *control.DeploymentView) deploymentShape {
	s := deploymentShape{
		ID: d.ID, Status: "ACTIVE", TaskDefinition: h.control.DefinitionARN(d.Family, d.Number),
		DesiredCount: d.Desired, PendingCount: d.Tasks.Pending, RunningCount: d.Tasks.Running, FailedTasks: d.Failed,
		CreatedAt: instant(d.CreatedAt), UpdatedAt: instant(d.UpdatedAt), LaunchType: v.Launch,
		RolloutState: string(d.State), RolloutStateReason: d.Reason,
	}
	if d.Primary {
		s.Status = "PRIMARY"
	}
	return s
}

func (h *Handler) showRevisionCount(cluster, service, revision string, d control.DeploymentView) revisionCount {
	return revisionCount{h.control.ServiceRevisionARN(cluster, service, revision), d.Desired, d.Tasks.Running, d.Tasks.Pending}
}
