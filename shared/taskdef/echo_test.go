package taskdef_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// object reads JSON without our types, so that they cannot hide what they lose.
func object(t *testing.T, data []byte) map[string]any {
	t.Helper()
	var o map[string]any
	if err := json.Unmarshal(data, &o); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestEcho_ShowsEachExampleAsItWasRegistered(t *testing.T) {
	always := map[string]any{"cpu": 0.0, "essential": true, "portMappings": []any{}, "environment": []any{}, "mountPoints": []any{}, "volumesFrom": []any{}, "systemControls": []any{}}
	for name, body := range exampleFiles(t) {
		t.Run(name, func(t *testing.T) {
			var in taskdef.Input
			if err := json.Unmarshal(body, &in); err != nil {
				t.Fatal(err)
			}
			stored := taskdef.Canonical(taskdef.Echo(in, taskdef.Registration{Region: "r", Account: "1", Revision: 7, At: 1, By: "me"}))
			back, err := taskdef.ParseStored(stored)
			if err != nil || string(taskdef.Canonical(back)) != string(stored) {
				t.Errorf("reading and writing again changed it (%v):\n%s\nwas\n%s", err, taskdef.Canonical(back), stored)
			}
			got, want := object(t, stored), object(t, body)
			delete(want, "tags") // beside the definition, not in it
			for _, member := range []string{"taskDefinitionArn", "revision", "status", "registeredAt", "registeredBy", "compatibilities", "requiresAttributes"} {
				if _, ok := got[member]; !ok {
					t.Errorf("%s is missing", member)
				}
				delete(got, member)
			}
			for _, member := range []string{"volumes", "placementConstraints"} {
				if _, ok := want[member]; !ok {
					want[member] = []any{}
				}
			}
			for _, c := range want["containerDefinitions"].([]any) {
				for member, value := range always {
					if _, ok := c.(map[string]any)[member]; !ok {
						c.(map[string]any)[member] = value
					}
				}
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got  %v\nwant %v", got, want)
			}
		})
	}
}

// fill gives every field of a value something that is not its zero.
func fill(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(v.Index(i), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"<k>": "&v", "": ""}))
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(field, depth+1)
		}
	case reflect.String:
		v.SetString(fmt.Sprintf("<%d&\u2028é>", depth))
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(1_700_000_000_123))
	case reflect.Bool:
		v.SetBool(true)
	default:
		panic(v.Kind().String())
	}
}

func TestCanonical_LosesNoMember(t *testing.T) {
	var def taskdef.TaskDefinition
	fill(reflect.ValueOf(&def).Elem(), 0)
	back, err := taskdef.ParseStored(taskdef.Canonical(def))
	if err != nil || !reflect.DeepEqual(back, def) {
		t.Errorf("got  %+v, %v\nwant %+v", back, err, def)
	}
	if _, err := taskdef.ParseStored([]byte(`{"family":`)); err == nil {
		t.Error("half a definition was read")
	}
}

// The table of members and the Go types that hold them are the same list.
func TestMembers_HaveEachAFieldAndTheOtherWayRound(t *testing.T) {
	for _, c := range []struct {
		of    reflect.Type
		table []taskdef.Member
	}{
		{reflect.TypeFor[taskdef.Input](), taskdef.Members()},
		{reflect.TypeFor[taskdef.TaskOverride](), taskdef.OverrideMembers()},
	} {
		fields := map[string]bool{}
		gather("", c.of, fields)
		for _, m := range c.table {
			if !fields[m.Path] {
				t.Errorf("%s has no field for %s: it would be dropped", c.of, m.Path)
			}
			delete(fields, m.Path)
		}
		for _, path := range slices.Sorted(maps.Keys(fields)) {
			t.Errorf("%s has a field for %s, which is not in the table", c.of, path)
		}
	}
}

