package command

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/cli/internal/client"
	"github.com/longshore-run/longshore/cli/internal/exit"
	"github.com/longshore-run/longshore/cli/internal/output"
	"github.com/longshore-run/longshore/cli/internal/view"
	"github.com/longshore-run/longshore/cli/internal/wait"
)

func (s *session) servicesCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "services", Short: "List, deploy, roll back and scale services", Aliases: []string{"service", "svc"},
		Long: `Lists, deploys, rolls back and scales services. They are made and removed as with
ECS: aws ecs create-service, aws ecs delete-service; docs/clients.md tells how aws finds
Longshore.`,
		Example: `  longshore services list
  longshore services deploy web --definition web.yaml --wait
  longshore services deploy web --image main=registry.example/web:2
  longshore services rollback web --wait
  longshore services scale web 5
  longshore services events web --follow`,
	}
	c.AddCommand(s.servicesList(), s.deployCommand(), s.rollbackCommand(), s.scaleCommand(), s.serviceEvents())
	return c
}

// service finds one service by its name or ARN.
func (s *session) service(ctx context.Context, c *client.Client, name string) (*types.Service, error) {
	out, err := c.ECS.DescribeServices(ctx, &ecs.DescribeServicesInput{Cluster: &s.cluster, Services: []string{name}, Include: []types.ServiceField{types.ServiceFieldTags}})
	if err != nil {
		return nil, err
	}
	if len(out.Services) == 0 {
		return nil, exit.New(exit.NotFound, "see which there are: longshore services list", "there is no service %s in cluster %s", name, s.cluster)
	}
	return &out.Services[0], nil
}

func (s *session) allServices(ctx context.Context, c *client.Client) ([]types.Service, error) {
	var all []types.Service
	pages := ecs.NewListServicesPaginator(c.ECS, &ecs.ListServicesInput{Cluster: &s.cluster})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for chunk := range slices.Chunk(page.ServiceArns, 10) { // as many as DescribeServices takes
			out, err := c.ECS.DescribeServices(ctx, &ecs.DescribeServicesInput{Cluster: &s.cluster, Services: chunk, Include: []types.ServiceField{types.ServiceFieldTags}})
			if err != nil {
				return nil, err
			}
			all = append(all, out.Services...)
		}
	}
	return all, nil
}

func (s *session) servicesList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List services", Aliases: []string{"ls"}, Args: cobra.NoArgs,
		Example: "  longshore services list --cluster edge",
		RunE: func(c *cobra.Command, _ []string) error {
			api, err := s.client(c.Context())
			if err != nil {
				return err
			}
			all, err := s.allServices(c.Context(), api)
			if err != nil {
				return err
			}
			return s.show(&ecs.DescribeServicesOutput{Services: all}, func() *output.Table { return view.Services(s.Now(), all) })
		},
	}
}

// rollout is the flags of those that wait for a rollout.
type rollout struct {
	wait    bool
	timeout time.Duration
}

func (r *rollout) flags(c *cobra.Command) {
	c.Flags().BoolVarP(&r.wait, "wait", "w", false, "wait until the service is stable, showing how it goes; fail if it does not become so")
	c.Flags().DurationVar(&r.timeout, "timeout", 30*time.Minute, "wait at most so long")
}

func (s *session) deployCommand() *cobra.Command {
	var r rollout
	var definition string
	var images []string
	var force bool
	c := &cobra.Command{
		Use: "deploy SERVICE", Short: "Roll out a task definition",
		Long: `Rolls a service over to another task definition: a revision that exists, a file
(which is registered if it differs from the family's latest revision), or the
service's present one with other images. With --force its tasks are replaced
though the definition is the same.`,
		Example: `  longshore services deploy web --definition web:7 --wait
  longshore services deploy web --definition web.yaml --wait
  longshore services deploy web --image main=registry.example/web:2 --wait
  longshore services deploy web --force`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: s.completeServices,
		RunE: func(c *cobra.Command, args []string) error {
			return s.deploy(c.Context(), args[0], definition, images, force, r)
		},
	}
	c.Flags().StringVar(&definition, "definition", "", "family:revision, family (its latest), ARN or file")
	c.Flags().StringArrayVar(&images, "image", nil, "CONTAINER=IMAGE in the present definition; may be repeated")
	c.Flags().BoolVar(&force, "force", false, "replace the tasks though nothing changed")
	_ = c.RegisterFlagCompletionFunc("definition", s.completeDefinitions)
	r.flags(c)
	return c
}

