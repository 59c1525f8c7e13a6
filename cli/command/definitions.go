package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/cli/internal/client"
	"github.com/longshore-run/longshore/cli/internal/difference"
	"github.com/longshore-run/longshore/cli/internal/exit"
	"github.com/longshore-run/longshore/cli/internal/output"
	"github.com/longshore-run/longshore/cli/internal/view"
	"github.com/longshore-run/longshore/shared/taskdef"
)

func (s *session) definitionsCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "definitions", Short: "List, register and describe task definitions", Aliases: []string{"definition", "defs"},
		Example: `  longshore definitions list
  longshore definitions register web.yaml
  longshore definitions describe web:3 -o yaml`,
	}
	c.AddCommand(s.definitionsList(), s.registerCommand(), s.definitionDescribe())
	return c
}

func (s *session) definitionsList() *cobra.Command {
	var family string
	var inactive bool
	c := &cobra.Command{
		Use: "list [FAMILY]", Short: "List families, or a family's revisions", Aliases: []string{"ls"},
		Example: `  longshore definitions list
  longshore definitions list web`,
		Args: cobra.MaximumNArgs(1), ValidArgsFunction: s.completeDefinitions,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				family = args[0]
			}
			return s.listDefinitions(c.Context(), family, inactive)
		},
	}
	c.Flags().BoolVar(&inactive, "inactive", false, "deregistered ones")
	return c
}

func (s *session) listDefinitions(ctx context.Context, family string, inactive bool) error {
	c, err := s.client(ctx)
	if err != nil {
		return err
	}
	if family == "" {
		names, err := s.families(ctx, c, "", inactive)
		if err != nil {
			return err
		}
		return s.show(&ecs.ListTaskDefinitionFamiliesOutput{Families: names}, func() *output.Table {
			t := &output.Table{Head: []string{"FAMILY"}, Empty: "no task definition is registered"}
			for _, n := range names {
				t.Add(n)
			}
			return t
		})
	}
	in := &ecs.ListTaskDefinitionsInput{FamilyPrefix: &family, Sort: types.SortOrderDesc}
	if inactive {
		in.Status = types.TaskDefinitionStatusInactive
	}
	var arns []string
	pages := ecs.NewListTaskDefinitionsPaginator(c.ECS, in)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		arns = append(arns, page.TaskDefinitionArns...)
	}
	return s.show(&ecs.ListTaskDefinitionsOutput{TaskDefinitionArns: arns}, func() *output.Table {
		t := &output.Table{Head: []string{"DEFINITION"}, Empty: "family " + family + " has no revision"}
		for _, arn := range arns {
			t.Add(view.ID(arn))
		}
		return t
	})
}

func (s *session) families(ctx context.Context, c *client.Client, prefix string, inactive bool) ([]string, error) {
	in := &ecs.ListTaskDefinitionFamiliesInput{FamilyPrefix: optional(prefix), Status: types.TaskDefinitionFamilyStatusActive}
	if inactive {
		in.Status = types.TaskDefinitionFamilyStatusInactive
	}
	var names []string
	pages := ecs.NewListTaskDefinitionFamiliesPaginator(c.ECS, in)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		names = append(names, page.Families...)
	}
	return names, nil
}

func (s *session) definitionDescribe() *cobra.Command {
	return &cobra.Command{
		Use: "describe DEFINITION", Short: "Show a task definition", Long: "Shows a task definition as YAML, or as -o says.",
		Example: `  longshore definitions describe web
  longshore definitions describe web:3 -o json`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: s.completeDefinitions,
		RunE: func(c *cobra.Command, args []string) error {
			api, err := s.client(c.Context())
			if err != nil {
				return err
			}
			out, err := api.ECS.DescribeTaskDefinition(c.Context(), &ecs.DescribeTaskDefinitionInput{TaskDefinition: &args[0], Include: []types.TaskDefinitionField{types.TaskDefinitionFieldTags}})
			if err != nil {
				return err
			}
			f := output.Format(s.format)
			if f == output.AsTable {
				f = output.AsYAML
			}
			return output.Value(s.Out, f, out)
		},
	}
}

// registering is how a definition is registered.
type registering struct {
	quiet, dry, force, reveal bool
}

