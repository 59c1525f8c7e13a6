package taskdef_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/longshore-run/longshore/shared/taskdef"
)

// maybe draws nothing half of the time.
func maybe[T any](g *rapid.Generator[T]) *rapid.Generator[*T] {
	return rapid.Custom(func(t *rapid.T) *T {
		if rapid.Bool().Draw(t, "absent") {
			return nil
		}
		return new(g.Draw(t, "value"))
	})
}

var (
	text  = rapid.StringN(0, 12, -1).Filter(func(s string) bool { return json.Valid([]byte(strconv.Quote(s))) && noZero(s) })
	texts = rapid.SliceOfN(text, 0, 3)
	pairs = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) taskdef.KeyValuePair {
		return taskdef.KeyValuePair{Name: rapid.StringMatching(`[A-C]`).Draw(t, "name"), Value: text.Draw(t, "value")}
	}), 0, 4)
)

func noZero(s string) bool {
	for _, r := range s {
		if r == 0 || r == '\uFFFD' {
			return false
		}
	}
	return true
}

// drawContainer makes a container that is valid in network mode bridge, its host ports from its own hundred.
func drawContainer(t *rapid.T, i int) taskdef.ContainerDefinition {
	reserve := rapid.IntRange(6, 500).Draw(t, "reserve")
	c := taskdef.ContainerDefinition{
		Name: fmt.Sprint("c", i), Image: "busybox:1", CPU: maybe(rapid.IntRange(0, 2000)).Draw(t, "cpu"), MemoryReservation: &reserve,
		Command: texts.Draw(t, "command"), EntryPoint: texts.Draw(t, "entryPoint"), Environment: pairs.Draw(t, "environment"),
		StopTimeout: maybe(rapid.IntRange(0, 90)).Draw(t, "stopTimeout"), Privileged: maybe(rapid.Bool()).Draw(t, "privileged"),
		DockerLabels: rapid.MapOfN(text.Filter(func(s string) bool { return s != "" }), text, 0, 3).Draw(t, "labels"),
	}
	if rapid.Bool().Draw(t, "limited") {
		c.Memory = new(reserve + rapid.IntRange(0, 100).Draw(t, "more"))
	}
	if i > 0 {
		c.Essential = maybe(rapid.Bool()).Draw(t, "essential")
		if rapid.Bool().Draw(t, "waits") {
			c.DependsOn = []taskdef.Dependency{{ContainerName: "c0", Condition: taskdef.ConditionStart}}
		}
	}
	for k := range rapid.IntRange(0, 3).Draw(t, "ports") {
		p := taskdef.PortMapping{ContainerPort: new(rapid.IntRange(1, 65535).Draw(t, "port")), Protocol: rapid.SampledFrom([]string{"", "tcp", "udp"}).Draw(t, "protocol")}
		if rapid.Bool().Draw(t, "static") {
			p.HostPort = new(1000 + 100*i + k)
		}
		c.PortMappings = append(c.PortMappings, p)
	}
	if n := rapid.IntRange(0, 2).Draw(t, "gpus"); n > 0 {
		c.ResourceRequirements = []taskdef.ResourceRequirement{{Type: taskdef.ResourceGPU, Value: strconv.Itoa(n)}}
	}
	return c
}

func drawInput(t *rapid.T) taskdef.Input {
	in := taskdef.Input{Spec: taskdef.Spec{Family: rapid.StringMatching(`[A-Za-z0-9_-]{1,20}`).Draw(t, "family")}}
	for i := range rapid.IntRange(1, 4).Draw(t, "containers") {
		in.ContainerDefinitions = append(in.ContainerDefinitions, drawContainer(t, i))
	}
	if rapid.Bool().Draw(t, "sized") {
		in.CPU, in.Memory = "100000", "100000"
	}
	in.RequiresCompatibilities = rapid.SampledFrom([][]string{nil, {}, {"EC2"}, {"EXTERNAL", "EC2"}}).Draw(t, "compatibilities")
	return in
}

func TestProperty_WhatIsWrittenIsReadBackAsItWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		body, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		back, err := taskdef.Decode(body)
		if err != nil || taskdef.Validate(in) != nil {
			t.Fatalf("%s is refused: %v", body, err)
		}
		if again, _ := json.Marshal(back); string(again) != string(body) {
			t.Fatalf("%s became %s", body, again)
		}
		def := taskdef.Echo(back, taskdef.Registration{Region: "r", Account: "1", Revision: 1, At: 12345})
		stored, err := taskdef.ParseStored(taskdef.Canonical(def))
		if err != nil || !reflect.DeepEqual(stored, def) {
			t.Fatalf("stored as %s, %v", taskdef.Canonical(stored), err)
		}
	})
}

