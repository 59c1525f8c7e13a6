package command

import (
	"context"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/cli/internal/exit"
	"github.com/longshore-run/longshore/cli/internal/tasklog"
	"github.com/longshore-run/longshore/cli/internal/view"
)

func (s *session) logsCommand() *cobra.Command {
	var want tasklog.Want
	var container string
	var since time.Duration
	c := &cobra.Command{
		Use: "logs TASK", Short: "Show what a task's container wrote",
		Long: `Shows a container's log from CloudWatch Logs (driver awslogs), or from this
machine's Docker engine if it has the container. Where neither has it, it says
where the log is and how to get it.`,
		Example: `  longshore logs 4f2a91c03d7e
  longshore logs 4f2a91c03d7e --container proxy --follow --since 10m`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: s.completeTasks,
		RunE: func(c *cobra.Command, args []string) error {
			if since > 0 {
				want.Since = s.Now().Add(-since)
			}
			return s.logs(c.Context(), args[0], container, want)
		},
	}
	p := c.Flags()
	p.StringVar(&container, "container", "", "whose (the first essential one)")
	p.BoolVarP(&want.Follow, "follow", "f", false, "go on until the container ends")
	p.DurationVar(&since, "since", 0, "only what is not older")
	p.IntVarP(&want.Tail, "tail", "n", 0, "only the last lines (0: all)")
	p.BoolVarP(&want.Stamps, "timestamps", "t", false, "with the time of each line")
	return c
}

func (s *session) logs(ctx context.Context, name, container string, want tasklog.Want) error {
	c, err := s.client(ctx)
	if err != nil {
		return err
	}
	t, err := s.task(ctx, c, name)
	if err != nil {
		return err
	}
	out, err := c.ECS.DescribeTaskDefinition(ctx, &ecs.DescribeTaskDefinitionInput{TaskDefinition: t.TaskDefinitionArn})
	if err != nil {
		return err
	}
	d := out.TaskDefinition
	if container == "" {
		container = firstEssential(d)
	}
	at := slices.IndexFunc(d.ContainerDefinitions, func(d types.ContainerDefinition) bool { return aws.ToString(d.Name) == container })
	if at < 0 {
		var names []string
		for _, k := range d.ContainerDefinitions {
			names = append(names, aws.ToString(k.Name))
		}
		return exit.New(exit.NotFound, "it has: "+join(names), "task %s has no container %q", view.Short(aws.ToString(t.TaskArn)), container)
	}
	host := s.hostNames(ctx, c, []types.Task{*t})[aws.ToString(t.ContainerInstanceArn)]
	source, err := tasklog.Of(ctx, c.AWS, t, &d.ContainerDefinitions[at], host)
	if err != nil {
		return err
	}
	want.Ended = func(ctx context.Context) bool {
		found, err := s.describeTasks(ctx, c, []string{aws.ToString(t.TaskArn)})
		return err == nil && (len(found) == 0 || aws.ToString(found[0].LastStatus) == "STOPPED")
	}
	return source.Copy(ctx, s.Out, want)
}
