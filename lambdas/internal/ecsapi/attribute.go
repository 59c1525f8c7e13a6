package ecsapi

import (
	"context"
	"strings"

	"github.com/longshore-run/longshore/lambdas/control"
)

const instanceTarget = "container-instance"

type attributeIn struct {
	Name       string `json:"name" need:"true"`
	Value      string `json:"value"`
	TargetType string `json:"targetType" one:"container-instance"`
	TargetID   string `json:"targetId" need:"true"`
}

type attributeShape struct {
	Name       string `json:"name"`
	Value      string `json:"value,omitempty"`
	TargetType string `json:"targetType"`
	TargetID   string `json:"targetId"`
}

type attributesOut struct {
	Attributes []attributeShape `json:"attributes"`
	NextToken  string           `json:"nextToken,omitempty"`
}

type editAttributesIn struct {
	Cluster    string        `json:"cluster"`
	Attributes []attributeIn `json:"attributes" need:"true"`
}

type editAttributesOut struct {
	Attributes []attributeShape `json:"attributes"`
}

func (h *Handler) showAttributes(cluster string, all []control.Attribute) []attributeShape {
	return each(all, func(a control.Attribute) attributeShape {
		return attributeShape{a.Name, a.Value, instanceTarget, h.control.InstanceARN(cluster, a.Instance)}
	})
}

// attributes reads the attributes of a request and whose they are.
func (h *Handler) attributes(in *editAttributesIn) (cluster string, all []control.Attribute, err error) {
	if cluster, err = h.clusterName("cluster", in.Cluster); err != nil {
		return "", nil, err
	}
	for _, a := range in.Attributes {
		if a.TargetType == "" && !strings.HasPrefix(a.TargetID, "arn:") {
			return "", nil, parameter("targetType", "is required with a targetId that is no ARN; container-instance is allowed")
		}
		id, err := h.id("targetId", instanceTarget, cluster, a.TargetID)
		if err != nil {
			return "", nil, err
		}
		all = append(all, control.Attribute{Name: a.Name, Value: a.Value, Instance: id})
	}
	return cluster, all, nil
}

func putAttributes(ctx context.Context, h *Handler, in *editAttributesIn) (*editAttributesOut, error) {
	cluster, all, err := h.attributes(in)
	if err != nil {
		return nil, err
	}
	if err := h.control.PutAttributes(ctx, cluster, all); err != nil {
		return nil, err
	}
	return &editAttributesOut{h.showAttributes(cluster, all)}, nil
}

func deleteAttributes(ctx context.Context, h *Handler, in *editAttributesIn) (*editAttributesOut, error) {
	for _, a := range in.Attributes {
		if a.Value != "" {
			return nil, parameter("attributes", "%.130q has a value; an attribute is deleted by name and target, whatever its value", a.Name)
		}
	}
	cluster, all, err := h.attributes(in)
	if err != nil {
		return nil, err
	}
	if err := h.control.DeleteAttributes(ctx, cluster, all); err != nil {
		return nil, err
	}
	return &editAttributesOut{h.showAttributes(cluster, all)}, nil
}

type listAttributesIn struct {
	Cluster        string `json:"cluster"`
	TargetType     string `json:"targetType" need:"true" one:"container-instance"`
	AttributeName  string `json:"attributeName"`
	AttributeValue string `json:"attributeValue"`
	MaxResults     *int   `json:"maxResults"`
	NextToken      string `json:"nextToken"`
}

func listAttributes(ctx context.Context, h *Handler, in *listAttributesIn) (*attributesOut, error) {
	cluster, err := h.clusterName("cluster", in.Cluster)
	if err != nil {
		return nil, err
	}
	f := control.AttributeFilter{Cluster: cluster, Name: in.AttributeName, Value: in.AttributeValue}
	l, err := newListing(in.NextToken, in.MaxResults, "ListAttributes", f)
	if err != nil {
		return nil, err
	}
	all, next, err := h.control.ListAttributes(ctx, f, l.cursor, l.limit)
	if err != nil {
		return nil, err
	}
	return &attributesOut{h.showAttributes(cluster, all), l.token(next)}, nil
}
