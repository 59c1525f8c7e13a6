package ecsmodel

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/shared/taskdef"
)

var updateDocs = flag.Bool("update-docs", false, "write docs/design/api-task-definition.md from the tables")

const page = `# What a task definition must not hold

Written by "make gen" from the tables of shared/taskdef, which a test compares with the SDK's types. Every other member of ECS's task definitions and
overrides is taken and done. What is listed is refused by name when it is asked for, and not listed again by its parts.

## RegisterTaskDefinition
%s
## Overrides of RunTask and StartTask
%s`

func TestMembers_TheDocsListThoseThatAreRefused(t *testing.T) {
	const file = "../../../docs/design/api-task-definition.md"
	text := strings.ReplaceAll(fmt.Sprintf(page, refused(taskdef.Members()), refused(taskdef.OverrideMembers())), `"`, "`")
	if *updateDocs {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != text {
		t.Errorf("%s differs from the tables (%v); run: make gen", file, err)
	}
}

// refused lists what a table refuses.
func refused(all []taskdef.Member) string {
	var b strings.Builder
	within := "\x00"
	for _, m := range all {
		if strings.HasPrefix(m.Path, within) {
			continue
		}
		if m.State != taskdef.Run {
			within = m.Path + map[bool]string{true: "[].", false: "."}[m.Type == taskdef.Objects]
			fmt.Fprintf(&b, "- \"%s\": %s\n", m.Path, m.Why)
			continue
		}
		for _, c := range m.Choices {
			if c.State != taskdef.Run {
				fmt.Fprintf(&b, "- \"%s = %s\": %s\n", m.Path, c.Text, c.Why)
			}
		}
	}
	return b.String()
}
