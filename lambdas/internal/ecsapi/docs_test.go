package ecsapi_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/lambdas/internal/ecsapi"
)

var updateDocs = flag.Bool("update-docs", false, "write docs/design/api.md from the table of operations")

func TestOperations_TheDocsListThem(t *testing.T) {
	const page = "../../../docs/design/api.md"
	var done, refused []string
	for _, name := range ecsapi.Operations() {
		if ecsapi.Done(name) {
			done = append(done, "- "+name)
		} else {
			refused = append(refused, name)
		}
	}
	text := fmt.Sprintf(`# The ECS operations there are

Written by `+"`make gen`"+` from the table in lambdas/internal/ecsapi. JSON 1.1 as every current SDK sends it
(`+"`X-Amz-Target: AmazonEC2ContainerServiceV20141113.<Operation>`"+`). A member that ECS does not have, or that Longshore does not support, is refused by name;
nothing is dropped in silence. Where ECS's RunTask answers `+"`failures[]`"+`, ours answers tasks that are PROVISIONING and wait, unless the request or the cluster
has the tag `+"`longshore:onNoCapacity=fail`"+`.

Tags that Longshore reads, on a task or its definition: `+"`longshore:priority`"+` (0–100, default 50), `+"`longshore:maxWait`"+` (such as 90s or 2h),
`+"`longshore:onNoCapacity`"+` (wait or fail; also on a cluster).

## Done (%d)
%s

## Of our own (%d)
What ECS has no operation for, at the same URL under `+"`X-Amz-Target: Longshore.<Operation>`"+` (docs/adr/0010); stock clients never send it. `+"`readapi`"+` refuses it.

- %s

## Refused by name (%d)
With UnsupportedFeatureException where ECS's model has it, else as an unknown operation; never a 5xx.

%s
`, len(done), strings.Join(done, "\n"), len(ecsapi.Extensions()), strings.Join(ecsapi.Extensions(), "\n- "), len(refused), strings.Join(refused, ", "))
	if *updateDocs {
		if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(page); err != nil || string(got) != text {
		t.Errorf("%s differs from the table (%v); run: make gen", page, err)
	}
}
