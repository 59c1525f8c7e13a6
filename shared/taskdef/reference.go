package taskdef

import (
	"fmt"
	"strconv"
	"strings"
)

// Reference names a definition as clients do.
type Reference struct {
	Region, Account string // of an ARN, else empty
	Family          string
	Revision        int // 0: the newest active one
}

const arnKind = ":task-definition/"

// ARN is the name of a revision.
func ARN(region, account, family string, revision int) string {
	return fmt.Sprintf("arn:aws:ecs:%s:%s%s%s:%d", region, account, arnKind, family, revision)
}

// ParseReference reads family, family:revision or an ARN. An error is a Faults at the path taskDefinition.
func ParseReference(s string) (Reference, error) {
	var r Reference
	rest := s
	if strings.HasPrefix(s, "arn:") {
		parts := strings.SplitN(s, ":", 6)
		name, ok := "", false
		if len(parts) == 6 {
			name, ok = strings.CutPrefix(parts[5], arnKind[1:])
		}
		if !ok || parts[2] != "ecs" {
			return Reference{}, badReference(s, "is not the ARN of a task definition")
		}
		r.Region, r.Account, rest = parts[3], parts[4], name
	}
	family, revision, numbered := strings.Cut(rest, ":")
	if numbered {
		n, err := strconv.ParseUint(revision, 10, 31)
		if err != nil || n == 0 || revision[0] == '0' {
			return Reference{}, badReference(s, "has a revision that is no number from 1")
		}
		r.Revision = int(n)
	}
	if !nameForm.MatchString(family) || len(family) > maxName {
		return Reference{}, badReference(s, "has a family that is no name: letters, digits, hyphens and underscores, up to 255")
	}
	r.Family = family
	return r, nil
}

func badReference(s, why string) error {
	if s == "" {
		return Faults{{Path: "taskDefinition", Message: "is required", Kind: Invalid}}
	}
	return Faults{{Path: "taskDefinition", Message: show(s) + " " + why, Kind: Invalid}}
}
