package command

import (
	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/cli/internal/exit"
	"github.com/longshore-run/longshore/cli/internal/installation"
	"github.com/longshore-run/longshore/cli/internal/output"
)

func (s *session) auditCommand() *cobra.Command {
	return &cobra.Command{
		Use: "audit", Short: "Recompute every ledger from its tasks, now",
		Long: `Runs the audit that runs each night: it adds up what the tasks in the tables hold,
and tells every instance's ledger and every service's count that says something
else. It repairs them only where the installation is deployed with
longshore:auditRepairs. Needs the right to call the function (lambda:InvokeFunction).

Exit code: 0 if all add up, 1 if not, or if some could not be compared.`,
		Example: "  longshore audit\n  longshore audit -o json", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			in, err := s.installation(c.Context())
			if err != nil {
				return err
			}
			found, err := in.Audit(c.Context())
			if err != nil {
				return err
			}
			if err := s.show(found, func() *output.Table { return auditTable(found) }); err != nil {
				return err
			}
			s.note("%d ledgers and %d services compared, %d too busy, %d differ", found.Ledgers, found.Services, found.Busy, len(found.Differences))
			if len(found.Differences)+found.Busy > 0 {
				return exit.Status(exit.Failed)
			}
			return nil
		},
	}
}

func auditTable(found *installation.Audit) *output.Table {
	t := &output.Table{Head: []string{"CLUSTER", "BOOK OF", "SAYS", "TASKS ADD UP TO", "REPAIRED"}, Empty: "every book is what its tasks add up to"}
	for _, d := range found.Differences {
		of, repaired := "instance "+d.Instance, "no"
		if d.Service != "" {
			of = "service " + d.Service
		}
		if d.Repaired {
			repaired = "yes"
		}
		t.Add(d.Cluster, of, output.Cell{Text: string(d.Book), Colour: output.Bad}, string(d.Tasks), repaired)
	}
	return t
}