func (s *session) deploy(ctx context.Context, name, definition string, images []string, force bool, r rollout) error {
	c, err := s.client(ctx)
	if err != nil {
		return err
	}
	before, err := s.service(ctx, c, name)
	if err != nil {
		return err
	}
	in := &ecs.UpdateServiceInput{Cluster: &s.cluster, Service: &name, ForceNewDeployment: force}
	switch {
	case definition != "" && len(images) > 0:
		return exit.New(exit.Usage, "put the images into the definition", "--definition and --image can not both be given")
	case len(images) > 0:
		in.TaskDefinition, err = s.withImages(ctx, c, aws.ToString(before.TaskDefinition), images)
	case definition != "":
		in.TaskDefinition, err = s.deployable(ctx, c, definition)
	case !force:
		return exit.New(exit.Usage, "give --definition, --image or --force", "there is nothing to deploy")
	}
	if err != nil {
		return err
	}
	return s.update(ctx, c, in, r)
}

func (s *session) deployable(ctx context.Context, c *client.Client, name string) (*string, error) {
	if !isFile(name) {
		return &name, nil
	}
	d, err := s.register(ctx, c, name, registering{})
	if err != nil {
		return nil, err
	}
	return d.TaskDefinitionArn, nil
}

// withImages registers a definition with other images, and returns its ARN.
func (s *session) withImages(ctx context.Context, c *client.Client, definition string, images []string) (*string, error) {
	out, err := c.ECS.DescribeTaskDefinition(ctx, &ecs.DescribeTaskDefinitionInput{TaskDefinition: &definition, Include: []types.TaskDefinitionField{types.TaskDefinitionFieldTags}})
	if err != nil {
		return nil, err
	}
	d, changed := out.TaskDefinition, false
	for _, text := range images {
		name, image, ok := strings.Cut(text, "=")
		at := slices.IndexFunc(d.ContainerDefinitions, func(k types.ContainerDefinition) bool { return aws.ToString(k.Name) == name })
		if !ok || image == "" || at < 0 {
			return nil, exit.New(exit.Usage, "write --image CONTAINER=IMAGE", "--image %q names no container of %s", text, view.Definition(&definition))
		}
		changed = changed || aws.ToString(d.ContainerDefinitions[at].Image) != image
		d.ContainerDefinitions[at].Image = &image
	}
	if !changed {
		s.note("%s has these images already", view.Definition(&definition))
		return d.TaskDefinitionArn, nil
	}
	text, err := output.JSON(d)
	if err != nil {
		return nil, err
	}
	var send ecs.RegisterTaskDefinitionInput
	if err := strictly(withoutRegistration(text), &send); err != nil {
		return nil, fmt.Errorf("copy %s: %w", view.Definition(&definition), err)
	}
	send.Tags = out.Tags
	made, err := c.ECS.RegisterTaskDefinition(ctx, &send)
	if err != nil {
		return nil, err
	}
	s.note("registered %s", view.Definition(made.TaskDefinition.TaskDefinitionArn))
	return made.TaskDefinition.TaskDefinitionArn, nil
}

// update changes a service and, if asked, waits until it is stable.
func (s *session) update(ctx context.Context, c *client.Client, in *ecs.UpdateServiceInput, r rollout) error {
	out, err := c.ECS.UpdateService(ctx, in)
	if err != nil {
		return err
	}
	service := out.Service
	if r.wait {
		if service, err = s.untilStable(ctx, c, out.Service, r.timeout); err != nil {
			return err
		}
	}
	all := []types.Service{*service}
	return s.show(&ecs.UpdateServiceOutput{Service: service}, func() *output.Table { return view.Services(s.Now(), all) })
}

// untilStable shows a rollout's progress and its events until it is over. It
// fails if the deployment that was begun is not what the service is left with.
func (s *session) untilStable(ctx context.Context, c *client.Client, begun *types.Service, timeout time.Duration) (now *types.Service, err error) {
	line := s.statusLine()
	defer line.keep()
	name, mine, seen := aws.ToString(begun.ServiceArn), "", map[string]bool{}
	view.Events(begun, seen) // what was said before
	if d := view.Primary(begun); d != nil {
		mine = aws.ToString(d.Id)
	}
	failed := ""
	err = wait.Until(ctx, s.Every, timeout, "service "+aws.ToString(begun.ServiceName)+" to be stable", func(ctx context.Context) (bool, error) {
		if now, err = s.service(ctx, c, name); err != nil {
			return false, err
		}
		for _, e := range view.Events(now, seen) {
			fmt.Fprintln(line.over(s.Err), "  "+view.Event(e))
		}
		text := view.Progress(now)
		line.set(text, text, view.Colour(view.Rollout(now)))
		for _, d := range now.Deployments {
			if aws.ToString(d.Id) == mine && d.RolloutState == types.DeploymentRolloutStateFailed {
				failed = aws.ToString(d.RolloutStateReason)
			}
		}
		d := view.Primary(now)
		switch {
		case aws.ToString(now.Status) == "INACTIVE":
			return false, exit.New(exit.NotFound, "", "the service was deleted")
		case d != nil && aws.ToString(d.Id) == mine && d.RolloutState == types.DeploymentRolloutStateFailed && len(now.Deployments) == 1:
			return true, nil
		}
		return view.Stable(now) && (d == nil || d.RolloutState != types.DeploymentRolloutStateInProgress), nil
	})
	if err != nil {
		return nil, err
	}
	if d := view.Primary(now); failed != "" || d != nil && mine != "" && aws.ToString(d.Id) != mine {
		return nil, exit.New(exit.Failed, "why its tasks ended: longshore ps --all --service "+aws.ToString(now.ServiceName),
			"the deployment did not hold: the service runs %s%s", view.Definition(now.TaskDefinition), because(failed))
	}
	return now, nil
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + strings.TrimSuffix(why, ".")
}

