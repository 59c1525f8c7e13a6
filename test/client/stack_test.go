//go:build clients

package client

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"

	"github.com/longshore-run/longshore/test/local"
	"github.com/longshore-run/longshore/test/strict"
)

// stack is the one local stack of this room's tests.
type stack struct {
	*local.Stack
	model    *strict.Model
	instance string // the agent's, an ARN
}

// up brings the stack up and takes it down at the test's end.
func up(t *testing.T) *stack {
	t.Helper()
	model, err := strict.Pinned()
	if err != nil {
		t.Fatal(err)
	}
	s := local.ForTest(t, local.Options{})
	list, err := s.ECS().ListContainerInstances(t.Context(), &ecs.ListContainerInstancesInput{Cluster: aws.String(local.Cluster)})
	if err != nil || len(list.ContainerInstanceArns) != 1 {
		t.Fatalf("find the agent's instance: %v %+v", err, list)
	}
	return &stack{Stack: s, model: model, instance: list.ContainerInstanceArns[0]}
}

// door is where one client enters: every answer that goes out of it is held against the model.
type door struct {
	*strict.Proxy
	url string
}

// door opens a door for one test, which fails at its end if any answer was not as the model has it.
func (s *stack) door(t *testing.T, around ...func(http.Handler) http.Handler) *door {
	t.Helper()
	backend, err := url.Parse(s.API())
	if err != nil {
		t.Fatal(err)
	}
	p := strict.NewProxy(s.model, backend)
	var h http.Handler = p
	for _, wrap := range around {
		h = wrap(h)
	}
	server := httptest.NewServer(h)
	t.Cleanup(func() {
		server.Close()
		for _, v := range p.Violations() {
			t.Error("violation of the model:", v)
		}
		for operation, results := range p.Calls() {
			for result, n := range results {
				if result != "OK" && result != "400" {
					t.Errorf("%s was answered %s, %d times", operation, result, n)
				}
			}
		}
	})
	return &door{Proxy: p, url: server.URL}
}

// program is a stock client's program, or a script on it, for one door.
func (s *stack) program(t *testing.T, d *door, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = filepath.Join(local.Root(t), "test", "client", "testdata")
	cmd.Env = s.environ(t, d)
	return cmd
}

// environ is what a program finds: the two ways to name an endpoint, and what the scripts of testdata ask for.
func (s *stack) environ(t *testing.T, d *door) []string {
	t.Helper()
	return append(append(os.Environ(), s.Env()...),
		"AWS_ENDPOINT_URL_ECS="+d.url, "ENDPOINT="+d.url, "IMAGE="+s.Image, "INSTANCE="+s.instance, "CLUSTER="+local.Cluster,
		"MODULES="+installed(t, "clients", "node"), "NODE_NO_WARNINGS=1")
}

// show runs a program and shows each line when it is written.
func show(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if out, err := told(t, cmd); err != nil {
		t.Fatalf("%s: %v\n%s", filepath.Base(cmd.Path), err, out)
	}
}

// told is show for a program that may fail; it returns what the program wrote.
func told(t *testing.T, cmd *exec.Cmd) (string, error) {
	t.Helper()
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	var all strings.Builder
	done := make(chan struct{})
	go func() {
		defer close(done)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			fmt.Fprintln(t.Output(), lines.Text())
			all.WriteString(lines.Text() + "\n")
		}
	}()
	err := cmd.Run()
	_ = in.Close() // a pipe in memory
	<-done
	return all.String(), err
}

// venv is a program of the clients' virtual environment.
func venv(t *testing.T, name string) string {
	return installed(t, "clients", "venv", "bin", name)
}

func installed(t *testing.T, path ...string) string {
	t.Helper()
	file := filepath.Join(append([]string{local.Root(t), ".tools"}, path...)...)
	if _, err := os.Stat(file); err != nil {
		t.Fatalf("%s is not there; mend: make tools", file)
	}
	return file
}

// awsCLI2 is the machine's AWS CLI of the second major version, wherever it stands in PATH.
func awsCLI2(t *testing.T) string {
	t.Helper()
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		file := filepath.Join(dir, "aws")
		if said, err := exec.CommandContext(t.Context(), file, "--version").CombinedOutput(); err == nil && strings.HasPrefix(string(said), "aws-cli/2.") {
			return file
		}
	}
	t.Fatal("no aws in PATH says aws-cli/2; tools/check aws2 tells how to get it")
	return ""
}
