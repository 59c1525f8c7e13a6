package setting_test

import (
	"slices"
	"testing"

	"github.com/longshore-run/longshore/shared/setting"
)

func TestTaskRoles_AreAListForEachCluster(t *testing.T) {
	const path, own = "arn:aws-cn:iam::000000000000:role/longshore/*", "arn:aws-cn:iam::000000000000:role/edge/box"
	for _, c := range []struct {
		list    []string
		cluster string
		want    []string
	}{
		{[]string{"longshore/*"}, "default", []string{path}},
		{[]string{"longshore/*", "edge=edge/box"}, "default", []string{path}},
		{[]string{"longshore/*", "edge=edge/box"}, "edge", []string{own}},
		{[]string{"longshore/*", "edge=none"}, "edge", nil},
		{[]string{"none"}, "default", nil},
		{[]string{"edge=longshore/*"}, "default", nil},
		{[]string{"longshore/*", "arn:aws:iam::111111111111:role/x", "longshore/*"}, "default", []string{path, "arn:aws:iam::111111111111:role/x"}},
		{nil, "default", nil},
	} {
		s := setting.Control{TaskRoles: c.list, Partition: "aws-cn", Account: "000000000000"}
		if got := s.TaskRoleARNs(c.cluster); !slices.Equal(got, c.want) {
			t.Errorf("%v, cluster %s: %v, want %v", c.list, c.cluster, got, c.want)
		}
	}
}

func TestMatchesRole_ReadsAPatternAsIAMDoes(t *testing.T) {
	const role = "arn:aws:iam::000000000000:role/"
	for pattern, roles := range map[string]map[string]bool{
		role + "longshore/*":    {role + "longshore/a": true, role + "longshore/a/b": true, role + "longshore": false, role + "longshorex": false, role + "a/longshore/b": false, "arn:aws:iam::111111111111:role/longshore/a": false},
		role + "longshore/job*": {role + "longshore/job": true, role + "longshore/jobs": true, role + "longshore/a": false},
		role + "x":              {role + "x": true, role + "X": false, role + "x/y": false},
		"":                      {role + "x": false},
	} {
		for arn, want := range roles {
			if got := setting.MatchesRole(pattern, arn); got != want {
				t.Errorf("%s and %s: %v", pattern, arn, got)
			}
		}
	}
}

func TestValidTaskRole_WantsMoreThanAStar(t *testing.T) {
	for entry, want := range map[string]bool{
		"longshore/*": true, "longshore/batch-*": true, "job": true, "a/b/c": true, "none": true, "edge=none": true, "edge=longshore/edge/*": true,
		"arn:aws:iam::000000000000:role/x": true, "edge=arn:aws-us-gov:iam::000000000000:role/a/*": true,
		"": false, "*": false, "edge=*": false, "/longshore/*": false, "a*b": false, "longshore/**": false, "arn:aws:iam::*:role/x": false,
		"arn:aws:iam::000000000000:role/*": false, "arn:aws:iam::000000000000:user/x": false, "edge=": false, "a//b": false, "a b": false,
	} {
		if got := setting.ValidTaskRole(entry); got != want {
			t.Errorf("%q: %v", entry, got)
		}
	}
}
