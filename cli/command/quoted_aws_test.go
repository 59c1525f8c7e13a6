//go:build emulator

package command_test

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// commands prints which operations of the AWS command line there are not, of those
// on its standard input.
const commands = `
import sys
from awscli.clidriver import create_clidriver
services = create_clidriver().create_help_command().command_table
known = {}
for line in sys.stdin:
    service, operation = line.split()
    if service not in known:
        help = services[service].create_help_command() if service in services else None
        known[service] = help.command_table if help else {}
    if operation not in known[service]:
        print(service, operation)
`

func TestQuoted_EveryOperationOfTheAWSCommandLineIsOne(t *testing.T) {
	asked := map[string]string{}
	for _, q := range quoted(t, "aws") {
		if q.page == "README.md" { // there aws is a function, for aws ecs
			continue
		}
		if args := words(q.text); len(args) > 2 && !strings.HasPrefix(args[1], "-") && args[2] != "…" {
			asked[args[1]+" "+args[2]] = q.page + ": " + q.text
		}
	}
	if len(asked) < 20 {
		t.Fatalf("only %d operations found: %v", len(asked), asked)
	}
	var in bytes.Buffer
	for op := range asked {
		in.WriteString(op + "\n")
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join("..", "..", ".tools", "venv", "bin", "python"), "-c", commands)
	cmd.Stdin = &in
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	later := []string{"logs tail", "sso login"} // only in the second version
	for op := range strings.Lines(string(out)) {
		if op = strings.TrimSpace(op); !slices.Contains(later, op) {
			t.Errorf("there is no aws %s: %s", op, asked[op])
		}
	}
}
