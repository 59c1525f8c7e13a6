package taskdef_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/shared/taskdef"
)

// registered decodes a body and registers it as revision 1.
func registered(t testing.TB, body string) taskdef.TaskDefinition {
	t.Helper()
	in, err := taskdef.Decode([]byte(body))
	if err != nil {
		t.Fatalf("Decode(%s): %v", body, err)
	}
	return taskdef.Echo(in, taskdef.Registration{Region: "r", Account: "1", Revision: 1})
}

func override(t testing.TB, body string) taskdef.TaskOverride {
	t.Helper()
	over, err := taskdef.DecodeOverride([]byte(body))
	if err != nil {
		t.Fatalf("DecodeOverride(%s): %v", body, err)
	}
	return over
}

// containers is an override with these entries.
func containers(entries string) string { return `{"containerOverrides":[` + entries + `]}` }

func TestDecodeOverride_TellsEverythingWrong(t *testing.T) {
	const at = "overrides.containerOverrides[0]"
	for _, c := range []struct{ sentence, body, want string }{
		{"nothing", "", ""},
		{"null", " null ", ""},
		{"empty", "{}", ""},
		{"all well", `{"cpu":"1 vCPU","memory":"2048","containerOverrides":[{"name":"a","command":["x"],"environment":[{"name":"A","value":""}],"cpu":0,"memory":6,"memoryReservation":6,
			"resourceRequirements":[{"type":"GPU","value":"1"}],"environmentFiles":[]}],"inferenceAcceleratorOverrides":[],"taskRoleArn":""}`, ""},
		{"a list", "[]", "overrides is a list; allowed is an object\n"},
		{"unknown", `{"containerOverride":[]}`, "overrides.containerOverride is not a member of overrides; did you mean containerOverrides?\n"},
		{"unknown below", containers(`{"name":"a","image":"x"}`), at + ".image is not a member of containerOverrides\n"},
		{"type", containers(`{"name":"a","cpu":"1"}`), at + ".cpu is the string \"1\"; allowed is a whole number\n"},
		{"roles", `{"taskRoleArn":"arn:aws:iam::000000000000:role/longshore/app","executionRoleArn":"longshore/pull"}`, ""},
		{"no roles", `{"taskRoleArn":"arn:aws:iam::1:user/x","executionRoleArn":"a b"}`, "overrides.taskRoleArn is \"arn:aws:iam::1:user/x\"; " + anyRole +
			"overrides.executionRoleArn is \"a b\"; " + anyRole},
		{"environment files", containers(`{"name":"a","environmentFiles":[{"type":"s3","value":"arn:aws:s3:::bucket/a.txt"}]}`),
			at + ".environmentFiles[0].value is \"arn:aws:s3:::bucket/a.txt\"; allowed is the ARN of an S3 object whose name ends in .env: arn:PARTITION:s3:::BUCKET/KEY.env\n"},
		{"a part of a GPU", containers(`{"name":"a","resourceRequirements":[{"type":"GPU","value":"1","sharingStrategy":{"nvidiaMps":{"memory":1}}}]}`),
			at + ".resourceRequirements[0].sharingStrategy is not supported: a GPU is given whole, to one container at a time\n"},
		{"never", `{"ephemeralStorage":{"sizeInGiB":30}}`, "overrides.ephemeralStorage is not supported: it is Fargate's; here tasks run on your own instances\n"},
		{"nameless", containers(`{"command":["x"]}`), at + ".name is required\n"},
		{"one container twice", containers(`{"name":"a"},{"name":"a"}`), "overrides.containerOverrides[1].name repeats \"a\"\n"},
		{"values", `{"cpu":"x","memory":"5","containerOverrides":[{"name":"a","cpu":-1,"command":["\u0000"],"environment":[{"name":"="}],"resourceRequirements":[{"type":"GPU","value":"x"}]}]}`,
			"overrides.cpu is \"x\"; allowed are CPU units as \"1024\" or cores as \"1 vCPU\"\n" +
				"overrides.memory is 5; allowed is 6 to 1073741824\n" +
				at + ".cpu is -1; allowed is 0 to 196608\n" +
				at + ".environment[0].name is \"=\"; it must not hold = or a zero byte\n" +
				at + ".resourceRequirements[0].value is \"x\"; allowed is a number of GPUs, 1 to 64\n" +
				at + ".command[0] must not hold a zero byte\n"},
		{"8192 characters", containers(`{"name":"a","command":["` + strings.Repeat("é", 8192-52) + `"]}`), ""},
		{"8193 characters", containers(`{"name":"a","command":["` + strings.Repeat("é", 8192-51) + `"]}`), "overrides have 8193 characters; allowed are 8192\n"},
		{"white space does not count", containers(`{"name":"a","command":["` + strings.Repeat("é", 8192-52) + `"]}` + strings.Repeat(" ", 500)), ""},
	} {
		t.Run(c.sentence, func(t *testing.T) {
			_, err := taskdef.DecodeOverride([]byte(c.body))
			if got := lines(err); got != c.want {
				t.Errorf("got:\n%swant:\n%s", got, c.want)
			}
		})
	}
}

