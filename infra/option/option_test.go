package option_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/infra/option"
)

func TestRead_DefaultsAreForARealAccount(t *testing.T) {
	o, err := option.Read(map[string]any{"@aws-cdk/some:flag": true}, "amd64")
	if err != nil {
		t.Fatal(err)
	}
	if o.Name != "Longshore" || o.Local || !o.Retain || !o.EnforceSSL || !o.Build ||
		o.Architecture != option.ARM64 || o.GOARCH() != "arm64" || o.LogDays != 30 || o.Dist != "dist" {
		t.Errorf("read %+v", o)
	}
	if o.CommandQueueStart() != "longshore-cmd-" {
		t.Errorf("command queues start with %q, the agent's default is longshore-cmd-", o.CommandQueueStart())
	}
	if o.Control.HeartbeatEvery != time.Minute || o.Control.SenderFromBody || !slices.Equal(o.Control.TaskRoles, []string{"longshore/*"}) {
		t.Errorf("control %+v", o.Control)
	}
}

func TestRead_LocalTurnsOnWhatOnlyAnEmulatorNeeds(t *testing.T) {
	o, err := option.Read(map[string]any{
		"longshore:local":          "true",
		"longshore:heartbeatEvery": "5s",
	}, "amd64")
	if err != nil {
		t.Fatal(err)
	}
	if o.Retain || o.EnforceSSL || !o.Control.SenderFromBody || o.GOARCH() != "amd64" {
		t.Errorf("read %+v", o)
	}
	if o.Control.HeartbeatEvery != 5*time.Second || o.Control.SuspectAfter != 15*time.Second || o.Control.ReapAfter != 10*time.Minute {
		t.Errorf("control %+v", o.Control)
	}
}

func TestRead_AcceptsWhatCdkJSONHolds(t *testing.T) {
	o, err := option.Read(map[string]any{
		"longshore:local":         true,
		"longshore:logDays":       float64(7),
		"longshore:agentPolicies": []any{"arn:aws:iam::aws:policy/A", "arn:aws:iam::aws:policy/B"},
	}, "arm64")
	if err != nil {
		t.Fatal(err)
	}
	if !o.Local || o.LogDays != 7 || len(o.AgentPolicies) != 2 || o.GOARCH() != "arm64" {
		t.Errorf("read %+v", o)
	}
}

func TestRead_NamesTheBadKey(t *testing.T) {
	for _, c := range []struct {
		key  string
		bad  any
		want string
	}{
		{"heartbeatEvery", "often", `context longshore:heartbeatEvery="often": must be a duration such as 90s`},
		{"heartbeatEvery", "10ms", `context longshore:heartbeatEvery="10ms": must be at least 1s`},
		{"logLevel", "loud", `context longshore:logLevel="loud": must be one of debug, info, warn, error`},
		{"architecture", "amd64", `context longshore:architecture="amd64": must be one of arm64, x86_64`},
		{"removal", "keep", `context longshore:removal="keep": must be one of retain, destroy`},
		{"logDays", "31", `context longshore:logDays="31": must be one of 1, 3, 5,`},
		{"local", "perhaps", `context longshore:local="perhaps": must be true or false`},
		{"name", "1st", `context longshore:name="1st": must start with a letter`},
		{"waitingAlarm", "1s", `context longshore:waitingAlarm="1s": must be at least 1m0s`},
		{"agentPolicies", "admin", `context longshore:agentPolicies="admin": must be ARNs of managed policies`},
		{"senderFromBody", "true", `context longshore:senderFromBody="true": is for emulators`},
		{"registerRoles", " , ", `context longshore:registerRoles=",": must list at least one`},
		{"registerRoles", "arn:aws:iam::0:role/x", `context longshore:registerRoles="arn:aws:iam::0:role/x": "arn:aws:iam::0:role/x" is neither * nor a role's or user's id`},
		{"registerRoles", "edge=AROAEXAMPLE,prod=", `context longshore:registerRoles="edge=AROAEXAMPLE,prod=": "prod=" is neither`},
		{"taskRoles", "*", `context longshore:taskRoles="*": "*" is neither a role's ARN nor its name`},
		{"taskRoles", "longshore/*,edge=", `context longshore:taskRoles="longshore/*,edge=": "edge=" is neither`},
		{"suspectAfter", "30s", `context longshore:suspectAfter="30s": 30s must be longer than heartbeatEvery, 1m0s`},
		{"reapAfter", "2m", `context longshore:reapAfter="2m": 2m0s must be longer than suspectAfter, 3m0s`},
		{"hartbeatEvery", "5s", `context longshore:hartbeatEvery="5s": is not known; known are agentPolicies, architecture,`},
	} {
		t.Run(c.key, func(t *testing.T) {
			_, err := option.Read(map[string]any{"longshore:" + c.key: c.bad}, "amd64")
			if err == nil {
				t.Fatal("accepted")
			}
			if !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s…", err, c.want)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line for one fault:\n%v", err)
			}
		})
	}
}

