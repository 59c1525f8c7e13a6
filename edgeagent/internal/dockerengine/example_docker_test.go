//go:build docker

package dockerengine

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
)

func inspectFile(t *testing.T, name string) []byte {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("testdata", "inspect", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// notHere are members that a machine of tests may not be able to carry out. The
// golden create requests show them (TestRequest_OfEachExampleIsTheGoldenOne).
var notHere = map[string]string{
	box + "privileged": "an engine that itself is in a container may not give what it does not have",
}

// impossible takes out of an example what a machine of tests cannot do: rights and
// limits that it may not have itself, a log collector that may not run, secrets,
// which need AWS, and the folders of other people's hosts.
func impossible(in *taskdef.Input, folder string) {
	in.ExecutionRoleArn = ""
	for i := range in.ContainerDefinitions {
		c := &in.ContainerDefinitions[i]
		c.Privileged, c.Secrets = nil, nil
		c.Ulimits = slices.DeleteFunc(c.Ulimits, func(u taskdef.Ulimit) bool {
			return slices.Contains([]string{"nofile", "rtprio", "nice"}, u.Name) // raised
		})
		if l := c.LogConfiguration; l != nil && l.LogDriver == "journald" {
			c.LogConfiguration = nil
		}
		if l := c.LinuxParameters; l != nil {
			l.Devices = slices.DeleteFunc(l.Devices, func(d taskdef.Device) bool {
				_, err := os.Stat(d.HostPath)
				return err != nil
			})
		}
	}
	for i := range in.Volumes {
		if h := in.Volumes[i].Host; h != nil && h.SourcePath != "" && h.SourcePath != "/" {
			h.SourcePath = filepath.Join(folder, h.SourcePath)
		}
	}
}

// standIn has the test image play the programs of an example: they go on, or are
// done at once where others wait for their success.
func standIn(in *taskdef.Input, image string) {
	done := map[string]bool{}
	for _, c := range in.ContainerDefinitions {
		for _, d := range c.DependsOn {
			done[d.ContainerName] = done[d.ContainerName] || d.Condition == taskdef.ConditionSuccess
		}
	}
	for i := range in.ContainerDefinitions {
		c := &in.ContainerDefinitions[i]
		c.Image, c.EntryPoint, c.Command = image, nil, []string{"sleep", "600"}
		if done[c.Name] {
			c.Command = []string{"true"}
		}
		if c.HealthCheck.Checks() {
			c.HealthCheck.Command = []string{"CMD", "true"}
		}
	}
}

// Each of the definitions that people bring along registers and runs, and every
// member of it that is not on the lists above is shown by "docker inspect".
func TestExamples_EachRunsAndIsShownByDockerInspect(t *testing.T) {
	files, err := filepath.Glob("../../../examples/taskdefs/*.json")
	if err != nil || len(files) != 7 {
		t.Fatalf("%d examples: %v", len(files), err)
	}
	m := newMachine(t)
	tasks := map[string]taskdef.TaskDefinition{}
	minimal := ""
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := taskdef.Decode(body); err != nil { // whole, as it is
			t.Fatalf("%s: %v", file, err)
		}
		var in taskdef.Input
		if err := json.Unmarshal(body, &in); err != nil {
			t.Fatal(err)
		}
		impossible(&in, t.TempDir())
		runs := in.Family == "hello_minimal-1" // as it is
		if !runs {
			standIn(&in, testImage(t))
		}
		changed, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		id, def := m.assign(changed)
		tasks[id] = def
		if runs {
			minimal = id
		}
	}
	for id, def := range tasks {
		if id == minimal { // it may have ended before anybody could see it run
			m.told(id, task.Stopped)
		} else {
			m.told(id, task.Running)
		}
		for _, s := range m.sights(id, def) {
			s.check(t, map[string]bool{})
			if id != minimal && s.got.State.ExitCode != 0 {
				t.Errorf("container %s of %s ended with %d", s.c.Name, def.Family, s.got.State.ExitCode)
			}
		}
	}
	if end := m.told(minimal, task.Stopped); len(end.Containers) != 1 || end.Containers[0].ExitCode == nil || *end.Containers[0].ExitCode != 7 {
		t.Errorf("the minimal example ended as %+v", end.Containers)
	}
}