// What Describe shows can be registered again, and is then shown the same: clients do that all day.
func TestProperty_WhatIsShownRegistersAgainTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		def := taskdef.Echo(drawInput(t), taskdef.Registration{Region: "r", Account: "1", Revision: 1})
		body, err := json.Marshal(def.Spec)
		if err != nil {
			t.Fatal(err)
		}
		in, err := taskdef.Decode(body)
		if err != nil {
			t.Fatalf("%s is refused: %v", body, err)
		}
		again := taskdef.Echo(in, taskdef.Registration{Region: "r", Account: "1", Revision: 1})
		if !reflect.DeepEqual(again, def) {
			t.Fatalf("shown as %s, then %s", taskdef.Canonical(def), taskdef.Canonical(again))
		}
	})
}

func atLeast(a, b taskdef.Resources) bool {
	return a.CPU >= b.CPU && a.MemoryMiB >= b.MemoryMiB && a.GPUs >= b.GPUs && len(a.TCP) >= len(b.TCP) && len(a.UDP) >= len(b.UDP)
}

func TestProperty_OneMoreContainerNeverNeedsLess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		def := taskdef.Echo(drawInput(t), taskdef.Registration{})
		before := taskdef.Needs(def, taskdef.TaskOverride{})
		def.ContainerDefinitions = append(def.ContainerDefinitions, drawContainer(t, len(def.ContainerDefinitions)))
		if after := taskdef.Needs(def, taskdef.TaskOverride{}); !atLeast(after, before) {
			t.Fatalf("needed %+v, then %+v", before, after)
		}
	})
}

func TestProperty_AnOverrideThatRaisesNeverNeedsLess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		def := taskdef.Echo(drawInput(t), taskdef.Registration{})
		before := taskdef.Needs(def, taskdef.TaskOverride{})
		c := rapid.SampledFrom(def.ContainerDefinitions).Draw(t, "container")
		more := rapid.IntRange(0, 50)
		over := taskdef.TaskOverride{ContainerOverrides: []taskdef.ContainerOverride{{
			Name: c.Name, CPU: new(*c.CPU + more.Draw(t, "cpu")), MemoryReservation: new(c.ReservedMemory() + more.Draw(t, "memory")),
		}}}
		after := taskdef.Needs(def, over)
		if !atLeast(after, before) {
			t.Fatalf("needed %+v, then %+v", before, after)
		}
		if def.CPU == "" && after.CPU != before.CPU+*over.ContainerOverrides[0].CPU-*c.CPU {
			t.Fatalf("CPU went from %d to %d for %+v", before.CPU, after.CPU, over)
		}
	})
}

// Needs before the merge and Needs of the merged definition are what the ledger and the agent reckon with: one number.
func TestProperty_NeedsOfTheMergedDefinitionAreTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		def := taskdef.Echo(drawInput(t), taskdef.Registration{})
		var over taskdef.TaskOverride
		for _, c := range def.ContainerDefinitions {
			if rapid.Bool().Draw(t, "override") {
				over.ContainerOverrides = append(over.ContainerOverrides, taskdef.ContainerOverride{
					Name: c.Name, CPU: maybe(rapid.IntRange(0, 500)).Draw(t, "cpu"), MemoryReservation: maybe(rapid.IntRange(6, 500)).Draw(t, "memory"),
					Environment: pairs.Draw(t, "environment"), Command: texts.Draw(t, "command"),
				})
			}
		}
		merged, err := taskdef.Apply(def, over)
		if err != nil {
			return // the limit of a container may be below what the override reserves
		}
		if a, b := taskdef.Needs(def, over), taskdef.Needs(merged, taskdef.TaskOverride{}); !reflect.DeepEqual(a, b) {
			t.Fatalf("%+v before the merge, %+v after", a, b)
		}
		for _, o := range over.ContainerOverrides {
			c, _ := merged.Container(o.Name)
			last := map[string]string{}
			for _, e := range o.Environment {
				last[e.Name] = e.Value
			}
			for _, e := range c.Environment {
				if want, ok := last[e.Name]; ok && e.Value != want {
					t.Fatalf("%s is %q in %s, want %q", e.Name, e.Value, c.Name, want)
				}
			}
		}
	})
}
