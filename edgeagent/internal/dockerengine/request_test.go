package dockerengine

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/taskdef"
)

var update = flag.Bool("update", false, "rewrite the golden create requests")

const testTask = "0123456789abcdef0123456789abcdef"

// specOf is the spec of one container of a definition, as admission gave it out.
func specOf(def taskdef.TaskDefinition, name string) agent.Spec {
	return agent.Spec{
		ContainerID: agent.ContainerID{Task: testTask, Attempt: 2, Container: name},
		Epoch:       1764489600, TaskARN: "arn:aws:ecs:eu-west-1:000000000000:task/default/" + testTask, Cluster: "default",
		Family: def.Family, Revision: 7, Definition: &def,
	}
}

// golden are the requests whose inputs are in testdata/request.
var golden = []struct {
	file, container string
	change          func(*agent.Spec)
}{
	{"bridge-all", "api", func(s *agent.Spec) {
		s.GPUs = []string{"GPU-aaaa", "GPU-bbbb"}
		s.Environment = map[string]string{"REGION": "set by the agent", "AGENT": "yes"}
	}},
	{"host-network", "nginx", nil},
	{"no-network", "batch", nil},
	{"minimal", "main", nil},
	{"task-size", "free", nil},
	{"task-size-bound", "bound", nil},
	{"awslogs", "main", nil},
	{"group", "web", nil},
	{"offline", "alone", nil},
	{"arena", "arena", nil},
	{"shared-namespaces", "app", nil},
	{"pause", agent.PauseContainer, nil},
}

func input(t *testing.T, file string) []byte {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("testdata", "request", file+".in.json"))
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// registered is a definition as it is stored once the API has taken it: what it
// would refuse has no place in a golden request.
func registered(t *testing.T, body []byte) taskdef.TaskDefinition {
	t.Helper()
	in, err := taskdef.Decode(body)
	if err != nil {
		t.Fatal(err)
	}
	return taskdef.Echo(in, taskdef.Registration{Region: "eu-west-1", Account: "000000000000", Revision: 7})
}

func TestRequest_IsTheGoldenOne(t *testing.T) {
	for _, g := range golden {
		t.Run(g.file, func(t *testing.T) {
			s := specOf(registered(t, input(t, g.file)), g.container)
			if g.change != nil {
				g.change(&s)
			}
			r, err := request("instance-1", s)
			if err != nil {
				t.Fatal(err)
			}
			compareGolden(t, filepath.Join("testdata", "request", g.file+".golden.json"), encode(t, r))
		})
	}
}

func compareGolden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (rewrite it with -update and read the difference); got:\n%s", file, got)
	}
}

// encode writes a request without its empty members.
func encode(t *testing.T, r createRequest) []byte {
	t.Helper()
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := json.Unmarshal(data, &tree); err != nil {
		t.Fatal(err)
	}
	delete(tree.(map[string]any)["Host"].(map[string]any), "ConsoleSize") // two zeros, always
	tree, _ = prune(tree)
	out, err := json.MarshalIndent(tree, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(out, '\n')
}

// prune drops what is null, zero, false or empty.
func prune(v any) (any, bool) {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			kept, ok := prune(e)
			if ok || strings.HasSuffix(k, "/tcp") || strings.HasSuffix(k, "/udp") {
				v[k] = kept
				continue
			}
			delete(v, k)
		}
		return v, len(v) > 0
	case []any:
		for i := range v {
			v[i], _ = prune(v[i])
		}
		return v, len(v) > 0
	case nil:
		return v, false
	}
	return v, !reflect.ValueOf(v).IsZero()
}

