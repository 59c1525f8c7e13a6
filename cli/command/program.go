// Package command is the longshore command: its commands and flags, one file a
// group. It decides what to ask, and leaves asking, waiting and drawing to the
// packages under cli/internal. Only cli's main imports it.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/cli/internal/client"
	"github.com/longshore-run/longshore/cli/internal/exit"
	"github.com/longshore-run/longshore/cli/internal/output"
)

// Program is what the command has of the world.
type Program struct {
	Out, Err io.Writer
	In       io.Reader
	Lookup   func(string) (string, bool)
	Now      func() time.Time
	// Every is how often what is waited for is looked at.
	Every time.Duration
	// Interrupts are the signals that ask the command to end.
	Interrupts <-chan os.Signal
	Version    string
	// Terminal says whether a writer is one.
	Terminal func(io.Writer) bool
}

// session is one run of the command.
type session struct {
	Program
	connect client.Options
	cluster string
	format  string
	api     *client.Client

	mu      sync.Mutex
	catches func(nth int) bool
}

// Run runs the command and returns its exit code. What went wrong is said on
// Err, in one line.
func Run(ctx context.Context, p Program, args []string) int {
	s := &session{Program: p}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go s.heed(ctx, cancel)
	root := s.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if _, quiet := errors.AsType[exit.Status](err); err == nil || quiet {
		return exit.Code(err)
	}
	e := exit.Explain(err)
	if e.Code != exit.Interrupted || e.Next != "" {
		fmt.Fprintln(p.Err, "longshore: "+output.VisibleLines(e.Error()))
	}
	return e.Code
}

// heed ends the command at a signal, unless the command takes it itself.
func (s *session) heed(ctx context.Context, cancel func()) {
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-s.Interrupts:
			s.mu.Lock()
			taken := s.catches != nil && s.catches(n)
			s.mu.Unlock()
			if !taken {
				cancel()
			}
		}
	}
}

// onInterrupt lets a command take signals: f gets their number, and says
// whether the command goes on.
func (s *session) onInterrupt(f func(nth int) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.catches = f
}

func (s *session) env(name, otherwise string) string {
	if v, ok := s.Lookup(name); ok && v != "" {
		return v
	}
	return otherwise
}

const about = `longshore runs tasks and services on machines you own, through the ECS API of a
Longshore installation.

Which installation: --endpoint-url, else LONGSHORE_ENDPOINT, else the output ApiUrl
of the CloudFormation stack --stack (LONGSHORE_STACK, "Longshore"). Who you are:
the AWS credentials of your environment or --profile. Which cluster: --cluster,
else LONGSHORE_CLUSTER, else "default".

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not found, 4 waited too long,
5 not allowed, 130 interrupted. "run" ends with its task's exit code, or 125 if
the task has none.`

// Root is the command, for what draws its pages.
func Root() *cobra.Command {
	s := &session{Program: Program{Out: io.Discard, Err: io.Discard, In: strings.NewReader(""), Lookup: func(string) (string, bool) { return "", false }, Now: time.Now}}
	return s.root()
}

func (s *session) root() *cobra.Command {
	root := &cobra.Command{
		Use: "longshore", Short: "Run tasks and services on machines you own", Long: about,
		Example: `  longshore run hello --follow
  longshore queue
  longshore services deploy web --image web=registry.example/web:2 --wait
  longshore doctor`,
		SilenceUsage: true, SilenceErrors: true,
		PersistentPreRunE: func(c *cobra.Command, _ []string) error { return s.check(c) },
	}
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SetIn(s.In)
	f := root.PersistentFlags()
	f.StringVar(&s.cluster, "cluster", "", `cluster's name or ARN (LONGSHORE_CLUSTER; "default")`)
	f.StringVar(&s.connect.Endpoint, "endpoint-url", "", "the API's URL (LONGSHORE_ENDPOINT)")
	f.StringVar(&s.connect.Stack, "stack", "", `CloudFormation stack to find the API by (LONGSHORE_STACK; "Longshore")`)
	f.StringVar(&s.connect.Region, "region", "", "AWS region (AWS_REGION)")
	f.StringVar(&s.connect.Profile, "profile", "", "AWS profile (AWS_PROFILE)")
	f.StringVarP(&s.format, "output", "o", string(output.AsTable), "table, json or yaml; json and yaml have the API's own shapes")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return &exit.Error{Code: exit.Usage, Cause: err, Next: "see: " + c.CommandPath() + " --help"}
	})
	root.AddGroup(&cobra.Group{ID: "work", Title: "Tasks:"}, &cobra.Group{ID: "fleet", Title: "Cluster:"}, &cobra.Group{ID: "install", Title: "Installation:"})
	s.add(root, "work", s.runCommand(), s.psCommand(), s.stopCommand(), s.logsCommand(), s.queueCommand())
	s.add(root, "fleet", s.describeCommand(), s.instancesCommand(), s.servicesCommand(), s.definitionsCommand(), s.schedulesCommand(), s.eventsCommand())
	s.add(root, "install", s.doctorCommand(), s.queuesCommand(), s.auditCommand(), s.restoreCommand(), s.proxyCommand(), s.versionCommand())
	root.SetHelpCommandGroupID("install")
	root.SetCompletionCommandGroupID("install")
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(output.Formats(), cobra.ShellCompDirectiveNoFileComp))
	_ = root.RegisterFlagCompletionFunc("cluster", s.completeClusters)
	s.strict(root)
	return root
}

