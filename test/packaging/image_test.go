//go:build package

package packaging

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/test/local"
)

// uname is what the machine calls this architecture, foreign what it calls the other.
var uname, foreign = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH], map[string]string{"amd64": "arm64", "arm64": "amd64"}[runtime.GOARCH]

// queues are settings as an image builder gives them.
const queues = `LONGSHORE_REPORTS_QUEUE_URL=https://sqs.eu-west-1.amazonaws.com/123456789012/reports
LONGSHORE_HEARTBEATS_QUEUE_URL=https://sqs.eu-west-1.amazonaws.com/123456789012/heartbeats
LONGSHORE_CLUSTER=edge
AWS_REGION=eu-west-1`

const install, check = "/tmp/image/install.sh", "/tmp/image/check.sh"

// builder is a machine that has the scripts and the packages of a version, as a builder of images would bring them.
func builder(t *testing.T, system string) *machine {
	m := boot(t)
	m.write("/etc/os-release", system, 0o644)
	for _, name := range []string{"install.sh", "check.sh"} {
		m.give(filepath.Join(local.Root(t), "packaging", "image", name), "/tmp/image/"+name)
	}
	found, err := os.ReadDir(packages(t, older))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		m.give(filepath.Join(packages(t, older), f.Name()), "/tmp/image/"+f.Name())
	}
	// Debian's rpm wants to be told that it is meant.
	m.write("/usr/local/bin/rpm", "#!/bin/sh\ncase $1 in --upgrade) set -- --force-debian --nodeps \"$@\" ;; esac\nexec /usr/bin/rpm \"$@\"\n", 0o755)
	m.write("/usr/local/bin/cloud-init", "#!/bin/sh\necho \"$*\" >>/tmp/cloud-init.calls\n", 0o755)
	if !m.has("/usr/sbin/dockerd") {
		m.write("/usr/sbin/dockerd", "#!/bin/sh\n", 0o755)
	}
	return m
}

// script runs one with settings in its environment.
func (m *machine) script(env string, args ...string) (string, error) {
	cmd := m.command(args...)
	cmd.Env = append(cmd.Env, strings.Fields(env)...)
	cmd.Env[0] = "PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

const (
	debian = "ID=debian\nVERSION_ID=12\n"
	amazon = "ID=\"amzn\"\nID_LIKE=\"fedora\"\nVERSION_ID=\"2023\"\n"
)

// remains are what would make two machines one.
var remains = []string{"/var/lib/longshore/journal.db", "/var/lib/longshore/identity", "/var/lib/docker/engine-id", "/etc/docker/key.json",
	"/var/lib/systemd/random-seed", "/etc/ssh/ssh_host_ed25519_key", "/etc/ssh/ssh_host_ed25519_key.pub", "/var/log/journal/abc/system.journal"}

func TestImage_HasTheAgentAndNoIdentity(t *testing.T) {
	for kind, system := range map[string]string{"deb": debian, "rpm": amazon} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			m := builder(t, system)
			for _, path := range remains {
				m.write(path, "one of a kind", 0o600)
			}
			for _, again := range []string{"first", "again"} {
				if said, err := m.script(queues, install, "--image"); err != nil {
					t.Fatalf("%s: %v\n%s", again, err, said)
				}
				if said, err := m.script("", check); err != nil || !strings.HasSuffix(said, "check: "+older+" is ready") {
					t.Errorf("%s: check.sh: %v\n%s", again, err, said)
				}
			}
			for _, path := range remains {
				if m.has(path) {
					t.Errorf("%s is still there", path)
				}
			}
			if m.read("/etc/machine-id") != "" || !strings.Contains(m.read("/tmp/cloud-init.calls"), "clean") {
				t.Error("the machine's id, or what cloud-init knows, is still there")
			}
			if now := m.unit("ActiveState", "UnitFileState"); now["ActiveState"] != "inactive" || now["UnitFileState"] != "enabled" {
				t.Errorf("the unit is %v", now)
			}
			for line := range strings.Lines(queues) {
				if n := strings.Count(m.read(conf), "\n"+strings.TrimSpace(line)+"\n"); n != 1 {
					t.Errorf("%d times in the settings: %s", n, line)
				}
			}
			if info, err := os.Stat(m.path(conf)); err != nil || info.Mode() != 0o600 {
				t.Errorf("settings: %v, %v", info, err)
			}
		})
	}
}

