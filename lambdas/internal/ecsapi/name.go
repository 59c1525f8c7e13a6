package ecsapi

import (
	"regexp"
	"strings"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/fault"
)

var (
	hex32    = regexp.MustCompile(`^[0-9a-f]{32}$`)
	nameForm = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,255}$`)
)

// resource is the part of an ARN of ours behind the account, without its kind;
// ok is false for one that is not ours or of another kind.
func (h *Handler) resource(arn, kind string) (rest string, ok bool) {
	parts := strings.SplitN(arn, ":", 6)
	s := h.control.Setting
	if len(parts) != 6 || parts[2] != "ecs" || parts[3] != s.Region || parts[4] != s.Account {
		return "", false
	}
	return strings.CutPrefix(parts[5], kind+"/")
}

// clusterName reads a cluster's name or ARN; none is the default cluster.
func (h *Handler) clusterName(member, s string) (string, error) {
	switch {
	case s == "":
		return control.DefaultCluster, nil
	case strings.HasPrefix(s, "arn:"):
		name, ok := h.resource(s, "cluster")
		if !ok || !nameForm.MatchString(name) {
			return "", fault.New(fault.NotFound, "Cluster not found.").WithCode(control.ClusterNotFoundException)
		}
		return name, nil
	case !nameForm.MatchString(s):
		return "", parameter(member, "%.60q is no cluster's name: 1 to 255 letters, digits, hyphens and underscores, or an ARN", s)
	}
	return s, nil
}

// id reads the id or ARN of a task or container instance of a cluster. What is
// neither is returned as it came, and will not be found.
func (h *Handler) id(member, kind, cluster, s string) (string, error) {
	if s == "" {
		return "", parameter(member, "is empty; an id or an ARN is allowed")
	}
	rest, ok := h.resource(s, kind)
	if !ok {
		return s, nil
	}
	of, id, long := strings.Cut(rest, "/")
	switch {
	case !long:
		return rest, nil
	case of != cluster:
		return "", parameter(member, "Identifier is for cluster %.60s. Your cluster is %s", of, cluster)
	}
	return id, nil
}

// ids reads many, and remembers which came as what, to name the missing by.
func (h *Handler) ids(member, kind, cluster string, all []string) (ids []string, given map[string]string, err error) {
	given = map[string]string{}
	for _, s := range all {
		id, err := h.id(member, kind, cluster, s)
		if err != nil {
			return nil, nil, err
		}
		if given[id] == "" {
			ids = append(ids, id)
			given[id] = s
		}
	}
	return ids, given, nil
}

// arnOf names what was asked for and not found: as it was given, if by ARN.
func arnOf(given string, arn func(id string) string) string {
	if strings.HasPrefix(given, "arn:") {
		return given
	}
	return arn(given)
}

func parameter(member, format string, args ...any) error {
	return fault.Field(member, format, args...).WithCode(control.InvalidParameterException)
}
