package ecsapi

import (
	"context"
	"slices"

	"github.com/longshore-run/longshore/lambdas/control"
)

type listInstancesIn struct {
	Cluster    string `json:"cluster"`
	Filter     string `json:"filter"`
	MaxResults *int   `json:"maxResults"`
	NextToken  string `json:"nextToken"`
	Status     string `json:"status" one:"ACTIVE|DRAINING|REGISTERING|DEREGISTERING|REGISTRATION_FAILED"`
}

type listInstancesOut struct {
	ARNs      []string `json:"containerInstanceArns"`
	NextToken string   `json:"nextToken,omitempty"`
}

func listContainerInstances(ctx context.Context, h *Handler, in *listInstancesIn) (*listInstancesOut, error) {
	cluster, err := h.clusterName("cluster", in.Cluster)
	if err != nil {
		return nil, err
	}
	f := control.InstanceFilter{Cluster: cluster, Expression: in.Filter, Status: control.InstanceStatus(in.Status)}
	l, err := newListing(in.NextToken, in.MaxResults, "ListContainerInstances", f)
	if err != nil {
		return nil, err
	}
	ids, next, err := h.control.ListContainerInstances(ctx, f, l.cursor, l.limit)
	if err != nil {
		return nil, err
	}
	arn := func(id string) string { return h.control.InstanceARN(cluster, id) }
	return &listInstancesOut{each(ids, arn), l.token(next)}, nil
}

type describeInstancesIn struct {
	Cluster            string   `json:"cluster"`
	ContainerInstances []string `json:"containerInstances" need:"true"`
	Include            []string `json:"include" one:"TAGS|CONTAINER_INSTANCE_HEALTH"`
}

type instancesOut struct {
	ContainerInstances []instanceShape `json:"containerInstances"`
	Failures           []failure       `json:"failures"`
}

func describeContainerInstances(ctx context.Context, h *Handler, in *describeInstancesIn) (*instancesOut, error) {
	cluster, err := h.clusterName("cluster", in.Cluster)
	if err != nil {
		return nil, err
	}
	ids, given, err := h.ids("containerInstances", "container-instance", cluster, in.ContainerInstances)
	if err != nil {
		return nil, err
	}
	found, gone, err := h.control.DescribeContainerInstances(ctx, cluster, ids)
	if err != nil {
		return nil, err
	}
	out := instancesOut{ContainerInstances: []instanceShape{}, Failures: []failure{}}
	for _, v := range found {
		s := h.showInstance(&v, slices.Contains(in.Include, "TAGS"))
		if slices.Contains(in.Include, "CONTAINER_INSTANCE_HEALTH") {
			s.HealthStatus = healthOf(&v)
		}
		out.ContainerInstances = append(out.ContainerInstances, s)
	}
	for _, id := range gone {
		arn := arnOf(given[id], func(id string) string { return h.control.InstanceARN(cluster, id) })
		out.Failures = append(out.Failures, missing(arn)...)
	}
	return &out, nil
}

type updateStateIn struct {
	Cluster            string   `json:"cluster"`
	ContainerInstances []string `json:"containerInstances" need:"true"`
	Status             string   `json:"status" need:"true" one:"ACTIVE|DRAINING" others:"the other statuses are not anybody's to set"`
}

func updateContainerInstancesState(ctx context.Context, h *Handler, in *updateStateIn) (*instancesOut, error) {
	cluster, err := h.clusterName("cluster", in.Cluster)
	if err != nil {
		return nil, err
	}
	ids, _, err := h.ids("containerInstances", "container-instance", cluster, in.ContainerInstances)
	if err != nil {
		return nil, err
	}
	found, failures, err := h.control.UpdateContainerInstancesState(ctx, cluster, ids, control.InstanceStatus(in.Status))
	if err != nil {
		return nil, err
	}
	out := instancesOut{ContainerInstances: []instanceShape{}, Failures: failuresOf(failures)}
	for _, v := range found {
		out.ContainerInstances = append(out.ContainerInstances, h.showInstance(&v, true))
	}
	return &out, nil
}

type deregisterInstanceIn struct {
	Cluster           string `json:"cluster"`
	ContainerInstance string `json:"containerInstance" need:"true"`
	Force             bool   `json:"force"`
}

type instanceOut struct {
	ContainerInstance instanceShape `json:"containerInstance"`
}

func deregisterContainerInstance(ctx context.Context, h *Handler, in *deregisterInstanceIn) (*instanceOut, error) {
	cluster, err := h.clusterName("cluster", in.Cluster)
	if err != nil {
		return nil, err
	}
	id, err := h.id("containerInstance", "container-instance", cluster, in.ContainerInstance)
	if err != nil {
		return nil, err
	}
	v, err := h.control.DeregisterContainerInstance(ctx, cluster, id, in.Force)
	if err != nil {
		return nil, err
	}
	return &instanceOut{h.showInstance(v, true)}, nil
}
