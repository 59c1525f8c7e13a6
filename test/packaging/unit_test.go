//go:build package

package packaging

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/test/local"
)

// most is the exposure that systemd may give the unit, of 10; what is quoted may be less.
const most = 3.0

func TestUnit_IsSoundAndAsHardenedAsTheDocsSay(t *testing.T) {
	t.Parallel()
	m := boot(t)
	from := file(t, older, "deb", runtime.GOARCH)
	m.do("dpkg", "--install", m.give(from, filepath.Join("/tmp", filepath.Base(from))))
	if said := m.do("systemd-analyze", "verify", "--man=no", "longshore-agent.service", "longshore-agent-host.service", "longshore-agent-host.timer"); said != "" {
		t.Errorf("systemd-analyze verify says:\n%s", said)
	}
	page, err := os.ReadFile(filepath.Join(local.Root(t), "docs", "install-agent.md"))
	if err != nil {
		t.Fatal(err)
	}
	for unit, pattern := range map[string]string{
		"longshore-agent.service":      "`systemd-analyze security` gives it ([0-9.]+) of 10",
		"longshore-agent-host.service": "`longshore-agent-host.service` .([0-9.]+) of 10",
	} {
		said := m.do("systemd-analyze", "security", "--offline=true", "--no-pager", "/lib/systemd/system/"+unit)
		measured, quoted := figure(t, `Overall exposure level for \S+: ([0-9.]+)`, said), figure(t, pattern, string(page))
		// The figure is rounded, and versions of systemd weigh some settings otherwise.
		if measured > quoted+0.1 || measured < quoted-0.3 || quoted > most {
			t.Errorf("exposure of %s is %.1f, the docs say %.1f, and it may be %.1f", unit, measured, quoted, most)
		}
	}
	for _, setting := range []string{"Restart=always", "RestartPreventExitStatus=5", "KillMode=process", "Type=notify", "WatchdogSec=", "StartLimitIntervalSec=0"} {
		if !strings.Contains(m.read("/lib/systemd/system/longshore-agent.service"), "\n"+setting) {
			t.Errorf("the unit does not say %s", setting)
		}
	}
}

// ownNetwork gives what prepares a machine a network of its own, and the real programs.
const ownNetwork = "[Service]\nPrivateNetwork=yes\nEnvironment=PATH=/usr/local/lib/network:/usr/sbin:/usr/bin\n"

// What prepares the machine does it with the rights that its unit leaves it.
func TestUnit_PreparesTheMachineWithTheRightsItHas(t *testing.T) {
	t.Parallel()
	m := boot(t)
	from := file(t, older, "deb", runtime.GOARCH)
	m.do("dpkg", "--install", m.give(from, filepath.Join("/tmp", filepath.Base(from))))
	m.write("/etc/systemd/system/longshore-agent-host.service.d/test.conf", ownNetwork, 0o644)
	m.do("systemctl", "daemon-reload")
	for range 2 {
		m.do("systemctl", "start", "longshore-agent-host.service")
		if found := m.read("/var/lib/longshore/host.json"); !strings.Contains(found, `"endpoint":"169.254.170.2:80","block":true}`) {
			t.Errorf("it found %s", found)
		}
	}
	said := m.do("longshore-agent", "prepare-host", "-remove")
	if m.has("/var/lib/longshore/host.json") || said != "the machine is as it was" {
		t.Errorf("after a removal: %s", said)
	}
}

func figure(t *testing.T, pattern, text string) float64 {
	t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("no %s in\n%s", pattern, text)
	}
	n, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
