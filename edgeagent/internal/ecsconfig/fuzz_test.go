package ecsconfig_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/edgeagent/internal/ecsconfig"
	"github.com/longshore-run/longshore/shared/setting"
)

// FuzzTranslate: whatever stands in ecs.config becomes settings that the agent has,
// each named in the error if it does not hold; no value is in a warning.
func FuzzTranslate(f *testing.F) {
	for _, text := range []string{
		"ECS_CLUSTER=edge\nECS_RESERVED_PORTS=[22, 80]", "ECS_INSTANCE_ATTRIBUTES={\"rack\": \"r1\", \"a,b\": \"=\"}", "ECS_ENGINE_TASK_CLEANUP_WAIT_DURATION=-1m",
		"ECS_LOGLEVEL=none\nECS_IMAGE_PULL_BEHAVIOR=never", "ECS_RESERVED_PORTS=[1e3,\"x\",[[[", "ECS_ENGINE_AUTH_DATA=secretsecret\nECS_NONSENSE=secretsecret",
	} {
		f.Add(text)
	}
	known := setting.Names(setting.Agent{})
	f.Fuzz(func(t *testing.T, text string) {
		ecs := map[string]string{}
		for line := range strings.SplitSeq(text, "\n") {
			name, value, _ := strings.Cut(line, "=")
			ecs[name] = value
		}
		got, warnings, err := ecsconfig.Translate(ecs, func(string) bool { return false })
		for name := range got {
			if !slices.Contains(known, name) {
				t.Fatalf("%s is no setting of the agent", name)
			}
		}
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if !strings.Contains(line, "ECS_") {
					t.Fatalf("a fault that names nothing: %q", line)
				}
			}
		}
		if said := strings.Join(warnings, "\n"); strings.Contains(text, "=secretsecret") && strings.Contains(said, "secretsecret") && !strings.Contains(text, "secretsecret=") {
			t.Fatalf("a value is in a warning: %q", said)
		}
	})
}
