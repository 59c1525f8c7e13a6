package command_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/cli/internal/exit"
	"github.com/longshore-run/longshore/shared/task"
)

func ids(b *bench) []string {
	b.t.Helper()
	return strings.Fields(b.must("ps", "--all", "-q"))
}

// some makes a task that runs, one that stopped with 7, and one that waits.
func (b *bench) some() (running, stopped, waiting string) {
	b.t.Helper()
	b.api.Instance("i", 100, 32)
	one := func(args ...string) string {
		b.t.Helper()
		var v struct{ Tasks []struct{ TaskArn string } }
		if err := json.Unmarshal([]byte(b.must(append([]string{"run", "app", "--detach", "-o", "json"}, args...)...)), &v); err != nil {
			b.t.Fatal(err)
		}
		arn := v.Tasks[0].TaskArn
		b.api.Clock.Move(time.Second)
		b.api.Place()
		return arn[strings.LastIndexByte(arn, '/')+1:]
	}
	running, stopped = one(), one()
	waiting = one("--priority", "70")
	b.api.Report(running, task.Running, 0)
	b.api.Report(stopped, task.Running, 0)
	b.api.Report(stopped, task.Stopped, 7)
	b.api.Clock.Move(3 * time.Minute)
	return running, stopped, waiting
}

func TestPs_ShowsWhatIsToRunAndWithAllTheRest(t *testing.T) {
	b := newBench(t)
	b.api.NewID = numbered(b)
	b.some()
	golden(t, "ps.txt", b.must("ps"))
	golden(t, "ps-all.txt", b.must("ps", "--all"))
	if out := b.must("ps", "--status", "STOPPED", "-q"); strings.Count(out, "\n") != 1 {
		t.Errorf("lists %s", out)
	}
	if out := b.must("ps", "--family", "other"); out != "no task matches\n" {
		t.Errorf("lists %s", out)
	}
	var v struct{ Tasks []map[string]any }
	if err := json.Unmarshal([]byte(b.must("ps", "-o", "json")), &v); err != nil || len(v.Tasks) != 2 {
		t.Errorf("%v %s", err, b.out.String())
	}
	if out := b.must("ps", "--family", "other", "-o", "json"); !strings.Contains(out, `"tasks": []`) {
		t.Errorf("an empty list is %s", out)
	}
}

// numbered makes ids whose first twelve digits differ.
func numbered(b *bench) func() string {
	next := b.api.NewID
	return func() string { id := next(); return id[20:] + id[:20] }
}

func TestQueue_SaysWhoWaitsForWhatHowLongAndWhy(t *testing.T) {
	b := newBench(t)
	b.api.NewID = numbered(b)
	if out := b.must("queue"); out != "nothing waits\n" {
		t.Errorf("says %s", out)
	}
	b.some()
	b.must("run", "app", "--detach", "--count", "2")
	golden(t, "queue.txt", b.must("queue"))
	golden(t, "queue-by-shape.txt", b.must("queue", "--by-shape"))
}

func TestDescribe_TellsAllAboutATask(t *testing.T) {
	b := newBench(t)
	b.api.NewID = numbered(b)
	_, stopped, waiting := b.some()
	golden(t, "describe-stopped.txt", b.must("describe", "task", stopped))
	golden(t, "describe-waiting.txt", b.must("describe", "task", waiting[:12]))
	golden(t, "describe-task.yaml", b.must("describe", "task", stopped, "-o", "yaml"))
	golden(t, "describe-cluster.txt", b.must("describe", "cluster"))
}

func TestStop_StopsWaitingTasksAtOnceAndWaitsForOthers(t *testing.T) {
	b := newBench(t)
	b.api.NewID = numbered(b)
	running, _, waiting := b.some()
	if out := b.must("stop", waiting[:12], "--reason", "enough"); !strings.Contains(out, "STOPPED") || !strings.Contains(out, "enough") {
		t.Errorf("says %s", out)
	}
	b.fails(exit.Timeout, "gave up waiting for the end of the tasks", "stop", running, "--wait", "--timeout", "20ms")
	b.agent(never)
	if out := b.must("stop", running, "--wait"); !strings.Contains(out, "STOPPED") {
		t.Errorf("says %s", out)
	}
}

func TestNames_AreFoundByTheirStart(t *testing.T) {
	b := newBench(t)
	b.some() // ids that begin alike
	b.fails(exit.Usage, "tasks begin with", "describe", "task", "0000")
	b.fails(exit.NotFound, "no task is called", "describe", "task", "ffff")
	b.fails(exit.NotFound, "there is no task", "describe", "task", strings.Repeat("f", 32))
	b.fails(exit.NotFound, "not found", "stop", strings.Repeat("f", 32))
	b.fails(exit.NotFound, "longshore instances list", "describe", "instance", "i-0123")
	b.fails(exit.NotFound, "Cluster", "ps", "--cluster", "nowhere")
	if n := len(ids(b)); n != 3 {
		t.Errorf("%d tasks", n)
	}
}

func TestUsage_IsSaidInOneLineWithWhatToDo(t *testing.T) {
	b := newBench(t)
	b.fails(exit.Usage, `-o "xml" is no format; use one of: table, json, yaml`, "ps", "-o", "xml")
	b.fails(exit.Usage, "did you mean: longshore ps", "pss")
	b.fails(exit.Usage, "did you mean: longshore instances drain", "instances", "drian")
	b.fails(exit.Usage, "see: longshore stop --help", "stop")
	b.fails(exit.Usage, "add --follow", "events")
	delete(b.env, "LONGSHORE_ENDPOINT")
	b.fails(exit.Usage, "is no URL", "ps", "--endpoint-url", "nonsense")
}

func TestUnreachable_SaysWhatToDo(t *testing.T) {
	b := newBench(t)
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
	b.fails(exit.Failed, "longshore doctor", "ps", "--endpoint-url", "http://127.0.0.1:1")
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	b.fails(exit.Denied, "no AWS credentials", "ps")
	t.Setenv("AWS_REGION", "")
	b.fails(exit.Usage, "no AWS region is set", "ps")
}

func TestLogs_OfWhatIsNowhereNearSaysWhere(t *testing.T) {
	b := newBench(t)
	b.api.NewID = numbered(b)
	running, _, waiting := b.some()
	b.fails(exit.NotFound, "which is not this machine", "logs", running)
	b.fails(exit.NotFound, "has not been placed", "logs", waiting)
	b.fails(exit.NotFound, "it has: main", "logs", running, "--container", "sidecar")
}

func TestCompletion_NamesWhatThereIs(t *testing.T) {
	b := newBench(t)
	b.api.NewID = numbered(b)
	running, _, _ := b.some()
	for want, args := range map[string][]string{
		running[:12]: {"stop", ""}, "default": {"ps", "--cluster", ""}, "app": {"run", "a"}, "json": {"ps", "-o", ""},
	} {
		if out := b.must(append([]string{"__complete"}, args...)...); !strings.Contains(out, want) {
			t.Errorf("%v completes %s", args, out)
		}
	}
	b.env["LONGSHORE_ENDPOINT"] = "http://127.0.0.1:1"
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
	if out := b.must("__complete", "stop", ""); !strings.HasPrefix(out, ":4") {
		t.Errorf("where nothing answers: %s", out)
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if out := b.must("completion", shell); !strings.Contains(out, "longshore") {
			t.Errorf("%s: %s", shell, out)
		}
	}
}
