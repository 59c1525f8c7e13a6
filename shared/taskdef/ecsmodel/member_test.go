// Package ecsmodel holds only this test: the tables of package taskdef against the ECS client that users have. It is a
// room of its own because it alone imports an SDK. Nobody may import it.
package ecsmodel

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/longshore-run/longshore/shared/taskdef"
)

// unions are the members of the SDK's interface types, which reflection cannot list.
var unions = map[reflect.Type]map[string]reflect.Type{
	reflect.TypeFor[types.SharingStrategy](): {"nvidiaMps": reflect.TypeFor[types.NvidiaMpsAllocation]()},
}

// ours are values that a table allows and the SDK's enum does not have.
var ours = map[string][]string{
	"containerDefinitions[].logConfiguration.logDriver": {"none"}, // Docker's, to keep no log
}

// fact is what the SDK says of a member.
type fact struct {
	kind    taskdef.Type
	choices []string
}

// walker gathers the members of an SDK type.
type walker struct {
	t     *testing.T
	facts map[string]fact
}

func (w walker) fields(path string, st reflect.Type) {
	for f := range st.Fields() {
		if !f.IsExported() || f.Name == "ResultMetadata" {
			continue
		}
		w.member(join(path, strings.ToLower(f.Name[:1])+f.Name[1:]), f.Type)
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func (w walker) member(path string, t reflect.Type) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		w.facts[path] = fact{taskdef.String, enum(t)}
	case reflect.Int32:
		w.facts[path] = fact{kind: taskdef.Integer}
	case reflect.Bool:
		w.facts[path] = fact{kind: taskdef.Boolean}
	case reflect.Map:
		w.facts[path] = fact{kind: taskdef.StringMap}
	case reflect.Struct:
		w.facts[path] = fact{kind: taskdef.Object}
		w.fields(path, t)
	case reflect.Interface:
		w.facts[path] = fact{kind: taskdef.Object}
		members, ok := unions[t]
		if !ok {
			w.t.Errorf("%s is of the SDK's union %s, which this test does not know", path, t)
		}
		for name, member := range members {
			w.member(join(path, name), member)
		}
	case reflect.Slice:
		w.list(path, t.Elem())
	default:
		w.t.Errorf("%s is of the SDK's type %s, which this test does not know", path, t)
	}
}

func (w walker) list(path string, element reflect.Type) {
	switch element.Kind() {
	case reflect.String:
		w.facts[path] = fact{taskdef.Strings, enum(element)}
	case reflect.Int32:
		w.facts[path] = fact{kind: taskdef.Integers}
	case reflect.Struct:
		w.facts[path] = fact{kind: taskdef.Objects}
		w.fields(path+"[]", element)
	default:
		w.t.Errorf("%s is a list of the SDK's type %s, which this test does not know", path, element)
	}
}

// enum asks a string type of the SDK for its values.
func enum(t reflect.Type) []string {
	method, ok := t.MethodByName("Values")
	if !ok {
		return nil
	}
	var texts []string
	values := method.Func.Call([]reflect.Value{reflect.Zero(t)})[0]
	for i := range values.Len() {
		texts = append(texts, values.Index(i).String())
	}
	return texts
}

func compare(t *testing.T, sdk reflect.Type, table []taskdef.Member) {
	w := walker{t: t, facts: map[string]fact{}}
	w.fields("", sdk)
	if len(w.facts) < 10 {
		t.Fatalf("found only %d members in the SDK's %s", len(w.facts), sdk)
	}
	known := map[string]bool{}
	for _, m := range table {
		if known[m.Path] {
			t.Errorf("%s stands twice in the table", m.Path)
		}
		known[m.Path] = true
		f, ok := w.facts[m.Path]
		switch {
		case !ok:
			t.Errorf("%s is in the table and not in the SDK", m.Path)
			continue
		case f.kind != m.Type:
			t.Errorf("%s is %s in the table and %s in the SDK", m.Path, m.Type, f.kind)
		}
		compareChoices(t, m, f.choices)
		if m.State != taskdef.Run && m.Why == "" {
			t.Errorf("%s is refused without a reason", m.Path)
		}
	}
	for path := range w.facts {
		if !known[path] {
			t.Errorf("%s is in the SDK and not in the table: give it a state and a reason", path)
		}
	}
}

func compareChoices(t *testing.T, m taskdef.Member, values []string) {
	if len(values) == 0 {
		return
	}
	var texts []string
	for _, c := range m.Choices {
		texts = append(texts, c.Text)
		if c.State != taskdef.Run && c.Why == "" {
			t.Errorf("%s: %s is refused without a reason", m.Path, c.Text)
		}
		if !slices.Contains(values, c.Text) && !slices.Contains(ours[m.Path], c.Text) {
			t.Errorf("%s: %s is in the table and not in the SDK's enum", m.Path, c.Text)
		}
	}
	for _, v := range values {
		if !slices.Contains(texts, v) {
			t.Errorf("%s: %s is in the SDK's enum and not in the table", m.Path, v)
		}
	}
}

func TestMembers_NameEveryMemberOfRegisterTaskDefinition(t *testing.T) {
	compare(t, reflect.TypeFor[ecs.RegisterTaskDefinitionInput](), taskdef.Members())
}

func TestOverrideMembers_NameEveryMemberOfTaskOverride(t *testing.T) {
	compare(t, reflect.TypeFor[types.TaskOverride](), taskdef.OverrideMembers())
}

// A member of the answer that we do not write would be missing to clients without anybody noticing.
func TestTaskDefinition_HasEveryMemberOfTheAnswer(t *testing.T) {
	w := walker{t: t, facts: map[string]fact{}}
	sdk := reflect.TypeFor[types.TaskDefinition]()
	for f := range sdk.Fields() {
		if !f.IsExported() {
			continue
		}
		name := strings.ToLower(f.Name[:1]) + f.Name[1:]
		if !hasMember(reflect.TypeFor[taskdef.TaskDefinition](), name) {
			t.Errorf("taskdef.TaskDefinition lacks %s", name)
		}
		w.facts[name] = fact{}
	}
	if len(w.facts) < 20 {
		t.Fatalf("found only %d members in the SDK's %s", len(w.facts), sdk)
	}
}

func hasMember(t reflect.Type, name string) bool {
	for _, f := range reflect.VisibleFields(t) {
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag == name {
			return true
		}
	}
	return false
}
