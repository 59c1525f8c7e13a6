package house

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// clean is a small repository that keeps every rule; each case below changes one thing in it.
var clean = map[string]string{
	"Makefile":                              "LANES ?= unit emulator\n",
	"repo_test.go":                          "package longshore_test\n\nimport _ \"" + module + "/test/house\"\n",
	"shared/task/task.go":                   "// Package task is one.\npackage task\n\nimport (\n\t_ \"net/netip\"\n\t_ \"time\"\n)\n",
	"shared/task/task_test.go":              "package task_test\n\nimport (\n\t_ \"os\"\n\t_ \"" + module + "/shared/task\"\n\t_ \"pgregory.net/rapid\"\n)\n",
	"lambdas/api/main.go":                   "// Command api is one.\npackage main\n\nimport (\n\t\"time\"\n\t_ \"" + module + "/lambdas/internal/sqsqueue\"\n)\n\nvar now = time.Now\n",
	"lambdas/control/control.go":            "// Package control is one.\npackage control\n\nimport \"time\"\n\nvar until = time.Until\n",
	"lambdas/control/control_test.go":       "package control_test\n\nimport _ \"" + module + "/lambdas/control/controltest\"\n",
	"lambdas/control/controltest/fake.go":   "// Package controltest is one.\npackage controltest\n\nimport _ \"" + module + "/lambdas/control\"\n",
	"lambdas/internal/sqsqueue/send.go":     "// Package sqsqueue is one.\npackage sqsqueue\n\nimport _ \"github.com/aws/aws-sdk-go-v2/service/sqs\"\n",
	"lambdas/internal/sqsqueue/e_test.go":   "//go:build emulator && linux\n\npackage sqsqueue\n\nimport _ \"" + module + "/test/emulator\"\n",
	"edgeagent/agent/agent.go":              "// Package agent is one.\npackage agent\n",
	"edgeagent/internal/dockerengine/e.go":  "// Package dockerengine is one.\npackage dockerengine\n\nimport _ \"github.com/docker/docker/client\"\n",
	"edgeagent/internal/supervise/plan.go":  "// Package supervise is one.\npackage supervise\n",
	"edgeagent/internal/supervise/actor.go": "package supervise\n\nimport \"time\"\n\nvar started = time.Now()\n",
	"edgeagent/agent/loop_test.go":          "package agent\n\nimport (\n\t_ \"testing/synctest\"\n\t\"time\"\n)\n\nfunc f() { time.Sleep(1) }\n",
	"infra/main.go":                         "// Command infra is one.\npackage main\n\nimport (\n\t_ \"github.com/aws/aws-cdk-go/awscdk/v2\"\n\t_ \"" + module + "/shared/setting\"\n)\n",
	"infra/testdata/alarms.txt":             "# name, what\nqueue-age admission\n",
	"docs/runbooks/README.md":               "Pages: [one](queue-age.md#what-to-do), [map](../../ARCHITECTURE.md), [code](../../shared/task), [out](https://a.example/b#c).\n",
	"ARCHITECTURE.md":                       "# Map\n\nlambdas/  api\n          internal/  sqsqueue (sends)\n\nedgeagent/  agent\n            supervise  dockerengine\n\nEnd.\n",
	"docs/runbooks/queue-age.md":            "# `What` to do\n",
	".tools/venv/notes.txt":                 "XX" + "X is of others\n",
	"dist/lambda/amd64/api/bootstrap":       "\x7fELF\x00",
	"examples/binary.png":                   "\x89PNG\x00 XX" + "X",
}

