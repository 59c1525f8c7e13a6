package taskdef

import (
	"regexp"
	"strings"
)

// roleName is a role's name with the path before it, as IAM allows them.
var (
	roleName = regexp.MustCompile(`^/?([A-Za-z0-9_+=,.@-]+/)*[A-Za-z0-9_+=,.@-]+$`)
	roleForm = regexp.MustCompile(`^arn:aws[a-z-]*:iam::[0-9]{12}:role/(.+)$`)
)

// maxRole is the most characters of a role's path and name together.
const maxRole = 512 + 64

// isRole says whether s names a role as ECS lets it be named: its ARN, or its name with the path before it.
func isRole(s string) bool {
	if strings.HasPrefix(s, "arn:") {
		found := roleForm.FindStringSubmatch(s)
		if found == nil {
			return false
		}
		s = found[1]
	}
	return len(s) <= maxRole && roleName.MatchString(s)
}

// RoleARN is the ARN of a role that is named as a definition may name it. Who does not know the account leaves a short name
// as it is.
func RoleARN(partition, account, role string) string {
	if role == "" || account == "" || strings.HasPrefix(role, "arn:") {
		return role
	}
	return "arn:" + partition + ":iam::" + account + ":role/" + strings.TrimPrefix(role, "/")
}

// roleOf is the ARN of a role in the account of a definition.
func roleOf(definitionARN, role string) string {
	parts := strings.SplitN(definitionARN, ":", 6)
	if len(parts) < 6 {
		return role
	}
	return RoleARN(parts[1], parts[4], role)
}

func (j *judge) role(path, role string) {
	if role != "" && !isRole(role) {
		j.invalid(path, "is %s; allowed is the ARN of an IAM role, arn:PARTITION:iam::ACCOUNT:role/NAME, or its name with its path before it, PATH/NAME", show(role))
	}
}
