package task_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/shared/task"
)

var update = flag.Bool("update-docs", false, "write docs/design/task-states.md from the table")

func TestDiagram_TheDocsShowTheTable(t *testing.T) {
	const page = "../../docs/design/task-states.md"
	var b strings.Builder
	b.WriteString("# The state machine of a task\n\nWritten by `make gen` from the table in `shared/task`; what it lacks does not happen. Within an attempt a status only rises;\n" +
		"a refusal, which proves that nothing of the task was started, ends the attempt and opens the next.\n\n```mermaid\n" + task.Diagram() + "```\n\n" +
		"## Ends\nEvery cause of an end, ECS's stop code for it and the reason that is shown unless a better one is known.\n\n| cause | stopCode | stoppedReason |\n|---|---|---|\n")
	for _, e := range task.Ends() {
		b.WriteString("| " + string(e.Cause) + " | " + string(e.Code) + " | " + e.Reason + " |\n")
	}
	if *update {
		if err := os.WriteFile(page, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil || string(got) != b.String() {
		t.Errorf("%s differs from the table (%v); run: make gen", page, err)
	}
}
