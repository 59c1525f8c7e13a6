//go:build package

package packaging

import (
	"crypto/sha256"
	"debug/elf"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/test/local"
)

// said is what a program of this machine prints.
func said(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Env = append(os.Environ(), "TZ=UTC", "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// Each line: mode, owner, group, path.
var content = []string{
	"drwx------ root root /etc/longshore",
	"-rw------- root root /etc/longshore/agent.env",
	"-rwxr-xr-x root root /usr/bin/longshore-agent",
	"-rw-r--r-- root root UNITS/longshore-agent.service",
	"-rw-r--r-- root root UNITS/longshore-agent-host.service",
	"-rw-r--r-- root root UNITS/longshore-agent-host.timer",
	"-rw-r--r-- root root /usr/share/doc/longshore-agent/copyright",
}

func sorted(lines []string, units string) string {
	out := slices.Clone(lines)
	for i := range out {
		out[i] = strings.Replace(out[i], "UNITS", units, 1)
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

func TestDeb_HoldsWhatItShould(t *testing.T) {
	t.Parallel()
	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		deb := file(t, older, "deb", arch)
		if got := said(t, "dpkg-deb", "--field", deb, "Package", "Version", "Architecture", "Depends", "Recommends"); got !=
			"Package: longshore-agent\nVersion: 1.0.0~rc.1\nArchitecture: "+arch+"\nRecommends: docker.io | docker-ce | moby-engine, iproute2, iptables\n" {
			t.Errorf("%s:\n%s", deb, got)
		}
		var got []string
		for line := range strings.Lines(said(t, "dpkg-deb", "--contents", deb)) {
			f := strings.Fields(line)
			path := strings.TrimSuffix(strings.TrimPrefix(f[5], "."), "/")
			if f[0][0] == 'd' && path != "/etc/longshore" {
				continue // /usr and so on
			}
			got = append(got, f[0]+" "+strings.Replace(f[1], "/", " ", 1)+" "+path)
		}
		if want := sorted(content, "/lib/systemd/system"); sorted(got, "") != want {
			t.Errorf("%s holds\n%s\nwant\n%s", deb, sorted(got, ""), want)
		}
		control, root := t.TempDir(), t.TempDir()
		said(t, "dpkg-deb", "--control", deb, control)
		said(t, "dpkg-deb", "--extract", deb, root)
		if got := read(t, filepath.Join(control, "conffiles")); got != "/etc/longshore/agent.env\n" {
			t.Errorf("files of settings: %q", got)
		}
		for theirs, ours := range map[string]string{"postinst": "postinstall", "prerm": "preremove", "postrm": "postremove"} {
			if read(t, filepath.Join(control, theirs)) != read(t, filepath.Join(local.Root(t), "packaging", "agent", ours)) {
				t.Errorf("%s is not packaging/agent/%s", theirs, ours)
			}
		}
		holdsAgent(t, filepath.Join(root, "usr", "bin", "longshore-agent"), machine)
	}
}

func TestRPM_HoldsWhatItShould(t *testing.T) {
	t.Parallel()
	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		rpm := file(t, older, "rpm", arch)
		query := func(format string) string {
			return said(t, "rpm", "--query", "--package", "--queryformat", format, rpm)
		}
		if got := query(`%{NAME} %{VERSION} %{RELEASE} %{ARCH} %{BUILDHOST} [%{RECOMMENDS};]\n`); got != "longshore-agent 1.0.0~rc.1 1 "+
			map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[arch]+" longshore (docker or docker-ce or moby-engine);iproute;iptables;\n" {
			t.Errorf("%s: %s", rpm, got)
		}
		if got := query(`[%{FILENAMES} %{FILEMODES:perms} %{FILEUSERNAME} %{FILEGROUPNAME}\n]`); got == "" {
			t.Error("no files")
		} else {
			var lines []string
			for line := range strings.Lines(got) {
				f := strings.Fields(line)
				lines = append(lines, strings.Join([]string{f[1], f[2], f[3], f[0]}, " "))
			}
			if want := sorted(content, "/usr/lib/systemd/system"); sorted(lines, "") != want {
				t.Errorf("%s holds\n%s\nwant\n%s", rpm, sorted(lines, ""), want)
			}
		}
		// c: settings, n: not replaced when a person has changed them.
		if got := query(`[%{FILENAMES} %{FILEFLAGS:fflags}\n]`); strings.Count(got, " \n") != len(content)-1 || !strings.Contains(got, "/etc/longshore/agent.env cn\n") {
			t.Errorf("flags:\n%s", got)
		}
		for theirs, ours := range map[string]string{"POSTIN": "postinstall", "PREUN": "preremove", "POSTUN": "postremove"} {
			if query("%{"+theirs+"}") != read(t, filepath.Join(local.Root(t), "packaging", "agent", ours)) {
				t.Errorf("%s is not packaging/agent/%s", theirs, ours)
			}
		}
		root := t.TempDir()
		said(t, "sh", "-c", `rpm2archive - <"$1" | tar -xz -C "$2"`, "sh", rpm, root)
		holdsAgent(t, filepath.Join(root, "usr", "bin", "longshore-agent"), machine)
	}
}

// holdsAgent: the agent for a machine, static.
func holdsAgent(t *testing.T, path string, machine elf.Machine) {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Machine != machine || slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		t.Errorf("%s is for %v, or not static", path, f.Machine)
	}
}

// A pre-release comes before its version, and what is built after a tag after it.
func TestVersions_RiseAsDpkgAndRpmCompareThem(t *testing.T) {
	t.Parallel()
	rising := []string{"0.0.0~1234.gabc", "1.0.0~rc.1", "1.0.0~rc.1+2.gabc", "1.0.0~rc.2", "1.0.0", "1.0.0+5.gabc", "1.0.0+12.gabc", "1.0.1"}
	for i, low := range rising {
		for _, high := range rising[i+1:] {
			if err := exec.CommandContext(t.Context(), "dpkg", "--compare-versions", low, "lt", high).Run(); err != nil {
				t.Errorf("dpkg: %s is not before %s: %v", low, high, err)
			}
			if got := said(t, "rpm", "--eval", fmt.Sprintf(`%%{lua: print(rpm.vercmp("%s", "%s"))}`, low, high)); got != "-1\n" {
				t.Errorf("rpm: %s is not before %s: %s", low, high, got)
			}
		}
	}
}

func TestPackage_SaysTheBytesOfEach(t *testing.T) {
	t.Parallel()
	dir := packages(t, older)
	lines := strings.Split(strings.TrimSpace(read(t, filepath.Join(dir, "SHA256SUMS"))), "\n")
	if len(lines) != 4 {
		t.Errorf("%d sums", len(lines))
	}
	for _, line := range lines {
		sum, name, _ := strings.Cut(line, "  ")
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		h := sha256.New()
		_, err = io.Copy(h, f)
		if got := fmt.Sprintf("%x", h.Sum(nil)); err != nil || got != sum {
			t.Errorf("%s has %s, not %s, %v", name, got, sum, err)
		}
		f.Close()
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