// breaches prove, rule by rule, that it catches what it is for.
var breaches = []struct {
	rule string
	what string
	path string
	data string // empty: the file is removed
	want string // part of the message
}{
	{"proofs are there", "a threat model that names a test nobody wrote", "SECURITY.md", "Shown by `TestAttack_IsNot`.\n", "TestAttack_IsNot is no test of this repository"},
	{"decoders are fuzzed", "a decoder that nobody fuzzes", "shared/task/a.go", "package task\n\nfunc DecodeTask() {}\n", "DecodeTask reads what others wrote, and no fuzz target of shared/task calls it"},
	{"decoders are fuzzed", "a target without a corpus", "shared/task/a_test.go", "package task_test\n\nfunc FuzzDecode() {}\n", "FuzzDecode has 0 files in testdata/fuzz"},
	{"walls", "shared with a product", "shared/task/a.go", goFile("task", "github.com/aws/aws-sdk-go-v2/aws"), "shared/task may not import github.com/aws/aws-sdk-go-v2/aws"},
	{"walls", "shared with the disk", "shared/task/a.go", goFile("task", "os"), "may not import os"},
	{"walls", "shared with the network", "shared/task/a.go", goFile("task", "net/http"), "may not import net/http"},
	{"walls", "shared with a log", "shared/task/a.go", goFile("task", "log/slog"), "may not import log/slog"},
	{"walls", "shared with chance", "shared/task/a.go", goFile("task", "math/rand/v2"), "may not import math/rand/v2"},
	{"walls", "shared with a room above it", "shared/task/a.go", goFile("task", module+"/lambdas/control"), "may not import"},
	{"walls", "a shared test with a product", "shared/task/a_test.go", goFile("task", "github.com/aws/aws-sdk-go-v2/aws"), "may not import"},
	{"walls", "the control plane with the agent", "lambdas/api/main.go", goFile("main", module+"/edgeagent/agent"), "lambdas/api may not import"},
	{"walls", "the agent with the control plane", "edgeagent/main.go", goFile("main", module+"/lambdas/control"), "edgeagent may not import"},
	{"walls", "a front door with an SDK", "lambdas/control/a.go", goFile("control", "github.com/aws/aws-sdk-go-v2/service/sqs"), "lambdas/control may not import"},
	{"walls", "a front door with an adapter", "lambdas/control/a.go", goFile("control", module+"/lambdas/internal/sqsqueue"), "lambdas/control may not import"},
	{"walls", "a front door with its own fakes", "lambdas/control/a.go", goFile("control", module+"/lambdas/control/controltest"), "lambdas/control may not import"},
	{"walls", "a front door with events of AWS", "lambdas/control/a.go", goFile("control", "github.com/aws/aws-lambda-go/events"), "lambdas/control may not import"},
	{"walls", "the agent's front door with Docker", "edgeagent/agent/a.go", goFile("agent", "github.com/docker/docker/client"), "edgeagent/agent may not import"},
	{"walls", "the agent's front door with bbolt", "edgeagent/agent/a.go", goFile("agent", "go.etcd.io/bbolt"), "edgeagent/agent may not import"},
	{"walls", "adapter with adapter", "lambdas/internal/dynamostore/a.go", goFile("dynamostore", module+"/lambdas/internal/sqsqueue"), "never another adapter"},
	{"walls", "Docker elsewhere", "edgeagent/internal/sqsqueue/a.go", goFile("sqsqueue", "github.com/docker/docker/client"), "may not import"},
	{"walls", "bbolt elsewhere", "edgeagent/internal/dockerengine/a.go", goFile("dockerengine", "go.etcd.io/bbolt"), "may not import"},
	{"walls", "the CDK elsewhere", "test/e2e/a.go", goFile("e2e", "github.com/aws/aws-cdk-go/awscdk/v2"), "may not import"},
	{"walls", "infra with more than settings", "infra/a.go", goFile("main", module+"/shared/task"), "infra may not import"},
	{"walls", "what ships with what tests", "lambdas/internal/sqsqueue/a.go", goFile("sqsqueue", module+"/test/emulator"), "may not import"},
	{"walls", "a pure room with the disk", "lambdas/internal/placement/a.go", goFile("placement", "os"), "may not import os"},
	{"walls", "a room without a row", "helm/a.go", goFile("helm", "fmt"), "no wall says"},
	{"walls", "an adapter with the wiring above it", "lambdas/internal/sqsqueue/a.go", goFile("sqsqueue", module+"/lambdas/internal/boot"), "never another adapter"},
	{"package comment", "none", "shared/task/task.go", "package task\n", "package task has no comment"},
	{"package comment", "one about something else", "shared/task/task.go", "// This is one.\npackage task\n", "package task has no comment"},
	{"package comment", "none of a main", "infra/main.go", "package main\n", "package main has no comment"},
	{"package name", "one that says nothing", "shared/util/util.go", "// Package util is one.\npackage util\n", "says nothing"},
	{"package name", "one in its external test only", "shared/x/x_test.go", "package helpers_test\n", "says nothing"},
	{"time is an argument", "a call in shared", "shared/task/a.go", "package task\n\nimport \"time\"\n\nvar t = time.Now()\n", "time.Now here"},
	{"time is an argument", "a call under another name", "shared/task/a.go", "package task\n\nimport clock \"time\"\n\nvar t = clock.Now()\n", "time.Now here"},
	{"time is an argument", "a use case", "lambdas/control/a.go", "package control\n\nimport \"time\"\n\nvar d = time.Since(time.Time{})\n", "time.Since here"},
	{"time is an argument", "placement", "lambdas/internal/placement/a.go", "// Package placement is one.\npackage placement\n\nimport \"time\"\n\nvar d = time.Until(time.Time{})\n", "time.Until here"},
	{"time is an argument", "the agent's plan", "edgeagent/internal/supervise/plan.go", "// Package supervise is one.\npackage supervise\n\nimport \"time\"\n\nvar t = time.Now()\n", "time.Now here"},
	{"shared is quiet", "a goroutine", "shared/task/a.go", "package task\n\nfunc f() { go f() }\n", "no goroutine"},
	{"shared is quiet", "a timer", "shared/task/a.go", "package task\n\nimport \"time\"\n\nvar t = time.NewTimer(0)\n", "waits for nothing"},
	{"shared is quiet", "a print", "shared/task/a.go", "package task\n\nimport \"fmt\"\n\nfunc f() { fmt.Println() }\n", "prints nothing"},
	{"mains only wire", "a long one", "lambdas/api/main.go", "// Command api is one.\npackage main\n" + strings.Repeat("//\n", 60), "62 lines"},
	{"mains only wire", "a second file", "lambdas/api/more.go", "package main\n", "one main.go"},
	{"no sleep in tests", "one", "shared/task/a_test.go", "package task\n\nimport \"time\"\n\nfunc f() { time.Sleep(1) }\n", "a_test.go:5: time.Sleep in a test"},
	{"no skipped test", "one", "shared/task/a_test.go", "package task\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) { t.Skip() }\n", "never skipped"},
	{"no skipped test", "one with a reason", "shared/task/a_test.go", "package task\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) { t.Skipf(\"no Docker\") }\n", "never skipped"},
	{"every lane is run", "a tag of no lane", "shared/task/a_test.go", "//go:build e2e\n\npackage task\n", "tag e2e names no lane"},
	{"every lane is run", "a lane that is no longer run", "Makefile", "LANES ?= unit\n", "tag emulator names no lane"},
	{"no stray note", "in code", "shared/task/a.go", "package task\n\n// TO" + "DO: more.\n", "a.go:3"},
	{"no stray note", "in a page", "README.md", "# One\n\nFIX" + "ME\n", "README.md:3"},
	{"no stray note", "a context that stands in for one", "shared/task/a.go", "package task\n\nimport \"context\"\n\nvar c = context.TO" + "DO()\n", "a.go:5"},
	{"no address of a machine", "a registry in a lock file", "tools/package-lock.json", `"resolved": "https://registry.npm` + `js.org/a"`, "machine's setting"},
	{"no address of a machine", "a path in a script", "tools/run", "cd /wo" + "rk/main\n", "path of one machine"},
	{"a named test is there", "a page with a test that is gone", "docs/design/proof.md", "Proved by `TestStore_Writes`.\n", "there is no test TestStore_Writes"},
	{"links lead somewhere", "a page that is gone", "docs/runbooks/README.md", "See\n[it](gone.md).\n", "README.md:2: a link leads to docs/runbooks/gone.md"},
	{"links lead somewhere", "a heading that is gone", "docs/runbooks/README.md", "[it](queue-age.md#why)\n", "docs/runbooks/queue-age.md has no such heading"},
	{"links lead somewhere", "a heading in code", "docs/runbooks/README.md", "```\n# why\n```\n[it](#why)\n", "docs/runbooks/README.md has no such heading"},
	{"the map names every room", "a new room", "edgeagent/internal/buoy/a.go", goFile("buoy", "fmt"), "does not name edgeagent/internal/buoy"},
	{"the map names every room", "one that is only a word elsewhere", "ARCHITECTURE.md", "# Map\n\nlambdas/  sqsqueue\n\nedgeagent/  agent (supervise)  dockerengine\n", "does not name edgeagent/internal/supervise"},
	{"a runbook per alarm", "a page is missing", "docs/runbooks/queue-age.md", "", "alarm queue-age has no page"},
	{"a runbook per alarm", "an alarm is gone", "infra/testdata/alarms.txt", "other\n", "no such alarm"},
	{"a runbook per alarm", "the list is gone", "infra/testdata/alarms.txt", "", "no such alarm"},
	{"a runbook per alarm", "the list is empty", "infra/testdata/alarms.txt", "# none\n", "names no alarm"},
}