func TestTunables_CoverTheSettingsAnOperatorMayTurn(t *testing.T) {
	got := option.Tunables()
	for key, variable := range map[string]string{
		"heartbeatEvery": "LONGSHORE_HEARTBEAT_EVERY",
		"suspectAfter":   "LONGSHORE_SUSPECT_AFTER",
		"reapAfter":      "LONGSHORE_REAP_AFTER",
		"senderFromBody": "LONGSHORE_SENDER_FROM_BODY",
		"logLevel":       "LONGSHORE_LOG_LEVEL",
		"keepFor":        "LONGSHORE_KEEP_FOR",
	} {
		if got[key] != variable {
			t.Errorf("%s sets %q, want %s", key, got[key], variable)
		}
	}
	for key := range got {
		if strings.Contains(key, "Table") || strings.Contains(key, "Url") || key == "region" {
			t.Errorf("%s names a resource and must not be tunable", key)
		}
	}
}

func TestRead_SchedulesComeAsJSONOrAsText(t *testing.T) {
	for name, value := range map[string]any{
		"of cdk.json": []any{map[string]any{"schedule": "nightly", "expression": "rate(1 day)", "taskDefinition": "report"}},
		"of -c":       `[{"schedule":"nightly","expression":"rate(1 day)","taskDefinition":"report"}]`,
	} {
		o, err := option.Read(map[string]any{"longshore:schedules": value}, "arm64")
		if err != nil || len(o.Schedules) != 1 || o.Schedules[0].Count != 1 || o.Schedules[0].Cluster != "default" {
			t.Errorf("%s: %+v %v", name, o.Schedules, err)
		}
	}
	for bad, want := range map[string]string{
		`{}`: "must be a list",
		`[{"schedule":"a","expression":"rate(1 day)","taskDefinition":"b","cuont":2}]`:                                                        "unknown field",
		`[{"schedule":"a b","expression":"daily","taskDefinition":"b"}]`:                                                                      "schedule 1: schedule: is",
		`[{"schedule":"a","expression":"rate(1 day)","taskDefinition":"b"},{"schedule":"a","expression":"rate(1 day)","taskDefinition":"b"}]`: "is there twice",
	} {
		if _, err := option.Read(map[string]any{"longshore:schedules": bad}, "arm64"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestRead_AutoScalingGroupsAreNamed(t *testing.T) {
	o, err := option.Read(map[string]any{"longshore:autoScalingGroups": []any{"batch", "web-*"}, "longshore:setInstanceHealth": true, "longshore:lifecycleHook": "drain/me"}, "arm64")
	if err != nil || !slices.Equal(o.Control.AutoScalingGroups, []string{"batch", "web-*"}) || !o.Control.SetInstanceHealth || o.Control.LifecycleHook != "drain/me" {
		t.Errorf("%+v %v", o.Control, err)
	}
	for _, bad := range []map[string]any{
		{"longshore:autoScalingGroups": "*"}, {"longshore:autoScalingGroups": "a*b"}, {"longshore:autoScalingGroups": "arn:aws:autoscaling:x"},
		{"longshore:setInstanceHealth": "true"}, {"longshore:lifecycleHook": "a b"},
	} {
		for key := range bad {
			if _, err := option.Read(bad, "arm64"); err == nil || !strings.Contains(err.Error(), key) {
				t.Errorf("%v: %v", bad, err)
			}
		}
	}
}

func TestRead_EveryKeyIsInTheManual(t *testing.T) {
	manual, err := os.ReadFile(filepath.Join("..", "..", "docs", "design", "infrastructure.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = option.Read(map[string]any{"longshore:nosuchkey": "x"}, "arm64")
	if err == nil {
		t.Fatal("an unknown key was accepted")
	}
	_, list, _ := strings.Cut(err.Error(), "known are ")
	keys := strings.Split(list, ", ")
	if len(keys) < 20 {
		t.Fatalf("keys %v", keys)
	}
	for _, key := range keys {
		if !strings.Contains(string(manual), "`longshore:"+key+"`") && !strings.Contains(string(manual), "`"+key+"`") {
			t.Errorf("docs/design/infrastructure.md does not explain longshore:%s", key)
		}
	}
}
