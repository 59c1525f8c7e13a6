package ecsapi

import (
	"context"
	"slices"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/taskdef"
)

type definitionOut struct {
	TaskDefinition *taskdef.TaskDefinition `json:"taskDefinition"`
	Tags           []taskdef.Tag           `json:"tags,omitzero"`
}

// registerTaskDefinition hands the body to taskdef, which knows every member of
// a task definition and judges all of them at once.
func registerTaskDefinition(ctx context.Context, h *Handler, q *call) (any, error) {
	if len(q.body) == 0 {
		q.body = []byte("{}")
	}
	in, err := taskdef.Decode(q.body)
	if err != nil {
		return nil, control.RefusedDefinition(err)
	}
	v, err := h.control.RegisterTaskDefinition(ctx, in, q.caller)
	if err != nil {
		return nil, err
	}
	return definitionOut{&v.TaskDefinition, tagList(v.Tags, true)}, nil
}

type describeTaskDefinitionIn struct {
	TaskDefinition string   `json:"taskDefinition" need:"true"`
	Include        []string `json:"include" one:"TAGS"`
}

func describeTaskDefinition(ctx context.Context, h *Handler, in *describeTaskDefinitionIn) (*definitionOut, error) {
	v, err := h.control.DescribeTaskDefinition(ctx, in.TaskDefinition)
	if err != nil {
		return nil, err
	}
	out := definitionOut{TaskDefinition: &v.TaskDefinition}
	if slices.Contains(in.Include, "TAGS") {
		out.Tags = tagList(v.Tags, true)
	}
	return &out, nil
}

type deregisterTaskDefinitionIn struct {
	TaskDefinition string `json:"taskDefinition" need:"true"`
}

type deregisterTaskDefinitionOut struct {
	TaskDefinition *taskdef.TaskDefinition `json:"taskDefinition"`
}

func deregisterTaskDefinition(ctx context.Context, h *Handler, in *deregisterTaskDefinitionIn) (*deregisterTaskDefinitionOut, error) {
	v, err := h.control.DeregisterTaskDefinition(ctx, in.TaskDefinition)
	if err != nil {
		return nil, err
	}
	return &deregisterTaskDefinitionOut{&v.TaskDefinition}, nil
}

type deleteTaskDefinitionsIn struct {
	TaskDefinitions []string `json:"taskDefinitions" need:"true"`
}

type deleteTaskDefinitionsOut struct {
	TaskDefinitions []*taskdef.TaskDefinition `json:"taskDefinitions"`
	Failures        []failure                 `json:"failures"`
}

func deleteTaskDefinitions(ctx context.Context, h *Handler, in *deleteTaskDefinitionsIn) (*deleteTaskDefinitionsOut, error) {
	found, failures, err := h.control.DeleteTaskDefinitions(ctx, in.TaskDefinitions)
	if err != nil {
		return nil, err
	}
	shown := each(found, func(v *control.DefinitionView) *taskdef.TaskDefinition { return &v.TaskDefinition })
	return &deleteTaskDefinitionsOut{shown, failuresOf(failures)}, nil
}

type listTaskDefinitionsIn struct {
	FamilyPrefix string `json:"familyPrefix"`
	MaxResults   *int   `json:"maxResults"`
	NextToken    string `json:"nextToken"`
	Sort         string `json:"sort" one:"ASC|DESC"`
	Status       string `json:"status" one:"ACTIVE|INACTIVE|DELETE_IN_PROGRESS"`
}

type listTaskDefinitionsOut struct {
	ARNs      []string `json:"taskDefinitionArns"`
	NextToken string   `json:"nextToken,omitempty"`
}

func listTaskDefinitions(ctx context.Context, h *Handler, in *listTaskDefinitionsIn) (*listTaskDefinitionsOut, error) {
	l, err := newListing(in.NextToken, in.MaxResults, "ListTaskDefinitions", in.FamilyPrefix, in.Sort, in.Status)
	if err != nil {
		return nil, err
	}
	if in.FamilyPrefix != "" && !nameForm.MatchString(in.FamilyPrefix) {
		return nil, parameter("familyPrefix", "%.60q is no family's name", in.FamilyPrefix)
	}
	names, next, err := h.control.ListTaskDefinitions(ctx, control.DefinitionFilter{Family: in.FamilyPrefix, Status: in.Status, Descending: in.Sort == "DESC"}, l.cursor, l.limit)
	if err != nil {
		return nil, err
	}
	return &listTaskDefinitionsOut{each(names, h.control.NamedDefinitionARN), l.token(next)}, nil
}

type listFamiliesIn struct {
	FamilyPrefix string `json:"familyPrefix"`
	MaxResults   *int   `json:"maxResults"`
	NextToken    string `json:"nextToken"`
	Status       string `json:"status" one:"ACTIVE|INACTIVE|ALL"`
}

type listFamiliesOut struct {
	Families  []string `json:"families"`
	NextToken string   `json:"nextToken,omitempty"`
}

func listTaskDefinitionFamilies(ctx context.Context, h *Handler, in *listFamiliesIn) (*listFamiliesOut, error) {
	l, err := newListing(in.NextToken, in.MaxResults, "ListTaskDefinitionFamilies", in.FamilyPrefix, in.Status)
	if err != nil {
		return nil, err
	}
	if in.FamilyPrefix != "" && !nameForm.MatchString(in.FamilyPrefix) {
		return nil, parameter("familyPrefix", "%.60q begins no family's name", in.FamilyPrefix)
	}
	status := in.Status
	if status == "ALL" {
		status = ""
	}
	names, next, err := h.control.ListTaskDefinitionFamilies(ctx, in.FamilyPrefix, status, l.cursor, l.limit)
	if err != nil {
		return nil, err
	}
	return &listFamiliesOut{each(names, func(n string) string { return n }), l.token(next)}, nil
}
