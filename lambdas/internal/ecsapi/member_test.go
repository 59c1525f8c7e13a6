package ecsapi_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/internal/ecsapi"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// This file compares every member of what operations take and answer with the
// types of the SDK that users have, which are made from ECS's model.

// refusal is a member of a request, or a value of one, that is not taken.
type refusal struct{ path, why string }

// comparison gathers what differs.
type comparison struct {
	faults  []string
	refused []refusal
	// lacks holds what answers leave out: members by the SDK's type.
	lacks map[string][]string
	// chosen holds the values of a request's choices that are not taken.
	chosen []refusal
}

func (c *comparison) fault(format string, args ...any) {
	c.faults = append(c.faults, fmt.Sprintf(format, args...))
}

// sdkShapes are the SDK's types of an operation.
func sdkShapes(t *testing.T, name string) (in, out reflect.Type) {
	t.Helper()
	m, ok := reflect.TypeFor[*ecs.Client]().MethodByName(name)
	if !ok {
		t.Fatalf("the SDK has no %s", name)
	}
	return m.Type.In(2).Elem(), m.Type.Out(0).Elem()
}

// lowered is the model's name of an SDK's member.
func lowered(name string) string { return strings.ToLower(name[:1]) + name[1:] }

func sdkMembers(t reflect.Type) map[string]reflect.Type {
	out := map[string]reflect.Type{}
	for f := range t.Fields() {
		if f.IsExported() && f.Name != "ResultMetadata" {
			out[lowered(f.Name)] = f.Type
		}
	}
	return out
}

func join(path, name string) string { return strings.TrimPrefix(path+"."+name, ".") }

// request compares a struct that requests are decoded into.
func (c *comparison) request(path string, ours, sdk reflect.Type) {
	members := sdkMembers(sdk)
	for f := range ours.Fields() {
		name := f.Tag.Get("json")
		at := join(path, name)
		theirs, ok := members[name]
		if !ok {
			c.fault("%s: the model has no such member", at)
			continue
		}
		delete(members, name)
		switch why := f.Tag.Get("refuse"); {
		case why != "":
			c.refused = append(c.refused, refusal{at, why})
		case f.Type == reflect.TypeFor[json.RawMessage](): // another package decodes it
		default:
			c.taken(at, f, f.Type, theirs)
		}
	}
	for name := range members {
		c.fault("%s: the model has it, and it is neither done nor refused by name", join(path, name))
	}
}

func (c *comparison) taken(at string, f reflect.StructField, ours, theirs reflect.Type) {
	ours, theirs = elem(ours), elem(theirs)
	if a, b := kindOf(ours), kindOf(theirs); a != b {
		c.fault("%s: is %s here and %s in the model", at, a, b)
		return
	}
	switch kindOf(ours) {
	case "list":
		c.taken(at+"[]", f, ours.Elem(), theirs.Elem())
	case "structure":
		c.request(at, ours, theirs)
	case "string":
		if f.Tag.Get("judged") == "" {
			c.choices(at, f.Tag.Get("one"), valuesOf(theirs), f.Tag.Get("others"))
		}
	}
}

// choices compares what a member may be with the model's choices.
func (c *comparison) choices(at, one string, values []string, why string) {
	if len(values) == 0 {
		return
	}
	ours := strings.Split(one, "|")
	if one == "" {
		c.fault("%s: the model allows %v, and anything is taken", at, values)
		return
	}
	for _, v := range ours {
		if !slices.Contains(values, v) {
			c.fault("%s: %s is taken, and the model does not have it", at, v)
		}
	}
	for _, v := range values {
		if slices.Contains(ours, v) {
			continue
		}
		if why == "" {
			c.fault("%s: the model has the value %s, and it is refused without a reason", at, v)
		}
		c.chosen = append(c.chosen, refusal{at + " = " + v, why})
	}
}

// answer compares a struct that is sent.
func (c *comparison) answer(path string, ours, sdk reflect.Type) {
	members := sdkMembers(sdk)
	for _, f := range reflect.VisibleFields(ours) {
		if f.Anonymous || !f.IsExported() {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		theirs, ok := members[name]
		if !ok {
			c.fault("%s: is sent, and the model has no such member", join(path, name))
			continue
		}
		delete(members, name)
		c.sent(join(path, name), f.Type, theirs)
	}
	lacks := []string{}
	for name := range members {
		lacks = append(lacks, name)
	}
	slices.Sort(lacks)
	if c.lacks == nil {
		c.lacks = map[string][]string{}
	}
	c.lacks[sdk.Name()] = lacks
}

func (c *comparison) sent(at string, ours, theirs reflect.Type) {
	if ours == reflect.TypeFor[json.RawMessage]() { // taskdef's own test compares it
		return
	}
	ours, theirs = elem(ours), elem(theirs)
	if a, b := kindOf(ours), kindOf(theirs); a != b {
		c.fault("%s: is sent as %s, and is %s in the model", at, a, b)
		return
	}
	switch kindOf(ours) {
	case "list":
		if ours.Elem() != reflect.TypeFor[struct{}]() { // of which there are never any
			c.sent(at+"[]", ours.Elem(), theirs.Elem())
		}
	case "structure":
		// A task definition is compared by the table of its members (shared/taskdef/ecsmodel).
		if ours.PkgPath() != reflect.TypeFor[taskdef.TaskDefinition]().PkgPath() {
			c.answer(at, ours, theirs)
		}
	}
}

func elem(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// kindOf is a type's kind in the model's words.
func kindOf(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Time](), t == reflect.TypeFor[taskdef.Instant](), t.Name() == "seconds":
		return "timestamp"
	}
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "whole number"
	case reflect.Float32, reflect.Float64:
		return "number"
	case reflect.Slice:
		return "list"
	case reflect.Map:
		return "map"
	case reflect.Struct:
		return "structure"
	}
	return t.String()
}

