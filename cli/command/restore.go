package command

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/cli/internal/exit"
	"github.com/longshore-run/longshore/cli/internal/installation"
	"github.com/longshore-run/longshore/cli/internal/output"
)

func (s *session) restoreCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "restore", Short: "Bring the tables back from a backup, and go on",
		Long: `The steps of docs/runbooks/restore.md, in their order: halt the functions, make the
tables what restored ones are, raise every instance's epoch, resume. What runs on
the machines goes on all the while, and is not stopped because the tables do not
know it. Needs an administrator's rights to Lambda, EventBridge and DynamoDB.`,
		Example: `  longshore restore halt
  longshore restore copy --suffix=-restored --yes
  longshore restore raise-epochs
  longshore audit
  longshore restore resume`,
	}
	c.AddCommand(s.restoreHalt(), s.restoreCopy(), s.restoreRaise(), s.restoreResume())
	return c
}

func (s *session) restoreHalt() *cobra.Command {
	return &cobra.Command{
		Use: "halt", Short: "Stop every function that writes the tables",
		Long: `Switches off the event sources and the rules that wake the reaper and the audit, and
lets nobody call the API or the schedules' function (reserved concurrency 0). Then
reports, heartbeats and kicks wait in their queues: heartbeats for four hours,
reports for four days. Calls under way end within a minute, an audit in ten.`,
		Example: "  longshore restore halt", Args: cobra.NoArgs,
		RunE: s.onInstallation(func(ctx context.Context, in *installation.Installation) error {
			done, err := in.Halt(ctx)
			if err != nil {
				return err
			}
			s.note("wait a minute for what is under way, before you touch a table")
			return s.switched(done)
		}),
	}
}

func (s *session) restoreResume() *cobra.Command {
	var hold bool
	c := &cobra.Command{
		Use: "resume", Short: "Start the functions again",
		Long: `Undoes halt. With --without-admission nothing is admitted yet: for machines that
registered after the backup was made, which the tables do not know. Let them
register and show what they run; then resume without it.`,
		Example: "  longshore restore resume --without-admission\n  longshore restore resume", Args: cobra.NoArgs,
		RunE: s.onInstallation(func(ctx context.Context, in *installation.Installation) error {
			var held []string
			if hold {
				held = []string{"Admission"}
			}
			done, err := in.Resume(ctx, held...)
			if err != nil {
				return err
			}
			return s.switched(done)
		}),
	}
	c.Flags().BoolVar(&hold, "without-admission", false, "leave admission's event source off")
	return c
}

func (s *session) switched(done *installation.Switched) error {
	return s.show(done, func() *output.Table {
		t := &output.Table{Head: []string{"WHAT", "NAMES"}}
		t.Add("functions", strings.Join(done.Functions, " "))
		t.Add("event sources", strings.Join(done.Sources, " "))
		t.Add("rules", strings.Join(done.Rules, " "))
		return t
	})
}

func (s *session) restoreCopy() *cobra.Command {
	var suffix string
	var yes bool
	c := &cobra.Command{
		Use: "copy --suffix=SUFFIX --yes", Short: "Make the stack's tables what restored ones are",
		Long: `Makes each of the four tables what the one of the same name with the suffix is: what
is there is written, what is not is removed. The stack's own tables stay, with their
streams, indexes and backups. Refused while the functions run. It may be run again.`,
		Example: "  longshore restore copy --suffix=-restored --yes", Args: cobra.NoArgs,
		RunE: s.onInstallation(func(ctx context.Context, in *installation.Installation) error {
			if !yes {
				return exit.New(exit.Usage, "make sure that the tables with the suffix are what you want, then add --yes", "copying replaces everything in the stack's tables")
			}
			done, err := in.CopyTables(ctx, suffix)
			if err != nil {
				return err
			}
			return s.show(done, func() *output.Table {
				t := &output.Table{Head: []string{"TABLE", "FROM", "WRITTEN", "REMOVED"}}
				for _, d := range done {
					t.Add(d.Table, d.From, strconv.Itoa(d.Written), strconv.Itoa(d.Removed))
				}
				return t
			})
		}),
	}
	c.Flags().StringVar(&suffix, "suffix", "-restored", "what the names of the restored tables end with")
	c.Flags().BoolVar(&yes, "yes", false, "replace what is in the tables")
	return c
}

func (s *session) restoreRaise() *cobra.Command {
	var since string
	c := &cobra.Command{
		Use: "raise-epochs", Short: "Begin a new epoch on every instance, after the tables were restored",
		Long: `Tells the control plane that its tables are older than what runs. Every instance
begins a new epoch; until it has shown what it runs, or is LOST, nothing of it is
stopped or closed and its cluster admits nothing. What an instance runs and the
tables do not know is kept, rings the alarm containers-unknown, and keeps its
instance fenced until it has ended. Run it before the functions resume.`,
		Example: "  longshore restore raise-epochs", Args: cobra.NoArgs,
		RunE: s.onInstallation(func(ctx context.Context, in *installation.Installation) error {
			at := s.Now()
			if since != "" {
				var err error
				if at, err = time.Parse(time.RFC3339, since); err != nil {
					return exit.New(exit.Usage, "give the time that the first run said, such as 2026-01-02T03:04:05Z", "--since is %q", since)
				}
			}
			done, err := in.RaiseEpochs(ctx, at)
			if err != nil || done.Left > 0 {
				s.note("to go on: longshore restore raise-epochs --since %s", at.UTC().Format(time.RFC3339))
			}
			if err != nil {
				return err
			}
			if err := s.show(done, func() *output.Table {
				t := &output.Table{Head: []string{"SINCE", "RAISED", "SKIPPED", "LEFT"}}
				t.Add(done.Since.UTC().Format(time.RFC3339), strconv.Itoa(done.Raised), strconv.Itoa(done.Skipped), strconv.Itoa(done.Left))
				return t
			}); err != nil {
				return err
			}
			if done.Left > 0 {
				return exit.Status(exit.Failed)
			}
			return nil
		}),
	}
	c.Flags().StringVar(&since, "since", "", "go on with a run that did not end: the time that it said")
	return c
}

// onInstallation makes a command's work of what is done with the stack.
func (s *session) onInstallation(do func(context.Context, *installation.Installation) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, _ []string) error {
		in, err := s.installation(c.Context())
		if err != nil {
			return err
		}
		return do(c.Context(), in)
	}
}
