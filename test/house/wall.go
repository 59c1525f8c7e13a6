package house

import (
	"slices"
	"strings"
)

const module = "github.com/longshore-run/longshore"

// room is a folder of the repository; with "/..." at its end everything below belongs to it too.
// "." is the root's own package.
type room string

func (r room) holds(dir string) bool {
	base, below := strings.CutSuffix(string(r), "/...")
	return dir == base || below && strings.HasPrefix(dir, base+"/")
}

// wall says what the packages of a room may import, beside themselves and what lies below them.
type wall struct {
	room room
	// allow lists import paths as rooms: "std", ours from the root ("shared/..."), others in full.
	allow []room
	// tests lists what test files may import on top.
	tests []room
	// deny lists what may not be imported although allow covers it; test files may.
	deny []room
	why  string
}

// Products, by the names that the walls use.
var (
	awsSDK    = []room{"github.com/aws/aws-sdk-go-v2/...", "github.com/aws/smithy-go/..."}
	awsLambda = []room{"github.com/aws/aws-lambda-go/..."}
	docker    = []room{"github.com/docker/...", "github.com/containerd/errdefs/...", "github.com/distribution/reference/...", "github.com/opencontainers/..."}
	bolt      = []room{"go.etcd.io/bbolt/..."}
	cdk       = []room{"github.com/aws/aws-cdk-go/...", "github.com/aws/constructs-go/...", "github.com/aws/jsii-runtime-go/...", "github.com/cdklabs/..."}
	testTools = []room{"pgregory.net/rapid/...", "github.com/rogpeppe/go-internal/...", "test/emulator", "test/image", "test/strict", "internal/transport"}
	outside   = []room{"os/...", "net", "net/http/...", "log/...", "syscall/...", "plugin", "database/...", "math/rand/...", "crypto/rand", "unsafe"}
)

func join(lists ...[]room) []room { return slices.Concat(lists...) }

