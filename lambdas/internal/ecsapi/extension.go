package ecsapi

import (
	"context"
	"maps"
	"slices"
	"strings"
)

// extensionPrefix begins the targets of what ECS does not have: an operation of
// ours never looks like one of ECS's (docs/adr/0010).
const extensionPrefix = "Longshore."

// extensions are the operations of our own. Like ECS's they are checked against
// an endpoint that only reads by their names.
var extensions = map[string]*operation{
	"FenceContainerInstance": of(fenceContainerInstance),
}

// Extensions lists the operations that ECS does not have, sorted.
func Extensions() []string { return slices.Sorted(maps.Keys(extensions)) }

// find is the operation a target names: ECS's, done or not, or one of ours.
func find(target string) (name string, op *operation, known bool) {
	if name, ours := strings.CutPrefix(target, extensionPrefix); ours {
		op, known = extensions[name]
		return name, op, known
	}
	name, known = strings.CutPrefix(target, targetPrefix)
	if known {
		op, known = operations[name]
	}
	return name, op, known
}

type fenceIn struct {
	Cluster           string `json:"cluster"`
	ContainerInstance string `json:"containerInstance" need:"true"`
	ConfirmedOff      bool   `json:"confirmedOff"`
}

func fenceContainerInstance(ctx context.Context, h *Handler, in *fenceIn) (*instanceOut, error) {
	cluster, err := h.clusterName("cluster", in.Cluster)
	if err != nil {
		return nil, err
	}
	id, err := h.id("containerInstance", "container-instance", cluster, in.ContainerInstance)
	if err != nil {
		return nil, err
	}
	if !in.ConfirmedOff {
		return nil, parameter("confirmedOff", "must be true: whoever fences an instance says that its host is off, and all its tasks end by that word")
	}
	v, err := h.control.FenceContainerInstance(ctx, cluster, id)
	if err != nil {
		return nil, err
	}
	return &instanceOut{h.showInstance(v, true)}, nil
}
