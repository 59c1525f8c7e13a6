package ecsconfig_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/edgeagent/internal/ecsconfig"
	"github.com/longshore-run/longshore/shared/setting"
)

func none(string) bool { return false }

func TestTranslate_ReadsWhatMeansTheSame(t *testing.T) {
	got, warnings, err := ecsconfig.Translate(map[string]string{
		"ECS_CLUSTER":                           "edge",
		"ECS_RESERVED_MEMORY":                   "256",
		"ECS_RESERVED_PORTS":                    "[22, 80]",
		"ECS_RESERVED_PORTS_UDP":                "[53]",
		"ECS_INSTANCE_ATTRIBUTES":               `{"rack": "r1", "color": "blue"}`,
		"ECS_ENGINE_TASK_CLEANUP_WAIT_DURATION": "10m",
		"ECS_CONTAINER_STOP_TIMEOUT":            "2m",
		"ECS_CONTAINER_START_TIMEOUT":           "45s",
		"ECS_IMAGE_PULL_BEHAVIOR":               "prefer-cached",
		"ECS_LOGLEVEL":                          "CRIT",
		"ECS_ENABLE_SPOT_INSTANCE_DRAINING":     "false",
		"ECS_BACKEND_PORT":                      "", // empty is unset
		"HTTP_PROXY":                            "http://proxy:3128",
	}, none)
	want := map[string]string{
		"LONGSHORE_CLUSTER": "edge", "LONGSHORE_RESERVED_MEMORY": "256", "LONGSHORE_RESERVED_PORTS": "22,80", "LONGSHORE_RESERVED_PORTS_UDP": "53",
		"LONGSHORE_INSTANCE_ATTRIBUTES": "color=blue,rack=r1", "LONGSHORE_CLEANUP_WAIT": "10m", "LONGSHORE_STOP_TIMEOUT": "2m",
		"LONGSHORE_START_TIMEOUT": "45s", "LONGSHORE_IMAGE_PULL_BEHAVIOR": "prefer-cached", "LONGSHORE_LOG_LEVEL": "error", "LONGSHORE_NOTICES": "autoscaling",
	}
	if err != nil || len(warnings) > 0 || !maps.Equal(got, want) {
		t.Errorf("%v\n%v\n%v", got, warnings, err)
	}
}

func TestTranslate_ReadsWhatECSSaysOfImages(t *testing.T) {
	got, warnings, err := ecsconfig.Translate(map[string]string{
		"ECS_DISABLE_IMAGE_CLEANUP": "true", "ECS_IMAGE_CLEANUP_INTERVAL": "10m", "ECS_IMAGE_MINIMUM_CLEANUP_AGE": "2h", "NON_ECS_IMAGE_MINIMUM_CLEANUP_AGE": "3h",
		"ECS_NUM_IMAGES_DELETE_PER_CYCLE": "7", "ECS_ENABLE_UNTRACKED_IMAGE_CLEANUP": "true", "ECS_EXCLUDE_UNTRACKED_IMAGE": "a:1,b:2",
	}, none)
	want := map[string]string{
		"LONGSHORE_IMAGE_CLEANUP": "off", "LONGSHORE_IMAGE_CLEANUP_INTERVAL": "10m", "LONGSHORE_IMAGE_CLEANUP_AGE": "2h", "LONGSHORE_IMAGE_CLEANUP_UNTRACKED_AGE": "3h",
		"LONGSHORE_IMAGE_CLEANUP_COUNT": "7", "LONGSHORE_IMAGE_CLEANUP_UNTRACKED": "true", "LONGSHORE_IMAGE_CLEANUP_EXCLUDE": "a:1,b:2",
	}
	if err != nil || len(warnings) > 0 || !maps.Equal(got, want) {
		t.Errorf("%v\n%v\n%v", got, warnings, err)
	}
	if got, _, err := ecsconfig.Translate(map[string]string{"ECS_DISABLE_IMAGE_CLEANUP": "false"}, none); err != nil || got["LONGSHORE_IMAGE_CLEANUP"] != "disk" {
		t.Errorf("%v, %v", got, err)
	}
	_, _, err = ecsconfig.Translate(map[string]string{"ECS_DISABLE_IMAGE_CLEANUP": "perhaps", "ECS_IMAGE_CLEANUP_INTERVAL": "9m"}, none)
	if want := "ECS_DISABLE_IMAGE_CLEANUP=\"perhaps\": must be true or false\nECS_IMAGE_CLEANUP_INTERVAL=\"9m\": must be at least 10m0s, as for ECS's agent"; err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
}