// walls is the map of who may import whom; the first row that holds a package counts, so inner
// rooms come before outer ones. A package that no row holds breaks the rule too.
var walls = []wall{
	{
		room: "shared/taskdef/ecsmodel", allow: []room{"std", "shared/..."}, deny: outside,
		tests: join(testTools, []room{"github.com/aws/aws-sdk-go-v2/service/ecs/..."}),
		why:   "its tests compare our task definitions with the SDK's own types; its code is shared like the rest",
	},
	{
		room: "shared/...", allow: []room{"std", "shared/..."}, deny: outside, tests: testTools,
		why: "shared is the ground that both sides stand on: standard library only, no I/O, no log, no chance",
	},
	{
		room: "internal/transport", allow: []room{"std"}, tests: join(testTools, awsSDK),
		why: "how our AWS clients speak HTTP, the same in every program; it knows no product",
	},
	{
		room: "internal/meter", allow: join(awsSDK, []room{"std", "shared/logkey"}), tests: testTools,
		why: "what watches AWS calls, the same in every program; it knows no product by its types, so that it costs the agent nothing",
	},
	{
		room: "internal/eventrule", allow: join(awsSDK, []room{"std", "shared/..."}), tests: testTools,
		why: "the schedules of a stack as EventBridge rules: for programs of users, not for the control plane, which only hears from the rules",
	},
	{
		room: "lambdas/internal/placement/...", allow: []room{"std", "shared/..."}, deny: outside, tests: testTools,
		why: "placement decides from its arguments alone",
	},
	{
		room: "lambdas/internal/deployment/...", allow: []room{"std", "shared/..."}, deny: outside, tests: testTools,
		why: "deployment decides from its arguments alone",
	},
	{
		room: "lambdas/control", allow: []room{"std", "shared/...", "lambdas/internal/placement/...", "lambdas/internal/deployment/..."},
		deny:  []room{"os/...", "net/http/...", "syscall/..."},
		tests: join(testTools, []room{"lambdas/control/..."}),
		why:   "the front door is plain Go: it declares what it needs, adapters import it, so sim/ can drive it without AWS",
	},
	{
		room: "lambdas/control/...", allow: []room{"std", "shared/...", "lambdas/control/...", "pgregory.net/rapid/..."}, tests: testTools,
		why: "fakes and conformance suites know the front door and no product",
	},
	{
		room: "lambdas/internal/boot", allow: join(awsSDK, awsLambda, []room{"std", "shared/...", "lambdas/control", "lambdas/internal/...", "internal/transport", "internal/meter"}), tests: testTools,
		why: "the part of wiring that every function's main shares; it stands above the adapters, and only mains import it",
	},
	{
		room: "lambdas/apitest", allow: []room{"std", "shared/...", "lambdas/control/...", "lambdas/internal/ecsapi"}, tests: testTools,
		why: "the API over a control plane in memory, for tests of its clients; nothing that ships imports it",
	},
	{
		room: "lambdas/internal/...", allow: join(awsSDK, awsLambda, []room{"std", "shared/...", "lambdas/control"}),
		tests: join(testTools, []room{"lambdas/control/...", "internal/meter"}),
		why:   "an adapter knows its product and the front door, never another adapter",
	},
	{
		room: "lambdas/...", allow: join(awsSDK, awsLambda, []room{"std", "shared/...", "lambdas/..."}), tests: testTools,
		why: "a main wires adapters to use cases; the agent's side is another program",
	},
	{
		room: "edgeagent/agent", allow: []room{"std", "shared/...", "edgeagent/internal/supervise/...", "edgeagent/internal/eviction"},
		deny:  []room{"os/...", "net/http/...", "syscall/..."},
		tests: join(testTools, []room{"edgeagent/agent/..."}),
		why:   "the front door is plain Go: it declares Engine, Inbox, Outbox and Journal, adapters import it",
	},
	{
		room: "edgeagent/agent/...", allow: []room{"std", "shared/...", "edgeagent/agent/...", "edgeagent/internal/supervise/...", "pgregory.net/rapid/..."}, tests: testTools,
		why: "fakes and conformance suites know the front door and no product",
	},
	{
		room: "edgeagent/internal/supervise/...", allow: []room{"std", "shared/..."}, tests: testTools,
		deny: []room{"os/...", "net", "net/http/...", "syscall/..."},
		why:  "supervise decides and drives; it knows no engine, no queue and no disk",
	},
	{
		room: "edgeagent/internal/eviction", allow: []room{"std"}, tests: testTools, deny: outside,
		why: "eviction decides from its arguments alone",
	},
	{
		room: "edgeagent/internal/dockerengine/...", allow: join(docker, []room{"std", "shared/...", "edgeagent/agent", "golang.org/x/sync/semaphore"}),
		tests: join(testTools, []room{"edgeagent/agent/..."}),
		why:   "the only importer of the Docker client that ships",
	},
	{
		room: "edgeagent/internal/journal/...", allow: join(bolt, []room{"std", "shared/...", "edgeagent/agent"}),
		tests: join(testTools, []room{"edgeagent/agent/..."}),
		why:   "the only importer of bbolt",
	},
	{
		room: "edgeagent/internal/introspect", allow: []room{"std", "shared/...", "edgeagent/agent", "github.com/VictoriaMetrics/metrics"}, tests: testTools,
		why: "what the agent shows on its machine; the only importer of a metrics library",
	},
	{
		room: "edgeagent/internal/pause", allow: []room{"std"}, tests: testTools,
		why: "what a pause container runs: nothing that is not needed to wait",
	},
	{
		room: "edgeagent/internal/endpoint", allow: []room{"std", "shared/...", "edgeagent/agent", "golang.org/x/time/rate"}, tests: join(testTools, awsSDK),
		why: "what containers ask of the agent; it knows neither Docker nor AWS: whoever assumes roles is given to it",
	},
	{
		room: "edgeagent/internal/hostprep", allow: []room{"std", "shared/..."}, tests: testTools,
		why: "it changes the machine by the machine's own programs, and knows no agent",
	},
	{
		room: "edgeagent/internal/taskgroup/...", allow: []room{"std", "edgeagent/internal/taskgroup", "shared/...", "github.com/coreos/go-systemd/v22/dbus", "github.com/godbus/dbus/v5"}, tests: testTools,
		why: "it writes control groups, or has systemd do so; it knows no engine, and no task but by its id",
	},
	{
		room: "edgeagent/internal/...", allow: join(awsSDK, []room{"std", "shared/...", "edgeagent/agent"}),
		tests: join(testTools, []room{"edgeagent/agent/..."}),
		why:   "an adapter knows its product and the front door, never another adapter",
	},
	{
		room: "edgeagent", allow: join(awsSDK, []room{"github.com/coreos/go-systemd/v22/daemon", "std", "shared/...", "edgeagent/...", "internal/transport", "internal/meter"}), tests: testTools,
		why: "the agent's main wires adapters to loops; the control plane is another program",
	},
	{
		room: "infra/...", allow: join(cdk, []room{"std", "infra/...", "shared/setting/...", "shared/schema/...", "shared/schedule", "shared/measure"}),
		why: "the stack is described from the settings, the tables' shapes, what a schedule is and which metrics there are; nothing else imports the CDK",
	},
	{
		room: "cli", allow: []room{"std", "cli/command", "github.com/mattn/go-isatty", "golang.org/x/crypto/x509roots/fallback"}, tests: testTools,
		why: "the command's main gives it the terminal, the signals and roots of trust, and nothing else",
	},
	{
		room: "cli/command", allow: join(awsSDK, []room{"std", "shared/fault", "shared/taskdef", "shared/schedule", "internal/eventrule", "cli/internal/...", "github.com/spf13/cobra/..."}),
		tests: join(testTools, []room{"shared/...", "lambdas/apitest"}),
		why:   "commands decide what to ask; asking, waiting and drawing are cli/internal's",
	},
	{
		room: "cli/internal/...", allow: join(awsSDK, []room{"std", "cli/internal/...", "go.yaml.in/yaml/v3"}),
		tests: join(testTools, []room{"shared/...", "lambdas/apitest"}),
		why:   "the command speaks to the API as any client does; only its tests know the handler",
	},
	{
		room: "sim/...", allow: []room{"std", "shared/...", "sim/...", "lambdas/control/...", "edgeagent/agent/...", "pgregory.net/rapid/..."}, tests: testTools,
		why: "the simulation drives both front doors in one process, with fakes for everything outside",
	},
	{
		room: "bench/control", allow: []room{"std", "shared/...", "lambdas/control/..."},
		why: "the benches measure the front door over its fakes; what another product does is measured in a module of its own",
	},
	{
		room: "bench/agent", allow: []room{"std", "shared/...", "test/image", "github.com/docker/docker/..."},
		why: "it measures the agent's program from outside, beside Docker's own calls",
	},
	{
		room: "test/house", allow: []room{"std"}, why: "the rules depend on nothing they judge",
	},
	{
		room: "test/strict", allow: []room{"std"},
		why: "it judges answers by AWS's model alone and knows nothing of ours; tests of every room may ask it",
	},
	{
		room: "test/licence/...", allow: []room{"std", "test/licence"}, why: "it reads licences and asks nobody",
	},
	{
		room: "test/packaging", allow: join(awsSDK, docker, []room{"std", "test/local"}),
		tests: []room{"github.com/hashicorp/hcl/v2/...", "github.com/zclconf/go-cty/..."},
		why:   "it takes packages and templates as their users do; the only reader of Packer's language",
	},
	{
		room: "test/...", allow: join(awsSDK, docker, []room{"std", "shared/...", "test/...", "internal/transport", "internal/meter", "internal/eventrule"}), tests: testTools,
		why: "end-to-end tests stand outside: they reach the programs as users do, through AWS clients, the engine and processes",
	},
	{
		room: ".", allow: []room{"std", "test/house"}, why: "the root holds no code, only the test of the house rules",
	},
}

