package command

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/cli/internal/client"
	"github.com/longshore-run/longshore/cli/internal/exit"
	"github.com/longshore-run/longshore/cli/internal/output"
	"github.com/longshore-run/longshore/cli/internal/view"
)

func join(names []string) string { return strings.Join(names, ", ") }

func (s *session) describeCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "describe", Short: "Tell all about a task, an instance, a service or a cluster",
		Example: `  longshore describe task 4f2a91c03d7e
  longshore describe instance i-0123456789abcdef0
  longshore describe service web -o yaml
  longshore describe cluster`,
	}
	c.AddCommand(
		s.describing("task TASK", "Tell all about a task", cobra.ExactArgs(1), s.completeTasks, s.describeTask),
		s.describing("instance INSTANCE", "Tell all about a container instance", cobra.ExactArgs(1), s.completeInstances, s.describeInstance),
		s.describing("service SERVICE", "Tell all about a service", cobra.ExactArgs(1), s.completeServices, s.describeService),
		s.describing("cluster [CLUSTER]", "Tell all about a cluster", cobra.MaximumNArgs(1), s.completeClusters, s.describeCluster),
	)
	return c
}

func (s *session) describing(use, short string, args cobra.PositionalArgs, complete cobra.CompletionFunc, do func(context.Context, *client.Client, string) error) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: args, ValidArgsFunction: complete, RunE: func(c *cobra.Command, args []string) error {
		api, err := s.client(c.Context())
		if err != nil {
			return err
		}
		name := ""
		if len(args) > 0 {
			name = args[0]
		}
		return do(c.Context(), api, name)
	}}
}

func (s *session) describeTask(ctx context.Context, c *client.Client, name string) error {
	t, err := s.task(ctx, c, name)
	if err != nil {
		return err
	}
	return s.show(t, func() *output.Table {
		return view.Task(s.Now(), t, s.hostNames(ctx, c, []types.Task{*t})[aws.ToString(t.ContainerInstanceArn)])
	})
}

func (s *session) describeInstance(ctx context.Context, c *client.Client, name string) error {
	i, err := s.instance(ctx, c, name)
	if err != nil {
		return err
	}
	return s.show(i, func() *output.Table { return view.Instance(s.Now(), i) })
}

func (s *session) describeService(ctx context.Context, c *client.Client, name string) error {
	v, err := s.service(ctx, c, name)
	if err != nil {
		return err
	}
	if f := output.Format(s.format); f != output.AsTable {
		return output.Value(s.Out, f, v)
	}
	if err := view.Service(s.Now(), v).Write(s.Out, s.colours()); err != nil {
		return err
	}
	s.blank()
	return view.Deployments(s.Now(), v).Write(s.Out, s.colours())
}

func (s *session) blank() { _, _ = s.Out.Write([]byte("\n")) }

func (s *session) describeCluster(ctx context.Context, c *client.Client, name string) error {
	if name == "" {
		name = s.cluster
	}
	out, err := c.ECS.DescribeClusters(ctx, &ecs.DescribeClustersInput{Clusters: []string{name}, Include: []types.ClusterField{types.ClusterFieldTags}})
	if err != nil {
		return err
	}
	if len(out.Clusters) == 0 {
		return exit.New(exit.NotFound, "make it: aws ecs create-cluster --cluster-name "+name, "there is no cluster %s", name)
	}
	k := &out.Clusters[0]
	return s.show(k, func() *output.Table { return view.Cluster(k) })
}

func (s *session) clusterARN(ctx context.Context, c *client.Client) (string, error) {
	out, err := c.ECS.DescribeClusters(ctx, &ecs.DescribeClustersInput{Clusters: []string{s.cluster}})
	if err != nil {
		return "", err
	}
	if len(out.Clusters) == 0 {
		return "", exit.New(exit.NotFound, "name another with --cluster", "there is no cluster %s", s.cluster)
	}
	return aws.ToString(out.Clusters[0].ClusterArn), nil
}