func TestTranslate_OursWins(t *testing.T) {
	got, warnings, err := ecsconfig.Translate(map[string]string{"ECS_CLUSTER": "edge", "ECS_CONTAINER_STOP_TIMEOUT": "soon"}, func(name string) bool {
		return name == "LONGSHORE_CLUSTER" || name == "LONGSHORE_STOP_TIMEOUT"
	})
	if len(got)+len(warnings) > 0 || err != nil {
		t.Errorf("%v, %v, %v", got, warnings, err)
	}
}

func TestTranslate_SaysWhatIsNotObeyedAndNeverItsValue(t *testing.T) {
	_, warnings, err := ecsconfig.Translate(map[string]string{
		"ECS_AGENT_LABELS": `{"registry": {"password": "hunter2"}}`, "ECS_NONSENSE": "hunter3", "ECS_ENABLE_TASK_ENI": "false", "ECS_CNI_PLUGINS_PATH": "/cni",
	}, none)
	text := strings.Join(warnings, "\n")
	if err != nil || len(warnings) != 3 || strings.Contains(text, "hunter") {
		t.Errorf("%s, %v", text, err)
	}
	for _, part := range []string{"ECS_CNI_PLUGINS_PATH is not obeyed: awsvpc", "ECS_AGENT_LABELS is not obeyed: ", "ECS_NONSENSE is not a setting"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in\n%s", part, text)
		}
	}
}

func TestTranslate_NamesEveryValueThatCannotBeUnderstood(t *testing.T) {
	_, _, err := ecsconfig.Translate(map[string]string{
		"ECS_RESERVED_PORTS": "22,80", "ECS_INSTANCE_ATTRIBUTES": `{"a": "b,c"}`, "ECS_CONTAINER_STOP_TIMEOUT": "30",
		"ECS_ENGINE_TASK_CLEANUP_WAIT_DURATION": "1s", "ECS_LOGLEVEL": "loud", "ECS_ENABLE_SPOT_INSTANCE_DRAINING": "maybe",
	}, none)
	want := `ECS_CONTAINER_STOP_TIMEOUT="30": must be a duration such as 90s
ECS_ENABLE_SPOT_INSTANCE_DRAINING="maybe": must be true or false
ECS_ENGINE_TASK_CLEANUP_WAIT_DURATION="1s": must be at least 1m0s, as for ECS's agent
ECS_INSTANCE_ATTRIBUTES="{\"a\": \"b,c\"}": has "a=b,c": a name or a value must be without commas and equals signs
ECS_LOGLEVEL="loud": must be one of debug, info, warn, error, crit, none
ECS_RESERVED_PORTS="22,80": must be a JSON list of ports, as in [22, 80]`
	if err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
}

func TestMeanings_NameSettingsOfOursOrSayWhy(t *testing.T) {
	ours := setting.Names(setting.Agent{})
	seen := map[string]bool{}
	for _, m := range ecsconfig.Meanings() {
		if seen[m.Name] {
			t.Errorf("%s is there twice", m.Name)
		}
		seen[m.Name] = true
		if (m.Becomes == "") == (m.Why == "") || m.Becomes != "" && !slices.Contains(ours, m.Becomes) {
			t.Errorf("%+v", m)
		}
	}
}
