package setting

import (
	"regexp"
	"slices"
	"strings"
)

// NoRole is the entry of Control.TaskRoles that names no role.
const NoRole = "none"

// roleEntry is a role: its ARN, or its name with the path before it, in our own account. A * at the end, where some of the
// name or of the path stands before it, is any rest. What IAM allows in names and a list or an entry needs for itself, a
// comma or =, is not possible.
var roleEntry = regexp.MustCompile(`^([A-Za-z0-9_-]{1,255}=)?(none|(arn:aws[a-z-]*:iam::[0-9]{12}:role/)?[A-Za-z0-9_+.@-]+(/[A-Za-z0-9_+.@-]+)*(\*|/\*)?)$`)

// ValidTaskRole says whether an entry of Control.TaskRoles has the form of one.
func ValidTaskRole(entry string) bool { return roleEntry.MatchString(entry) }

// OfCluster is what a list says of a cluster, where an entry cluster=value is of that cluster alone; where it has none of its
// own, the entries without a cluster.
func OfCluster(list []string, cluster string) []string {
	var own, general []string
	for _, entry := range list {
		of, value, named := strings.Cut(entry, "=")
		switch {
		case !named:
			general = append(general, entry)
		case of == cluster:
			own = append(own, value)
		}
	}
	if own != nil {
		return own
	}
	return general
}

// TaskRoleARN is an entry's pattern of ARNs, whatever cluster it is of; "" for one that names no role.
func TaskRoleARN(entry, partition, account string) string {
	if _, value, named := strings.Cut(entry, "="); named {
		entry = value
	}
	if entry == NoRole || strings.HasPrefix(entry, "arn:") {
		return strings.TrimPrefix(entry, NoRole)
	}
	return "arn:" + partition + ":iam::" + account + ":role/" + entry
}

// TaskRoleARNs are the patterns of the roles that tasks of a cluster may have.
func (c Control) TaskRoleARNs(cluster string) (patterns []string) {
	return RoleARNs(OfCluster(c.TaskRoles, cluster), c.Partition, c.Account)
}

// RoleARNs are the patterns of entries, each once.
func RoleARNs(entries []string, partition, account string) (patterns []string) {
	for _, entry := range entries {
		if p := TaskRoleARN(entry, partition, account); p != "" && !slices.Contains(patterns, p) {
			patterns = append(patterns, p)
		}
	}
	return patterns
}

// MatchesRole says whether an ARN is one of a pattern, as IAM reads it.
func MatchesRole(pattern, arn string) bool {
	if start, open := strings.CutSuffix(pattern, "*"); open {
		return strings.HasPrefix(arn, start)
	}
	return pattern == arn
}