func (s *session) rollbackCommand() *cobra.Command {
	var r rollout
	var to string
	c := &cobra.Command{
		Use: "rollback SERVICE", Short: "Go back to an earlier task definition",
		Long: `Deploys the revision that the service had before: that of its older deployment
while a rollout is under way, else the next lower ACTIVE revision of its family,
or the one that --to names.`,
		Example: `  longshore services rollback web --wait
  longshore services rollback web --to web:4`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: s.completeServices,
		RunE: func(c *cobra.Command, args []string) error { return s.rollback(c.Context(), args[0], to, r) },
	}
	c.Flags().StringVar(&to, "to", "", "the task definition to go back to")
	r.flags(c)
	return c
}

func (s *session) rollback(ctx context.Context, name, to string, r rollout) error {
	c, err := s.client(ctx)
	if err != nil {
		return err
	}
	v, err := s.service(ctx, c, name)
	if err != nil {
		return err
	}
	if to == "" {
		if to, err = s.earlier(ctx, c, v); err != nil {
			return err
		}
	}
	s.note("back from %s to %s", view.Definition(v.TaskDefinition), view.ID(to))
	return s.update(ctx, c, &ecs.UpdateServiceInput{Cluster: &s.cluster, Service: &name, TaskDefinition: &to}, r)
}

// earlier is what a service ran before.
func (s *session) earlier(ctx context.Context, c *client.Client, v *types.Service) (string, error) {
	present := aws.ToString(v.TaskDefinition)
	for _, d := range v.Deployments {
		if aws.ToString(d.Status) != "PRIMARY" && aws.ToString(d.TaskDefinition) != present {
			return aws.ToString(d.TaskDefinition), nil
		}
	}
	family, _, _ := strings.Cut(view.ID(present), ":")
	pages := ecs.NewListTaskDefinitionsPaginator(c.ECS, &ecs.ListTaskDefinitionsInput{FamilyPrefix: &family, Sort: types.SortOrderDesc})
	passed := false
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return "", err
		}
		for _, arn := range page.TaskDefinitionArns {
			if passed {
				return arn, nil
			}
			passed = passed || arn == present
		}
	}
	return "", exit.New(exit.NotFound, "name it with --to; see: longshore definitions list "+family, "%s has no earlier revision", view.Definition(&present))
}

func (s *session) scaleCommand() *cobra.Command {
	var r rollout
	c := &cobra.Command{
		Use: "scale SERVICE COUNT", Short: "Set how many tasks a service is to have",
		Example: "  longshore services scale web 5 --wait",
		Args:    cobra.ExactArgs(2), ValidArgsFunction: s.completeServices,
		RunE: func(c *cobra.Command, args []string) error {
			var n int32
			if _, err := fmt.Sscanf(args[1], "%d", &n); err != nil || n < 0 || fmt.Sprint(n) != args[1] {
				return exit.New(exit.Usage, "give a whole number, 0 or more", "%q is no count", args[1])
			}
			api, err := s.client(c.Context())
			if err != nil {
				return err
			}
			return s.update(c.Context(), api, &ecs.UpdateServiceInput{Cluster: &s.cluster, Service: &args[0], DesiredCount: &n}, r)
		},
	}
	r.flags(c)
	return c
}

func (s *session) serviceEvents() *cobra.Command {
	var follow bool
	c := &cobra.Command{
		Use: "events SERVICE", Short: "Show what a service's scheduler said",
		Example: "  longshore services events web --follow",
		Args:    cobra.ExactArgs(1), ValidArgsFunction: s.completeServices,
		RunE: func(c *cobra.Command, args []string) error { return s.sayings(c.Context(), args[0], follow) },
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on")
	return c
}

func (s *session) sayings(ctx context.Context, name string, follow bool) error {
	c, err := s.client(ctx)
	if err != nil {
		return err
	}
	if f := output.Format(s.format); f != output.AsTable {
		v, err := s.service(ctx, c, name)
		if err != nil {
			return err
		}
		return output.Value(s.Out, f, v.Events)
	}
	seen := map[string]bool{}
	return wait.Until(ctx, s.Every, 0, "nothing", func(ctx context.Context) (bool, error) {
		v, err := s.service(ctx, c, name)
		if err != nil {
			return false, err
		}
		for _, e := range view.Events(v, seen) {
			if _, err := fmt.Fprintln(s.Out, view.Event(e)); err != nil {
				return false, err
			}
		}
		return !follow, nil
	})
}
