package command

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/cli/internal/output"
)

// versions is what version says.
type versions struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	System  string `json:"system"`
}

func (s *session) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Say which longshore this is", Example: "  longshore version -o json", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := versions{s.Version, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
			if f := output.Format(s.format); f != output.AsTable {
				return output.Value(s.Out, f, v)
			}
			_, err := fmt.Fprintf(s.Out, "longshore %s (%s, %s)\n", v.Version, v.Go, v.System)
			return err
		},
	}
}