// check.sh names each thing that install.sh would have removed.
func TestImage_CheckNamesWhatMakesTwoMachinesOne(t *testing.T) {
	t.Parallel()
	m := builder(t, debian)
	if said, err := m.script(queues, install, "--image"); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	for _, path := range append([]string{"/etc/machine-id"}, remains[:6]...) {
		m.write(path, "one of a kind", 0o600)
		said, err := m.script("", check)
		if want := path; err == nil || !strings.Contains(said, strings.TrimSuffix(strings.TrimSuffix(want, "/journal.db"), "/identity")) {
			t.Errorf("with %s: %v\n%s", path, err, said)
		}
		m.do("sh", "-c", `rm -rf /var/lib/longshore; [ "$1" = /etc/machine-id ] && : >"$1" || rm -f "$1"`, "sh", path)
	}
	m.do("systemctl", "disable", service)
	if said, err := m.script("", check); err == nil || !strings.Contains(said, "not enabled") {
		t.Errorf("with the unit disabled: %v\n%s", err, said)
	}
	m.do("systemctl", "enable", service)
	if said, err := m.script("", check, "--started"); err == nil || !strings.Contains(said, "machine-id is empty") {
		t.Errorf("--started, before a start: %v\n%s", err, said)
	}
	m.do("systemd-machine-id-setup")
	if said, err := m.script("", check, "--started"); err != nil {
		t.Errorf("--started: %v\n%s", err, said)
	}
}

func TestInstall_RefusesByNameWhatItCannotInstall(t *testing.T) {
	t.Parallel()
	m := builder(t, debian)
	deb := filepath.Join("/tmp/image", filepath.Base(file(t, older, "deb", runtime.GOARCH)))
	other := filepath.Join("/tmp/image", filepath.Base(file(t, older, "deb", foreign)))
	rpm := filepath.Join("/tmp/image", filepath.Base(file(t, older, "rpm", runtime.GOARCH)))
	m.do("mkdir", "/tmp/alone", "/tmp/empty")
	m.do("cp", deb, "/tmp/alone/")
	m.do("cp", install, "/tmp/empty/")
	m.do("sh", "-c", `cp "$1" /tmp/alone/torn.deb; printf x >>/tmp/alone/torn.deb`, "sh", deb)
	alone := filepath.Join("/tmp/alone", filepath.Base(deb))
	wrong := strings.Repeat("0", 64)
	for _, c := range []struct {
		what, system, machine string
		args                  []string
		want                  string
	}{
		{"an unknown option", debian, "", []string{install, "--force"}, "unknown option --force (known: --image --docker --sha256 HEX)"},
		{"two packages", debian, "", []string{install, deb, other}, "one package"},
		{"another machine", debian, "riscv64", []string{install}, "there is no package for riscv64: amd64 (x86_64) and arm64 (aarch64) are made"},
		{"another system", "ID=alpine\n", "", []string{install}, "alpine"},
		{"nothing beside it", debian, "", []string{"/tmp/empty/install.sh"}, "make package"},
		{"no such file", debian, "", []string{install, "/tmp/nowhere.deb"}, "/tmp/nowhere.deb: no such file"},
		{"the other kind", debian, "", []string{install, rpm}, "is not a .deb, which this system wants"},
		{"the other architecture", debian, "", []string{install, other}, fmt.Sprintf("is for %s, and this machine is %s", foreign, runtime.GOARCH)},
		{"no sum", debian, "", []string{install, alone}, "cannot be verified"},
		{"another sum", debian, "", []string{install, "--sha256", wrong, alone}, "not " + wrong},
		{"a name without a sum", debian, "", []string{"sh", "-c", "cp /tmp/alone/torn.deb /tmp/image/ && exec " + install + " /tmp/image/torn.deb"}, "does not name torn.deb"},
	} {
		t.Run(c.what, func(t *testing.T) {
			m.write("/etc/os-release", c.system, 0o644)
			arch := uname
			if c.machine != "" {
				arch = c.machine
			}
			m.write("/usr/local/bin/uname", "#!/bin/sh\necho "+arch+"\n", 0o755)
			said, err := m.script("", c.args...)
			if err == nil || !strings.HasPrefix(said, "install: ") || !strings.Contains(said, c.want) {
				t.Errorf("%v, and it said:\n%s", err, said)
			}
			if m.has("/usr/bin/longshore-agent") {
				t.Error("the agent was installed")
			}
		})
	}
}