func (s *session) add(to *cobra.Command, group string, commands ...*cobra.Command) {
	for _, c := range commands {
		c.GroupID = group
		to.AddCommand(c)
	}
}

// strict makes wrong arguments a matter of usage, and an unknown subcommand one
// too, where cobra would print help and call it success.
func (s *session) strict(c *cobra.Command) {
	for _, sub := range c.Commands() {
		s.strict(sub)
	}
	if c.HasSubCommands() && c.RunE == nil {
		c.Args = cobra.ArbitraryArgs
		c.RunE = func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return c.Help()
			}
			next := "known are " + subcommands(c) + "; see: " + c.CommandPath() + " --help"
			if like := c.SuggestionsFor(args[0]); len(like) > 0 {
				next = "did you mean: " + c.CommandPath() + " " + like[0]
			}
			return exit.New(exit.Usage, next, "%s has no command %q", c.CommandPath(), args[0])
		}
		c.SuggestionsMinimumDistance = 2
		return
	}
	if judge := c.Args; judge != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := judge(c, args); err != nil {
				return &exit.Error{Code: exit.Usage, Cause: err, Next: "see: " + c.CommandPath() + " --help"}
			}
			return nil
		}
	}
}

// subcommands lists what may follow a command.
func subcommands(c *cobra.Command) string {
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return join(names)
}

// check completes the settings that all commands have.
func (s *session) check(c *cobra.Command) error {
	if !output.Format(s.format).Valid() {
		return exit.New(exit.Usage, "use one of: "+strings.Join(output.Formats(), ", "), "-o %q is no format", s.format)
	}
	if d, err := c.Flags().GetDuration("timeout"); err == nil && d < 0 { // it would be for ever
		return exit.New(exit.Usage, "give a duration such as 90s or 10m", "--timeout is %s; it can not be negative", d)
	}
	s.defaults()
	return nil
}

func (s *session) defaults() {
	if s.cluster == "" {
		s.cluster = s.env("LONGSHORE_CLUSTER", "default")
	}
	if s.connect.Stack == "" {
		s.connect.Stack = s.env("LONGSHORE_STACK", "Longshore")
	}
	if s.connect.Endpoint == "" {
		s.connect.Endpoint = s.env("LONGSHORE_ENDPOINT", "")
	}
}

// client is made when a command first needs it: help and version need none.
func (s *session) client(ctx context.Context) (*client.Client, error) {
	if s.api == nil {
		c, err := client.New(ctx, s.connect, s.Now)
		if err != nil {
			return nil, err
		}
		s.api = c
	}
	return s.api, nil
}

func (s *session) colours() bool {
	if _, set := s.Lookup("NO_COLOR"); set {
		return false
	}
	return s.live(s.Out)
}

// live says whether a writer is a terminal, on which a line may be written over.
func (s *session) live(w io.Writer) bool {
	return s.Terminal != nil && s.Terminal(w) && s.env("TERM", "") != "dumb"
}

// show writes a value for programs, or its table for people.
func (s *session) show(value any, table func() *output.Table) error {
	if f := output.Format(s.format); f != output.AsTable {
		return output.Value(s.Out, f, value)
	}
	return table().Write(s.Out, s.colours())
}

// note tells a person how it goes; programs that read Out do not see it.
func (s *session) note(format string, args ...any) {
	fmt.Fprintln(s.Err, output.VisibleLines(fmt.Sprintf(format, args...)))
}
