package output_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/longshore-run/longshore/cli/internal/output"
)

func described() *ecs.DescribeTasksOutput {
	return &ecs.DescribeTasksOutput{
		Tasks: []types.Task{{
			TaskArn: aws.String("arn:aws:ecs:eu-west-1:1:task/default/1"), LastStatus: aws.String("STOPPED"), Cpu: aws.String("256"),
			CreatedAt: aws.Time(time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC)), StopCode: types.TaskStopCodeUserInitiated,
			Containers: []types.Container{{Name: aws.String("true"), ExitCode: aws.Int32(0)}},
		}},
		Failures: []types.Failure{},
	}
}

func TestJSON_HasTheAPIsOwnNames(t *testing.T) {
	got, err := output.JSON(described())
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		Tasks    []map[string]any
		Failures []any
	}
	if err := json.Unmarshal(got, &v); err != nil {
		t.Fatal(err)
	}
	task := v.Tasks[0]
	if task["taskArn"] == nil || task["stopCode"] != "UserInitiated" || task["createdAt"] != "2026-01-02T03:04:05.678Z" || task["startedAt"] != nil {
		t.Errorf("task %v", task)
	}
	if v.Failures == nil {
		t.Error("an empty list is left out")
	}
	if strings.Contains(string(got), "null") || strings.Contains(string(got), "etadata") || strings.Contains(string(got), `""`) {
		t.Errorf("%s", got)
	}
}

func TestJSON_ATypeOfOursSaysItsNames(t *testing.T) {
	got, err := output.JSON([]struct {
		ID   string `json:"detail-type"`
		Next string `json:"next,omitempty"`
		Gone string `json:"gone,omitempty"`
	}{{"a", "b", ""}})
	if want := "[\n    {\n        \"detail-type\": \"a\",\n        \"next\": \"b\"\n    }\n]"; err != nil || string(got) != want {
		t.Errorf("%v: %s", err, got)
	}
}

func TestValue_YAMLQuotesWhatWouldBeReadAsSomethingElse(t *testing.T) {
	var b strings.Builder
	if err := output.Value(&b, output.AsYAML, described()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"failures: []\n", "name: \"true\"\n", "cpu: \"256\"\n", "exitCode: 0\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in:\n%s", want, b.String())
		}
	}
	back, err := output.FromYAML([]byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	var one, other any
	direct, _ := output.JSON(described())
	if json.Unmarshal(back, &one) != nil || json.Unmarshal(direct, &other) != nil {
		t.Fatal("not JSON")
	}
	a, _ := json.Marshal(one)
	z, _ := json.Marshal(other)
	if string(a) != string(z) {
		t.Errorf("there and back:\n%s\n%s", a, z)
	}
}

func TestTable_KeepsItsColumnsInLine(t *testing.T) {
	table := output.Table{Head: []string{"TASK", "STATUS", "NOTE"}}
	table.Add("ä", output.Cell{Text: "RUNNING", Colour: output.Good}, "")
	table.Add("longer", "STOPPED", "why")
	var plain, coloured strings.Builder
	if err := table.Write(&plain, false); err != nil {
		t.Fatal(err)
	}
	if want := "TASK    STATUS   NOTE\nä       RUNNING\nlonger  STOPPED  why\n"; plain.String() != want {
		t.Errorf("got\n%s", plain.String())
	}
	if err := table.Write(&coloured, true); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(coloured.String(), "\x1b[32mRUNNING\x1b[0m") {
		t.Errorf("got %q", coloured.String())
	}
	table = output.Table{Head: []string{"A"}, Empty: "nothing waits"}
	plain.Reset()
	if err := table.Write(&plain, false); err != nil || plain.String() != "nothing waits\n" {
		t.Errorf("got %q, %v", plain.String(), err)
	}
}