func gather(path string, t reflect.Type, into map[string]bool) {
	for f := range t.Fields() {
		if f.Anonymous {
			gather(path, f.Type, into)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		at, ft := path+name, f.Type
		into[at] = true
		if ft.Kind() == reflect.Pointer {
			ft = ft.Elem()
		}
		if ft.Kind() == reflect.Slice {
			at, ft = at+"[]", ft.Elem()
		}
		if ft.Kind() == reflect.Struct {
			gather(at+".", ft, into)
		}
	}
}

func TestEcho_KeepsWhatIsGivenAndTurnsAmountsIntoNumbers(t *testing.T) {
	def := registered(t, `{"family":"f","cpu":"1 vCPU","memory":"0.5GB","requiresCompatibilities":[],"containerDefinitions":[
		{"name":"a","image":"x","cpu":0,"essential":true,"privileged":false,"command":[],"memoryReservation":8,"portMappings":[{"containerPort":80}]}]}`)
	want := `{"taskDefinitionArn":"arn:aws:ecs:r:1:task-definition/f:1","family":"f","containerDefinitions":[{"name":"a","image":"x","cpu":0,"memoryReservation":8,` +
		`"portMappings":[{"containerPort":80}],"essential":true,"command":[],"environment":[],"mountPoints":[],"volumesFrom":[],"privileged":false,"systemControls":[]}],` +
		`"volumes":[],"placementConstraints":[],"requiresCompatibilities":[],"cpu":"1024","memory":"512","revision":1,"status":"ACTIVE","requiresAttributes":[],"compatibilities":["EXTERNAL","EC2"]}`
	if got := string(taskdef.Canonical(def)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestEcho_DoesNotChangeTheInput(t *testing.T) {
	in, err := taskdef.Decode([]byte(beside(`"cpu":"1 vCPU"`)))
	if err != nil {
		t.Fatal(err)
	}
	before, _ := json.Marshal(in)
	taskdef.Echo(in, taskdef.Registration{Revision: 1})
	if after, _ := json.Marshal(in); string(after) != string(before) {
		t.Errorf("the input became %s, was %s", after, before)
	}
}

func TestEcho_RequiresOfInstancesWhatNotAllOfThemCanDo(t *testing.T) {
	def := registered(t, two(`"privileged":true,"logConfiguration":{"logDriver":"journald"},"dockerSecurityOptions":["label:x","apparmor:y","no-new-privileges"]`,
		`"dependsOn":[{"containerName":"a","condition":"START"}],"logConfiguration":{"logDriver":"journald"},"privileged":false`,
		`"runtimePlatform":{"cpuArchitecture":"X86_64"},"volumes":[{"name":"v","dockerVolumeConfiguration":{"driver":"nfs"}},{"name":"w","dockerVolumeConfiguration":{}}]`))
	got, err := json.Marshal(def.RequiresAttributes)
	want := `[{"name":"com.amazonaws.ecs.capability.apparmor"},{"name":"com.amazonaws.ecs.capability.logging-driver.journald"},` +
		`{"name":"com.amazonaws.ecs.capability.privileged-container"},{"name":"com.amazonaws.ecs.capability.selinux"},` +
		`{"name":"ecs.capability.container-ordering"},{"name":"ecs.capability.docker-plugin.nfs"},{"name":"ecs.cpu-architecture","value":"x86_64"}]`
	if err != nil || string(got) != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
}

func TestInstant_IsSecondsWithThreeDecimals(t *testing.T) {
	for ms, want := range map[taskdef.Instant]string{1_700_000_000_123: "1700000000.123", 1_700_000_000_000: "1700000000.000", 5: "0.005", -1500: "-1.500"} {
		got, err := json.Marshal(ms)
		if err != nil || string(got) != want {
			t.Errorf("%d is %s, %v; want %s", ms, got, err, want)
		}
		var back taskdef.Instant
		if err := json.Unmarshal(got, &back); err != nil || back != ms {
			t.Errorf("%s reads as %d, %v; want %d", got, back, err, ms)
		}
	}
	at := time.Date(2026, 11, 30, 6, 33, 0, 42_000_000, time.UTC)
	if got := taskdef.At(at).Time(); !got.Equal(at) {
		t.Errorf("%s came back as %s", at, got)
	}
	var i taskdef.Instant
	for _, bad := range []string{`"2026-11-30"`, `true`, `1e300`, `{}`} {
		if err := json.Unmarshal([]byte(bad), &i); err == nil {
			t.Errorf("%s was read as %d", bad, i)
		}
	}
}

func TestParseReference_ReadsTheThreeForms(t *testing.T) {
	for text, want := range map[string]taskdef.Reference{
		"web":    {Family: "web"},
		"web:12": {Family: "web", Revision: 12},
		"arn:aws:ecs:eu-west-1:000000000000:task-definition/web_1-x:3": {Region: "eu-west-1", Account: "000000000000", Family: "web_1-x", Revision: 3},
		"arn:aws:ecs:eu-west-1:000000000000:task-definition/web":       {Region: "eu-west-1", Account: "000000000000", Family: "web"},
	} {
		if got, err := taskdef.ParseReference(text); err != nil || got != want {
			t.Errorf("ParseReference(%q) = %+v, %v; want %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                                 "taskDefinition is required",
		"web:":                             `taskDefinition "web:" has a revision that is no number from 1`,
		"web:0":                            `taskDefinition "web:0" has a revision that is no number from 1`,
		"web:99999999999":                  `taskDefinition "web:99999999999" has a revision that is no number from 1`,
		"web:01":                           `taskDefinition "web:01" has a revision that is no number from 1`,
		"web:-1":                           `taskDefinition "web:-1" has a revision that is no number from 1`,
		"web:1:2":                          `taskDefinition "web:1:2" has a revision that is no number from 1`,
		"web/x":                            `taskDefinition "web/x" has a family that is no name: letters, digits, hyphens and underscores, up to 255`,
		":1":                               `taskDefinition ":1" has a family that is no name: letters, digits, hyphens and underscores, up to 255`,
		"arn:aws:ecs:r:1:task/x":           `taskDefinition "arn:aws:ecs:r:1:task/x" is not the ARN of a task definition`,
		"arn:aws:s3:r:1:task-definition/x": `taskDefinition "arn:aws:s3:r:1:task-definition/x" is not the ARN of a task definition`,
		"arn:aws:ecs":                      `taskDefinition "arn:aws:ecs" is not the ARN of a task definition`,
	} {
		if got, err := taskdef.ParseReference(text); err == nil || err.Error() != want || got != (taskdef.Reference{}) {
			t.Errorf("ParseReference(%q) = %+v, %v; want %s", text, got, err, want)
		}
	}
}

func TestFaults_HaveTheKindThatDecides(t *testing.T) {
	_, unsupported := taskdef.Decode([]byte(with(`"links":["a:b"]`)))
	_, both := taskdef.Decode([]byte(beside(`"networkMode":"awsvpc","foo":1`)))
	_, alone := taskdef.Decode([]byte(beside(`"networkMode":"awsvpc"`)))
	for _, c := range []struct {
		err  error
		want fault.Kind
	}{{both, fault.Invalid}, {alone, fault.Unsupported}, {unsupported, fault.Invalid}} {
		if got := fault.Of(fmt.Errorf("register task definition: %w", c.err)); got != c.want {
			t.Errorf("%v is %s, want %s", c.err, got, c.want)
		}
	}
}

func TestSpec_AnswersQuestionsWithDefaults(t *testing.T) {
	def := registered(t, two("", `"essential":false`, ""))
	if got := def.Network(); got != taskdef.NetworkBridge {
		t.Errorf("the network is %s, want bridge", got)
	}
	def.NetworkMode = taskdef.NetworkHost
	if got := def.Network(); got != taskdef.NetworkHost {
		t.Errorf("the network is %s, want host", got)
	}
	if _, ok := def.Container("c"); ok {
		t.Error("there is a container c")
	}
	b, ok := def.Container("b")
	if !ok || b.IsEssential() || !(taskdef.ContainerDefinition{}).IsEssential() {
		t.Errorf("container b is %+v, %t; want it not essential", b, ok)
	}
}