// valuesOf asks a string type of the SDK for its values.
func valuesOf(t reflect.Type) (texts []string) {
	method, ok := t.MethodByName("Values")
	if !ok {
		return nil
	}
	values := method.Func.Call([]reflect.Value{reflect.Zero(t)})[0]
	for i := range values.Len() {
		texts = append(texts, values.Index(i).String())
	}
	return texts
}

// compare compares a done operation's request and answer.
func compare(t *testing.T, name string) *comparison {
	t.Helper()
	in, out := ecsapi.Shapes(name)
	sdkIn, sdkOut := sdkShapes(t, name)
	c := &comparison{}
	if in != nil {
		c.request("", in, sdkIn)
	}
	if out = elem(out); out.Kind() != reflect.Struct {
		c.fault("its answer is a %s: give it a type of its own", out)
		return c
	}
	c.answer("", out, sdkOut)
	return c
}

func TestOperations_TakeAndAnswerNothingButTheModelsMembers(t *testing.T) {
	compared := 0
	for _, name := range ecsapi.Operations() {
		if !ecsapi.Done(name) {
			continue
		}
		compared++
		for _, fault := range compare(t, name).faults {
			t.Errorf("%s: %s", name, fault)
		}
	}
	if compared < 18 {
		t.Errorf("only %d operations were compared", compared)
	}
}

func TestOperations_AreRefusedForAReason(t *testing.T) {
	for _, name := range ecsapi.Operations() {
		if why := ecsapi.Refusals()[name]; ecsapi.Done(name) != (why == "") {
			t.Errorf("%s: done %v, refused because %q", name, ecsapi.Done(name), why)
		}
	}
	for name := range ecsapi.Refusals() {
		if !slices.Contains(ecsapi.Operations(), name) {
			t.Errorf("%s is refused and no operation of ECS", name)
		}
	}
}

// The use cases judge the names of account settings, so they are compared here.
func TestSettingNames_AreThoseOfTheModel(t *testing.T) {
	want := valuesOf(reflect.TypeFor[types.SettingName]())
	slices.Sort(want)
	if got := control.SettingNames(); !slices.Equal(got, want) {
		t.Errorf("the settings are %v, in the model %v", got, want)
	}
}

// What a comparison is there to find, planted.
func TestCompare_FindsWhatDiffers(t *testing.T) {
	type wrong struct {
		Cluster string          `json:"cluster"`
		Tasks   string          `json:"tasks"`
		Include []string        `json:"include"`
		Reason  string          `json:"reason"`
		Why     json.RawMessage `json:"because" refuse:"it is not there"`
	}
	c := &comparison{}
	sdkIn, _ := sdkShapes(t, "DescribeTasks")
	c.request("", reflect.TypeFor[wrong](), sdkIn)
	slices.Sort(c.faults)
	want := []string{
		"because: the model has no such member",
		"include[]: the model allows [TAGS], and anything is taken",
		"reason: the model has no such member",
		"tasks: is string here and list in the model",
	}
	if !slices.Equal(c.faults, want) {
		t.Errorf("found %q", c.faults)
	}
	c = &comparison{}
	sdkIn, _ = sdkShapes(t, "UpdateContainerInstancesState")
	c.request("", reflect.TypeFor[struct {
		Status string `json:"status" one:"ACTIVE|RESTING"`
	}](), sdkIn)
	slices.Sort(c.faults)
	if len(c.faults) != 3+len(sdkStatuses)-1 || !slices.Contains(c.faults, "status: RESTING is taken, and the model does not have it") ||
		!slices.Contains(c.faults, "cluster: the model has it, and it is neither done nor refused by name") {
		t.Errorf("found %q", c.faults)
	}
	c = &comparison{}
	_, sdkOut := sdkShapes(t, "StopTask")
	c.answer("", reflect.TypeFor[struct {
		Task struct {
			ARN       string    `json:"taskArn,omitempty"`
			CreatedAt string    `json:"createdAt"`
			Mood      string    `json:"mood"`
			StartedAt time.Time `json:"startedAt"`
		} `json:"task"`
	}](), sdkOut)
	slices.Sort(c.faults)
	if !slices.Equal(c.faults, []string{"task.createdAt: is sent as string, and is timestamp in the model", "task.mood: is sent, and the model has no such member"}) {
		t.Errorf("found %q", c.faults)
	}
	if !slices.Contains(c.lacks["Task"], "stopCode") || slices.Contains(c.lacks["Task"], "taskArn") {
		t.Errorf("lacks %v", c.lacks["Task"])
	}
}

var sdkStatuses = valuesOf(reflect.TypeFor[ecs.UpdateContainerInstancesStateInput]().Field(1).Type)
