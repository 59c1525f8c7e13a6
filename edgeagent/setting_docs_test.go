package main

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/edgeagent/internal/ecsconfig"
	"github.com/longshore-run/longshore/shared/setting"
)

var updateDocs = flag.Bool("update-docs", false, "write docs/agent-settings.md from the tables")

// meant says what each setting of the agent is for.
var meant = map[string]string{
	"LONGSHORE_CLUSTER":                       "the cluster this machine registers in",
	"LONGSHORE_DATA_DIR":                      "where the journal and the identity are kept",
	"LONGSHORE_REPORTS_QUEUE_URL":             "the stack's output `ReportsQueueUrl`",
	"LONGSHORE_HEARTBEATS_QUEUE_URL":          "the stack's output `HeartbeatsQueueUrl`",
	"LONGSHORE_COMMAND_QUEUE_NAME_START":      "what names of command queues begin with; the stack's own setting, not to be changed alone",
	"LONGSHORE_CPU":                           "CPU units for tasks, 1024 to a core; 0: all there are",
	"LONGSHORE_MEMORY":                        "MiB for tasks; 0: all there is, less what is reserved",
	"LONGSHORE_RESERVED_MEMORY":               "MiB that tasks do not get",
	"LONGSHORE_RESERVED_PORTS":                "TCP ports of the host that tasks do not get",
	"LONGSHORE_RESERVED_PORTS_UDP":            "UDP ports of the host that tasks do not get",
	"LONGSHORE_GPUS":                          "ids of GPUs that tasks may have",
	"LONGSHORE_ZONE":                          "the zone; on EC2 it is asked of the machine",
	"LONGSHORE_INSTANCE_ATTRIBUTES":           "`name=value` pairs for placement constraints",
	"LONGSHORE_EC2_INSTANCE_ID":               "on EC2 it is known by itself",
	"DOCKER_HOST":                             "the engine",
	"LONGSHORE_CLEANUP_WAIT":                  "how long an ended task's containers are kept",
	"LONGSHORE_REPORT_WAIT":                   "how long an end waits to be acknowledged before its clean-up is given up, and everything kept",
	"LONGSHORE_TASK_CPU_MEM_LIMIT":            "whether a task's `cpu` and `memory` hold for its containers together, by a control group above them: `auto` where that can be done ([how](design/engine.md#the-group-of-a-task)); `true` the same, and where it cannot the agent is unwell; `false`: they bound each container",
	"LONGSHORE_CGROUP_PATH":                   "where control groups are mounted",
	"LONGSHORE_CGROUP_CPU_PERIOD":             "the period in which a task's `cpu` is counted",
	"LONGSHORE_STOP_TIMEOUT":                  "between SIGTERM and SIGKILL, where the definition does not say",
	"LONGSHORE_CREATE_TIMEOUT":                "for the engine to create a container",
	"LONGSHORE_START_TIMEOUT":                 "for the engine to start one",
	"LONGSHORE_IMAGE_PULL_BEHAVIOR":           "`default`, `always`, `once` or `prefer-cached`, as in ECS",
	"LONGSHORE_IMAGE_PULL_TIMEOUT":            "for one pull, with its retries",
	"LONGSHORE_IMAGE_PULL_INACTIVITY_TIMEOUT": "for a pull that makes no progress",
	"LONGSHORE_ENGINE_AUTH_TYPE":              "how the logins below are written: `dockercfg` or `docker`, as in ECS",
	"LONGSHORE_ENGINE_AUTH_DATA":              "logins to private registries for images without `repositoryCredentials`, a JSON object by registry; never shown ([how](design/secrets.md#images))",
	"LONGSHORE_IMAGE_PULLS":                   "how many pulls go on at once; the others wait in the order in which they came",
	"LONGSHORE_IMAGE_CLEANUP":                 "`disk`: images go when their disk is fuller than the ceiling; `always`: when they are old enough, as with ECS's agent; `off` ([how](design/images.md))",
	"LONGSHORE_IMAGE_CLEANUP_CEILING":         "percent of the disk past which clean-up begins",
	"LONGSHORE_IMAGE_CLEANUP_FLOOR":           "percent of the disk below which it ends; less than the ceiling",
	"LONGSHORE_IMAGE_CLEANUP_INTERVAL":        "between two cycles",
	"LONGSHORE_IMAGE_CLEANUP_AGE":             "how long nothing must have needed an image before it goes",
	"LONGSHORE_IMAGE_CLEANUP_COUNT":           "how many go in one cycle at most, unless there is no room",
	"LONGSHORE_IMAGE_CLEANUP_EXCLUDE":         "images that stay: names (`busybox`), tags (`busybox:1`), digests or ids (`sha256:…`); `*` is any text without a slash (`*/team/app`)",
	"LONGSHORE_IMAGE_CLEANUP_UNTRACKED":       "`true`: images that this agent did not pull go, too; not where several agents share an engine",
	"LONGSHORE_IMAGE_CLEANUP_UNTRACKED_AGE":   "how long nothing must have needed one of those",
	"LONGSHORE_IMAGE_NO_ROOM":                 "percent of the disk past which, if clean-up does not help, the machine takes no more tasks",
	"LONGSHORE_JOURNAL_RESERVE":               "MiB kept in the data folder for the journal, for when that disk is full; 0: none",
	"LONGSHORE_RECHECK_EVERY":                 "how often the engine is read again though it says nothing",
	"LONGSHORE_NOTICES":                       "which notices of the host's end are heeded on EC2: `spot`, `autoscaling`, `rebalance`, or `none` ([what follows](design/lifecycle.md))",
	"LONGSHORE_INTROSPECTION_ADDRESS":         "where tools of this machine may look, on loopback ([what they see](design/agent.md#looking-in)); `off`: nowhere",
	"LONGSHORE_TASK_ENDPOINT":                 "where containers find their task's metadata and credentials ([how](design/task-endpoint.md)); AWS SDKs want the default; `off`: nowhere",
	"LONGSHORE_TASK_ROLES":                    "whether tasks are given their roles there",
	"LONGSHORE_TASK_ROLES_NETWORK_HOST":       "whether those on the host's network are, too",
	"LONGSHORE_TASK_METADATA_RPS_LIMIT":       "how often a task may ask there: times a second, and at once",
	"LONGSHORE_BLOCK_INSTANCE_METADATA":       "whether `longshore-agent prepare-host` keeps containers on bridges from the instance metadata service",
	"LONGSHORE_LOG_LEVEL":                     "`debug`, `info`, `warn` or `error`",
}

