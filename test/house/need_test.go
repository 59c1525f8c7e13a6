package house

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestToolsCheck_NamesWhatIsMissingAndWhatMendsIt(t *testing.T) {
	old := map[string]string{"go": "echo go1.19.8", "node": "echo v16.2.0", "python3": "echo 3.8"}
	dead := map[string]string{"docker": "echo 'Cannot connect to the Docker daemon' >&2; exit 1"}
	shut := map[string]string{"docker": "echo 'permission denied while trying to connect' >&2; exit 1"}
	good := map[string]string{"go": "echo go1.26.0", "node": "echo v22.1.0", "npm": "true", "python3": "echo 3.13", "docker": "echo 28.0", "git": "true", "gcc": "true", "aws": "echo aws-cli/2.9.19 Python/3.11.2"}
	for _, c := range []struct {
		what    string
		machine map[string]string // commands in PATH, each as a script
		need    string
		want    string // empty: nothing is missing
	}{
		{"no node", nil, "node", "missing: Node.js 18 or newer (no node in PATH; the CDK runs on it)\n   mend: "},
		{"no npm", map[string]string{"node": "echo v20.1.0"}, "node", "missing: npm"},
		{"no go", nil, "go", "missing: Go 1.26 or newer (no go in PATH)"},
		{"no python", nil, "python", "apt-get install -y python3 python3-venv"},
		{"no docker", nil, "docker", "apt-get install -y docker.io"},
		{"no git", nil, "git", "apt-get install -y git"},
		{"no compiler", nil, "cc", "apt-get install -y gcc"},
		{"no second AWS CLI", map[string]string{"aws": "echo aws-cli/1.46.3 Python/3.11.7"}, "aws2", "apt-get install -y awscli"},
		{"no ip", map[string]string{"iptables": "true"}, "network", "missing: ip (what prepares a machine calls it, and its tests)\n   mend: "},
		{"no systemd", nil, "systemd", "missing: systemctl (tests of packages boot machines that run systemd)\n   mend: "},
		{"no rpm", map[string]string{"rpm": "true"}, "rpm", "apt-get install -y rpm"},
		{"no shellcheck", nil, "shellcheck", "apt-get install -y shellcheck"},
		{"an old go", old, "go", "found 1.19.8"},
		{"an old node", old, "node", "found 16.2.0"},
		{"an old python", old, "python", "found 3.8"},
		{"an engine that is down", dead, "docker", "missing: a running Docker engine (unix:///nowhere does not answer)\n   mend: "},
		{"an engine that is not ours", shut, "docker", "usermod -aG docker"},
		{"all there", good, "go node python docker git cc aws2", ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			said, ok := toolsCheck(t, c.machine, strings.Fields(c.need)...)
			if ok != (c.want == "") || !strings.Contains(said, c.want) {
				t.Errorf("success is %v and it said:\n%s", ok, said)
			}
			if ok && said != "" {
				t.Errorf("success is not silent: %s", said)
			}
		})
	}
}

func TestToolsCheck_UnknownNeedIsAnError(t *testing.T) {
	if said, ok := toolsCheck(t, nil, "tea"); ok || !strings.Contains(said, "unknown need 'tea'") {
		t.Errorf("success is %v and it said: %s", ok, said)
	}
}

// toolsCheck runs tools/check on a machine that has these commands and the few the script itself uses.
func toolsCheck(t *testing.T, machine map[string]string, needs ...string) (said string, ok bool) {
	t.Helper()
	bin := t.TempDir()
	for _, name := range []string{"id", "timeout", "sh"} {
		found, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(found, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, script := range machine {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bash, append([]string{"../../tools/check"}, needs...)...)
	cmd.Env = []string{"PATH=" + bin, "DOCKER_HOST=unix:///nowhere"}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), err == nil
}
