package ecsapi

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/longshore-run/longshore/lambdas/control"
)

type constraintIn struct {
	Type       string `json:"type" need:"true" one:"distinctInstance|memberOf"`
	Expression string `json:"expression"`
}

type strategyIn struct {
	Type  string `json:"type" need:"true" one:"random|spread|binpack"`
	Field string `json:"field"`
}

type runTaskIn struct {
	TaskDefinition string          `json:"taskDefinition" need:"true"`
	Cluster        string          `json:"cluster"`
	Count          *int            `json:"count"`
	ClientToken    string          `json:"clientToken"`
	Group          string          `json:"group"`
	StartedBy      string          `json:"startedBy"`
	LaunchType     string          `json:"launchType" one:"EC2|EXTERNAL" others:"tasks run on your own instances"`
	Overrides      json.RawMessage `json:"overrides"`
	Constraints    []constraintIn  `json:"placementConstraints"`
	Strategy       []strategyIn    `json:"placementStrategy"`
	PropagateTags  string          `json:"propagateTags" one:"TASK_DEFINITION|NONE" others:"the task belongs to no service"`
	ManagedTags    bool            `json:"enableECSManagedTags"`
	Tags           []tag           `json:"tags"`

	Providers json.RawMessage `json:"capacityProviderStrategy" refuse:"there are no capacity providers"`
	Network   json.RawMessage `json:"networkConfiguration" refuse:"a task has no network interface of its own; it uses its instance's"`
	Exec      json.RawMessage `json:"enableExecuteCommand" refuse:"ExecuteCommand is not done here"`
	Volumes   json.RawMessage `json:"volumeConfigurations" refuse:"EBS volumes are not made for tasks"`
	Platform  json.RawMessage `json:"platformVersion" refuse:"it is Fargate's"`
	Reference json.RawMessage `json:"referenceId" refuse:"use startedBy or tags"`
}

type runOut struct {
	Tasks    []taskShape `json:"tasks"`
	Failures []failure   `json:"failures"`
}

// common is what RunTask and StartTask ask for alike.
func (h *Handler) common(cluster, definition, group, startedBy, propagate string, overrides json.RawMessage, managed bool, tags []tag) (r control.TaskRequest, err error) {
	r = control.TaskRequest{
		Definition: definition, Overrides: overrides, Group: group, StartedBy: startedBy,
		PropagateTags: propagate == "TASK_DEFINITION", ManagedTags: managed,
	}
	if r.Cluster, err = h.clusterName("cluster", cluster); err != nil {
		return r, err
	}
	r.Tags, err = tagMap(tags)
	return r, err
}

func runTask(ctx context.Context, h *Handler, in *runTaskIn) (*runOut, error) {
	r, err := h.common(in.Cluster, in.TaskDefinition, in.Group, in.StartedBy, in.PropagateTags, in.Overrides, in.ManagedTags, in.Tags)
	if err != nil {
		return nil, err
	}
	r.Launch = in.LaunchType
	for _, c := range in.Constraints {
		r.Constraints = append(r.Constraints, control.Placement{Type: c.Type, Expression: c.Expression})
	}
	for _, s := range in.Strategy {
		r.Strategy = append(r.Strategy, control.Placement{Type: s.Type, Field: s.Field})
	}
	req := control.RunTaskRequest{TaskRequest: r, Count: 1, Token: in.ClientToken}
	if in.Count != nil {
		req.Count = *in.Count
	}
	run, err := h.control.RunTask(ctx, req)
	if err != nil {
		return nil, err
	}
	return h.showRun(run), nil
}

func (h *Handler) showRun(run *control.Run) *runOut {
	out := &runOut{Tasks: []taskShape{}, Failures: failuresOf(run.Failures)}
	for _, v := range run.Tasks {
		out.Tasks = append(out.Tasks, h.showTask(&v, true))
	}
	return out
}

type startTaskIn struct {
	TaskDefinition     string          `json:"taskDefinition" need:"true"`
	ContainerInstances []string        `json:"containerInstances" need:"true"`
	Cluster            string          `json:"cluster"`
	Group              string          `json:"group"`
	StartedBy          string          `json:"startedBy"`
	Overrides          json.RawMessage `json:"overrides"`
	PropagateTags      string          `json:"propagateTags" one:"TASK_DEFINITION|NONE" others:"the task belongs to no service"`
	ManagedTags        bool            `json:"enableECSManagedTags"`
	Tags               []tag           `json:"tags"`

	Network   json.RawMessage `json:"networkConfiguration" refuse:"a task has no network interface of its own; it uses its instance's"`
	Exec      json.RawMessage `json:"enableExecuteCommand" refuse:"ExecuteCommand is not done here"`
	Volumes   json.RawMessage `json:"volumeConfigurations" refuse:"EBS volumes are not made for tasks"`
	Reference json.RawMessage `json:"referenceId" refuse:"use startedBy or tags"`
}

