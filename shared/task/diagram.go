package task

import (
	"fmt"
	"strings"
)

// Diagram is the state machine drawn from its table, as Mermaid text, with who
// may cause each move. docs/design/task-states.md is written from it.
func Diagram() string {
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n    [*] --> " + string(Provisioning) + "\n")
	for _, t := range table {
		roles := make([]string, len(t.By))
		for i, r := range t.By {
			roles[i] = string(r)
		}
		fmt.Fprintf(&b, "    %s --> %s: %s (%s)\n", t.From, t.To, t.On, strings.Join(roles, ", "))
	}
	b.WriteString("    " + string(Stopped) + " --> [*]\n")
	return b.String()
}
