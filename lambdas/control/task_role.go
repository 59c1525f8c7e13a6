package control

import (
	"slices"
	"strings"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/setting"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// AccessDeniedException is what ECS answers to a caller who may not pass a role.
const AccessDeniedException = "AccessDeniedException"

// mayHaveRoles refuses what would run with a role that tasks of the cluster may not
// have. ECS asks IAM whether the caller may pass it (iam:PassRole); a Function URL
// can not ask that, so there is a list. merged is the definition with the overrides.
func (c *Control) mayHaveRoles(cluster, name string, merged *taskdef.TaskDefinition, over *taskdef.TaskOverride) error {
	for _, r := range []struct{ member, role, override string }{
		{"taskRoleArn", merged.TaskRoleArn, over.TaskRoleArn},
		{"executionRoleArn", merged.ExecutionRoleArn, over.ExecutionRoleArn},
	} {
		allowed := c.Setting.TaskRoleARNs(cluster)
		if r.role == "" || slices.ContainsFunc(allowed, func(p string) bool { return setting.MatchesRole(p, r.role) }) {
			continue
		}
		field, whose := "taskDefinition", "the "+r.member+" of "+name+", "+r.role+","
		if r.override != "" {
			field, whose = "overrides."+r.member, r.role
		}
		roles := "no role"
		if len(allowed) > 0 {
			roles = strings.Join(allowed, ", ")
		}
		e := fault.Field(field, "%s is not a role that tasks of cluster %s may have; allowed: %s", whose, cluster, roles)
		e.Kind = fault.Denied
		return e.WithCode(AccessDeniedException)
	}
	return nil
}