func (s *session) registerCommand() *cobra.Command {
	var how registering
	c := &cobra.Command{
		Use: "register FILE", Short: "Register a task definition from a file, if it differs from the latest",
		Long: `Reads a task definition from a file (JSON or YAML, in the names of
RegisterTaskDefinition; - is standard input), shows what differs from the family's
latest revision, and registers it. What is the same makes no new revision. Values
of environment variables whose names look secret are not shown. What "definitions
describe" and "aws ecs describe-task-definition" show can be registered, too.`,
		Example: `  longshore definitions register web.yaml
  longshore definitions register web.json --dry-run
  sed s/TAG/$TAG/ web.yaml | longshore definitions register -`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			api, err := s.client(c.Context())
			if err != nil {
				return err
			}
			d, err := s.register(c.Context(), api, args[0], how)
			if err != nil || how.dry {
				return err
			}
			return s.show(d, func() *output.Table {
				t := &output.Table{}
				t.Add(view.ID(aws.ToString(d.TaskDefinitionArn)))
				return t
			})
		},
	}
	c.Flags().BoolVar(&how.dry, "dry-run", false, "only show what differs")
	c.Flags().BoolVar(&how.force, "force", false, "register also what is the same")
	c.Flags().BoolVar(&how.reveal, "reveal", false, "show also values that look secret")
	return c
}

// register registers the definition of a file where it differs from the family's
// latest revision, and returns the revision that is its.
func (s *session) register(ctx context.Context, c *client.Client, file string, how registering) (*types.TaskDefinition, error) {
	body, err := s.readDefinition(file)
	if err != nil {
		return nil, err
	}
	in, err := taskdef.Decode(body)
	if err != nil {
		return nil, &exit.Error{Code: exit.Usage, Text: file, Cause: err}
	}
	latest, err := latestOf(ctx, c, in.Family)
	if err != nil {
		return nil, err
	}
	if latest != nil {
		lines, err := changes(latest, in, how.reveal)
		if err != nil {
			return nil, err
		}
		if len(lines) == 0 && !how.force {
			s.noteUnless(how.quiet, "%s is the same; nothing to register", view.ID(aws.ToString(latest.TaskDefinition.TaskDefinitionArn)))
			return latest.TaskDefinition, nil
		}
		s.noteUnless(how.quiet, "changes to %s:", view.ID(aws.ToString(latest.TaskDefinition.TaskDefinitionArn)))
		for _, l := range lines {
			s.noteUnless(how.quiet, "  %s", output.Paint(l.String(), lineColour(l), s.live(s.Err) && s.colours()))
		}
	} else {
		s.noteUnless(how.quiet, "%s is a new family", in.Family)
	}
	if how.dry {
		return nil, nil
	}
	var send ecs.RegisterTaskDefinitionInput
	if err := strictly(body, &send); err != nil {
		return nil, &exit.Error{Code: exit.Usage, Text: file, Cause: err}
	}
	out, err := c.ECS.RegisterTaskDefinition(ctx, &send)
	if err != nil {
		return nil, err
	}
	s.noteUnless(how.quiet, "registered %s", view.ID(aws.ToString(out.TaskDefinition.TaskDefinitionArn)))
	return out.TaskDefinition, nil
}

func (s *session) noteUnless(quiet bool, format string, args ...any) {
	if !quiet {
		s.note(format, args...)
	}
}

func lineColour(l difference.Line) output.Colour {
	switch l.Kind {
	case difference.Added:
		return output.Good
	case difference.Removed:
		return output.Bad
	default:
		return output.Warn
	}
}

const maxDefinition = 1 << 20

func (s *session) readDefinition(file string) ([]byte, error) {
	body, err := s.readFile(file)
	if err == nil && !strings.HasPrefix(string(body), "{") {
		err = exit.New(exit.Usage, "aws ecs register-task-definition --generate-cli-skeleton shows the members", "%s holds no task definition", file)
	}
	return asRegistered(body), err
}

