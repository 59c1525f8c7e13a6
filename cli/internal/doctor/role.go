package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
)

// roles looks at the roles that tasks may have, as the stack was told: what is on the list and is not there, and what the
// agents can not take because it does not trust them. Their policies are their owners' affair.
func roles(ctx context.Context, in *Installation) ([]Finding, error) {
	agent := in.outputs["AgentRoleArn"]
	if agent == "" {
		return nil, errNoStack
	}
	list := in.outputs["TaskRoleArns"]
	if list == "" {
		return good("tasks may have no role: none is on the list of the stack (context longshore:taskRoles)"), nil
	}
	c := iam.NewFromConfig(in.AWS)
	var faults []Finding
	n, others := 0, ""
	for pattern := range strings.SplitSeq(list, ",") {
		if accountOf(pattern) != accountOf(agent) {
			others += "; " + pattern + " is another account's, and not looked at"
			continue
		}
		found, missing, err := rolesOf(ctx, c, pattern)
		if err != nil {
			return faults, err
		}
		faults = append(faults, missing...)
		for _, r := range found {
			n++
			policy := aws.ToString(r.AssumeRolePolicyDocument)
			if text, err := url.QueryUnescape(policy); err == nil {
				policy = text
			}
			faults = append(faults, judgeRole(aws.ToString(r.Arn), policy, agent)...)
		}
	}
	trust := "; the trust policy of one must hold " + Trust(agent)
	if n == 0 && len(faults) == 0 {
		return good("tasks may have roles of %s; there is none yet%s%s", list, trust, others), nil
	}
	return orGood(faults, "%d of %s, which tasks may have, let the agents take them%s%s", n, list, trust, others), nil
}

// rolesOf are the roles of a pattern of ARNs, and that there is none where it names one.
func rolesOf(ctx context.Context, c *iam.Client, pattern string) (found []iamtypes.Role, missing []Finding, err error) {
	_, name, _ := strings.Cut(pattern, ":role/")
	path := "/" + name[:strings.LastIndexByte(name, '/')+1]
	start, open := strings.CutSuffix(pattern, "*")
	if !open {
		name = strings.TrimPrefix("/"+name, path)
		out, err := c.GetRole(ctx, &iam.GetRoleInput{RoleName: &name})
		_, gone := errors.AsType[*iamtypes.NoSuchEntityException](err)
		switch {
		case gone || err == nil && aws.ToString(out.Role.Arn) != pattern:
			return nil, []Finding{{State: Warn, Text: "role " + pattern + " is on the list of what tasks may have, and there is none",
				Next: "make it, or take it out of the context longshore:taskRoles"}}, nil
		case err != nil:
			return nil, nil, err
		}
		return []iamtypes.Role{*out.Role}, nil, nil
	}
	pages := iam.NewListRolesPaginator(c, &iam.ListRolesInput{PathPrefix: &path})
	for pages.HasMorePages() {
		out, err := pages.NextPage(ctx)
		if err != nil {
			return nil, nil, err
		}
		for _, r := range out.Roles {
			if strings.HasPrefix(aws.ToString(r.Arn), start) {
				found = append(found, r)
			}
		}
	}
	return found, nil, nil
}

func accountOf(arn string) string {
	parts := strings.SplitN(arn, ":", 6)
	if len(parts) < 6 {
		return ""
	}
	return parts[4]
}

func judgeRole(arn, policy, agent string) []Finding {
	if trusts(policy, agent) {
		return nil
	}
	return []Finding{{State: Warn, Text: "role " + arn + " does not trust the agents, so no task can have it", Next: "add to its trust policy: " + Trust(agent)}}
}

// texts reads what IAM writes as one text or as a list.
func texts(data json.RawMessage) (all []string) {
	var one string
	if json.Unmarshal(data, &one) == nil {
		return []string{one}
	}
	if json.Unmarshal(data, &all) != nil {
		return nil
	}
	return all
}

// trusts says whether a trust policy lets the agents take the role, as far as its words go: a condition may still refuse, and
// so may a Deny. A whole account is trusted as it is by those that write it so.
func trusts(policy, agent string) bool {
	var doc struct{ Statement json.RawMessage }
	if json.Unmarshal([]byte(policy), &doc) != nil {
		return false
	}
	type statement struct {
		Effect            string
		Action, Principal json.RawMessage
	}
	var all []statement
	if json.Unmarshal(doc.Statement, &all) != nil {
		all = make([]statement, 1)
		if json.Unmarshal(doc.Statement, &all[0]) != nil {
			return false
		}
	}
	account := accountOf(agent)
	root := strings.Split(agent, ":role/")[0] + ":root"
	return slices.ContainsFunc(all, func(s statement) bool {
		var by struct{ AWS json.RawMessage }
		if json.Unmarshal(s.Principal, &by) != nil {
			by.AWS = s.Principal // "*"
		}
		who := slices.ContainsFunc(texts(by.AWS), func(p string) bool { return p == agent || p == account || p == root || p == "*" })
		what := slices.ContainsFunc(texts(s.Action), func(a string) bool { return a == "sts:AssumeRole" || a == "sts:*" || a == "*" })
		return s.Effect == "Allow" && who && what
	})
}

// Trust is the statement by which a role of tasks lets the agents take it: the stack's output TaskRoleTrust.
func Trust(agentRole string) string {
	return fmt.Sprintf(`{"Effect":"Allow","Principal":{"AWS":%q},"Action":"sts:AssumeRole"}`, agentRole)
}
