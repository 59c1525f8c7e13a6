//go:build package

package packaging

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

//go:embed testdata/boot.sh
var bootScript string

// machine is a machine with systemd as its init: the file system of this one under
// a layer that forgets, its own processes, host name, journal and cgroups; network and Docker
// engine are this one's. It ends with the test, or with the test's process.
type machine struct {
	t    *testing.T
	pid  int // of its init
	boot *bytes.Buffer
}

// boot starts a machine and waits until its init has nothing left to start.
func boot(t *testing.T) *machine {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("machines are made by root alone; mend: run the lane as root")
	}
	dir, cgroup := t.TempDir(), ownCgroup(t)
	script := filepath.Join(t.TempDir(), "boot.sh")
	if err := os.WriteFile(script, []byte(bootScript), 0o755); err != nil {
		t.Fatal(err)
	}
	m := &machine{t: t, boot: &bytes.Buffer{}}
	cmd := exec.Command("/bin/sh", script, dir, cgroup, dockerSocket(t))
	cmd.Stdout, cmd.Stderr = m.boot, m.boot
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
		Pdeathsig:  syscall.SIGKILL,
	}
	started, ended := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread() // Pdeathsig means the thread's death
		defer close(ended)
		started <- cmd.Start()
		_ = cmd.Wait()
	}()
	if err := <-started; err != nil {
		t.Fatalf("start a machine: %v; it needs the right to make namespaces (CAP_SYS_ADMIN)", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // the end of a machine's init is the end of all in it
		<-ended
		removeCgroup(t, cgroup)
	})
	m.pid = cmd.Process.Pid
	m.eventually("booted", func() (bool, string) {
		select {
		case <-ended:
			t.Fatalf("the machine's init has ended:\n%s", m.boot)
		default:
		}
		said, err := m.try("systemctl", "is-system-running")
		return err == nil, said + m.boot.String()
	})
	return m
}

// command runs in the machine as root.
func (m *machine) command(args ...string) *exec.Cmd {
	ns := []string{"--target", strconv.Itoa(m.pid), "--mount", "--pid", "--ipc", "--uts", "--cgroup", "--root", "--wd", "--"}
	cmd := exec.Command("nsenter", append(ns, args...)...) // also when a test is over: what it says of a failure
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C"}
	return cmd
}

func (m *machine) try(args ...string) (string, error) {
	out, err := m.command(args...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// do runs a command that must succeed and returns what it said.
func (m *machine) do(args ...string) string {
	m.t.Helper()
	said, err := m.try(args...)
	if err != nil {
		m.t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, said)
	}
	return said
}

// path is where a file of the machine is seen from here.
func (m *machine) path(file string) string {
	return filepath.Join("/proc", strconv.Itoa(m.pid), "root", file)
}

func (m *machine) read(file string) string {
	m.t.Helper()
	text, err := os.ReadFile(m.path(file))
	if err != nil {
		m.t.Fatal(err)
	}
	return string(text)
}

func (m *machine) write(file, text string, mode os.FileMode) {
	m.t.Helper()
	if err := os.MkdirAll(filepath.Dir(m.path(file)), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(m.path(file), []byte(text), mode); err != nil {
		m.t.Fatal(err)
	}
}

// has says whether there is such a file, whatever it is.
func (m *machine) has(file string) bool {
	_, err := os.Lstat(m.path(file))
	return err == nil
}

// give copies a file of this machine to one of the machine's.
func (m *machine) give(from, to string) string {
	m.t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		m.t.Fatal(err)
	}
	m.write(to, string(text), 0o755)
	return to
}

// unit is some properties of the agent's unit.
func (m *machine) unit(names ...string) map[string]string {
	m.t.Helper()
	out := map[string]string{}
	for line := range strings.Lines(m.do("systemctl", "show", "--property="+strings.Join(names, ","), "longshore-agent")) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		out[name] = value
	}
	return out
}

// patience ends a wait in vain: how fast a machine is is not looked at.
const patience = 3 * time.Minute

func (m *machine) eventually(what string, done func() (bool, string)) {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(30 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, said := done()
		if ok {
			return
		}
		select {
		case <-ctx.Done():
			m.t.Fatalf("after %s: not %s; %s", patience, what, said)
		case <-tick.C:
		}
	}
}

// ownCgroup makes a cgroup for a machine, where systemd sees a root.
func ownCgroup(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		f := strings.Fields(lines.Text())
		if len(f) > 2 && f[2] == "cgroup2" {
			dir, err := os.MkdirTemp(f[1], "longshore-machine-")
			if err != nil {
				t.Fatalf("%v; machines need a cgroup2 that root may write", err)
			}
			return dir
		}
	}
	t.Fatal("no cgroup2 is mounted; mend: mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified")
	return ""
}

// removeCgroup waits for the processes of a machine that has ended, and removes what
// they were counted in, from the inside out.
func removeCgroup(t *testing.T, dir string) {
	var all []string
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			all = append(all, path)
		}
		return nil
	})
	slices.Reverse(all)
	deadline := time.After(patience)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for _, path := range all {
		for {
			err := os.Remove(path)
			if err == nil || errors.Is(err, os.ErrNotExist) {
				break
			}
			select {
			case <-deadline:
				t.Errorf("a machine's cgroup is left: %v", err)
				return
			case <-tick.C:
			}
		}
	}
}

// dockerSocket is where the engine answers on this machine.
func dockerSocket(t *testing.T) string {
	t.Helper()
	host := os.Getenv("DOCKER_HOST")
	if host == "" {
		return "/var/run/docker.sock"
	}
	file, ok := strings.CutPrefix(host, "unix://")
	if !ok {
		t.Fatalf("DOCKER_HOST=%s: a machine can be given an engine by its socket alone (unix://…)", host)
	}
	return file
}