func TestCheck_FindsNothingInACleanTree(t *testing.T) {
	for _, v := range check(t, clean) {
		t.Error(v)
	}
}

func TestCheck_CatchesEachBreach(t *testing.T) {
	for _, b := range breaches {
		t.Run(b.rule+": "+b.what, func(t *testing.T) {
			files := maps.Clone(clean)
			if b.data == "" {
				delete(files, b.path)
			} else {
				files[b.path] = b.data
			}
			found := check(t, files)
			if !slices.ContainsFunc(found, func(v Violation) bool { return v.Rule == b.rule && strings.Contains(v.String(), b.want) }) {
				t.Errorf("rule %q said nothing with %q in it; found %v", b.rule, b.want, found)
			}
		})
	}
}

func TestRules_EachHasABreachThatProvesIt(t *testing.T) {
	for _, name := range Rules() {
		if !slices.ContainsFunc(breaches, func(b struct{ rule, what, path, data, want string }) bool { return b.rule == name }) {
			t.Errorf("nothing proves rule %q", name)
		}
	}
}

func TestWalls_EveryRowIsReachedAndSaysWhy(t *testing.T) {
	for i, w := range walls {
		dir := strings.Replace(string(w.room), "/...", "/x", 1)
		for _, earlier := range walls[:i] {
			if earlier.room.holds(dir) {
				t.Errorf("row %s is hidden behind %s", w.room, earlier.room)
			}
		}
		if w.why == "" {
			t.Errorf("row %s does not say why", w.room)
		}
	}
}

func TestCheck_GoThatDoesNotParseIsAnError(t *testing.T) {
	if _, err := Check(fstest.MapFS{"shared/a.go": {Data: []byte("package")}}); err == nil {
		t.Error("no error")
	}
}

// goFile is a file with the comments that the other rules want, and one import.
func goFile(name, importPath string) string {
	doc := "// Package " + name + " is one.\n"
	return doc + "package " + name + "\n\nimport _ \"" + importPath + "\"\n"
}

func check(t *testing.T, files map[string]string) []Violation {
	t.Helper()
	tree := fstest.MapFS{}
	for name, data := range files {
		tree[name] = &fstest.MapFile{Data: []byte(data)}
	}
	found, err := Check(tree)
	if err != nil {
		t.Fatal(err)
	}
	return found
}
