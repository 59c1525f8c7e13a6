package boot_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/longshore-run/longshore/lambdas/internal/boot"
	"github.com/longshore-run/longshore/shared/schema"
	"github.com/longshore-run/longshore/shared/setting"
)

func environment(over map[string]string) func(string) (string, bool) {
	env := map[string]string{"LONGSHORE_REGION": "eu-central-1", "LONGSHORE_ACCOUNT": "123456789012", "LONGSHORE_LOG_LEVEL": "info"}
	for _, name := range setting.Names(setting.Control{}) {
		switch {
		case strings.HasSuffix(name, "_URL"):
			env[name] = "https://sqs.eu-central-1.amazonaws.com/123456789012/" + strings.ToLower(name)
		case strings.HasSuffix(name, "_TABLE"):
			env[name] = strings.ToLower(name)
		}
	}
	return func(name string) (string, bool) {
		if v, ok := over[name]; ok {
			return v, true
		}
		v, ok := env[name]
		return v, ok
	}
}

// quiet keeps the AWS SDK from this machine's files.
func quiet(t *testing.T) {
	t.Helper()
	t.Setenv("AWS_CONFIG_FILE", "/dev/null")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
}

func TestStart_PutsTheControlPlaneTogether(t *testing.T) {
	quiet(t)
	var out bytes.Buffer
	f, err := boot.Start(t.Context(), environment(nil), &out)
	if err != nil {
		t.Fatal(err)
	}
	c := f.Control
	if c.Store == nil || c.Queue == nil || c.Metrics == nil || c.Log == nil || c.Now == nil || c.NewID == nil || f.Queue == nil || f.Store == nil {
		t.Fatalf("something is missing: %+v", f)
	}
	if c.Setting.Region != "eu-central-1" || f.AWS.Region != "eu-central-1" || c.Setting.SuspectAfter == 0 {
		t.Fatalf("settings are %+v", c.Setting)
	}
	if at := c.Now(); at.IsZero() {
		t.Fatal("the clock stands at zero")
	}
}

func TestStart_NamesEverySettingThatIsMissing(t *testing.T) {
	quiet(t)
	_, err := boot.Start(t.Context(), func(string) (string, bool) { return "", false }, &bytes.Buffer{})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"read settings", "LONGSHORE_REGION must be set", "LONGSHORE_TASKS_TABLE must be set"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q: %v", want, err)
		}
	}
}

// The settings that only an emulator needs are open doors in an account.
func TestStart_NoFunctionBelievesSendersOutsideAnEmulator(t *testing.T) {
	quiet(t)
	open := map[string]string{"LONGSHORE_SENDER_FROM_BODY": "true"}
	if _, err := boot.Start(t.Context(), environment(open), &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "LONGSHORE_SENDER_FROM_BODY") {
		t.Errorf("started: %v", err)
	}
	open["AWS_ENDPOINT_URL"] = "http://127.0.0.1:4566"
	if _, err := boot.Start(t.Context(), environment(open), &bytes.Buffer{}); err != nil {
		t.Error(err)
	}
}

func TestTables_NamesOneForEveryRole(t *testing.T) {
	names := boot.Tables(setting.Control{TasksTable: "a", InstancesTable: "b", LeasesTable: "c", CatalogTable: "d"})
	seen := map[string]bool{}
	for _, table := range schema.Tables() {
		seen[names[table.Role]] = true
	}
	if len(seen) != len(schema.Tables()) || seen[""] {
		t.Fatalf("names are %v", names)
	}
}

func TestLog_CarriesLambdasRequestID(t *testing.T) {
	quiet(t)
	var out bytes.Buffer
	f, err := boot.Start(t.Context(), environment(map[string]string{"LONGSHORE_LOG_LEVEL": "warn"}), &out)
	if err != nil {
		t.Fatal(err)
	}
	ctx := lambdacontext.NewContext(t.Context(), &lambdacontext.LambdaContext{AwsRequestID: "req-1"})
	f.Log.InfoContext(ctx, "not at this level")
	f.Log.With("a", 1).WarnContext(ctx, "in a call")
	f.Log.WarnContext(t.Context(), "outside of one")
	var got []map[string]any
	for line := range strings.Lines(out.String()) {
		var one map[string]any
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		got = append(got, one)
	}
	if len(got) != 2 || got[0]["msg"] != "in a call" || got[0]["requestId"] != "req-1" || got[0]["a"] != 1.0 || got[1]["requestId"] != nil {
		t.Fatalf("log is %v", got)
	}
}

func TestNewID_IsNewAnd32HexDigits(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		id := boot.NewID()
		if !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(id) || seen[id] {
			t.Fatalf("id %q, seen %v", id, seen[id])
		}
		seen[id] = true
	}
}
