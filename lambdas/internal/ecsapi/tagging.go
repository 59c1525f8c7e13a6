package ecsapi

import (
	"context"
	"strings"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// resourceOf reads the ARN of something that can have tags: its long form, as ECS
// wants it there.
func (h *Handler) resourceOf(arn string) (r control.Resource, err error) {
	parts := strings.SplitN(arn, ":", 6)
	if len(parts) != 6 || parts[0] != "arn" || parts[2] != "ecs" {
		return r, parameter("resourceArn", "is %.200q; the ARN of a resource of ECS is allowed", arn)
	}
	kind, rest, _ := strings.Cut(parts[5], "/")
	if _, ours := h.resource(arn, kind); !ours {
		return r, parameter("resourceArn", "is %.200q; region and account are %s and %s here", arn, h.control.Setting.Region, h.control.Setting.Account)
	}
	r.Kind, r.Name = control.ResourceKind(kind), rest
	switch r.Kind {
	case control.ClusterResource:
		_, err = h.clusterName("resourceArn", arn)
	case control.TaskResource, control.InstanceResource, control.ServiceResource:
		var long bool
		if r.Cluster, r.Name, long = strings.Cut(rest, "/"); !long {
			err = parameter("resourceArn", "Long arn format must be used for tagging operations")
		} else if !nameForm.MatchString(r.Cluster) || !nameForm.MatchString(r.Name) {
			err = parameter("resourceArn", "is %.200q, which names no %s", arn, kind)
		}
	case control.DefinitionResource: // read with its revision
	default:
	}
	return r, err
}

type nothing struct{}

type tagResourceIn struct {
	ResourceARN string `json:"resourceArn" need:"true"`
	Tags        []tag  `json:"tags" need:"true"`
}

func tagResource(ctx context.Context, h *Handler, in *tagResourceIn) (*nothing, error) {
	r, err := h.resourceOf(in.ResourceARN)
	if err != nil {
		return nil, err
	}
	tags, err := tagMap(in.Tags)
	if err != nil {
		return nil, err
	}
	return &nothing{}, h.control.TagResource(ctx, r, tags)
}

type untagResourceIn struct {
	ResourceARN string   `json:"resourceArn" need:"true"`
	TagKeys     []string `json:"tagKeys" need:"true"`
}

func untagResource(ctx context.Context, h *Handler, in *untagResourceIn) (*nothing, error) {
	r, err := h.resourceOf(in.ResourceARN)
	if err != nil {
		return nil, err
	}
	return &nothing{}, h.control.UntagResource(ctx, r, in.TagKeys)
}

type listTagsIn struct {
	ResourceARN string `json:"resourceArn" need:"true"`
}

type listTagsOut struct {
	Tags []taskdef.Tag `json:"tags"`
}

func listTagsForResource(ctx context.Context, h *Handler, in *listTagsIn) (*listTagsOut, error) {
	r, err := h.resourceOf(in.ResourceARN)
	if err != nil {
		return nil, err
	}
	tags, err := h.control.TagsOf(ctx, r)
	if err != nil {
		return nil, err
	}
	return &listTagsOut{tagList(tags, true)}, nil
}
