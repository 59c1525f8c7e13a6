//go:build clients

package client

import (
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
)

// loseFirst has the first call of an operation carried out and its answer lost: the connection ends without a word.
func loseFirst(operation string, lost *atomic.Int32) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.Header.Get("X-Amz-Target"), "."+operation) && lost.Add(1) == 1 {
				next.ServeHTTP(httptest.NewRecorder(), r)
				panic(http.ErrAbortHandler)
			}
			next.ServeHTTP(w, r)
		})
	}
}

const (
	lostPython = `import boto3, os; boto3.client("ecs", endpoint_url=os.environ["ENDPOINT"]).run_task(taskDefinition="lost", startedBy=os.environ["CLIENT"])`
	lostNode   = `const sdk = require(process.env.MODULES + "/node_modules/@aws-sdk/client-ecs"), e = process.env;
		new sdk.ECSClient({ endpoint: e.ENDPOINT }).send(new sdk.RunTaskCommand({ taskDefinition: "lost", startedBy: e.CLIENT }))`
	lostCLI = `"$AWS" ecs run-task --endpoint-url "$ENDPOINT" --task-definition lost --started-by "$CLIENT" >/dev/null`
)

// testLostAnswer lets RunTask be carried out and its answer be lost; every SDK asks again by itself.
func testLostAnswer(t *testing.T, s *stack) {
	newGoClient(t, s, s.API(), "lost").register(t.Context(), "lost", "true")
	python := func(t *testing.T) *exec.Cmd {
		return exec.CommandContext(t.Context(), venv(t, "python"), "-c", lostPython)
	}
	node := func(t *testing.T) *exec.Cmd { return exec.CommandContext(t.Context(), "node", "-e", lostNode) }
	cli := func(t *testing.T) *exec.Cmd { return exec.CommandContext(t.Context(), "bash", "-ec", lostCLI) }
	for _, c := range []struct {
		name string
		cmd  func(*testing.T) *exec.Cmd // nil: the SDK in this process
		aws  string
		want int // tasks that there are at the end
	}{
		{"lost-boto3", python, "", 1},
		{"lost-go-sdk", nil, "", 1},
		{"lost-js-sdk", node, "", 1},
		{"lost-aws-cli-1", cli, installed(t, "venv", "bin", "aws"), 1},
		// One of 2023 sends no clientToken, so that nothing tells its second call from another wish.
		{"lost-aws-cli-2", cli, awsCLI2(t), tokenless(t)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var lost atomic.Int32
			d := s.door(t, loseFirst("RunTask", &lost))
			g := newGoClient(t, s, d.url, c.name)
			if c.cmd == nil {
				of(g.RunTask(t.Context(), &ecs.RunTaskInput{TaskDefinition: aws.String("lost"), StartedBy: &c.name})).must(g)
			} else {
				cmd := c.cmd(t)
				cmd.Env = append(s.environ(t, d), "CLIENT="+c.name, "AWS="+c.aws)
				show(t, cmd)
			}
			if n := lost.Load(); n != 2 {
				t.Errorf("RunTask was called %d times, and not twice", n)
			}
			arns := map[string]bool{}
			for _, status := range []string{"RUNNING", "STOPPED"} {
				for _, arn := range g.listed(t.Context(), c.name, status) {
					arns[arn] = true
				}
			}
			if len(arns) != c.want {
				t.Errorf("%d tasks were made, and not %d: %v", len(arns), c.want, arns)
			}
		})
	}
}

// tokenless is how many tasks come of two calls of the machine's AWS CLI: two, if it is too old for a clientToken.
func tokenless(t *testing.T) int {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), awsCLI2(t), "ecs", "run-task", "--generate-cli-skeleton", "input")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(out), "clientToken") {
		return 1
	}
	return 2
}
