package command_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/cli/command"
)

var updateDocs = flag.Bool("update-docs", false, "write docs/cli-reference.md from the commands")

// pages writes a command and what is below it.
func pages(b *strings.Builder, c *cobra.Command) {
	if c.Hidden || c.Name() == "help" || strings.HasPrefix(c.CommandPath(), "longshore completion ") {
		return
	}
	about := c.Long
	if about == "" {
		about = c.Short + "."
	}
	fmt.Fprintf(b, "\n## %s\n\n", c.CommandPath())
	if c.Runnable() && c != c.Root() {
		fmt.Fprintf(b, "    %s\n\n", c.UseLine())
	}
	fmt.Fprintf(b, "```text\n%s\n```\n", strings.TrimSpace(about))
	if flags := c.LocalFlags().FlagUsages(); flags != "" {
		fmt.Fprintf(b, "\n```text\n%s```\n", flags)
	}
	if c.Example != "" {
		fmt.Fprintf(b, "\nExamples:\n\n```sh\n%s\n```\n", strings.ReplaceAll(strings.TrimSpace(c.Example), "\n  ", "\n"))
	}
	for _, sub := range c.Commands() {
		pages(b, sub)
	}
}

func TestReference_TheDocsShowEveryCommand(t *testing.T) {
	const page = "../../docs/cli-reference.md"
	root := command.Root()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	var b strings.Builder
	b.WriteString("# The longshore command, in full\n\nWritten by `make gen` from the commands in cli/command. [cli.md](cli.md) shows how it looks.\n")
	pages(&b, root)
	if *updateDocs {
		if err := os.WriteFile(page, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(page); err != nil || string(got) != b.String() {
		t.Errorf("%s differs from the commands (%v); run: make gen", page, err)
	}
}

// Who reads a command's help wants to see how it is called.
func TestCommands_EachHasAnExampleAndItsFlagsSayWhatTheyDo(t *testing.T) {
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			walk(sub)
		}
		if c.Short == "" {
			t.Errorf("%s has no short help", c.CommandPath())
		}
		if c.Example == "" && (!c.HasParent() || c.Parent().Name() != "describe") {
			t.Errorf("%s has no example", c.CommandPath())
		}
		for line := range strings.Lines(c.Example) {
			if len(strings.TrimSpace(line)) > 100 {
				t.Errorf("%s: an example is too long: %s", c.CommandPath(), line)
			}
		}
	}
	walk(command.Root())
}
