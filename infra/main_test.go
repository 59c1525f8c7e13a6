package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"

	"github.com/longshore-run/longshore/infra/stack"
)

// app is an app with a context, as the CDK command would hand it over.
func app(t *testing.T, context map[string]any) (made awscdk.App, out string) {
	t.Helper()
	out = t.TempDir()
	return awscdk.NewApp(&awscdk.AppProps{Context: &context, Outdir: &out}), out
}

func TestMain(m *testing.M) {
	code := m.Run()
	jsii.Close()
	os.Exit(code)
}

func TestRun_SynthesizesFromBinariesBuiltElsewhere(t *testing.T) {
	dist := t.TempDir()
	for _, f := range stack.Functions() {
		dir := filepath.Join(dist, "lambda", "arm64", stack.Code(f))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "bootstrap"), []byte(f), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	made, out := app(t, map[string]any{"longshore:dist": dist, "longshore:build": "false", "longshore:name": "Harbor"})
	if err := run(made); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(out, "Harbor.template.json")); err != nil {
		t.Error(err)
	}
}

func TestRun_NamesABadContextKeyBeforeItBuildsAnything(t *testing.T) {
	made, _ := app(t, map[string]any{"longshore:heartbeatEvery": "often", "longshore:dist": t.TempDir()})
	err := run(made)
	want := `context longshore:heartbeatEvery="often": must be a duration such as 90s`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestRun_SaysHowToBuildWhatIsMissing(t *testing.T) {
	made, _ := app(t, map[string]any{"longshore:dist": t.TempDir(), "longshore:build": false})
	err := run(made)
	var binaries []string
	for _, name := range stack.Functions() {
		if stack.Code(name) == name { // readapi's is api's
			binaries = append(binaries, name)
		}
	}
	want := strings.Join(binaries, ", ") + " not built: run `make build`"
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got  %v\nwant %s…", err, want)
	}
}

func TestCDKJSON_RunsThisProgram(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "cdk.json"))
	if err != nil {
		t.Fatal(err)
	}
	var config struct{ App string }
	if err := json.Unmarshal(data, &config); err != nil {
		t.Fatal(err)
	}
	if config.App != "go run ./infra" {
		t.Errorf("app %q", config.App)
	}
}
