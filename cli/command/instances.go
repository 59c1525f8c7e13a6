package command

import (
	"bufio"
	"context"
	"encoding/json"
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

// deadlineTag is the instance's tag that the control plane obeys while it drains:
// a duration from when the drain began, or none.
const (
	deadlineTag = "longshore:drainDeadline"
	noDeadline  = "none"
)

func (s *session) instancesCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "instances", Short: "List, drain and fence container instances", Aliases: []string{"instance"},
		Example: `  longshore instances list
  longshore instances drain i-0123456789abcdef0 --deadline 30m --wait
  longshore instances undrain i-0123456789abcdef0
  longshore instances fence i-0123456789abcdef0 --confirmed-off`,
	}
	c.AddCommand(s.instancesList(), s.drainCommand(), s.undrainCommand(), s.fenceCommand())
	return c
}

func (s *session) instancesList() *cobra.Command {
	var in ecs.ListContainerInstancesInput
	var filter, status string
	c := &cobra.Command{
		Use: "list", Short: "List container instances", Aliases: []string{"ls"},
		Example: `  longshore instances list
  longshore instances list --filter 'attribute:disk == ssd'
  longshore instances list --status DRAINING`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			api, err := s.client(c.Context())
			if err != nil {
				return err
			}
			in.Filter, in.Status = optional(filter), types.ContainerInstanceStatus(status)
			all, err := s.instances(c.Context(), api, in)
			if err != nil {
				return err
			}
			return s.show(&ecs.DescribeContainerInstancesOutput{ContainerInstances: all}, func() *output.Table { return view.Instances(s.Now(), all) })
		},
	}
	c.Flags().StringVar(&filter, "filter", "", "an expression of the cluster query language")
	c.Flags().StringVar(&status, "status", "", "ACTIVE or DRAINING")
	_ = c.RegisterFlagCompletionFunc("status", cobra.FixedCompletions([]string{"ACTIVE", "DRAINING"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (s *session) drainCommand() *cobra.Command {
	var deadline string
	var timeout time.Duration
	var waits bool
	c := &cobra.Command{
		Use: "drain INSTANCE...", Short: "Take the work off instances",
		Long: `Drains instances: they get no new work, and the tasks of services are replaced
elsewhere within their percentages. Other tasks are left to end by themselves, or
until the deadline, which counts from when the drain began and is kept as the
instance's tag longshore:drainDeadline; without it that of the cluster or of the
installation holds. Draining again with another one changes it. The status stays DRAINING, as in ECS; "drained" is said when nothing is left.`,
		Example: `  longshore instances drain i-0123456789abcdef0
  longshore instances drain i-0123456789abcdef0 --deadline 30m --wait`,
		Args: cobra.MinimumNArgs(1), ValidArgsFunction: s.completeInstances,
		RunE: func(c *cobra.Command, args []string) error {
			return s.drain(c.Context(), args, deadline, waits, timeout)
		},
	}
	c.Flags().StringVar(&deadline, "deadline", "", "stop by force what is left after so long, such as 30m; or none")
	c.Flags().BoolVarP(&waits, "wait", "w", false, "wait until nothing is left")
	c.Flags().DurationVar(&timeout, "timeout", time.Hour, "wait at most so long")
	return c
}

func (s *session) drain(ctx context.Context, names []string, deadline string, waits bool, timeout time.Duration) error {
	c, err := s.client(ctx)
	if err != nil {
		return err
	}
	if deadline != "" && deadline != noDeadline {
		d, err := time.ParseDuration(deadline)
		if err != nil || d <= 0 {
			return exit.New(exit.Usage, "give a duration such as 30m or 12h, or none", "--deadline is %q", deadline)
		}
		deadline = d.String()
	}
	arns, err := s.instanceARNs(ctx, c, names)
	if err != nil {
		return err
	}
	if deadline != "" { // before the drain begins, so that it never runs without
		for _, arn := range arns {
			if _, err := c.ECS.TagResource(ctx, &ecs.TagResourceInput{ResourceArn: &arn, Tags: []types.Tag{{Key: aws.String(deadlineTag), Value: &deadline}}}); err != nil {
				return fmt.Errorf("set the deadline of instance %s: %w", view.ID(arn), err)
			}
		}
	}
	found, err := s.setState(ctx, c, arns, types.ContainerInstanceStatusDraining)
	if err != nil {
		return err
	}
	if waits {
		if found, err = s.untilDrained(ctx, c, arns, timeout); err != nil {
			return err
		}
	}
	return s.show(&ecs.DescribeContainerInstancesOutput{ContainerInstances: found}, func() *output.Table { return view.Instances(s.Now(), found) })
}

func (s *session) instanceARNs(ctx context.Context, c *client.Client, names []string) ([]string, error) {
	var arns []string
	for _, name := range names {
		i, err := s.instance(ctx, c, name)
		if err != nil {
			return nil, err
		}
		if arn := aws.ToString(i.ContainerInstanceArn); !slices.Contains(arns, arn) {
			arns = append(arns, arn)
		}
	}
	return arns, nil
}

// setState changes any number of instances, as many at once as ECS allows.
func (s *session) setState(ctx context.Context, c *client.Client, arns []string, to types.ContainerInstanceStatus) ([]types.ContainerInstance, error) {
	var found []types.ContainerInstance
	for chunk := range slices.Chunk(arns, 10) {
		out, err := c.ECS.UpdateContainerInstancesState(ctx, &ecs.UpdateContainerInstancesStateInput{Cluster: &s.cluster, ContainerInstances: chunk, Status: to})
		if err != nil {
			return nil, err
		}
		for _, f := range out.Failures {
			return nil, exit.New(exit.NotFound, "see which there are: longshore instances list", "instance %s: %s", view.ID(aws.ToString(f.Arn)), aws.ToString(f.Reason))
		}
		found = append(found, out.ContainerInstances...)
	}
	return found, nil
}

func (s *session) untilDrained(ctx context.Context, c *client.Client, arns []string, timeout time.Duration) (found []types.ContainerInstance, err error) {
	line := s.statusLine()
	defer line.keep()
	err = wait.Until(ctx, s.Every, timeout, "the instances to be drained", func(ctx context.Context) (bool, error) {
		if found, err = s.describeInstances(ctx, c, arns); err != nil {
			return false, err
		}
		left, busy := int32(0), 0
		for i := range found {
			left += found[i].RunningTasksCount + found[i].PendingTasksCount
			if view.Drained(&found[i]) || aws.ToString(found[i].Status) == "INACTIVE" {
				continue
			}
			if aws.ToString(found[i].Status) != "DRAINING" {
				return false, exit.New(exit.Failed, "did somebody undrain it?", "instance %s is %s", view.Host(&found[i]), aws.ToString(found[i].Status))
			}
			busy++
		}
		text := "drained: nothing is left"
		if busy > 0 {
			text = fmt.Sprintf("DRAINING: %d task(s) left on %d instance(s)", left, busy)
		}
		line.set(text, text, view.Colour("DRAINING"))
		return busy == 0, nil
	})
	return found, err
}

func (s *session) undrainCommand() *cobra.Command {
	return &cobra.Command{
		Use: "undrain INSTANCE...", Short: "Give work to drained instances again",
		Example: `  longshore instances undrain i-0123456789abcdef0`,
		Args:    cobra.MinimumNArgs(1), ValidArgsFunction: s.completeInstances,
		RunE: func(c *cobra.Command, args []string) error { return s.undrain(c.Context(), args) },
	}
}

func (s *session) undrain(ctx context.Context, names []string) error {
	c, err := s.client(ctx)
	if err != nil {
		return err
	}
	var arns, tagged []string
	for _, name := range names {
		i, err := s.instance(ctx, c, name)
		if err != nil {
			return err
		}
		arns = append(arns, aws.ToString(i.ContainerInstanceArn))
		if slices.ContainsFunc(i.Tags, func(t types.Tag) bool { return aws.ToString(t.Key) == deadlineTag }) {
			tagged = append(tagged, aws.ToString(i.ContainerInstanceArn))
		}
	}
	found, err := s.setState(ctx, c, arns, types.ContainerInstanceStatusActive)
	if err != nil {
		return err
	}
	for _, arn := range tagged { // not while it drains: a shorter deadline, the cluster's, would hold at once
		if _, err := c.ECS.UntagResource(ctx, &ecs.UntagResourceInput{ResourceArn: &arn, TagKeys: []string{deadlineTag}}); err != nil {
			return fmt.Errorf("remove the deadline of instance %s: %w", view.ID(arn), err)
		}
	}
	return s.show(&ecs.DescribeContainerInstancesOutput{ContainerInstances: found}, func() *output.Table { return view.Instances(s.Now(), found) })
}

func (s *session) fenceCommand() *cobra.Command {
	var off, yes bool
	c := &cobra.Command{
		Use: "fence INSTANCE --confirmed-off", Short: "Say that an instance's host is off: end its tasks at once",
		Long: `Takes your word that the instance's host is off and stays off. All its tasks end
at once, also those that are kept while it is not connected, and are replaced
elsewhere. If the host is not off, they run twice until it is heard again; then it
is fenced, stops them, and is used again.

An instance that is still connected is asked about, or refused where nobody can
be asked; --yes skips that.`,
		Example: `  longshore instances fence 4f2a91c03d7e --confirmed-off`,
		Args:    cobra.ExactArgs(1), ValidArgsFunction: s.completeInstances,
		RunE: func(c *cobra.Command, args []string) error {
			if !off {
				return exit.New(exit.Usage, "make sure that the host is off, then add --confirmed-off", "fencing %s ends all its tasks", args[0])
			}
			return s.fence(c.Context(), args[0], yes)
		},
	}
	c.Flags().BoolVar(&off, "confirmed-off", false, "you have seen that the host is off")
	c.Flags().BoolVar(&yes, "yes", false, "do not ask about an instance that is connected")
	return c
}

func (s *session) fence(ctx context.Context, name string, yes bool) error {
	c, err := s.client(ctx)
	if err != nil {
		return err
	}
	i, err := s.instance(ctx, c, name)
	if err != nil {
		return err
	}
	id := view.ID(aws.ToString(i.ContainerInstanceArn))
	if i.AgentConnected && !yes && !s.confirm(id, view.Host(i)) {
		return exit.New(exit.Failed, "wait until it is SUSPECT, or add --yes if you are sure", "instance %s is still connected: it does not look off; nothing was done", view.Host(i))
	}
	got, err := c.Fence(ctx, s.cluster, id)
	if err != nil {
		return err
	}
	if f := output.Format(s.format); f != output.AsTable {
		return output.Value(s.Out, f, got)
	}
	var shown types.ContainerInstance
	if err := json.Unmarshal(withoutTimes(got), &shown); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	s.note("fenced: every task of %s has ended or is ended by the next run of the reaper", view.Host(i))
	shown.RegisteredAt = i.RegisteredAt
	return view.Instances(s.Now(), []types.ContainerInstance{shown}).Write(s.Out, s.colours())
}

// confirm asks whether a connected instance really is to be fenced. Where nobody
// is asked the answer is no.
func (s *session) confirm(id, host string) bool {
	if !s.live(s.Err) {
		return false
	}
	fmt.Fprintf(s.Err, "Instance %s is still connected, so its host does not look off.\nType the first four characters of its id, %s, to fence it: ", host, id)
	answer, _ := bufio.NewReader(s.In).ReadString('\n')
	return strings.TrimSpace(answer) == id[:4]
}

// withoutTimes takes the API's times, which are numbers, out of an instance.
func withoutTimes(raw json.RawMessage) []byte {
	var all map[string]json.RawMessage
	if json.Unmarshal(raw, &all) != nil {
		return raw
	}
	delete(all, "registeredAt")
	delete(all, "healthStatus")
	out, err := json.Marshal(all)
	if err != nil {
		return raw
	}
	return out
}
