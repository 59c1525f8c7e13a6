package command_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/cli/internal/exit"
	"github.com/longshore-run/longshore/shared/task"
)

func never(string) (int, bool)   { return 0, false }
func seven(string) (int, bool)   { return 7, true }
func success(string) (int, bool) { return 0, true }

func TestRun_ExitsWithTheTasksExitCode(t *testing.T) {
	for want, ends := range map[int]func(string) (int, bool){0: success, 7: seven} {
		b := newBench(t)
		b.api.Instance("i", 1000, 1000)
		b.agent(ends)
		if code := b.run("run", "app"); code != want {
			t.Errorf("exit code %d, want %d: %s", code, want, b.err.String())
		}
		if !strings.Contains(b.err.String(), "STOPPED") {
			t.Errorf("says %s", b.err.String())
		}
	}
}

func TestRun_SignsForLambda(t *testing.T) {
	b := newBench(t)
	b.must("run", "app", "--detach")
	for _, s := range b.api.Signatures() {
		if !strings.Contains(s, "/us-east-1/lambda/aws4_request") {
			t.Errorf("signed %s", s)
		}
	}
}

func TestRun_SaysForWhatATaskWaitsAndSinceWhen(t *testing.T) {
	b := newBench(t)
	b.api.Instance("i", 10, 8) // app needs 16 MiB
	done := make(chan int, 1)
	b.agent(success)
	go func() { done <- b.run("run", "app", "--follow=false") }()
	b.eventually("waiting with its reason", func() bool { return strings.Contains(b.err.String(), "waits for RESOURCE:MEMORY since ") })
	b.api.Instance("j", 10, 100)
	if code := <-done; code != 0 {
		t.Errorf("exit code %d: %s", code, b.err.String())
	}
	if n := strings.Count(b.err.String(), "RESOURCE:MEMORY"); n != 1 {
		t.Errorf("the same is said %d times where lines are not written over:\n%s", n, b.err.String())
	}
}

func TestRun_ATerminalSeesOneLineWrittenOver(t *testing.T) {
	b := newBench(t)
	b.terminal = true
	b.api.Instance("i", 1000, 1000)
	b.agent(success)
	b.must("run", "app", "--follow=false")
	if !strings.Contains(b.err.String(), "\r\x1b[K\x1b[") || strings.Count(b.err.String(), "\n") != 1 {
		t.Errorf("says %q", b.err.String())
	}
	b.env["NO_COLOR"] = "1"
	b.must("run", "app", "--follow=false")
	if strings.Contains(b.err.String(), "\x1b[3") {
		t.Errorf("colours in spite of NO_COLOR: %q", b.err.String())
	}
}

func TestRun_CtrlCStopsTheTaskAndWaits(t *testing.T) {
	b := newBench(t)
	b.api.Instance("i", 1000, 1000)
	b.agent(never)
	done := make(chan int, 1)
	go func() { done <- b.run("run", "app", "--follow=false") }()
	b.eventually("running", func() bool { return strings.Contains(b.err.String(), "RUNNING") })
	b.interrupts <- os.Interrupt
	if code := <-done; code != 143 {
		t.Errorf("exit code %d: %s", code, b.err.String())
	}
	for _, k := range b.api.Memory.Tasks() {
		if k.LastStatus != task.Stopped || k.StoppedReason != "Interrupted in longshore run" {
			t.Errorf("task %+v", k)
		}
	}
}

func TestRun_ASecondCtrlCLeavesAndTheTaskGoesOnStopping(t *testing.T) {
	b := newBench(t)
	b.api.Instance("i", 1000, 1000)
	done := make(chan int, 1)
	go func() { done <- b.run("run", "app", "--follow=false") }()
	b.eventually("waiting", func() bool { return strings.Contains(b.err.String(), "PROVISIONING") })
	b.api.Place() // and no agent reports
	b.eventually("placed", func() bool { return strings.Contains(b.err.String(), "PENDING") })
	b.interrupts <- os.Interrupt
	b.eventually("asked to stop", func() bool {
		for _, k := range b.api.Memory.Tasks() {
			return k.DesiredStatus == task.DesiredStopped
		}
		return false
	})
	b.interrupts <- os.Interrupt
	if code := <-done; code != exit.Interrupted || !strings.Contains(b.err.String(), "left; the task goes on") {
		t.Errorf("exit code %d: %s", code, b.err.String())
	}
}

func TestRun_ATaskWithoutAnExitCodeIs125(t *testing.T) {
	b := newBench(t)
	id := b.api.Instance("i", 1000, 1000)
	done := make(chan int, 1)
	go func() { done <- b.run("run", "app", "--follow=false") }()
	b.eventually("waiting", func() bool { return strings.Contains(b.err.String(), "PROVISIONING") })
	b.api.Place()
	if _, err := b.api.FenceContainerInstance(t.Context(), "default", id); err != nil {
		t.Fatal(err)
	}
	if code := <-done; code != exit.NoCode || !strings.Contains(b.err.String(), "confirmed to be off") {
		t.Errorf("exit code %d: %s", code, b.err.String())
	}
}

