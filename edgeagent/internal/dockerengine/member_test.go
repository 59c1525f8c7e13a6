package dockerengine

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/shared/taskdef"
)

var updateDocs = flag.Bool("update-docs", false, "write docs/design/engine-members.md from the golden requests")

const memberPage = `# Where each member of a task definition lands

Written by "make gen": each member that the tables of shared/taskdef mark as run is taken out of the golden create requests, one at a time, and what changes in
Docker's request is listed. "Config" and "Host" are the two parts of Docker's POST /containers/create (the second is its "HostConfig"), "Volumes" its POST /volumes/create.
What is refused is in [api-task-definition.md](api-task-definition.md).

| member | in Docker |
|---|---|
%s`

// TestMembers_TheDocsSayWhereEachLands is the table of the whole translation: a
// member that is accepted is done by somebody, and it is written down by whom.
func TestMembers_TheDocsSayWhereEachLands(t *testing.T) {
	var rows strings.Builder
	for _, m := range taskdef.Members() {
		if m.State != taskdef.Run {
			continue
		}
		where := elsewhere[m.Path]
		if where == "" {
			places, needed := landings(t, m.Path)
			switch {
			case len(places) > 0:
				where = "`" + strings.Join(slices.Sorted(maps.Keys(places)), "`, `") + "`"
			case needed:
				where = "there is no request without it"
			default:
				t.Errorf("%s lands nowhere", m.Path)
			}
		} else {
			where = "not there: " + where
		}
		if m.Path == "cpu" || m.Path == "memory" {
			where = "the group in `Host.CgroupParent`; where there is none, " + where
		}
		fmt.Fprintf(&rows, "| `%s` | %s |\n", m.Path, where)
	}
	const file = "../../../docs/design/engine-members.md"
	text := fmt.Sprintf(memberPage, rows.String())
	if *updateDocs {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != text {
		t.Errorf("%s differs from the requests (%v); run: make gen", file, err)
	}
}

// landings are the places of a create request that change without a member, and
// whether there is none without it.
func landings(t *testing.T, path string) (places map[string]bool, needed bool) {
	t.Helper()
	places = map[string]bool{}
	for _, g := range golden {
		var whole, part map[string]any
		for _, tree := range []*map[string]any{&whole, &part} {
			if err := json.Unmarshal(input(t, g.file), tree); err != nil {
				t.Fatal(err)
			}
		}
		if !drop(part, strings.Split(path, ".")) {
			continue
		}
		var before, after any
		if json.Unmarshal([]byte(requestOf(t, whole, g.container)), &before) != nil || json.Unmarshal([]byte(requestOf(t, part, g.container)), &after) != nil {
			needed = true
			continue
		}
		compare("", before, after, places)
	}
	if places["Rows"] { // of them the bindings are made when the container is
		delete(places, "Rows")
		places["Host.PortBindings"] = true
	}
	return places, needed
}

// named are the members of a request whose own members are names of users.
var named = []string{"Labels", "Sysctls", "Tmpfs", "PortBindings", "ExposedPorts", "DriverOpts"}

func compare(path string, a, b any, places map[string]bool) {
	x, isMap := a.(map[string]any)
	y, both := b.(map[string]any)
	last := path[strings.LastIndexByte(path, '.')+1:]
	if !isMap && !both || slices.Contains(named, last) || strings.HasSuffix(path, "LogConfig.Config") {
		if !reflect.DeepEqual(a, b) {
			places[path] = true
		}
		return
	}
	for _, key := range slices.Concat(slices.Collect(maps.Keys(x)), slices.Collect(maps.Keys(y))) {
		compare(strings.TrimPrefix(path+"."+key, "."), x[key], y[key], places)
	}
}

// The examples are the definitions that people bring along: each of their
// containers is asked for as its golden request says, also where a member of the
// example is refused at registration today.
func TestRequest_OfEachExampleIsTheGoldenOne(t *testing.T) {
	files, err := filepath.Glob("../../../examples/taskdefs/*.json")
	if err != nil || len(files) != 7 {
		t.Fatalf("%d examples: %v", len(files), err)
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var in taskdef.Input
		if err := json.Unmarshal(body, &in); err != nil {
			t.Fatal(err)
		}
		def := taskdef.Echo(in, taskdef.Registration{Region: "eu-west-1", Account: "000000000000", Revision: 7})
		var all []json.RawMessage
		for _, c := range def.ContainerDefinitions {
			s := specOf(def, c.Name)
			s.GPUs = gpus(c)
			r, err := request("instance-1", s)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, encode(t, r))
		}
		text, err := json.MarshalIndent(all, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		compareGolden(t, filepath.Join("testdata", "example", filepath.Base(file)), append(text, '\n'))
	}
}

// gpus are as many ids as the container asks for.
func gpus(c taskdef.ContainerDefinition) (ids []string) {
	for n := range c.GPUs() {
		ids = append(ids, fmt.Sprintf("GPU-%d", n))
	}
	return ids
}
