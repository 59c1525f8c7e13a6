//go:build package

package packaging

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"

	"github.com/longshore-run/longshore/test/local"
)

// manager is a package manager, by what it is told.
type manager struct {
	kind                     string
	install, downgrade, drop []string // with the package's file, or name, at the end
	purge                    []string
	// beside is where the newer settings go where a person has changed theirs; left is
	// where those are after a removal.
	beside, left string
}

var managers = []manager{
	{
		kind: "deb", install: []string{"dpkg", "--install", "--force-confold"}, downgrade: []string{"dpkg", "--install", "--force-confold"},
		drop: []string{"dpkg", "--remove"}, purge: []string{"dpkg", "--purge"},
		beside: "/etc/longshore/agent.env.dpkg-dist", left: "/etc/longshore/agent.env",
	},
	{
		kind: "rpm", install: []string{"rpm", "--force-debian", "--nodeps", "--upgrade"},
		downgrade: []string{"rpm", "--force-debian", "--nodeps", "--upgrade", "--oldpackage"},
		drop:      []string{"rpm", "--force-debian", "--erase"},
		beside:    "/etc/longshore/agent.env.rpmnew", left: "/etc/longshore/agent.env.rpmsave",
	},
}

const (
	conf    = "/etc/longshore/agent.env"
	data    = "/var/lib/longshore"
	service = "longshore-agent"
)

// impatient is a drop-in that a person could write: the unit's own times are for production.
// An agent on a busy machine must be able to say in time that it is not stuck.
const impatient = "[Service]\nRestartSec=100ms\nWatchdogSec=15s\n"

// life is a machine, and one container that must go on whatever is done to the agent.
type life struct {
	*machine
	manager
	stack     *local.Stack
	settings  string
	container string // as first seen: id, start and process
}

// A machine with a task that runs is taken through all that is done to packages, by dpkg and by rpm:
// its container is never touched. At the end it is deregistered.
func TestPackage_UnderSystemdNothingThatIsDoneToItTouchesAContainer(t *testing.T) {
	t.Parallel()
	for _, version := range []string{older, newer} {
		packages(t, version)
	}
	stack := local.ForTest(t, local.Options{Elsewhere: true, LogLevel: "debug"})
	l := &life{machine: boot(t), stack: stack, settings: settings(t, stack)}
	t.Cleanup(func() {
		if t.Failed() {
			said, _ := l.try("journalctl", "--no-pager", "-n", "60", "-o", "cat", "-u", service)
			t.Logf("the unit said:\n%s", said)
		}
	})
	l.write("/etc/systemd/system/longshore-agent.service.d/test.conf", impatient, 0o644)
	for _, l.manager = range managers {
		l.say("install")
		l.installed()
		l.say("upgrade, with settings that a person changed")
		l.upgraded()
		l.say("killed, and stuck")
		l.restarted()
		l.say("downgrade, while it does not run")
		l.downgraded()
		l.say("remove")
		l.removed()
	}
	l.say("installed once more, and deregistered")
	l.deregistered()
}

func (l *life) say(what string) { l.t.Logf("%s: %s", l.kind, what) }

func (l *life) put(args []string, version string) string {
	l.t.Helper()
	from := file(l.t, version, l.kind, runtime.GOARCH)
	return l.do(append(slices.Clone(args), l.give(from, filepath.Join("/tmp", filepath.Base(from))))...)
}

// installed: nothing runs before a person says so, as the settings are not there yet.
func (l *life) installed() {
	l.t.Helper()
	if said := l.put(l.install, older); !strings.Contains(said, "systemctl enable --now longshore-agent") {
		l.t.Errorf("an installation does not say what to do next:\n%s", said)
	}
	if now := l.unit("ActiveState", "UnitFileState"); now["ActiveState"] != "inactive" || now["UnitFileState"] != "disabled" {
		l.t.Errorf("after an installation the unit is %v", now)
	}
	if said := l.do("longshore-agent", "version"); said != older {
		l.t.Errorf("version %s", said)
	}
	for path, want := range map[string]os.FileMode{conf: 0o600, filepath.Dir(conf): 0o700 | os.ModeDir} {
		if info, err := os.Stat(l.path(path)); err != nil || info.Mode() != want {
			l.t.Errorf("%s has mode %v, want %v; %v", path, info.Mode(), want, err)
		}
	}
	if said, err := l.try("longshore-agent", "check-config"); err == nil || !strings.Contains(said, "LONGSHORE_REPORTS_QUEUE_URL") {
		l.t.Errorf("without settings check-config says %q, %v", said, err)
	}
	l.write(conf, l.settings, 0o600)
	if l.has("/root/kept") {
		l.do("mv", "/root/kept", data) // purged before; else this would be another container instance
	}
	l.do("longshore-agent", "check-config")
	l.do("systemctl", "enable", "--now", service)
	l.well()
	if l.container == "" {
		l.runTask()
	}
	l.untouched()
}