func TestApply_ReplacesWhatTheOverrideNamesAndNothingElse(t *testing.T) {
	def := registered(t, two(`"command":["old"],"environment":[{"name":"A","value":"1"},{"name":"B","value":"2"},{"name":"A","value":"3"}],"cpu":10,"memoryReservation":32`,
		`"command":["b"],"environment":[{"name":"A","value":"b"}]`, `"cpu":"256","memory":"512"`))
	before := string(taskdef.Canonical(def))
	got, err := taskdef.Apply(def, override(t, `{"cpu":"1 vCPU","memory":"1 GB","containerOverrides":[{"name":"a","command":["new"],"cpu":20,"memory":128,"memoryReservation":64,
		"environment":[{"name":"A","value":"9"},{"name":"C","value":"4"}],"resourceRequirements":[{"type":"GPU","value":"2"}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := registered(t, two(`"command":["new"],"environment":[{"name":"A","value":"9"},{"name":"B","value":"2"},{"name":"C","value":"4"}],"cpu":20,"memoryReservation":64,
		"resourceRequirements":[{"type":"GPU","value":"2"}]`, `"command":["b"],"environment":[{"name":"A","value":"b"}]`, `"cpu":"1024","memory":"1024"`))
	want.ContainerDefinitions[0].Memory = new(128)
	if g, w := string(taskdef.Canonical(got)), string(taskdef.Canonical(want)); g != w {
		t.Errorf("got  %s\nwant %s", g, w)
	}
	if after := string(taskdef.Canonical(def)); after != before {
		t.Errorf("the definition itself changed:\n%s\nwas\n%s", after, before)
	}
}

func TestApply_AnEmptyCommandIsACommand(t *testing.T) {
	def := registered(t, with(`"command":["old"]`))
	got, err := taskdef.Apply(def, override(t, containers(`{"name":"a","command":[]}`)))
	if err != nil || len(got.ContainerDefinitions[0].Command) != 0 {
		t.Errorf("got %v, %v; want no command", got.ContainerDefinitions[0].Command, err)
	}
}

func TestApply_RefusesWhatDoesNotFitTheDefinition(t *testing.T) {
	def := registered(t, with(`"memoryReservation":32`))
	sized := registered(t, beside(`"cpu":"256","memory":"512"`))
	for _, c := range []struct {
		sentence string
		def      taskdef.TaskDefinition
		over     taskdef.TaskOverride
		want     string
	}{
		{"a container of another definition", def, override(t, containers(`{"name":"b"},{"name":"a"},{"name":"c"}`)),
			"overrides.containerOverrides[0].name names no container of f: \"b\"\noverrides.containerOverrides[2].name names no container of f: \"c\"\n"},
		{"a limit below the reservation", def, override(t, containers(`{"name":"a","memory":16}`)),
			"overrides lead to a definition whose containerDefinitions[0].memoryReservation is 32; it must not exceed memory, which is 16\n"},
		{"a limit below 6 MiB", def, override(t, containers(`{"name":"a","memory":1,"memoryReservation":0}`)),
			"overrides lead to a definition whose containerDefinitions[0].memory is 1; allowed is 6 to 1073741824\n"},
		{"no memory left", def, override(t, containers(`{"name":"a","memory":0,"memoryReservation":0}`)),
			"overrides lead to a definition whose containerDefinitions[0].memory or memoryReservation is required where the task has no memory of its own\n"},
		{"a container larger than its task", sized, override(t, containers(`{"name":"a","cpu":512}`)),
			"overrides lead to a definition whose cpu is 256; its containers ask for 512 together\n"},
		{"a task smaller than its container", sized, override(t, `{"memory":"32"}`),
			"overrides lead to a definition whose containerDefinitions[0].memory is 64; the task's memory is 32\n" +
				"overrides lead to a definition whose memory is 32; its containers reserve 64 together\n"},
		{"made in Go, no role", def, taskdef.TaskOverride{TaskRoleArn: "arn:"}, "overrides.taskRoleArn is \"arn:\"; " + anyRole},
		{"a variable that is a secret", registered(t, with(`"secrets":[{"name":"KEY","valueFrom":"k"}]`, `"executionRoleArn":"x"`)), override(t, containers(`{"name":"a","environment":[{"name":"KEY","value":"mine"}]}`)),
			"overrides lead to a definition whose containerDefinitions[0].secrets[0].name cannot be used: The secret name must be unique and not shared with any new or existing environment variables set on the container, such as 'KEY'.\n"},
		{"files and nobody to read them", def, override(t, containers(`{"name":"a","environmentFiles":[{"type":"s3","value":"arn:aws:s3:::bucket/a.env"}]}`)),
			"overrides lead to a definition whose executionRoleArn is required: When you are specifying environment files, you must also specify a value for 'executionRoleArn'.\n"},
		{"made in Go, too long", def, taskdef.TaskOverride{ContainerOverrides: []taskdef.ContainerOverride{{Name: "a", Command: []string{strings.Repeat("x", 9000)}}}},
			"overrides have 9052 characters; allowed are 8192\n"},
	} {
		t.Run(c.sentence, func(t *testing.T) {
			got, err := taskdef.Apply(c.def, c.over)
			if lines(err) != c.want || !reflect.DeepEqual(got, taskdef.TaskDefinition{}) {
				t.Errorf("got:\n%swant:\n%s", lines(err), c.want)
			}
		})
	}
}

func TestEchoOverride_HasAnEntryForEachContainer(t *testing.T) {
	def := registered(t, two("", "", ""))
	for over, want := range map[string]string{
		`{}`:                              `{"containerOverrides":[{"name":"a"},{"name":"b"}],"inferenceAcceleratorOverrides":[]}`,
		`{"taskRoleArn":"longshore/app"}`: `{"containerOverrides":[{"name":"a"},{"name":"b"}],"taskRoleArn":"arn:aws:iam::1:role/longshore/app","inferenceAcceleratorOverrides":[]}`,
		`{"cpu":"256","containerOverrides":[{"name":"b","command":["x"]}]}`: `{"containerOverrides":[{"name":"a"},{"name":"b","command":["x"]}],"cpu":"256","inferenceAcceleratorOverrides":[]}`,
	} {
		got, err := json.Marshal(taskdef.EchoOverride(def, override(t, over)))
		if err != nil || string(got) != want {
			t.Errorf("EchoOverride(%s) = %s, %v; want %s", over, got, err, want)
		}
	}
}

func TestNeeds_IsTheTasksSizeElseTheSumOfItsContainers(t *testing.T) {
	ports := `"portMappings":[{"containerPort":80,"hostPort":8080},{"containerPort":81},{"containerPort":53,"hostPort":53,"protocol":"udp"},{"containerPort":82,"hostPort":443,"protocol":"tcp"}]`
	for _, c := range []struct {
		sentence, body, over string
		want                 taskdef.Resources
	}{
		{"the least", beside(""), "", taskdef.Resources{MemoryMiB: 64}},
		{"a sum, reservation before limit", two(`"cpu":100,"memoryReservation":16`, `"cpu":28`, ""), "", taskdef.Resources{CPU: 128, MemoryMiB: 80}},
		{"a reservation of 0 is none", with(`"memoryReservation":0`), "", taskdef.Resources{MemoryMiB: 64}},
		{"the task's own size", two(`"cpu":100`, "", `"cpu":"0.5 vCPU","memory":"1GB"`), "", taskdef.Resources{CPU: 512, MemoryMiB: 1024}},
		{"the task's CPU alone", two(`"cpu":100`, "", `"cpu":"256"`), "", taskdef.Resources{CPU: 256, MemoryMiB: 128}},
		{"static ports, sorted; dynamic ones need none", with(ports), "", taskdef.Resources{MemoryMiB: 64, TCP: []int{443, 8080}, UDP: []int{53}}},
		{"host mode: each port is the host's", two(`"portMappings":[{"containerPort":90},{"containerPort":91,"hostPort":0,"protocol":"udp"}]`, `"portMappings":[{"containerPort":80,"hostPort":80}]`, `"networkMode":"host"`), "",
			taskdef.Resources{MemoryMiB: 128, TCP: []int{80, 90}, UDP: []int{91}}},
		{"GPUs of all containers", two(`"resourceRequirements":[{"type":"GPU","value":"2"}]`, `"resourceRequirements":[{"type":"GPU","value":"1"}]`, ""), "", taskdef.Resources{MemoryMiB: 128, GPUs: 3}},
		{"container overrides", with(`"cpu":10,"memoryReservation":32`), containers(`{"name":"a","cpu":20,"memory":128,"memoryReservation":100,"resourceRequirements":[{"type":"GPU","value":"1"}]}`),
			taskdef.Resources{CPU: 20, MemoryMiB: 100, GPUs: 1}},
		{"task overrides", with(`"cpu":10`), `{"cpu":"2 vCPU","memory":"2 GB"}`, taskdef.Resources{CPU: 2048, MemoryMiB: 2048}},
		{"an override of nobody", with(`"cpu":10`), containers(`{"name":"z","cpu":20}`), taskdef.Resources{CPU: 10, MemoryMiB: 64}},
	} {
		t.Run(c.sentence, func(t *testing.T) {
			if c.want.TCP == nil {
				c.want.TCP = []int{}
			}
			if c.want.UDP == nil {
				c.want.UDP = []int{}
			}
			if got := taskdef.Needs(registered(t, c.body), override(t, c.over)); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestResources_HaveTheNamesOfTheLedger(t *testing.T) {
	got, err := json.Marshal(taskdef.Needs(registered(t, beside("")), taskdef.TaskOverride{}))
	if want := `{"cpu":0,"memory":64,"tcp":[],"udp":[],"gpus":0}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
}

func TestPorts_FillInWhatIsLeftOut(t *testing.T) {
	def := registered(t, two(`"portMappings":[{"containerPort":90}]`, `"portMappings":[{"containerPort":53,"hostPort":1053,"protocol":"udp"}]`, ""))
	want := []taskdef.Port{{Container: "a", ContainerPort: 90, Protocol: "tcp"}, {Container: "b", ContainerPort: 53, HostPort: 1053, Protocol: "udp"}}
	if got := taskdef.Ports(def); !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