// asRegistered is what could be registered of a definition as it is described,
// with its tags beside it; what is described, changed and registered is no error.
func asRegistered(body []byte) []byte {
	var described struct{ TaskDefinition, Tags, ContainerDefinitions json.RawMessage }
	if err := json.Unmarshal(body, &described); err != nil || described.TaskDefinition == nil || described.ContainerDefinitions != nil {
		return body
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(withoutRegistration(described.TaskDefinition), &all); err != nil {
		return body
	}
	if described.Tags != nil && string(described.Tags) != "[]" {
		all["tags"] = described.Tags
	}
	out, err := json.Marshal(all)
	if err != nil {
		return body
	}
	return out
}

// readFile reads a file of JSON or YAML as JSON.
func (s *session) readFile(file string) ([]byte, error) {
	var text []byte
	var err error
	if file == "-" {
		text, err = io.ReadAll(io.LimitReader(s.In, maxDefinition))
	} else {
		text, err = os.ReadFile(file)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, exit.New(exit.NotFound, "name one that is there, or - for standard input", "there is no file %s", file)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	if text = bytes.TrimSpace(text); json.Valid(text) {
		return text, nil
	}
	body, err := output.FromYAML(text)
	if err != nil {
		return nil, &exit.Error{Code: exit.Usage, Text: file + " is neither JSON nor YAML", Cause: err}
	}
	return body, nil
}

// latestOf is a family's latest revision, nil where there is none.
func latestOf(ctx context.Context, c *client.Client, family string) (*ecs.DescribeTaskDefinitionOutput, error) {
	out, err := c.ECS.DescribeTaskDefinition(ctx, &ecs.DescribeTaskDefinitionInput{TaskDefinition: &family, Include: []types.TaskDefinitionField{types.TaskDefinitionFieldTags}})
	if err != nil && exit.Explain(err).Code == exit.NotFound {
		return nil, nil
	}
	return out, err
}

var secretName = regexp.MustCompile(`(?i)pass|secret|token|key|credential|auth`)

// changes are what a definition would change in the latest revision: both as the
// API would show them.
func changes(latest *ecs.DescribeTaskDefinitionOutput, in taskdef.Input, reveal bool) ([]difference.Line, error) {
	was, err := output.JSON(latest.TaskDefinition)
	if err != nil {
		return nil, err
	}
	old, err := taskdef.ParseStored(withoutRegistration(was))
	if err != nil {
		return nil, fmt.Errorf("read the latest revision: %w", err)
	}
	before, err := plainly(old, tagsOf(latest.Tags))
	if err != nil {
		return nil, err
	}
	given := in.Tags
	// Roles are shown as ARNs of the account.
	var of taskdef.Registration
	if parts := strings.SplitN(aws.ToString(latest.TaskDefinition.TaskDefinitionArn), ":", 6); len(parts) == 6 {
		of.Partition, of.Account = parts[1], parts[4]
	}
	after, err := plainly(taskdef.Echo(in, of), given)
	if err != nil {
		return nil, err
	}
	return difference.Of(before, after, func(name string) bool { return !reveal && secretName.MatchString(name) })
}

// ofRegistration are members that registering adds: they say nothing of the file.
var ofRegistration = []string{"taskDefinitionArn", "revision", "status", "registeredAt", "registeredBy", "deregisteredAt", "compatibilities", "requiresAttributes"}

func withoutRegistration(text []byte) []byte {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return text
	}
	for _, name := range ofRegistration {
		delete(all, name)
	}
	out, err := json.Marshal(all)
	if err != nil {
		return text
	}
	return out
}

// plainly is a definition with its tags, without what registering adds.
func plainly(d taskdef.TaskDefinition, tags []taskdef.Tag) ([]byte, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(withoutRegistration(taskdef.Canonical(d)), &all); err != nil {
		return nil, fmt.Errorf("compare definitions: %w", err)
	}
	if len(tags) > 0 {
		text, err := json.Marshal(tags)
		if err != nil {
			return nil, fmt.Errorf("compare tags: %w", err)
		}
		all["tags"] = text
	}
	return json.Marshal(all)
}

func tagsOf(all []types.Tag) []taskdef.Tag {
	var out []taskdef.Tag
	for _, t := range all {
		out = append(out, taskdef.Tag{Key: aws.ToString(t.Key), Value: aws.ToString(t.Value)})
	}
	return out
}