// wallOf returns the row that holds a package's folder.
func wallOf(dir string) (wall, bool) {
	i := slices.IndexFunc(walls, func(w wall) bool { return w.room.holds(dir) })
	if i < 0 {
		return wall{}, false
	}
	return walls[i], true
}

// place is the name that walls use for an import path: from the root for ours, in full for others.
func place(importPath string) string {
	if importPath == module {
		return "."
	}
	return strings.TrimPrefix(importPath, module+"/")
}

func isStandard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".")
}

func covers(rooms []room, importPath string) bool {
	return slices.ContainsFunc(rooms, func(r room) bool {
		return r == "std" && isStandard(importPath) || r.holds(place(importPath))
	})
}

// own is what a package may always import: itself, for its external tests, and what lies below
// it, except that a front door does not know its own fakes.
func (w wall) own(dir string) room {
	if strings.HasSuffix(string(w.room), "/...") {
		return room(dir + "/...")
	}
	return room(dir)
}

// may reports whether a file of this folder may import a path.
func (w wall) may(dir string, test bool, importPath string) bool {
	if w.own(dir).holds(place(importPath)) && !isStandard(importPath) {
		return true
	}
	if test && covers(w.tests, importPath) {
		return true
	}
	if !test && covers(w.deny, importPath) {
		return false
	}
	return covers(w.allow, importPath)
}

func checkWalls(t *tree) []Violation {
	return t.each(func(f *file) []Violation {
		w, ok := wallOf(f.dir())
		if !ok {
			return []Violation{{Path: f.path, Text: "no wall says what this room may import; add it to the table in test/house/wall.go"}}
		}
		var out []Violation
		for spec, p := range f.imports {
			if !w.may(f.dir(), f.isTest(), p) {
				out = append(out, f.at(spec, "%s may not import %s: %s", f.dir(), p, w.why))
			}
		}
		return out
	})
}