// elsewhere are the members that the engine has nothing to do with, and who has.
var elsewhere = map[string]string{
	"requiresCompatibilities":                                           "registration",
	"placementConstraints":                                              "placement",
	"placementConstraints[].type":                                       "placement",
	"placementConstraints[].expression":                                 "placement",
	"tags":                                                              "the catalog",
	"tags[].key":                                                        "the catalog",
	"tags[].value":                                                      "the catalog",
	"runtimePlatform":                                                   "placement",
	"runtimePlatform.cpuArchitecture":                                   "placement",
	"runtimePlatform.operatingSystemFamily":                             "placement",
	"taskRoleArn":                                                       "the credentials address, where the role's credentials are",
	"executionRoleArn":                                                  "the agent, which reads and pulls with it",
	"containerDefinitions[].secrets":                                    "the agent, which reads them and gives their values in the spec",
	"containerDefinitions[].secrets[].name":                             "the agent, which reads them and gives their values in the spec",
	"containerDefinitions[].secrets[].valueFrom":                        "the agent, which reads them and gives their values in the spec",
	"containerDefinitions[].environmentFiles":                           "the agent, which reads them and gives their values in the spec",
	"containerDefinitions[].environmentFiles[].value":                   "the agent, which reads them and gives their values in the spec",
	"containerDefinitions[].environmentFiles[].type":                    "the agent, which reads them and gives their values in the spec",
	"containerDefinitions[].logConfiguration.secretOptions":             "the agent, which reads them and gives their values in the spec",
	"containerDefinitions[].logConfiguration.secretOptions[].name":      "the agent, which reads them and gives their values in the spec",
	"containerDefinitions[].logConfiguration.secretOptions[].valueFrom": "the agent, which reads them and gives their values in the spec",
	"containerDefinitions[].repositoryCredentials":                      "the pull of the image",
	"containerDefinitions[].repositoryCredentials.credentialsParameter": "the pull of the image",
	"containerDefinitions[].dependsOn":                                  "the supervisor",
	"containerDefinitions[].dependsOn[].containerName":                  "the supervisor",
	"containerDefinitions[].dependsOn[].condition":                      "the supervisor",
	"containerDefinitions[].startTimeout":                               "the supervisor",
	"containerDefinitions[].restartPolicy":                              "the supervisor",
	"containerDefinitions[].restartPolicy.enabled":                      "the supervisor",
	"containerDefinitions[].restartPolicy.ignoredExitCodes":             "the supervisor",
	"containerDefinitions[].restartPolicy.restartAttemptPeriod":         "the supervisor",
	"containerDefinitions[].portMappings[].name":                        "a label for people",
	"containerDefinitions[].portMappings[].appProtocol":                 "a label for people",
	"containerDefinitions[].versionConsistency":                         "nobody: disabled, each instance resolves tags by itself",
	"containerDefinitions[].resourceRequirements":                       "placement, which gives the ids in the spec",
	"containerDefinitions[].resourceRequirements[].type":                "placement, which gives the ids in the spec",
	"containerDefinitions[].resourceRequirements[].value":               "placement, which gives the ids in the spec",
}

// TestRequest_EveryMemberThatRunsHasAnEffect takes each member of the table that
// is marked as run out of the golden inputs, one at a time: unless that changes
// a request, the member is accepted at registration and dropped here.
func TestRequest_EveryMemberThatRunsHasAnEffect(t *testing.T) {
	for _, m := range taskdef.Members() {
		if why, ok := elsewhere[m.Path]; ok {
			if m.State != taskdef.Run {
				t.Errorf("%s is said to be for %s, and does not run at all", m.Path, why)
			}
			continue
		}
		if m.State == taskdef.Run && !effective(t, m.Path) {
			t.Errorf("%s runs by the table, and no golden request changes without it", m.Path)
		}
	}
}

func effective(t *testing.T, path string) bool {
	t.Helper()
	for _, g := range golden {
		var tree map[string]any
		if err := json.Unmarshal(input(t, g.file), &tree); err != nil {
			t.Fatal(err)
		}
		before := requestOf(t, tree, g.container)
		if drop(tree, strings.Split(path, ".")) && requestOf(t, tree, g.container) != before {
			return true
		}
	}
	return false
}

// drop deletes a member, in every element of the lists on its path.
func drop(at map[string]any, path []string) bool {
	name, isList := strings.CutSuffix(path[0], "[]")
	next, ok := at[name]
	if !ok {
		return false
	}
	if len(path) == 1 {
		delete(at, name)
		return true
	}
	if !isList {
		return drop(next.(map[string]any), path[1:])
	}
	dropped := false
	for _, e := range next.([]any) {
		dropped = drop(e.(map[string]any), path[1:]) || dropped
	}
	return dropped
}

