package ecsapi_test

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/lambdas/internal/ecsapi"
)

var updateDocs = flag.Bool("update-docs", false, "write the pages of docs/design that show the API")

// compareDocs compares a generated page with what it is to be, or writes it.
func compareDocs(t *testing.T, name, text string) {
	t.Helper()
	page := filepath.Join("../../../docs/design", name)
	if *updateDocs {
		if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(page); err != nil || string(got) != text {
		t.Errorf("%s differs from the tables (%v); run: make gen", page, err)
	}
}

const operationsPage = `# The ECS operations there are

Written by "make gen" from the table in lambdas/internal/ecsapi. JSON 1.1 as every current SDK sends it
("X-Amz-Target: AmazonEC2ContainerServiceV20141113.<Operation>"). A member that ECS does not have, or that Longshore does not support, is refused by name;
nothing is dropped in silence. [Which members these are](api-members.md), and why. Where ECS's RunTask answers "failures[]", ours answers tasks that are
PROVISIONING and wait, unless the request or the cluster has the tag "longshore:onNoCapacity=fail" ([admission](admission.md)).

Tags that Longshore reads, on a task or its definition: "longshore:priority" (0–100, default 50), "longshore:maxWait" (such as 90s or 2h),
"longshore:onNoCapacity" (wait or fail; also on a cluster). TagResource and UntagResource change them, and they are obeyed from then on: a task that waits gets
its new place in the queue; only "longshore:onNoCapacity" is read once, when the task is run. What becomes of a task whose instance is lost say
"longshore:onDisconnect", "longshore:keepFor" and "longshore:replaceAfter", and on a cluster "longshore:reapAfter" ([liveness](liveness.md)).

Attributes under "longshore." are set by PutAttributes alone: what an agent says of itself under that prefix is dropped. Attributes that were put outlive
the agent's registrations.

An instance that RegisterContainerInstance lists has no agent of ours: it is shown, disconnected, until it is deregistered. It is given no work, has no
lease and is never reaped.

## Done (%d)
%s

## Of our own (%d)
What ECS has no operation for, at the same URL under "X-Amz-Target: Longshore.<Operation>" (docs/adr/0010); stock clients never send it. "readapi" refuses it.

- %s

## Refused by name (%d)
With UnsupportedFeatureException where ECS's model has it, else as an unknown operation; never a 5xx. The message says why, and what to do instead.

%s
`

func TestOperations_TheDocsListThem(t *testing.T) {
	var done, reasons []string
	refused, count := map[string][]string{}, 0
	for _, name := range ecsapi.Operations() {
		if ecsapi.Done(name) {
			done = append(done, "- "+name)
			continue
		}
		why := cmp.Or(ecsapi.Refusals()[name], "not done yet")
		if refused[why] == nil {
			reasons = append(reasons, why)
		}
		refused[why], count = append(refused[why], name), count+1
	}
	var lines []string
	for _, why := range reasons {
		lines = append(lines, "- "+strings.Join(refused[why], ", ")+": "+why)
	}
	text := fmt.Sprintf(operationsPage, len(done), strings.Join(done, "\n"), len(ecsapi.Extensions()), strings.Join(ecsapi.Extensions(), "\n- "), count, strings.Join(lines, "\n"))
	compareDocs(t, "api.md", quoted(text))
}

// quoted makes code of what stands in quotes: Go's raw strings hold no backquote.
func quoted(text string) string { return strings.ReplaceAll(text, `"`, "`") }

const membersPage = `# The members of ECS's API that there are not

Written by "make gen": each operation that is done ([the list](api.md)) is compared with the types of the SDK, which are made of ECS's model, and every
member that is not below is taken, or sent. What a request must not hold is refused by name with InvalidParameterException, unless it stands for absence:
an empty object, list or string, or false. [Task definitions and overrides](api-task-definition.md) have a page of their own.

## Requests: refused members and values
%s## Answers: members that are never sent
By the model's shapes. Clients take a member that is not there for none.

%s`

func TestMembers_TheDocsListThem(t *testing.T) {
	var requests strings.Builder
	lacks := map[string][]string{}
	for _, name := range ecsapi.Operations() {
		if !ecsapi.Done(name) {
			continue
		}
		c := compare(t, name)
		maps.Copy(lacks, c.lacks)
		if len(c.refused)+len(c.chosen) == 0 {
			continue
		}
		fmt.Fprintf(&requests, "### %s\n", name)
		for _, r := range append(c.refused, c.chosen...) {
			fmt.Fprintf(&requests, "- \"%s\": %s\n", r.path, r.why)
		}
		requests.WriteString("\n")
	}
	var answers strings.Builder
	for _, shape := range slices.Sorted(maps.Keys(lacks)) {
		if len(lacks[shape]) > 0 {
			fmt.Fprintf(&answers, "- %s: %s\n", shape, strings.Join(lacks[shape], ", "))
		}
	}
	text := fmt.Sprintf(membersPage, requests.String(), answers.String())
	compareDocs(t, "api-members.md", quoted(text))
}
