package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/cli/internal/client"
	"github.com/longshore-run/longshore/cli/internal/doctor"
	"github.com/longshore-run/longshore/cli/internal/exit"
	"github.com/longshore-run/longshore/cli/internal/output"
	"github.com/longshore-run/longshore/cli/internal/view"
)

func (s *session) doctorCommand() *cobra.Command {
	var strict bool
	c := &cobra.Command{
		Use: "doctor", Short: "Say what is wrong with this installation, and what to do next",
		Long: `Looks at the whole installation and changes nothing: credentials, the API, the
stack, functions and what wakes them, dead letters, queues, alarms, tables, roles
of tasks, instances that take no work, tasks that wait too long.

Exit code: 0 if nothing has failed, 1 otherwise; with --strict also 1 for
warnings. Needs rights to read, such as AWS's ViewOnlyAccess; what may not be
looked at is a warning.`,
		Example: `  longshore doctor
  longshore doctor --cluster edge -o json --strict`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return s.doctor(c.Context(), strict) },
	}
	c.Flags().BoolVar(&strict, "strict", false, "fail at warnings too")
	return c
}

func (s *session) doctor(ctx context.Context, strict bool) error {
	in := &doctor.Installation{Stack: s.connect.Stack, Cluster: s.cluster, Now: s.Now()}
	if c, err := s.client(ctx); err == nil {
		in.AWS, in.ECS, in.Endpoint = c.AWS, c.ECS, c.Endpoint
	} else if in.AWS, err = client.Load(ctx, s.connect); err != nil {
		return err
	}
	table := output.Format(s.format) == output.AsTable
	var all []doctor.Finding
	count := map[doctor.State]int{}
	err := doctor.Examine(ctx, in, func(f doctor.Finding) {
		all = append(all, f)
		count[f.State]++
		if table {
			s.finding(f)
		}
	})
	if err != nil {
		return err
	}
	if !table {
		if err := output.Value(s.Out, output.Format(s.format), all); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(s.Out, "\n%d ok, %d warn, %d fail\n", count[doctor.OK], count[doctor.Warn], count[doctor.Fail])
	}
	if count[doctor.Fail] > 0 || strict && count[doctor.Warn] > 0 {
		return exit.Status(exit.Failed)
	}
	return nil
}

func (s *session) finding(f doctor.Finding) {
	mark := output.Paint(fmt.Sprintf("%-4s", f.State), view.Colour(string(f.State)), s.colours())
	fmt.Fprintf(s.Out, "%s  %-14s %s\n", mark, f.Check, output.Visible(f.Text))
	if f.Next != "" && f.State != doctor.OK {
		fmt.Fprintf(s.Out, "                     next: %s\n", f.Next)
	}
}
