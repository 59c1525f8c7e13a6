package command

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/cli/internal/client"
	"github.com/longshore-run/longshore/cli/internal/exit"
	"github.com/longshore-run/longshore/cli/internal/installation"
	"github.com/longshore-run/longshore/cli/internal/output"
	"github.com/longshore-run/longshore/cli/internal/wait"
)

// installation is the one of the stack, for what its API has no operation for.
func (s *session) installation(ctx context.Context) (*installation.Installation, error) {
	cfg, err := client.Load(ctx, s.connect)
	if err != nil {
		return nil, err
	}
	outputs, err := client.Outputs(ctx, cfg, s.connect.Stack)
	if err != nil {
		return nil, err
	}
	return &installation.Installation{AWS: cfg, Stack: s.connect.Stack, Outputs: outputs, Now: s.Now}, nil
}

func (s *session) queuesCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "queues", Short: "Look at the installation's queues, and send dead letters again",
		Example: `  longshore queues list
  longshore queues redrive admission`,
	}
	c.AddCommand(s.queuesList(), s.queuesRedrive(), s.queuesRemove())
	return c
}

func (s *session) queuesList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the queues with their depths, ages and dead letters", Aliases: []string{"ls"},
		Long: `Lists the stack's queues: what waits, what is being worked on, how old the oldest
message is (as CloudWatch last knew; an emulator does not), and the dead letters.
Needs rights to read SQS and CloudWatch.`,
		Example: "  longshore queues list", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			in, err := s.installation(c.Context())
			if err != nil {
				return err
			}
			all, err := in.Queues(c.Context())
			if err != nil {
				return err
			}
			return s.show(all, func() *output.Table { return queuesTable(all) })
		},
	}
}

func queuesTable(all []installation.Queue) *output.Table {
	t := &output.Table{Head: []string{"QUEUE", "WAITING", "IN FLIGHT", "OLDEST", "DEAD LETTERS", "OLDEST", "REDRIVE"}}
	for _, q := range all {
		dead := output.Cell{Text: "0"}
		if q.DeadLetters > 0 {
			dead = output.Cell{Text: strconv.Itoa(q.DeadLetters), Colour: output.Bad}
		}
		may, _, _ := strings.Cut(q.Redrive, ":")
		if may != "never" {
			may = "yes"
		}
		t.Add(q.Name, strconv.Itoa(q.Waiting), strconv.Itoa(q.InFlight), seconds(q.Oldest), dead, seconds(q.DeadOldest), may)
	}
	return t
}

func seconds(n *int) string {
	if n == nil {
		return "-"
	}
	return wait.Age(time.Duration(*n) * time.Second)
}

func (s *session) queuesRedrive() *cobra.Command {
	return &cobra.Command{
		Use: "redrive QUEUE", Short: "Send a queue's dead letters again, where that is safe",
		Long: `Sends dead letters again, once what made them fail is mended: of admission and
services the kicks, of schedule the runs. A message that is sent again counts as
new, sent now and by you. So those of heartbeats and reports are refused: a
heartbeat would be a sign of life of a machine that may be dead, and a report
would be a stranger's; agents repeat what is not acknowledged. Those of events are
refused because they would come after what has been told since.

Needs rights to read and delete in the dead letter queue, and to send to the queue
or to call the function.`,
		Example: "  longshore queues redrive admission\n  longshore queues redrive schedule", Args: cobra.ExactArgs(1),
		ValidArgs: []string{"admission", "schedule", "services"},
		RunE: func(c *cobra.Command, args []string) error {
			in, err := s.installation(c.Context())
			if err != nil {
				return err
			}
			done, err := in.Redrive(c.Context(), args[0])
			if done != nil && err != nil {
				s.note("%d were sent again before that", done.Sent)
			}
			if err != nil {
				return err
			}
			if done.Left > 0 {
				s.note("%d are hidden for a minute: somebody has just read them", done.Left)
			}
			return s.show(done, func() *output.Table {
				t := &output.Table{Head: []string{"QUEUE", "SENT AGAIN", "LEFT"}}
				t.Add(done.Queue, strconv.Itoa(done.Sent), strconv.Itoa(done.Left))
				return t
			})
		},
	}
}

func (s *session) queuesRemove() *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use: "remove-commands --yes", Short: "Remove the command queues that registrations made, after the stack is gone",
		Long: `Instances' command queues are made when they register, so no template knows them and
they outlive the stack. This removes all whose names start with the stack's, such as
longshore-cmd-, and refuses while the stack is there: an instance whose queue is
gone gets no commands until it registers again.`,
		Example: "  longshore queues remove-commands --stack Longshore --yes", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return s.removeCommandQueues(c.Context(), yes) },
	}
	c.Flags().BoolVar(&yes, "yes", false, "remove them; without it they are only listed")
	return c
}

func (s *session) removeCommandQueues(ctx context.Context, yes bool) error {
	cfg, err := client.Load(ctx, s.connect)
	if err != nil {
		return err
	}
	if _, err := client.Outputs(ctx, cfg, s.connect.Stack); err == nil && yes {
		return exit.New(exit.Failed, "uninstall it first: docs/runbooks/uninstall.md", "stack %s is there: its instances need their queues; nothing was removed", s.connect.Stack)
	} else if err != nil && exit.Explain(err).Code != exit.NotFound {
		return err
	}
	urls, err := installation.CommandQueues(ctx, cfg, strings.ToLower(s.connect.Stack)+"-cmd-")
	if err != nil {
		return err
	}
	if !yes {
		if err := s.show(urls, func() *output.Table {
			t := &output.Table{Head: []string{"COMMAND QUEUE"}, Empty: "there are none"}
			for _, u := range urls {
				t.Add(u)
			}
			return t
		}); err != nil {
			return err
		}
		s.note("nothing was removed; add --yes")
		return nil
	}
	n, err := installation.RemoveQueues(ctx, cfg, urls)
	s.note("%d command queues removed", n)
	return err
}