func startTask(ctx context.Context, h *Handler, in *startTaskIn) (*runOut, error) {
	r, err := h.common(in.Cluster, in.TaskDefinition, in.Group, in.StartedBy, in.PropagateTags, in.Overrides, in.ManagedTags, in.Tags)
	if err != nil {
		return nil, err
	}
	ids, _, err := h.ids("containerInstances", "container-instance", r.Cluster, in.ContainerInstances)
	if err != nil {
		return nil, err
	}
	run, err := h.control.StartTask(ctx, control.StartTaskRequest{TaskRequest: r, Instances: ids})
	if err != nil {
		return nil, err
	}
	return h.showRun(run), nil
}

type stopTaskIn struct {
	Task    string `json:"task" need:"true"`
	Cluster string `json:"cluster"`
	Reason  string `json:"reason"`
}

type taskOut struct {
	Task taskShape `json:"task"`
}

func stopTask(ctx context.Context, h *Handler, in *stopTaskIn) (*taskOut, error) {
	cluster, err := h.clusterName("cluster", in.Cluster)
	if err != nil {
		return nil, err
	}
	id, err := h.id("task", "task", cluster, in.Task)
	if err != nil {
		return nil, err
	}
	v, err := h.control.StopTask(ctx, cluster, id, in.Reason)
	if err != nil {
		return nil, err
	}
	return &taskOut{h.showTask(v, true)}, nil
}

type describeTasksIn struct {
	Tasks   []string `json:"tasks" need:"true"`
	Cluster string   `json:"cluster"`
	Include []string `json:"include" one:"TAGS"`
}

func describeTasks(ctx context.Context, h *Handler, in *describeTasksIn) (*runOut, error) {
	cluster, err := h.clusterName("cluster", in.Cluster)
	if err != nil {
		return nil, err
	}
	ids, given, err := h.ids("tasks", "task", cluster, in.Tasks)
	if err != nil {
		return nil, err
	}
	found, gone, err := h.control.DescribeTasks(ctx, cluster, ids)
	if err != nil {
		return nil, err
	}
	out := runOut{Tasks: []taskShape{}, Failures: []failure{}}
	for _, v := range found {
		out.Tasks = append(out.Tasks, h.showTask(&v, slices.Contains(in.Include, "TAGS")))
	}
	for _, id := range gone {
		arn := arnOf(given[id], func(id string) string { return h.control.TaskARN(cluster, id) })
		out.Failures = append(out.Failures, missing(arn)...)
	}
	return &out, nil
}

type listTasksIn struct {
	Cluster           string          `json:"cluster"`
	ContainerInstance string          `json:"containerInstance"`
	Family            string          `json:"family"`
	StartedBy         string          `json:"startedBy"`
	ServiceName       string          `json:"serviceName"`
	DesiredStatus     string          `json:"desiredStatus" one:"RUNNING|PENDING|STOPPED"`
	LaunchType        string          `json:"launchType" one:"EC2|FARGATE|EXTERNAL|MANAGED_INSTANCES"`
	MaxResults        *int            `json:"maxResults"`
	NextToken         string          `json:"nextToken"`
	Daemon            json.RawMessage `json:"daemonName" refuse:"managed daemons are not done here"`
}

type listTasksOut struct {
	TaskARNs  []string `json:"taskArns"`
	NextToken string   `json:"nextToken,omitempty"`
}

func listTasks(ctx context.Context, h *Handler, in *listTasksIn) (*listTasksOut, error) {
	cluster, err := h.clusterName("cluster", in.Cluster)
	if err != nil {
		return nil, err
	}
	f := control.TaskFilter{Cluster: cluster, Family: in.Family, StartedBy: in.StartedBy, Desired: in.DesiredStatus, Launch: in.LaunchType}
	if in.ContainerInstance != "" {
		if f.Instance, err = h.id("containerInstance", "container-instance", cluster, in.ContainerInstance); err != nil {
			return nil, err
		}
	}
	if in.ServiceName != "" {
		if f.Service, err = h.id("serviceName", "service", cluster, in.ServiceName); err != nil {
			return nil, err
		}
	}
	l, err := newListing(in.NextToken, in.MaxResults, "ListTasks", f)
	if err != nil {
		return nil, err
	}
	ids, next, err := h.control.ListTasks(ctx, f, l.cursor, l.limit)
	if err != nil {
		return nil, err
	}
	arn := func(id string) string { return h.control.TaskARN(cluster, id) }
	return &listTasksOut{each(ids, arn), l.token(next)}, nil
}
