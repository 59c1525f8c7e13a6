package dockerengine

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// TestRequest_SecretsAreInTheEnvironmentAndTheLogOptionsAlone: labels and names are
// shown to everybody.
func TestRequest_SecretsAreInTheEnvironmentAndTheLogOptionsAlone(t *testing.T) {
	def := &taskdef.TaskDefinition{Spec: taskdef.Spec{Family: "web", ContainerDefinitions: []taskdef.ContainerDefinition{{
		Name: "app", Image: "busybox", Environment: []taskdef.KeyValuePair{{Name: "A", Value: "own"}},
		LogConfiguration: &taskdef.LogConfiguration{LogDriver: "splunk", Options: map[string]string{"splunk-url": "https://example.com"}},
	}}}}
	r, err := request("i", agent.Spec{
		ContainerID: agent.ContainerID{Task: "t", Attempt: 1, Container: "app"}, Definition: def, Family: "web", Revision: 1,
		Environment: map[string]string{"PASSWORD": "CANARY"}, LogOptions: map[string]string{"splunk-token": "CANARY"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(r.Config.Env, []string{"A=own", "PASSWORD=CANARY"}) {
		t.Errorf("environment %q", r.Config.Env)
	}
	if want := map[string]string{"splunk-url": "https://example.com", "splunk-token": "CANARY"}; !maps.Equal(r.Host.LogConfig.Config, want) {
		t.Errorf("log options %q", r.Host.LogConfig.Config)
	}
	if len(def.ContainerDefinitions[0].LogConfiguration.Options) != 1 {
		t.Error("the definition, which is journaled, has the secret now")
	}
	for name, value := range r.Config.Labels {
		if strings.Contains(value, "CANARY") {
			t.Errorf("label %s has it", name)
		}
	}
}
