package local

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// Root is the project's folder, as it was when the tests were compiled.
func Root(t testing.TB) string {
	t.Helper()
	_, file, _, _ := runtime.Caller(0)
	dir, err := filepath.Abs(filepath.Join(filepath.Dir(file), "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// ForTest brings a stack up in a folder of its own, and takes it down at the end
// of the test, which shows the ends of its logs if it failed.
func ForTest(t testing.TB, o Options) *Stack {
	t.Helper()
	dir, err := os.MkdirTemp("", "longshore-test-")
	if err != nil {
		t.Fatal(err)
	}
	o.Root, o.Dir, o.Progress = Root(t), filepath.Join(dir, "stack"), t.Output()
	s, err := Up(t.Context(), o)
	t.Cleanup(func() {
		if t.Failed() {
			showLogs(t, o.Dir)
		}
		if err := Down(context.Background(), o.Dir); err != nil {
			t.Error(err)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Register registers by a client a definition with one container, "main", on the
// test image, and returns its family and revision.
func (s *Stack) Register(t testing.TB, client *ecs.Client, family string, change func(*ecs.RegisterTaskDefinitionInput, *types.ContainerDefinition)) string {
	t.Helper()
	c := types.ContainerDefinition{Name: aws.String("main"), Image: &s.Image, Memory: aws.Int32(16), StopTimeout: aws.Int32(2), Command: []string{"sleep", "600"}}
	in := &ecs.RegisterTaskDefinitionInput{Family: &family, NetworkMode: types.NetworkModeNone}
	if change != nil {
		change(in, &c)
	}
	in.ContainerDefinitions = []types.ContainerDefinition{c}
	out, err := client.RegisterTaskDefinition(t.Context(), in)
	if err != nil {
		t.Fatalf("register %s: %v", family, err)
	}
	return fmt.Sprintf("%s:%d", aws.ToString(out.TaskDefinition.Family), out.TaskDefinition.Revision)
}

// Held says what an instance does not have free, or "".
func Held(i types.ContainerInstance) string {
	for n, r := range i.RegisteredResources {
		left := i.RemainingResources[n]
		if left.IntegerValue != r.IntegerValue || !slices.Equal(left.StringSetValue, r.StringSetValue) {
			return fmt.Sprintf("of %s remain %d %v, of %d %v", aws.ToString(r.Name), left.IntegerValue, left.StringSetValue, r.IntegerValue, r.StringSetValue)
		}
	}
	return ""
}

// CheckBooks holds every ledger and every service's count against the tasks,
// whatever a test did to them, and returns how many there are. A book that is being
// written, as what the test had stopped ends, is looked at again.
func CheckBooks(t testing.TB, s *Stack) (ledgers, services int) {
	t.Helper()
	var found struct {
		Ledgers     *int              `json:"ledgers"`
		Services    int               `json:"services"`
		Busy        int               `json:"busy"`
		Differences []json.RawMessage `json:"differences"`
	}
	answer := []byte{}
	for try := 0; try == 0 || found.Busy > 0 && len(found.Differences) == 0 && try < 30; try++ {
		if try > 0 {
			<-time.After(time.Second)
		}
		var err error
		if answer, err = s.Audit(context.Background()); err != nil {
			t.Error(err)
			return 0, 0
		}
		found.Ledgers, found.Busy, found.Differences = nil, 0, nil
		if err := json.Unmarshal(answer, &found); err != nil || found.Ledgers == nil || *found.Ledgers == 0 && found.Busy == 0 {
			t.Errorf("the audit answers %s, %v", answer, err)
			return 0, 0
		}
	}
	if len(found.Differences) > 0 || found.Busy > 0 {
		t.Errorf("the audit found %s", answer)
	}
	return *found.Ledgers, found.Services
}

// showLogs prints the end of what agents and emulator logged, less its noise.
func showLogs(t testing.TB, dir string) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(dir, "agents", "*", "log"))
	for _, f := range append(files, filepath.Join(dir, "emulator.log")) {
		b, _ := os.ReadFile(f)
		lines := slices.DeleteFunc(strings.Split(string(b), "\n"), func(l string) bool {
			return strings.Contains(l, "\" 200 -") || strings.Contains(l, `"_aws":`) || strings.Contains(l, " ESM: ")
		})
		t.Logf("the end of %s:\n%s", f, strings.Join(lines[max(0, len(lines)-60):], "\n"))
	}
}

// ClockSkew is the variable by which the program that SkewedAgent builds is told
// how far its clock is off, as a duration.
const ClockSkew = "LONGSHORE_TEST_CLOCK_SKEW"

// SkewedAgent builds an agent whose clock can be told to be wrong.
func SkewedAgent(t testing.TB) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "longshore-agent")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-tags", "skew", "-ldflags", "-s -w", "-o", out, "./edgeagent")
	cmd.Dir, cmd.Env = Root(t), append(os.Environ(), "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build an agent with another clock: %v\n%s", err, said)
	}
	return out
}
