package stack_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"
	"github.com/cdklabs/cdk-nag-go/cdknag/v2"

	"github.com/longshore-run/longshore/infra/artifact"
	"github.com/longshore-run/longshore/infra/option"
	"github.com/longshore-run/longshore/infra/stack"
)

var update = flag.Bool("update", false, "rewrite the golden files in infra/testdata")

// template is a synthesized stack, read from its file: a failing assertion of
// the CDK's own would end the whole test binary.
type template struct {
	Resources map[string]resource
	Outputs   map[string]struct{ Value any }
}

type resource struct {
	Type                                string
	Properties                          map[string]any
	DeletionPolicy, UpdateReplacePolicy string
	DependsOn                           any
}

// The stacks of this test binary, synthesized once by TestMain: as on AWS by
// default, as on an emulator, and one that shares an account with the first.
var real, local, second template

// imaged is one that makes machine images: of a file, of a URL; and what cdk-nag says of the first.
var (
	imaged, imagedByURL template
	imageFindings       []finding
)

// imageContexts are those stacks'.
func imageContexts(dist string) []map[string]any {
	return []map[string]any{
		{
			"longshore:name": "Shipyard", "longshore:dist": dist, "longshore:image": "al2023", "longshore:imageArchitecture": "arm64",
			"longshore:imagePackage": filepath.Join(dist, "longshore-agent-1.0.0-1.aarch64.rpm"),
		},
		{
			"longshore:name": "Slipway", "longshore:dist": dist, "longshore:image": "ami-0123456789abcdef0", "longshore:imageCluster": "edge",
			"longshore:imagePackage": "https://example.org/longshore-agent_1.0.0_amd64.deb", "longshore:imageSHA256": strings.Repeat("ab", 32),
			"longshore:imageSchedule": "cron(0 3 * * ? *)", "longshore:imageSubnet": "subnet-0123456789abcdef0", "longshore:imageSecurityGroups": "sg-0123456789abcdef0,sg-0123456789abcdef1",
			"longshore:imageAccounts": "111111111111,222222222222", "longshore:imageRegions": "eu-west-1", "longshore:imageKeep": "3",
			"longshore:imagePolicies": "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore", "longshore:removal": "destroy",
		},
	}
}

// findings are what cdk-nag says about real.
var findings []finding

// binaries stands in for the functions' code in these tests.
func binaries(dist string) error {
	for _, arch := range []string{"arm64", "amd64"} {
		for _, f := range stack.Functions() {
			dir := filepath.Join(dist, "lambda", arch, stack.Code(f))
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(dir, "bootstrap"), []byte(f), 0o755); err != nil {
				return err
			}
		}
	}
	return nil
}