func TestRun_OwnFaultsAre125(t *testing.T) {
	b := newBench(t)
	b.fails(exit.NoCode, "there is no task definition nothing", "run", "nothing")
	b.fails(exit.NoCode, "--env", "run", "app", "--env", "=x")
	b.fails(exit.NoCode, "1 to 10", "run", "app", "--count", "11")
	b.fails(exit.NoCode, "0 to 100", "run", "app", "--priority", "101")
	b.fails(exit.NoCode, "--overrides", "run", "app", "--overrides", `{"containerOverride":[]}`)
	b.fails(exit.Usage, "unknown flag", "run", "app", "--nonsense")
	b.fails(exit.Usage, "--timeout is -5s; it can not be negative; give a duration", "run", "app", "--timeout", "-5s")
	if out := b.must("ps", "--all"); out != "no task matches\n" {
		t.Errorf("a task was run: %s", out)
	}
	b.fails(exit.Usage, "requires at least 1 arg", "run")
}

func TestRun_GivesUpAfterItsTimeout(t *testing.T) {
	b := newBench(t)
	if code := b.run("run", "app", "--timeout", "30ms"); code != exit.NoCode || !strings.Contains(b.err.String(), "gave up waiting") {
		t.Errorf("exit code %d: %s", code, b.err.String())
	}
}

func TestRun_NoWaitFailsWithECSsReason(t *testing.T) {
	b := newBench(t)
	b.api.Instance("i", 10, 8)
	if code := b.run("run", "app", "--no-wait"); code != exit.NoCode || !strings.Contains(b.err.String(), "not run: RESOURCE:MEMORY\n") {
		t.Errorf("exit code %d: %s", code, b.err.String())
	}
}

func TestRun_SendsWhatTheFlagsSay(t *testing.T) {
	b := newBench(t)
	b.must("run", "app:1", "--detach", "--count", "2", "--env", "A=1", "-e", "B=x=y", "--tag", "team=a", "--priority", "80", "--max-wait", "90s", "--group", "batch",
		"--started-by", "cron", "--memory", "32", "--overrides", `{"containerOverrides":[{"name":"main","environment":[{"name":"C","value":"3"}]}]}`, "--", "sh", "-c", "exit 7")
	tasks := b.api.Memory.Tasks()
	if len(tasks) != 2 {
		t.Fatalf("%d tasks", len(tasks))
	}
	for _, k := range tasks {
		var over struct {
			ContainerOverrides []struct {
				Name        string
				Command     []string
				Environment []struct{ Name, Value string }
			}
		}
		if err := json.Unmarshal(k.Overrides, &over); err != nil {
			t.Fatal(err)
		}
		o := over.ContainerOverrides[0]
		if o.Name != "main" || strings.Join(o.Command, " ") != "sh -c exit 7" || len(o.Environment) != 3 || o.Environment[2].Value != "x=y" {
			t.Errorf("overrides %s", k.Overrides)
		}
		if k.Priority != 80 || k.MaxWait != 90*time.Second || k.Group != "batch" || k.StartedBy != "cron" || k.Tags["team"] != "a" || k.Needs.MemoryMiB != 32 {
			t.Errorf("task %+v", k)
		}
	}
}

func TestRun_ManyTasksExitWithTheFirstBadCode(t *testing.T) {
	b := newBench(t)
	b.api.Instance("i", 1000, 1000)
	b.agent(seven)
	if code := b.run("run", "app", "--count", "3", "--follow=false"); code != 7 || !strings.Contains(b.err.String(), "3 STOPPED") {
		t.Errorf("exit code %d: %s", code, b.err.String())
	}
}

func TestRun_AFileIsRegisteredOnce(t *testing.T) {
	b := newBench(t)
	file := b.file("job.yaml", "family: job\ncontainerDefinitions:\n  - name: main\n    image: busybox\n    memory: 16\n")
	for range 2 {
		b.must("run", file, "--detach")
	}
	if out := b.must("definitions", "list", "job"); out != "DEFINITION\njob:1\n" {
		t.Errorf("lists\n%s", out)
	}
}

func TestRun_WithoutALogSaysWhereItIs(t *testing.T) {
	b := newBench(t)
	b.api.Instance("i", 1000, 1000)
	b.agent(success)
	b.must("run", "app")
	if !strings.Contains(b.err.String(), "docker logs $(docker ps -aqf label=run.longshore.task=") {
		t.Errorf("says %s", b.err.String())
	}
}

// A task may have ended before its log is looked for, and its log may come late.
func TestRun_ShowsTheWholeLogOfATaskThatWasQuick(t *testing.T) {
	b := newBench(t)
	b.docker("case $1 in ps) echo c1 ;; logs) /bin/sleep 0.3; echo from the log ;; esac")
	b.api.Instance("i", 1000, 1000)
	b.agent(seven)
	if code := b.run("run", "app"); code != 7 || b.out.String() != "from the log\n" {
		t.Errorf("exit code %d, wrote %q, said %s", code, b.out.String(), b.err.String())
	}
}

func TestRun_JSONIsTheAPIsShape(t *testing.T) {
	b := newBench(t)
	b.api.Instance("i", 1000, 1000)
	b.agent(success)
	var v struct {
		Tasks []struct {
			LastStatus string
			Containers []struct{ ExitCode *int }
		}
	}
	if err := json.Unmarshal([]byte(b.must("run", "app", "-o", "json", "--follow=false")), &v); err != nil || len(v.Tasks) != 1 || v.Tasks[0].LastStatus != "STOPPED" || *v.Tasks[0].Containers[0].ExitCode != 0 {
		t.Errorf("%v: %s", err, b.out.String())
	}
}
