package command

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/longshore-run/longshore/cli/internal/client"
	"github.com/longshore-run/longshore/cli/internal/exit"
	"github.com/longshore-run/longshore/cli/internal/view"
)

// describeAtOnce is how many tasks or instances ECS describes in one call.
const describeAtOnce = 100

var wholeID = regexp.MustCompile(`^[0-9a-f]{32}$`)

// listTasks lists the ARNs that a filter picks.
func (s *session) listTasks(ctx context.Context, c *client.Client, in ecs.ListTasksInput) ([]string, error) {
	in.Cluster = &s.cluster
	var arns []string
	pages := ecs.NewListTasksPaginator(c.ECS, &in)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		arns = append(arns, page.TaskArns...)
	}
	return arns, nil
}

// describeTasks describes any number of tasks; those that are gone are left out.
func (s *session) describeTasks(ctx context.Context, c *client.Client, arns []string) ([]types.Task, error) {
	var all []types.Task
	for chunk := range slices.Chunk(arns, describeAtOnce) {
		out, err := c.ECS.DescribeTasks(ctx, &ecs.DescribeTasksInput{Cluster: &s.cluster, Tasks: chunk, Include: []types.TaskField{types.TaskFieldTags}})
		if err != nil {
			return nil, err
		}
		all = append(all, out.Tasks...)
	}
	return all, nil
}

// task finds one task by its ARN, its id, or the start of its id.
func (s *session) task(ctx context.Context, c *client.Client, name string) (*types.Task, error) {
	arn, err := s.taskName(ctx, c, name)
	if err != nil {
		return nil, err
	}
	found, err := s.describeTasks(ctx, c, []string{arn})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, exit.New(exit.NotFound, "stopped tasks are kept for a day; see: longshore ps --all", "there is no task %s in cluster %s", name, s.cluster)
	}
	return &found[0], nil
}

func (s *session) taskName(ctx context.Context, c *client.Client, name string) (string, error) {
	if strings.HasPrefix(name, "arn:") || wholeID.MatchString(name) {
		return name, nil
	}
	var match []string
	for _, desired := range []types.DesiredStatus{types.DesiredStatusRunning, types.DesiredStatusStopped} {
		arns, err := s.listTasks(ctx, c, ecs.ListTasksInput{DesiredStatus: desired})
		if err != nil {
			return "", err
		}
		for _, arn := range arns {
			if strings.HasPrefix(view.ID(arn), name) && !slices.Contains(match, arn) {
				match = append(match, arn)
			}
		}
	}
	return one("task", name, match, "see which there are: longshore ps --all")
}

// one is the only match of a name.
func one(what, name string, match []string, next string) (string, error) {
	switch len(match) {
	case 0:
		return "", exit.New(exit.NotFound, next, "no %s is called %q", what, name)
	case 1:
		return match[0], nil
	}
	return "", exit.New(exit.Usage, "write more of it", "%d %ss begin with %q: %s and %s", len(match), what, name, view.ID(match[0]), view.ID(match[1]))
}

// instances describes a cluster's instances, by a filter or all.
func (s *session) instances(ctx context.Context, c *client.Client, in ecs.ListContainerInstancesInput) ([]types.ContainerInstance, error) {
	in.Cluster = &s.cluster
	var arns []string
	pages := ecs.NewListContainerInstancesPaginator(c.ECS, &in)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		arns = append(arns, page.ContainerInstanceArns...)
	}
	return s.describeInstances(ctx, c, arns)
}

func (s *session) describeInstances(ctx context.Context, c *client.Client, arns []string) ([]types.ContainerInstance, error) {
	var all []types.ContainerInstance
	for chunk := range slices.Chunk(arns, describeAtOnce) {
		out, err := c.ECS.DescribeContainerInstances(ctx, &ecs.DescribeContainerInstancesInput{
			Cluster: &s.cluster, ContainerInstances: chunk, Include: []types.ContainerInstanceField{types.ContainerInstanceFieldTags, types.ContainerInstanceFieldContainerInstanceHealth},
		})
		if err != nil {
			return nil, err
		}
		all = append(all, out.ContainerInstances...)
	}
	return all, nil
}

// instance finds one instance by its ARN, its id or the start of it, or its EC2 id.
func (s *session) instance(ctx context.Context, c *client.Client, name string) (*types.ContainerInstance, error) {
	const next = "see which there are: longshore instances list"
	if strings.HasPrefix(name, "arn:") || wholeID.MatchString(name) {
		found, err := s.describeInstances(ctx, c, []string{name})
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, exit.New(exit.NotFound, next, "there is no instance %s in cluster %s", name, s.cluster)
		}
		return &found[0], nil
	}
	all, err := s.instances(ctx, c, ecs.ListContainerInstancesInput{})
	if err != nil {
		return nil, err
	}
	var match []string
	for i := range all {
		if arn := aws.ToString(all[i].ContainerInstanceArn); strings.HasPrefix(view.ID(arn), name) || aws.ToString(all[i].Ec2InstanceId) == name {
			match = append(match, arn)
		}
	}
	arn, err := one("instance", name, match, next)
	if err != nil {
		return nil, err
	}
	return &all[slices.IndexFunc(all, func(i types.ContainerInstance) bool { return aws.ToString(i.ContainerInstanceArn) == arn })], nil
}

// hostNames are what people call the instances of tasks, by ARN. Without the
// right to ask, ids do.
func (s *session) hostNames(ctx context.Context, c *client.Client, tasks []types.Task) map[string]string {
	var arns []string
	for i := range tasks {
		if arn := aws.ToString(tasks[i].ContainerInstanceArn); arn != "" && !slices.Contains(arns, arn) {
			arns = append(arns, arn)
		}
	}
	all, err := s.describeInstances(ctx, c, arns)
	if err != nil {
		return nil
	}
	names := map[string]string{}
	for i := range all {
		names[aws.ToString(all[i].ContainerInstanceArn)] = view.Host(&all[i])
	}
	return names
}
