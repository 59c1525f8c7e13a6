package control_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/longshore-run/longshore/shared/taskdef"
)

// The definitions that people bring along register as they are, and what is then
// described says all that was said, nothing else than ECS's defaults beside it, and
// registers again as the same.
func TestRegisterTaskDefinition_TheExamplesAreDescribedAsTheyWereRegistered(t *testing.T) {
	files, err := filepath.Glob("../../examples/taskdefs/*.json")
	if err != nil || len(files) != 7 {
		t.Fatalf("%d examples: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			body, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			r := newAPIRig(t)
			in := decode(t, string(body))
			if _, err := r.RegisterTaskDefinition(context.Background(), in, ""); err != nil {
				t.Fatal(err)
			}
			v, err := r.DescribeTaskDefinition(context.Background(), in.Family)
			if err != nil {
				t.Fatal(err)
			}
			said, shown := tree(t, body), tree(t, taskdef.Canonical(v.TaskDefinition))
			tags := map[string]string{}
			for _, tag := range in.Tags {
				tags[tag.Key] = tag.Value
			}
			if len(tags) != len(v.Tags) || len(tags) > 0 && !reflect.DeepEqual(tags, v.Tags) {
				t.Errorf("tags are %v, were %v", v.Tags, tags)
			}
			delete(said, "tags")
			saysAll(t, "", said, shown)
			spec, err := json.Marshal(taskdef.Input{Spec: v.Spec})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.RegisterTaskDefinition(context.Background(), decode(t, string(spec)), ""); err != nil {
				t.Fatalf("what was described does not register: %v", err)
			}
			again, err := r.DescribeTaskDefinition(context.Background(), in.Family)
			if err != nil || again.Revision != v.Revision+1 || !reflect.DeepEqual(again.Spec, v.Spec) {
				t.Errorf("registered again it is %+v (%v), was %+v", again, err, v.Spec)
			}
		})
	}
}

func tree(t *testing.T, body []byte) (v map[string]any) {
	t.Helper()
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// saysAll wants all of said in shown, in the same order.
func saysAll(t *testing.T, at string, said, shown any) {
	t.Helper()
	switch said := said.(type) {
	case map[string]any:
		other, _ := shown.(map[string]any)
		for name, v := range said {
			if _, ok := other[name]; !ok {
				t.Errorf("%s.%s is not shown", at, name)
				continue
			}
			saysAll(t, at+"."+name, v, other[name])
		}
	case []any:
		other, _ := shown.([]any)
		if len(other) != len(said) {
			t.Errorf("%s has %d entries, was %d", at, len(other), len(said))
			return
		}
		for i := range said {
			saysAll(t, at+"[]", said[i], other[i])
		}
	default:
		if !reflect.DeepEqual(said, shown) {
			t.Errorf("%s is %v, was %v", at, shown, said)
		}
	}
}
