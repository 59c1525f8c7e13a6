package ecsapi

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/longshore-run/longshore/lambdas/control"
)

// maxServices and defaultServices are ListServices' own.
const defaultServices = 10

type breakerIn struct {
	Enable   *bool `json:"enable" need:"true"`
	Rollback *bool `json:"rollback" need:"true"`
	Reset    *bool `json:"resetOnHealthyTask"`

	Threshold json.RawMessage `json:"thresholdConfiguration" refuse:"the threshold is ECS's own: half of the desired count, at least 3, at most 200"`
}

type alarmsIn struct {
	Names    []string `json:"alarmNames"`
	Enable   bool     `json:"enable"`
	Rollback bool     `json:"rollback"`
}

type deploymentConfigurationIn struct {
	MaximumPercent *int       `json:"maximumPercent"`
	MinimumPercent *int       `json:"minimumHealthyPercent"`
	Breaker        *breakerIn `json:"deploymentCircuitBreaker"`
	Strategy       string     `json:"strategy" one:"ROLLING|BLUE_GREEN|LINEAR|CANARY"`
	Alarms         *alarmsIn  `json:"alarms"`
	BakeTime       *int       `json:"bakeTimeInMinutes"`

	Hooks  json.RawMessage `json:"lifecycleHooks" refuse:"deployments have no hooks"`
	Linear json.RawMessage `json:"linearConfiguration" refuse:"deployments are rolling"`
	Canary json.RawMessage `json:"canaryConfiguration" refuse:"deployments are rolling"`
	Early  json.RawMessage `json:"earlySuccessCriteria" refuse:"a deployment is done once every task runs"`
}

type controllerIn struct {
	Type string `json:"type" need:"true" one:"ECS|CODE_DEPLOY|EXTERNAL"`
}

// rules reads how tasks are replaced, and refuses what is not done.
func rules(in *deploymentConfigurationIn, controller *controllerIn) (r control.DeploymentRules, err error) {
	if controller != nil && controller.Type != "ECS" {
		return r, parameter("deploymentController.type", "is %s; ECS is supported: deployments are rolling", controller.Type)
	}
	if in == nil {
		return r, nil
	}
	const at = "deploymentConfiguration."
	switch {
	case in.Strategy != "" && in.Strategy != "ROLLING":
		return r, parameter(at+"strategy", "is %s; ROLLING is supported", in.Strategy)
	case in.Alarms != nil && in.Alarms.Enable:
		return r, parameter(at+"alarms", "is not supported: a rollout is judged by its tasks")
	case in.BakeTime != nil && *in.BakeTime != 0:
		return r, parameter(at+"bakeTimeInMinutes", "is not supported: deployments are rolling")
	}
	r.MaximumPercent, r.MinimumPercent = in.MaximumPercent, in.MinimumPercent
	if b := in.Breaker; b != nil {
		if b.Reset != nil && !*b.Reset {
			return r, parameter(at+"deploymentCircuitBreaker.resetOnHealthyTask", "is false; a healthy task always resets the count of failures here")
		}
		r.Breaker, r.Rollback = b.Enable, b.Rollback
	}
	return r, nil
}

type createServiceIn struct {
	ServiceName        string                     `json:"serviceName" need:"true"`
	Cluster            string                     `json:"cluster"`
	TaskDefinition     string                     `json:"taskDefinition"`
	ClientToken        string                     `json:"clientToken"`
	DesiredCount       *int                       `json:"desiredCount"`
	SchedulingStrategy string                     `json:"schedulingStrategy" one:"REPLICA|DAEMON"`
	LaunchType         string                     `json:"launchType" one:"EC2|FARGATE|EXTERNAL|MANAGED_INSTANCES"`
	Configuration      *deploymentConfigurationIn `json:"deploymentConfiguration"`
	Controller         *controllerIn              `json:"deploymentController"`
	Constraints        []constraintIn             `json:"placementConstraints"`
	Strategy           []strategyIn               `json:"placementStrategy"`
	HealthGrace        *int                       `json:"healthCheckGracePeriodSeconds"`
	PropagateTags      string                     `json:"propagateTags" one:"TASK_DEFINITION|SERVICE|NONE"`
	ManagedTags        bool                       `json:"enableECSManagedTags"`
	Tags               []tag                      `json:"tags"`
	Rebalancing        string                     `json:"availabilityZoneRebalancing" one:"ENABLED|DISABLED"`

	Exec       json.RawMessage `json:"enableExecuteCommand" refuse:"ExecuteCommand is not done here"`
	Balancers  json.RawMessage `json:"loadBalancers" refuse:"tasks are not put behind load balancers here"`
	Registries json.RawMessage `json:"serviceRegistries" refuse:"there is no service discovery here"`
	Network    json.RawMessage `json:"networkConfiguration" refuse:"a task has no network interface of its own; it uses its instance's"`
	Providers  json.RawMessage `json:"capacityProviderStrategy" refuse:"there are no capacity providers"`
	Connect    json.RawMessage `json:"serviceConnectConfiguration" refuse:"Service Connect is not done here"`
	Volumes    json.RawMessage `json:"volumeConfigurations" refuse:"EBS volumes are not made for tasks"`
	Lattice    json.RawMessage `json:"vpcLatticeConfigurations" refuse:"VPC Lattice is not done here"`
	Gateways   json.RawMessage `json:"gatewayConnectors" refuse:"gateways are not done here"`
	Monitoring json.RawMessage `json:"monitoring" refuse:"there are no metrics of a service's own"`
	Platform   json.RawMessage `json:"platformVersion" refuse:"it is Fargate's"`
	Role       json.RawMessage `json:"role" refuse:"it is for load balancers"`
}