// On a machine that goes on living an installation keeps what the agent knows, and starts it.
func TestInstall_OnAMachineThatLivesForgetsNothing(t *testing.T) {
	t.Parallel()
	m := builder(t, debian)
	deb := file(t, older, "deb", runtime.GOARCH)
	m.write(conf, "LONGSHORE_ZONE=before\n", 0o600) // as cloud-init writes it
	m.write("/var/lib/longshore/kept", "what the agent knows", 0o600)
	m.write("/etc/systemd/system/longshore-agent.service.d/test.conf", "[Service]\nExecStart=\nExecStartPre=\nType=exec\nExecStart=sleep 600\nSystemCallFilter=\n", 0o644)
	sum, _, _ := strings.Cut(said(t, "sha256sum", deb), " ")
	if said, err := m.script("", install, "--sha256", strings.ToUpper(sum), filepath.Join("/tmp/image", filepath.Base(deb))); err != nil || !strings.Contains(said, "the queues are not set") {
		t.Fatalf("%v\n%s", err, said)
	}
	if now := m.unit("ActiveState", "UnitFileState"); now["ActiveState"] != "inactive" || now["UnitFileState"] != "enabled" {
		t.Errorf("without settings the unit is %v", now)
	}
	hostile := []string{"LONGSHORE_A=one=two=", "LONGSHORE_B=x\nLONGSHORE_C=forged", `LONGSHORE_B={"password":"a\\b"}`, "LONGSHORE_B=' x'", "LONGSHORE_B=x "}
	for n, setting := range hostile {
		cmd := m.command(install)
		cmd.Env = append(cmd.Env, setting)
		out, err := cmd.CombinedOutput()
		if now := m.read(conf); n == 0 && (err != nil || !strings.Contains(now, "\n"+setting+"\n")) || n > 0 && (err == nil || !strings.Contains(string(out), "install: LONGSHORE_B ") || strings.Contains(now, "LONGSHORE_B") || strings.Contains(now, "forged")) {
			t.Errorf("%q: %v\n%s\n%s", setting, err, out, now)
		}
	}
	m.write(conf, strings.ReplaceAll(m.read(conf), hostile[0]+"\n", ""), 0o600)
	if said, err := m.script(queues, install); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	if now := m.unit("ActiveState"); now["ActiveState"] != "active" {
		t.Errorf("with settings the unit is %v", now)
	}
	if !strings.HasPrefix(m.read(conf), "LONGSHORE_ZONE=before\n") {
		t.Errorf("settings that were there before the package are gone:\n%s", m.read(conf))
	}
	if m.read("/var/lib/longshore/kept") == "" || m.read("/etc/machine-id") == "" {
		t.Error("a machine that lives has lost its identity")
	}
}

func TestScripts_AreWhatShellcheckCallsSound(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(local.Root(t), "packaging")
	args := []string{"--shell=sh"}
	for _, pattern := range []string{"agent/post*", "agent/pre*", "image/*.sh"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v, %v", pattern, found, err)
		}
		args = append(args, found...)
	}
	said(t, "shellcheck", args...)
}