func requestOf(t *testing.T, tree map[string]any, name string) string {
	t.Helper()
	data, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	var in taskdef.Input
	if err := json.Unmarshal(data, &in); err != nil {
		t.Fatal(err)
	}
	r, err := request("instance-1", specOf(taskdef.TaskDefinition{Spec: in.Spec}, name))
	if err != nil {
		return err.Error()
	}
	return string(encode(t, r))
}

func TestRequest_WhatCannotBeIsInvalid(t *testing.T) {
	def := registered(t, input(t, "minimal"))
	for name, spec := range map[string]agent.Spec{
		"no definition": {ContainerID: agent.ContainerID{Task: testTask, Attempt: 1, Container: "main"}},
		"no container":  specOf(def, "other"),
		"no volume": specOf(taskdef.TaskDefinition{Spec: taskdef.Spec{Family: "f", ContainerDefinitions: []taskdef.ContainerDefinition{{
			Name: "main", Image: "i", MountPoints: []taskdef.MountPoint{{SourceVolume: "gone", ContainerPath: "/x"}}}}}}, "main"),
		"no image": specOf(taskdef.TaskDefinition{Spec: taskdef.Spec{Family: "f", ContainerDefinitions: []taskdef.ContainerDefinition{{Name: "main"}}}}, "main"),
	} {
		if _, err := request("instance-1", spec); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v, want an invalid request", name, err)
		}
	}
}

func TestNameOf_IsOneForEachContainerOfEachAttempt(t *testing.T) {
	def := registered(t, input(t, "task-size"))
	seen := map[string]bool{}
	for _, container := range []string{"free", "bound"} {
		for attempt := range 3 {
			for _, task := range []string{testTask, "1" + testTask[1:]} {
				s := specOf(def, container)
				s.Attempt, s.Task = attempt, task
				name := nameOf(s, container)
				if name != nameOf(s, container) || seen[name] {
					t.Errorf("%s is not the name of one container alone", name)
				}
				seen[name] = true
			}
		}
	}
}

func TestNameOf_TakesOnlyWhatDockerTakes(t *testing.T) {
	if got := nameOf(agent.Spec{Family: "a/b ü", Revision: 1, ContainerID: agent.ContainerID{Task: "t", Attempt: 1}}, "c"); got != "longshore-a-b---1-c-t-1" {
		t.Errorf("the name is %q", got)
	}
}

func TestLabels_AreReadBackAsWritten(t *testing.T) {
	s := specOf(registered(t, input(t, "bridge-all")), "api")
	labels := containerLabels("instance-1", s, s.Definition.ContainerDefinitions[0])
	id, epoch := identity(labels)
	family, revision := definition(labels)
	if id != s.ContainerID || epoch != s.Epoch || family != s.Family || revision != s.Revision {
		t.Errorf("read back as %+v, epoch %d, %s:%d", id, epoch, family, revision)
	}
}

// What ECS's agent makes of a definition where Docker's own default is another.
func TestRequest_DefaultsAreECSsWhereDockersDiffer(t *testing.T) {
	options := func(given map[string]string) map[string]string {
		return logConfig(agent.Spec{}, &taskdef.LogConfiguration{LogDriver: "fluentd", Options: given}).Config
	}
	for _, c := range []struct {
		given map[string]string
		want  string
	}{
		{map[string]string{"mode": "non-blocking"}, "10m"},
		{map[string]string{"mode": "non-blocking", "max-buffer-size": "4m"}, "4m"},
		{map[string]string{"mode": "blocking"}, ""},
		{nil, ""},
	} {
		if got := options(c.given)["max-buffer-size"]; got != c.want {
			t.Errorf("of %v: a buffer of %q, want %q", c.given, got, c.want)
		}
	}
	def := registered(t, input(t, "minimal"))
	for given, want := range map[int]bool{0: false, 7: true} {
		def.ContainerDefinitions[0].StopTimeout = new(given)
		r, err := request("instance-1", specOf(def, "main"))
		if err != nil || (r.Config.StopTimeout != nil) != want {
			t.Errorf("a stopTimeout of %d: %v, %v", given, r.Config.StopTimeout, err)
		}
	}
}
