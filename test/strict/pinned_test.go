//go:build emulator

package strict

import (
	"slices"
	"testing"
)

// The real model, with one answer that is right and what is planted into it.
func TestPinned_IsTheModelOfECS(t *testing.T) {
	m, err := Pinned()
	if err != nil {
		t.Fatal(err)
	}
	if n := len(m.Operations); n < 70 {
		t.Errorf("the model has %d operations", n)
	}
	for _, c := range []struct {
		operation string
		status    int
		body      string
		expect    []string
	}{
		{"DescribeTasks", 200, `{"tasks":[{"taskArn":"a","lastStatus":"RUNNING","createdAt":1700000000.123,"version":4,"containers":[{"name":"main","exitCode":0,"healthStatus":"UNKNOWN"}]}],"failures":[]}`, nil},
		{"DescribeTasks", 200, `{"tasks":[{"createdAt":"2023-11-14T22:13:20Z","stopCode":"Bored","containers":[{"healthStatus":"FINE","cpu":5}]}]}`, []string{
			"DescribeTasks: tasks[0].containers[0].cpu is 5; it is a string",
			`DescribeTasks: tasks[0].containers[0].healthStatus is "FINE", which is none of its choices`,
			`DescribeTasks: tasks[0].createdAt is "2023-11-14T22:13:20Z"; it is a number of seconds since 1970`,
			`DescribeTasks: tasks[0].stopCode is "Bored", which is none of its choices`,
			"DescribeTasks: failures is a list and is left out: clients index it, so an empty one is sent",
		}},
		{"DescribeTasks", 400, `{"__type":"ClusterNotFoundException","message":"Cluster not found."}`, nil},
		{"DescribeTasks", 400, `{"__type":"ServiceNotFoundException","message":"x"}`, []string{"DescribeTasks: __type is ServiceNotFoundException, which the operation does not have"}},
		{"RunTask", 400, `{"__type":"ConflictException","message":"x","resourceIds":["arn"]}`, nil},
	} {
		if found := m.Check(c.operation, c.status, []byte(c.body)); !slices.Equal(found, c.expect) {
			t.Errorf("%s %s:\nfound %q\nnot   %q", c.operation, c.body, found, c.expect)
		}
	}
}
