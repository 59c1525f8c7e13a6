//go:build clients

package client

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/longshore-run/longshore/test/strict"
)

// core is every operation that stock clients must find, and paged those of them that answer in pages.
var (
	core = []string{
		"CreateCluster", "DescribeClusters", "ListClusters", "DeleteCluster",
		"TagResource", "UntagResource", "ListTagsForResource",
		"ListAccountSettings", "PutAccountSetting", "PutAccountSettingDefault", "DeleteAccountSetting",
		"RegisterTaskDefinition", "DescribeTaskDefinition", "ListTaskDefinitions", "ListTaskDefinitionFamilies",
		"DeregisterTaskDefinition", "DeleteTaskDefinitions",
		"RegisterContainerInstance", "DeregisterContainerInstance", "DescribeContainerInstances", "ListContainerInstances", "UpdateContainerInstancesState",
		"PutAttributes", "DeleteAttributes", "ListAttributes",
		"RunTask", "StartTask", "StopTask", "DescribeTasks", "ListTasks",
		"DiscoverPollEndpoint", "SubmitTaskStateChange", "SubmitContainerStateChange",
		"CreateService", "UpdateService", "DeleteService", "DescribeServices", "ListServices",
	}
	paged = []string{
		"ListClusters", "ListContainerInstances", "ListTaskDefinitions", "ListTaskDefinitionFamilies",
		"ListTasks", "ListServices", "ListAccountSettings", "ListAttributes",
	}
)

// testCore has every client call every core operation, in the same order, all of them at the same time.
func testCore(t *testing.T, s *stack) {
	clients := []struct {
		name string
		run  func(t *testing.T, s *stack, d *door, name string)
	}{
		{"boto3", func(t *testing.T, s *stack, d *door, name string) {
			script(t, s, d, name, venv(t, "python"), "core.py")
		}},
		{"go-sdk", goSDK},
		{"js-sdk", func(t *testing.T, s *stack, d *door, name string) { script(t, s, d, name, "node", "core.mjs") }},
		{"aws-cli-1", func(t *testing.T, s *stack, d *door, name string) {
			script(t, s, d, name, "bash", "core.sh", "AWS="+installed(t, "venv", "bin", "aws"))
		}},
		{"aws-cli-2", func(t *testing.T, s *stack, d *door, name string) {
			script(t, s, d, name, "bash", "core.sh", "AWS="+awsCLI2(t))
		}},
	}
	// Debian 12's is older than the newest operation of the core.
	lacks := map[string][]string{}
	if _, err := exec.CommandContext(t.Context(), awsCLI2(t), "ecs", "delete-task-definitions", "--generate-cli-skeleton").Output(); err != nil {
		lacks["aws-cli-2"] = []string{"DeleteTaskDefinitions"}
	}
	seen := &coverage{}
	t.Run("at once", func(t *testing.T) {
		for _, c := range clients {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				d := s.door(t)
				defer seen.add(c.name, d.Proxy)
				c.run(t, s, d, c.name)
			})
		}
	})
	t.Log("how often each client's calls were answered:\n" + seen.table())
	for _, c := range clients {
		for _, operation := range core {
			want := 1
			if slices.Contains(paged, operation) {
				want = 2
			}
			if slices.Contains(lacks[c.name], operation) {
				want = 0
			}
			if n := seen.of(c.name, operation); n < want {
				t.Errorf("%s: %s was answered %d times, and %d at least are wanted", c.name, operation, n, want)
			}
		}
	}
}

// script runs a client's file of testdata.
func script(t *testing.T, s *stack, d *door, name, program, file string, env ...string) {
	cmd := s.program(t, d, program, file)
	cmd.Env = append(append(cmd.Env, "CLIENT="+name), env...)
	show(t, cmd)
}

// coverage is what each client called.
type coverage struct {
	mu    sync.Mutex
	names []string
	calls map[string]map[string]map[string]int // client → operation → result → count
}

func (c *coverage) add(client string, p *strict.Proxy) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls == nil {
		c.calls = map[string]map[string]map[string]int{}
	}
	c.names = append(c.names, client)
	slices.Sort(c.names)
	c.calls[client] = p.Calls()
}

// of is how often a client's call of an operation succeeded.
func (c *coverage) of(client, operation string) int { return c.calls[client][operation]["OK"] }

func (c *coverage) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-30s", "operation")
	for _, name := range c.names {
		fmt.Fprintf(&b, "%10s", name)
	}
	for _, operation := range core {
		fmt.Fprintf(&b, "\n%-30s", operation)
		for _, name := range c.names {
			fmt.Fprintf(&b, "%10d", c.of(name, operation))
		}
	}
	return b.String()
}