func (l *life) upgraded() {
	l.t.Helper()
	before := l.unit("MainPID")
	l.put(l.install, newer)
	l.well()
	now := l.unit("MainPID", "UnitFileState", "NRestarts")
	if now["MainPID"] == before["MainPID"] || now["UnitFileState"] != "enabled" || now["NRestarts"] != "0" {
		l.t.Errorf("after an upgrade the unit is %v, it was %v", now, before)
	}
	if said, err := l.try("cmp", "/proc/"+now["MainPID"]+"/exe", "/usr/bin/longshore-agent"); err != nil {
		l.t.Errorf("the agent that runs is another: %s %v", said, err)
	}
	if state := l.do("systemctl", "is-active", service+"-host.timer"); state != "active" {
		l.t.Errorf("after an upgrade what looks after the machine is %s", state)
	}
	if said := l.do("longshore-agent", "version"); said != newer {
		l.t.Errorf("version %s", said)
	}
	if l.read(conf) != l.settings {
		l.t.Errorf("a person's settings after an upgrade:\n%s", l.read(conf))
	}
	if !strings.HasSuffix(l.read(l.beside), newerSettings) {
		l.t.Errorf("the newer settings are not beside them:\n%s", l.read(l.beside))
	}
	l.untouched()
}

// restarted: an agent that is killed, and one that is stuck, is started again.
func (l *life) restarted() {
	l.t.Helper()
	for _, c := range []struct{ signal, result string }{{"KILL", "signal"}, {"STOP", "watchdog"}} {
		before := l.unit("MainPID", "NRestarts")
		l.do("kill", "-s", c.signal, before["MainPID"])
		l.eventually("started again after SIG"+c.signal, func() (bool, string) {
			now := l.unit("MainPID", "NRestarts", "ActiveState")
			return now["ActiveState"] == "active" && now["MainPID"] != before["MainPID"] && now["NRestarts"] != before["NRestarts"], now["ActiveState"]
		})
		l.eventually(fmt.Sprintf("in the journal, after SIG%s, is %q", c.signal, c.result), func() (bool, string) { // the journal writes when it can
			said := l.do("journalctl", "--no-pager", "-o", "cat", "-u", service)
			return strings.Contains(said, "Failed with result '"+c.result+"'"), ""
		})
		l.well()
		l.untouched()
	}
}

// downgraded: an agent that does not run is not started, and the older one reads what the newer wrote.
func (l *life) downgraded() {
	l.t.Helper()
	l.do("systemctl", "stop", service)
	l.put(l.downgrade, older)
	if now := l.unit("ActiveState", "UnitFileState"); now["ActiveState"] != "inactive" || now["UnitFileState"] != "enabled" {
		l.t.Errorf("the unit was stopped, and after a downgrade is %v", now)
	}
	if said := l.do("longshore-agent", "version"); said != older || l.read(conf) != l.settings {
		l.t.Errorf("version %s, settings\n%s", said, l.read(conf))
	}
	l.do("systemctl", "start", service)
	l.well()
	l.untouched()
}

// removed: with the agent running, and without the unit of a timer, whose file a
// person has deleted. What it knows stays, until a purge.
func (l *life) removed() {
	l.t.Helper()
	l.do("systemctl", "stop", service+"-host.timer")
	l.do("sh", "-c", "rm $(systemctl show --property=FragmentPath --value "+service+"-host.timer) && systemctl daemon-reload")
	pid := l.unit("MainPID")["MainPID"]
	l.do(append(slices.Clone(l.drop), service)...)
	if l.has(filepath.Join("/proc", pid)) {
		l.t.Error("the agent still runs")
	}
	for _, unit := range []string{service + ".service", service + "-host.service", service + "-host.timer"} {
		if state := l.do("systemctl", "show", "--property=LoadState,ActiveState", "--value", unit); state != "not-found\ninactive" {
			l.t.Errorf("after a removal %s is %q", unit, state)
		}
	}
	for _, gone := range []string{"/usr/bin/longshore-agent", "/etc/systemd/system/multi-user.target.wants/longshore-agent.service"} {
		if l.has(gone) {
			l.t.Errorf("%s is still there", gone)
		}
	}
	if l.read(l.left) != l.settings {
		l.t.Errorf("a person's settings after a removal:\n%s", l.read(l.left))
	}
	if kept, _ := os.ReadDir(l.path(data)); len(kept) == 0 {
		l.t.Error("what the agent knew is gone")
	}
	l.untouched()
	l.do("cp", "-a", data, "/root/kept")
	if l.purge == nil {
		l.do("rm", "-r", data, filepath.Dir(conf)) // a person, as the page says
		return
	}
	l.do(append(slices.Clone(l.purge), service)...)
	if l.has(data) || l.has(conf) {
		l.t.Error("a purge has left state or settings")
	}
	l.do("rm", "-rf", filepath.Dir(conf)) // with the newer settings that lay beside
	l.untouched()
}

// deregistered: the one exit code after which nothing starts it again.
func (l *life) deregistered() {
	l.t.Helper()
	l.installed()
	client := l.stack.ECS()
	instance := l.stack.Agent(1).Instance
	if _, err := client.DeregisterContainerInstance(l.t.Context(), &ecs.DeregisterContainerInstanceInput{Cluster: aws.String(local.Cluster), ContainerInstance: &instance, Force: aws.Bool(true)}); err != nil {
		l.t.Fatal(err)
	}
	l.eventually("ended for good", func() (bool, string) {
		now := l.unit("ActiveState", "SubState", "ExecMainStatus", "NRestarts")
		return now["ActiveState"] == "failed" && now["SubState"] == "failed" && now["ExecMainStatus"] == "5" && now["NRestarts"] == "0", now["ActiveState"] + " " + now["ExecMainStatus"]
	})
}

// well waits until the agent of the machine says that it can do its work.
func (l *life) well() {
	l.t.Helper()
	l.eventually("well", func() (bool, string) {
		said, err := l.try("longshore-agent", "status")
		return err == nil, said
	})
}