// settingsPage is docs/agent-settings.md.
func settingsPage() string {
	var page strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&page, format+"\n", args...) }
	say("# Settings of the agent")
	say("")
	say("Environment variables, or lines of `NAME=value` in `/etc/longshore/agent.env`. `longshore-agent check-config` reads what the service is started with, and names every fault.")
	say("Region and credentials are the AWS SDK's (`AWS_REGION`, `AWS_PROFILE`, the machine's role), the proxy is `HTTPS_PROXY`. This page is written by `make gen`.")
	say("")
	say("| setting | default | what it says |")
	say("|---|---|---|")
	for field := range reflect.TypeFor[setting.Agent]().Fields() {
		tag := field.Tag
		name, def := tag.Get("env"), tag.Get("def")
		switch {
		case tag.Get("need") == "true":
			def = "must be set"
		case def != "":
			def = "`" + def + "`"
		}
		say("| `%s` | %s | %s |", name, def, meant[name])
	}
	all := ecsconfig.Meanings()
	slices.SortFunc(all, func(a, b ecsconfig.Meaning) int { return strings.Compare(a.Name, b.Name) })
	say("")
	say("## Settings of ECS's agent")
	say("")
	say("What `/etc/ecs/ecs.config` has is read too. A setting with the same meaning counts where ours is not set; a value that ECS's agent would not take is a fault here, where that one takes its default.")
	say("")
	say("| ECS's | is ours |")
	say("|---|---|")
	for _, m := range all {
		if m.Becomes != "" {
			say("| `%s` | `%s` |", m.Name, m.Becomes)
		}
	}
	say("")
	say("These are not obeyed. Each is a warning where it asks for something else than what is done anyway; any other `ECS_…` is named in a warning, too.")
	say("")
	say("| ECS's | why |")
	say("|---|---|")
	for _, m := range all {
		if m.Becomes == "" {
			say("| `%s` | %s |", m.Name, m.Why)
		}
	}
	return page.String()
}

func TestSettings_TheDocsListThem(t *testing.T) {
	const page = "../docs/agent-settings.md"
	for _, name := range setting.Names(setting.Agent{}) {
		if meant[name] == "" {
			t.Errorf("%s: what is it for?", name)
		}
	}
	want := settingsPage()
	if *updateDocs {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil || string(got) != want {
		t.Errorf("%s is not what the tables say (%v); mend: make gen", page, err)
	}
}