type serviceOut struct {
	Service serviceShape `json:"service"`
}

const noRebalancing = "is ENABLED; tasks are spread over zones when they are placed, and not moved later: DISABLED is supported"

func createService(ctx context.Context, h *Handler, in *createServiceIn) (*serviceOut, error) {
	if in.Rebalancing == "ENABLED" {
		return nil, parameter("availabilityZoneRebalancing", noRebalancing)
	}
	cluster, err := h.clusterName("cluster", in.Cluster)
	if err != nil {
		return nil, err
	}
	r := control.ServiceRequest{
		Cluster: cluster, Name: in.ServiceName, Definition: in.TaskDefinition, Strategy: in.SchedulingStrategy, Desired: in.DesiredCount,
		Launch: in.LaunchType, PropagateTags: in.PropagateTags, ManagedTags: in.ManagedTags, HealthGrace: in.HealthGrace,
		Rebalancing: in.Rebalancing, Token: in.ClientToken, By: callOf(ctx).caller, Constraints: constraintsOf(in.Constraints), Placement: strategyOf(in.Strategy),
	}
	if r.Deployment, err = rules(in.Configuration, in.Controller); err != nil {
		return nil, err
	}
	if r.Tags, err = tagMap(in.Tags); err != nil {
		return nil, err
	}
	v, err := h.control.CreateService(ctx, r)
	if err != nil {
		return nil, err
	}
	return &serviceOut{h.showService(v, true)}, nil
}

func constraintsOf(in []constraintIn) (out []control.Placement) {
	for _, c := range in {
		out = append(out, control.Placement{Type: c.Type, Expression: c.Expression})
	}
	return out
}

func strategyOf(in []strategyIn) (out []control.Placement) {
	for _, s := range in {
		out = append(out, control.Placement{Type: s.Type, Field: s.Field})
	}
	return out
}

// strategyUpdateIn may be empty: that stands for none.
type strategyUpdateIn struct {
	Type  string `json:"type" one:"random|spread|binpack"`
	Field string `json:"field"`
}

type updateServiceIn struct {
	Service        string                     `json:"service" need:"true"`
	Cluster        string                     `json:"cluster"`
	TaskDefinition string                     `json:"taskDefinition"`
	DesiredCount   *int                       `json:"desiredCount"`
	Force          bool                       `json:"forceNewDeployment"`
	Configuration  *deploymentConfigurationIn `json:"deploymentConfiguration"`
	Controller     *controllerIn              `json:"deploymentController"`
	Constraints    *[]constraintIn            `json:"placementConstraints"`
	Strategy       *[]strategyUpdateIn        `json:"placementStrategy"`
	HealthGrace    *int                       `json:"healthCheckGracePeriodSeconds"`
	PropagateTags  string                     `json:"propagateTags" one:"TASK_DEFINITION|SERVICE|NONE"`
	ManagedTags    *bool                      `json:"enableECSManagedTags"`
	Rebalancing    string                     `json:"availabilityZoneRebalancing" one:"ENABLED|DISABLED"`

	Exec       json.RawMessage `json:"enableExecuteCommand" refuse:"ExecuteCommand is not done here"`
	Balancers  json.RawMessage `json:"loadBalancers" refuse:"tasks are not put behind load balancers here"`
	Registries json.RawMessage `json:"serviceRegistries" refuse:"there is no service discovery here"`
	Network    json.RawMessage `json:"networkConfiguration" refuse:"a task has no network interface of its own; it uses its instance's"`
	Providers  json.RawMessage `json:"capacityProviderStrategy" refuse:"there are no capacity providers"`
	Connect    json.RawMessage `json:"serviceConnectConfiguration" refuse:"Service Connect is not done here"`
	Volumes    json.RawMessage `json:"volumeConfigurations" refuse:"EBS volumes are not made for tasks"`
	Lattice    json.RawMessage `json:"vpcLatticeConfigurations" refuse:"VPC Lattice is not done here"`
	Gateways   json.RawMessage `json:"gatewayConnectors" refuse:"gateways are not done here"`
	Monitoring json.RawMessage `json:"monitoring" refuse:"there are no metrics of a service's own"`
	Platform   json.RawMessage `json:"platformVersion" refuse:"it is Fargate's"`
}

