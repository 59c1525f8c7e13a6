//go:build emulator

package ecsapi_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/lambdas/internal/ecsapi"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/test/strict"
)

// In this lane the model of botocore is at hand, from which the AWS CLI and
// boto3 are made: the types are compared with it, and every answer that any test
// of this package gets is held against it.
var model *strict.Model

func TestMain(m *testing.M) {
	var err error
	if model, err = strict.Pinned(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	judge = func(operation string, status int, header http.Header, body []byte) []string {
		return append(model.Check(operation, status, body), strict.CheckHeader(operation, header)...)
	}
	os.Exit(m.Run())
}

// newer are members that the SDK's model has and the pinned botocore's has not
// yet. None of them is ever sent: they are refused where they could come in.
var newer = []string{"ResourceRequirement.sharingStrategy", "TaskDefinition.trustedExecutionConfiguration"}

// contract gathers what a type has that the model does not, and the other way.
type contract struct{ faults []string }

func (c *contract) fault(format string, args ...any) {
	c.faults = append(c.faults, fmt.Sprintf(format, args...))
}

// fields compares a struct with a structure of the model; whole: every member of
// the model must be there, as in a request, where one that is not is dropped.
func (c *contract) fields(path string, t reflect.Type, shape string, whole bool) {
	members := maps.Clone(model.Shapes[shape].Members)
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || !f.IsExported() || name == "-" {
			continue
		}
		at := join(path, name)
		member, ok := members[name]
		delete(members, name)
		switch {
		case !ok && f.Tag.Get("refuse") == "" && !slices.Contains(newer, shape+"."+name):
			c.fault("%s: the model's %s has no such member", at, shape)
		case ok && f.Tag.Get("refuse") == "" && f.Type != reflect.TypeFor[json.RawMessage]():
			c.value(at, f, f.Type, member.Shape, whole)
		}
	}
	for name := range members {
		if whole {
			c.fault("%s: the model's %s has it, and it is neither done nor refused by name", join(path, name), shape)
		}
	}
}

// modelKinds are kindOf's words for the model's types.
var modelKinds = map[string]string{
	"string": "string", "boolean": "boolean", "integer": "whole number", "long": "whole number", "double": "number", "float": "number",
	"timestamp": "timestamp", "list": "list", "map": "map", "structure": "structure",
}

func (c *contract) value(at string, f reflect.StructField, t reflect.Type, shape string, whole bool) {
	t = elem(t)
	s := model.Shapes[shape]
	if a, b := kindOf(t), modelKinds[s.Type]; a != b {
		c.fault("%s: is %s here and %s in the model", at, a, b)
		return
	}
	switch s.Type {
	case "structure":
		c.fields(at, t, shape, whole)
	case "list":
		if t.Elem() != reflect.TypeFor[struct{}]() {
			c.value(at+"[]", f, t.Elem(), s.Member.Shape, whole)
		}
	case "string":
		if one := f.Tag.Get("one"); whole && one != "" && len(s.Enum) > 0 {
			for v := range strings.SplitSeq(one, "|") {
				if !slices.Contains(s.Enum, v) {
					c.fault("%s: takes %s, which the model does not have", at, v)
				}
			}
		}
	}
}

func TestContract_NothingIsTakenOrSentThatTheModelDoesNotHave(t *testing.T) {
	for _, name := range ecsapi.Operations() {
		operation, known := model.Operations[name]
		if !ecsapi.Done(name) {
			continue
		}
		if !known {
			t.Errorf("%s is done, and the model does not have it", name)
			continue
		}
		c := &contract{}
		in, out := ecsapi.Shapes(name)
		if in != nil {
			c.fields("", in, operation.Input.Shape, true)
		}
		c.fields("", elem(out), operation.Output.Shape, false)
		for _, fault := range c.faults {
			t.Errorf("%s: %s", name, fault)
		}
	}
	for name := range model.Operations {
		if !slices.Contains(ecsapi.Operations(), name) {
			t.Errorf("%s is an operation of the model, and is neither done nor refused by name", name)
		}
	}
}

func TestContract_RefusedOperationsHaveTheModelsException(t *testing.T) {
	const unsupported = "UnsupportedFeatureException"
	for name := range model.Operations {
		has := slices.Contains(model.Errors(name), unsupported)
		if !ecsapi.Done(name) && has != slices.Contains(ecsapi.ModelsUnsupported(), name) {
			t.Errorf("%s: the model has %s: %v; the table says otherwise", name, unsupported, has)
		}
	}
}

func TestContract_WhatIsNewerIsStillSo(t *testing.T) {
	for _, n := range newer {
		shape, member, _ := strings.Cut(n, ".")
		if _, there := model.Shapes[shape].Members[member]; there {
			t.Errorf("the model has %s by now: take it off the list", n)
		}
	}
}

// A task definition's types are another package's; what they send is here.
func TestContract_ATaskDefinitionIsTheModels(t *testing.T) {
	c := &contract{}
	c.fields("", reflect.TypeFor[taskdef.TaskDefinition](), "TaskDefinition", false)
	for _, fault := range c.faults {
		t.Error(fault)
	}
}
