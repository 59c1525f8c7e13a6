package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/cli/internal/bus"
	"github.com/longshore-run/longshore/cli/internal/client"
	"github.com/longshore-run/longshore/cli/internal/exit"
	"github.com/longshore-run/longshore/cli/internal/output"
)

// eventSource is the source of Longshore's events.
const eventSource = "longshore"

// eventsFlags are which events are wanted.
type eventsFlags struct {
	follow, all bool
	kinds       []string
	name        string
	timeout     time.Duration
}

func (s *session) eventsCommand() *cobra.Command {
	var f eventsFlags
	c := &cobra.Command{
		Use: "events --follow", Short: "Show state changes as they happen",
		Long: `Reads the installation's event bus live: state changes of tasks, instances,
services and deployments. For that it makes a queue and a rule in your account
(both named longshore-follow-…), and removes both at its end, also after Ctrl-C.
You need rights to events:PutRule, PutTargets, RemoveTargets, DeleteRule and to
sqs:CreateQueue, SetQueueAttributes, GetQueueAttributes, ReceiveMessage,
DeleteMessage, DeleteQueue.

Events are not stored: what happened before is seen with: longshore ps --all, and
longshore services events. With -o json each event is one line, as EventBridge
has it.`,
		Example: `  longshore events --follow
  longshore events --follow --type "ECS Task State Change" -o json
  longshore events --follow --all-clusters --for 5m`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if !f.follow {
				return exit.New(exit.Usage, "add --follow; for the past see: longshore ps --all, longshore services events NAME", "events are not stored, so they can only be followed")
			}
			return s.events(c.Context(), f)
		},
	}
	p := c.Flags()
	p.BoolVarP(&f.follow, "follow", "f", false, "read until Ctrl-C")
	p.BoolVar(&f.all, "all-clusters", false, "not only those of --cluster")
	p.StringArrayVar(&f.kinds, "type", nil, `only of this detail-type, such as "ECS Task State Change"; may be repeated`)
	p.StringVar(&f.name, "bus", "", "the bus (the stack's output EventBusName)")
	p.DurationVar(&f.timeout, "for", 0, "end after so long (0: at Ctrl-C)")
	return c
}

func (s *session) events(ctx context.Context, f eventsFlags) error {
	c, err := s.client(ctx)
	if err != nil {
		return err
	}
	if f.name == "" {
		outputs, err := client.Outputs(ctx, c.AWS, c.Stack)
		if err != nil {
			return err
		}
		if f.name = outputs["EventBusName"]; f.name == "" {
			return exit.New(exit.NotFound, "deploy this version of Longshore, or name a bus with --bus", "stack %s has no output EventBusName", c.Stack)
		}
	}
	pattern, err := s.pattern(ctx, c, f)
	if err != nil {
		return err
	}
	if f.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.timeout)
		defer cancel()
	}
	err = bus.Follow(ctx, c.AWS, bus.Reading{
		Bus: f.name, Pattern: pattern,
		Ready: func() { s.note("longshore: following the bus %s; Ctrl-C ends it", f.name) },
		Each: func(e bus.Event, raw []byte) error {
			if output.Format(s.format) == output.AsYAML {
				if _, err := fmt.Fprintln(s.Out, "---"); err != nil {
					return err
				}
				return output.Value(s.Out, output.AsYAML, e)
			}
			line := bus.Line(e)
			if output.Format(s.format) == output.AsJSON {
				line = string(raw)
			}
			_, err := fmt.Fprintln(s.Out, line)
			return err
		},
	})
	if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		if e := leftOver(err); e != nil {
			return e
		}
		s.note("longshore: ended; the queue and the rule are removed")
		return nil // Ctrl-C is how this command ends
	}
	return err
}

// leftOver is the error of removing, out of one that is about ending too.
func leftOver(err error) error {
	if many, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // the parts are wanted, not a match
		if all := many.Unwrap(); len(all) > 1 {
			return all[1]
		}
	}
	return nil
}

// pattern is what the rule lets through: of one cluster, by its ARN.
func (s *session) pattern(ctx context.Context, c *client.Client, f eventsFlags) (map[string]any, error) {
	p := map[string]any{"source": []string{eventSource}}
	if len(f.kinds) > 0 {
		p["detail-type"] = f.kinds
	}
	if f.all {
		return p, nil
	}
	arn, err := s.clusterARN(ctx, c)
	if err != nil {
		return nil, err
	}
	p["detail"] = map[string]any{"clusterArn": []string{arn}}
	return p, nil
}
