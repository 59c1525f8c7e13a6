package command

import (
	"context"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/cli/internal/client"
	"github.com/longshore-run/longshore/cli/internal/view"
)

// completeWithin is how long a shell waits for names: who presses Tab wants an
// answer now or none.
const completeWithin = 2 * time.Second

// names completes from what the API has. Whatever goes wrong completes nothing.
func (s *session) names(c *cobra.Command, prefix string, ask func(context.Context, *client.Client) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	s.defaults() // cobra runs no hook here
	ctx := c.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completeWithin)
	defer cancel()
	api, err := s.client(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	all, err := ask(ctx, api)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []string
	for _, n := range all {
		if strings.HasPrefix(n, prefix) {
			out = append(out, n)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

func (s *session) completeClusters(c *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return s.names(c, prefix, func(ctx context.Context, api *client.Client) ([]string, error) {
		out, err := api.ECS.ListClusters(ctx, &ecs.ListClustersInput{})
		if err != nil {
			return nil, err
		}
		return ids(out.ClusterArns), nil
	})
}

func ids(arns []string) []string {
	var out []string
	for _, arn := range arns {
		out = append(out, view.ID(arn))
	}
	return out
}

func (s *session) completeTasks(c *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return s.names(c, prefix, func(ctx context.Context, api *client.Client) ([]string, error) {
		out, err := api.ECS.ListTasks(ctx, &ecs.ListTasksInput{Cluster: &s.cluster})
		if err != nil {
			return nil, err
		}
		var short []string
		for _, arn := range out.TaskArns {
			short = append(short, view.Short(arn))
		}
		return short, nil
	})
}

func (s *session) completeInstances(c *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return s.names(c, prefix, func(ctx context.Context, api *client.Client) ([]string, error) {
		all, err := s.instances(ctx, api, ecs.ListContainerInstancesInput{})
		if err != nil {
			return nil, err
		}
		var names []string
		for i := range all {
			names = append(names, view.Host(&all[i])+"\t"+view.State(&all[i]))
		}
		return names, nil
	})
}

func (s *session) completeServices(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return s.names(c, prefix, func(ctx context.Context, api *client.Client) ([]string, error) {
		out, err := api.ECS.ListServices(ctx, &ecs.ListServicesInput{Cluster: &s.cluster, MaxResults: aws.Int32(100)})
		if err != nil {
			return nil, err
		}
		return ids(out.ServiceArns), nil
	})
}

func (s *session) completeDefinitions(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	found, _ := s.names(c, prefix, func(ctx context.Context, api *client.Client) ([]string, error) {
		return s.families(ctx, api, prefix, false)
	})
	return found, cobra.ShellCompDirectiveDefault // a file is a definition too
}