func updateService(ctx context.Context, h *Handler, in *updateServiceIn) (*serviceOut, error) {
	if in.Rebalancing == "ENABLED" {
		return nil, parameter("availabilityZoneRebalancing", noRebalancing)
	}
	cluster, name, err := h.service(in.Cluster, in.Service)
	if err != nil {
		return nil, err
	}
	r := control.ServiceUpdate{
		Cluster: cluster, Name: name, Definition: in.TaskDefinition, Desired: in.DesiredCount, Force: in.Force,
		PropagateTags: in.PropagateTags, ManagedTags: in.ManagedTags, HealthGrace: in.HealthGrace, Rebalancing: in.Rebalancing,
	}
	if r.Deployment, err = rules(in.Configuration, in.Controller); err != nil {
		return nil, err
	}
	if in.Constraints != nil {
		all := constraintsOf(*in.Constraints)
		r.Constraints = &all
	}
	if in.Strategy != nil {
		var all []control.Placement
		for _, s := range *in.Strategy {
			if s != (strategyUpdateIn{}) {
				all = append(all, control.Placement{Type: s.Type, Field: s.Field})
			}
		}
		r.Placement = &all
	}
	v, err := h.control.UpdateService(ctx, r)
	if err != nil {
		return nil, err
	}
	return &serviceOut{h.showService(v, true)}, nil
}

// service reads a cluster and the name or ARN of a service of it.
func (h *Handler) service(cluster, service string) (string, string, error) {
	cluster, err := h.clusterName("cluster", cluster)
	if err != nil {
		return "", "", err
	}
	name, err := h.id("service", "service", cluster, service)
	return cluster, name, err
}

type deleteServiceIn struct {
	Service string `json:"service" need:"true"`
	Cluster string `json:"cluster"`
	Force   bool   `json:"force"`
}

func deleteService(ctx context.Context, h *Handler, in *deleteServiceIn) (*serviceOut, error) {
	cluster, name, err := h.service(in.Cluster, in.Service)
	if err != nil {
		return nil, err
	}
	v, err := h.control.DeleteService(ctx, cluster, name, in.Force)
	if err != nil {
		return nil, err
	}
	return &serviceOut{h.showService(v, true)}, nil
}

type describeServicesIn struct {
	Services []string `json:"services" need:"true"`
	Cluster  string   `json:"cluster"`
	Include  []string `json:"include" one:"TAGS"`
}

type describeServicesOut struct {
	Services []serviceShape `json:"services"`
	Failures []failure      `json:"failures"`
}

func describeServices(ctx context.Context, h *Handler, in *describeServicesIn) (*describeServicesOut, error) {
	cluster, err := h.clusterName("cluster", in.Cluster)
	if err != nil {
		return nil, err
	}
	names, given, err := h.ids("services", "service", cluster, in.Services)
	if err != nil {
		return nil, err
	}
	found, gone, err := h.control.DescribeServices(ctx, cluster, names)
	if err != nil {
		return nil, err
	}
	out := &describeServicesOut{Services: []serviceShape{}, Failures: []failure{}}
	for _, v := range found {
		out.Services = append(out.Services, h.showService(&v, slices.Contains(in.Include, "TAGS")))
	}
	for _, name := range gone {
		arn := arnOf(given[name], func(name string) string { return h.control.ServiceARN(cluster, name) })
		out.Failures = append(out.Failures, missing(arn)...)
	}
	return out, nil
}

type listServicesIn struct {
	Cluster            string `json:"cluster"`
	LaunchType         string `json:"launchType" one:"EC2|FARGATE|EXTERNAL|MANAGED_INSTANCES"`
	SchedulingStrategy string `json:"schedulingStrategy" one:"REPLICA|DAEMON"`
	Management         string `json:"resourceManagementType" one:"CUSTOMER|ECS"`
	MaxResults         *int   `json:"maxResults"`
	NextToken          string `json:"nextToken"`
}

type listServicesOut struct {
	ServiceARNs []string `json:"serviceArns"`
	NextToken   string   `json:"nextToken,omitempty"`
}

func listServices(ctx context.Context, h *Handler, in *listServicesIn) (*listServicesOut, error) {
	cluster, err := h.clusterName("cluster", in.Cluster)
	if err != nil {
		return nil, err
	}
	f := control.ServiceFilter{Cluster: cluster, Launch: in.LaunchType, Strategy: in.SchedulingStrategy}
	l, err := newListing(in.NextToken, in.MaxResults, "ListServices", f, in.Management)
	if err != nil {
		return nil, err
	}
	if in.MaxResults == nil {
		l.limit = defaultServices
	}
	if in.Management == "ECS" { // Express services, of which there are none
		f.Strategy = "none"
	}
	names, next, err := h.control.ListServices(ctx, f, l.cursor, l.limit)
	if err != nil {
		return nil, err
	}
	arn := func(name string) string { return h.control.ServiceARN(cluster, name) }
	return &listServicesOut{each(names, arn), l.token(next)}, nil
}