func TestMain(m *testing.M) {
	flag.Parse()
	dir, err := os.MkdirTemp("", "infra")
	if err == nil {
		err = synthesize(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "synthesize:", err)
		os.Exit(1)
	}
	code := m.Run()
	jsii.Close()
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// schedules is the context's value as cdk.json would hold it.
var schedules = []any{map[string]any{"schedule": "nightly-report", "expression": "cron(0 3 * * ? *)", "taskDefinition": "report", "startingDeadline": 600, "overlap": "forbid"}}

// taskRoles are those that Harbor's tasks may have.
const taskRoles = "jobs/*,arn:aws:iam::111111111111:role/shared,edge=jobs/edge,lab=none"

func synthesize(dir string) (err error) {
	dist, out := filepath.Join(dir, "dist"), filepath.Join(dir, "out")
	if err := binaries(dist); err != nil {
		return err
	}
	app := awscdk.NewApp(&awscdk.AppProps{Outdir: &out})
	if err := os.WriteFile(filepath.Join(dist, "longshore-agent-1.0.0-1.aarch64.rpm"), []byte("a package"), 0o644); err != nil {
		return err
	}
	for _, context := range append(imageContexts(dist), []map[string]any{
		{"longshore:dist": dist},
		{
			"longshore:name": "Local", "longshore:local": "true", "longshore:dist": dist,
			"longshore:heartbeatEvery": "5s", "longshore:suspectAfter": "20s", "longshore:reapAfter": "90s",
			"longshore:logLevel": "debug",
		},
		{
			"longshore:name": "Harbor", "longshore:architecture": "x86_64", "longshore:dist": dist,
			"longshore:logDays": "90", "longshore:waitingAlarm": "1h", "longshore:runbooks": "https://wiki.example/longshore",
			"longshore:agentPolicies": "arn:aws:iam::aws:policy/AmazonEC2ContainerRegistryReadOnly",
			"longshore:registerRoles": "*,AROAEXAMPLE,edge=*", "longshore:failedTasks": "true",
			"longshore:taskRoles": taskRoles,
			"longshore:schedules": schedules, "longshore:autoScalingGroups": "batch,web-*", "longshore:setInstanceHealth": "true",
		},
	}...) {
		o, err := option.Read(context, "amd64")
		if err != nil {
			return err
		}
		o.Image.Scripts = filepath.Join("..", "..", "packaging", "image")
		if o.Image.Base != "" && !o.Image.URL() {
			if o.Image.SHA256, err = artifact.Sum(o.Image.Package); err != nil {
				return err
			}
		}
		stack.New(app, o)
	}
	awscdk.Aspects_Of(app).Add(cdknag.NewAwsSolutionsChecks(&cdknag.NagPackProps{
		Verbose: jsii.Bool(false), Reports: jsii.Bool(false),
	}), nil)
	app.Synth(nil)
	for name, into := range map[string]*template{"Longshore": &real, "Local": &local, "Harbor": &second, "Shipyard": &imaged, "Slipway": &imagedByURL} {
		if err := readJSON(filepath.Join(out, name+".template.json"), into); err != nil {
			return err
		}
	}
	if findings, err = readFindings(out, "Longshore"); err == nil {
		imageFindings, err = readFindings(out, "Shipyard")
	}
	return err
}

func readJSON(file string, into any) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// all are the logical ids and properties of a type, in order.
func (t template) all(kind string) []string {
	var out []string
	for _, id := range slices.Sorted(maps.Keys(t.Resources)) {
		if t.Resources[id].Type == kind {
			out = append(out, id)
		}
	}
	return out
}

// one is the only resource of a type whose logical id is name and a hash.
func (t template) one(tb testing.TB, kind, name string) (string, resource) {
	tb.Helper()
	var found []string
	for _, id := range t.all(kind) {
		if hashed(id, name) {
			found = append(found, id)
		}
	}
	if len(found) != 1 {
		tb.Fatalf("%d resources of type %s are named %s: %v", len(found), kind, name, found)
	}
	return found[0], t.Resources[found[0]]
}

func hashed(id, name string) bool {
	rest, ok := strings.CutPrefix(id, name)
	return ok && len(rest) == 8 && strings.Trim(rest, "0123456789ABCDEF") == ""
}

// plain is a logical id without the CDK's hash.
func plain(id string) string {
	if len(id) > 8 && hashed(id, id[:len(id)-8]) {
		return id[:len(id)-8]
	}
	return id
}

// text writes a value with its references resolved to readable names.
func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case map[string]any:
		if ref, ok := v["Ref"].(string); ok {
			return "{" + plain(ref) + "}"
		}
		if attr, ok := v["Fn::GetAtt"].([]any); ok {
			return "{" + plain(attr[0].(string)) + "." + attr[1].(string) + "}"
		}
		if join, ok := v["Fn::Join"].([]any); ok {
			var parts []string
			for _, p := range join[1].([]any) {
				parts = append(parts, text(p))
			}
			return strings.Join(parts, join[0].(string))
		}
	}
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// list is a value that CloudFormation lets be one thing or several.
func list(v any) []any {
	switch v := v.(type) {
	case nil:
		return nil
	case []any:
		return v
	default:
		return []any{v}
	}
}

// golden compares lines with a file of infra/testdata.
func golden(t *testing.T, name string, lines []string) {
	t.Helper()
	file := filepath.Join("..", "testdata", name)
	got := strings.Join(lines, "\n") + "\n"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got == string(want) {
		return
	}
	before := strings.Split(string(want), "\n")
	for line := range strings.SplitSeq(got, "\n") {
		if !slices.Contains(before, line) {
			t.Errorf("%s lacks: %s", name, line)
		}
	}
	for _, line := range before {
		if !slices.Contains(strings.Split(got, "\n"), line) {
			t.Errorf("%s still has: %s", name, line)
		}
	}
	t.Errorf("infra/testdata/%s differs; if that is meant: go test ./infra/stack -update", name)
}
