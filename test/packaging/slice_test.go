//go:build package

package packaging

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/test/local"
)

// With the rights that the agent's unit leaves it, it has systemd make the group of a task,
// finds it again, leaves it while something runs in it, and has it removed: a machine's
// control groups are read-only for it.
func TestUnit_HasSystemdMakeTheGroupsOfTasks(t *testing.T) {
	t.Parallel()
	m := boot(t)
	program := filepath.Join(t.TempDir(), "taskgrouptry")
	build := exec.Command("go", "build", "-o", program, "./edgeagent/internal/taskgroup/taskgrouptry")
	build.Dir, build.Env = local.Root(t), append(os.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	m.give(program, "/usr/bin/taskgrouptry")
	unit, err := os.ReadFile(filepath.Join(local.Root(t), "packaging", "agent", "longshore-agent.service"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(unit), "\nProtectControlGroups=yes\n") {
		t.Fatal("the unit may write control groups")
	}
	const instance, task = "0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"
	const slice = "longshore-" + instance + "-" + task + "_1.slice"
	m.write("/etc/systemd/system/try@.service", strings.NewReplacer(
		"Type=notify", "Type=oneshot", "Restart=always", "Restart=no", "WatchdogSec=5min", "", "StateDirectory=longshore\n", "",
		"ExecStart=/usr/bin/longshore-agent", "ExecStart=/usr/bin/taskgrouptry %i "+instance+" "+task).Replace(string(unit)), 0o644)
	m.do("systemctl", "daemon-reload")
	try := func(what string) (string, error) {
		said, err := m.try("systemctl", "start", "try@"+what)
		if err != nil {
			more, _ := m.try("journalctl", "--no-pager", "-n", "20", "-o", "cat", "-u", "try@"+what)
			said += "\n" + more
		}
		return said, err
	}
	must := func(what string) {
		t.Helper()
		if said, err := try(what); err != nil {
			t.Fatalf("%s: %v\n%s", what, err, said)
		}
	}
	is := func() string {
		t.Helper()
		said := m.do("systemctl", "show", "--property=ActiveState,MemoryMax,CPUQuotaPerSecUSec", slice)
		lines := strings.Split(said, "\n")
		return strings.Join(lines, " ")
	}
	has := func(want ...string) {
		t.Helper()
		for _, w := range want {
			if got := is(); !strings.Contains(got, w) {
				t.Errorf("the slice is %s, want %s", got, w)
			}
		}
	}
	must("ensure")
	must("ensure")
	has("ActiveState=active", "MemoryMax=67108864", "CPUQuotaPerSecUSec=500ms")

	m.do("systemd-run", "--slice="+slice, "--unit=inside", "sleep", "600")
	if said, err := try("remove"); err == nil || !strings.Contains(said, "something runs in it") {
		t.Errorf("removed with a process in it: %v\n%s", err, said)
	}
	m.do("systemctl", "is-active", "inside.service")
	m.do("systemctl", "stop", "inside.service")
	must("remove")
	must("remove")
	has("ActiveState=inactive", "MemoryMax=infinity")

	// As an engine makes it whose machine was started anew: without limits.
	m.do("systemd-run", "--slice="+slice, "--unit=inside", "sleep", "600")
	has("ActiveState=active", "MemoryMax=infinity")
	must("ensure")
	has("MemoryMax=67108864", "CPUQuotaPerSecUSec=500ms")
	m.do("systemctl", "stop", "inside.service")
	must("sweep")
	has("ActiveState=inactive")
}
