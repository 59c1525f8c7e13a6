//go:build docker

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
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

	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
)

// dockerd is an engine of a test's own, beside the machine's, that it may restart.
// It is in a network of its own: one that is to have no bridge takes away the docker0
// that it finds.
type dockerd struct {
	*testing.T
	dir    string
	cmd    *exec.Cmd
	exited chan error
	inside chan func() // done by a thread that is in its network
}

// newDockerd has everything in this test that asks for an engine find this one.
func newDockerd(t *testing.T) *dockerd {
	t.Helper()
	if _, err := exec.LookPath("dockerd"); err != nil {
		t.Fatalf("%v; mend: apt-get install -y docker.io", err)
	}
	dir, err := os.MkdirTemp("", "dd") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	d := &dockerd{T: t, dir: dir, inside: make(chan func())}
	if err := os.WriteFile(filepath.Join(dir, "daemon.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.tidy)
	isolated := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never again for anything else
		isolated <- syscall.Unshare(syscall.CLONE_NEWNET)
		for do := range d.inside {
			do()
		}
	}()
	if err := <-isolated; err != nil {
		t.Fatalf("a network of its own (this test wants root): %v", err)
	}
	t.Setenv("DOCKER_HOST", "unix://"+filepath.Join(dir, "s"))
	return d
}

func (d *dockerd) start() {
	d.Helper()
	log, err := os.OpenFile(filepath.Join(d.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		d.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command("dockerd", "--data-root", filepath.Join(d.dir, "data"), "--exec-root", filepath.Join(d.dir, "exec"),
		"-H", os.Getenv("DOCKER_HOST"), "--pidfile", filepath.Join(d.dir, "pid"), "--bridge=none", "--iptables=false", "--config-file", filepath.Join(d.dir, "daemon.json"))
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // with that thread
	if d.within(func() { err = cmd.Start() }); err != nil {
		d.Fatal(err)
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	d.cmd, d.exited = cmd, exited
	for deadline := time.Now().Add(patience); ; {
		if err = d.ask("GET", "/_ping", "", nil); err == nil {
			return
		}
		select {
		case <-exited:
			d.cmd = nil
			text, _ := os.ReadFile(filepath.Join(d.dir, "log"))
			d.Fatalf("dockerd ended:\n%s", text)
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			d.Fatal(err)
		}
	}
}

// within does something in the engine's network.
func (d *dockerd) within(do func()) {
	done := make(chan struct{})
	d.inside <- func() { do(); close(done) }
	<-done
}

// ask has the engine answer a call past the agent's adapter, into answer if there
// is one.
func (d *dockerd) ask(method, path, body string, answer any) error {
	text, err := d.raw(method, path, body)
	if err != nil || answer == nil {
		return err
	}
	return json.Unmarshal(text, answer)
}

func (d *dockerd) raw(method, path, body string) ([]byte, error) {
	socket := strings.TrimPrefix(os.Getenv("DOCKER_HOST"), "unix://")
	web := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	request, err := http.NewRequestWithContext(d.Context(), method, "http://docker"+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := web.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %s %s", method, path, response.Status, text)
	}
	return text, err
}

// end ends it, and waits for that.
func (d *dockerd) end(s syscall.Signal) {
	d.Helper()
	if err := d.cmd.Process.Signal(s); err != nil {
		d.Fatal(err)
	}
	select {
	case <-d.exited:
		d.cmd = nil
	case <-time.After(patience):
		d.Fatal("dockerd does not end")
	}
}

// tidy leaves no process, mount or file.
func (d *dockerd) tidy() {
	defer close(d.inside)
	if d.cmd != nil { // what outlives it otherwise dies with it now
		_ = os.WriteFile(filepath.Join(d.dir, "daemon.json"), []byte(`{"live-restore": false}`), 0o600)
		_ = d.cmd.Process.Signal(syscall.SIGHUP)
		_ = d.cmd.Process.Signal(syscall.SIGTERM) // it may have been killed
		select {
		case <-d.exited:
		case <-time.After(60 * time.Second):
			d.Error("dockerd does not end")
		}
	}
	d.endWhatIsLeft()
	if d.Failed() {
		text, _ := os.ReadFile(filepath.Join(d.dir, "log"))
		d.Logf("dockerd's log, its end:\n%s", text[max(0, len(text)-4000):])
	}
	mounts, _ := os.ReadFile("/proc/self/mounts")
	for _, line := range slices.Backward(strings.Split(string(mounts), "\n")) {
		if f := strings.Fields(line); len(f) > 1 && strings.HasPrefix(f[1], d.dir+"/") { // the engine's own, of its folder
			_ = syscall.Unmount(f[1], syscall.MNT_DETACH)
		}
	}
	if err := os.RemoveAll(d.dir); err != nil {
		d.Errorf("something of the engine is left: %v", err)
	}
}

// left are the processes that name the engine's folder: its containerd and its
// shims, which outlive it; and what these have started, last.
func (d *dockerd) left() (all []int) {
	children := map[int][]int{}
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		text, _ := os.ReadFile(file)
		if f := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])); len(f) > 1 && f[0] != "Z" {
			parent, _ := strconv.Atoi(f[1])
			children[parent] = append(children[parent], pid)
		}
		args, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		if pid != os.Getpid() && bytes.Contains(args, []byte(d.dir+"/")) {
			all = append(all, pid)
		}
	}
	for n := 0; n < len(all); n++ {
		for _, child := range children[all[n]] {
			if !slices.Contains(all, child) {
				all = append(all, child)
			}
		}
	}
	return all
}

// endWhatIsLeft ends containers, shims and containerd of an engine that has ended.
func (d *dockerd) endWhatIsLeft() {
	for deadline := time.Now().Add(20 * time.Second); ; {
		all := d.left()
		if len(all) == 0 {
			return
		}
		if time.Now().After(deadline) {
			d.Errorf("processes of the engine are left: %d", all)
			return
		}
		for _, pid := range slices.Backward(all) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		<-time.After(100 * time.Millisecond)
	}
}

// goesOn is a program that ends with 5 when it is asked to.
const goesOn = "trap 'exit 5' TERM; sleep 1000 & wait"

// lone is a task of one container without a network, since the engine has no bridge.
func (p *program) lone(n int, script string, policy *taskdef.RestartPolicy) {
	p.Helper()
	c := p.container("app", script)
	c.RestartPolicy = policy
	p.assignSpec(n, taskdef.Spec{Family: "program", NetworkMode: taskdef.NetworkNone, ContainerDefinitions: []taskdef.ContainerDefinition{c}})
}

// ecs-agent#4270: the engine is restarted under the agent. Its process goes on,
// says IMPAIRED and then OK; what died by it is told once, with its code; what has a
// policy runs again; what outlived it (live-restore) was never touched. And what
// Docker starts by itself: one whose end is known is stopped again (T4).
func TestProgram_OutlivesItsEngine(t *testing.T) {
	d := newDockerd(t)
	d.start()
	p := newProgram(t)
	p.welcomed()
	pid := p.cmd.Process.Pid
	p.lone(1, goesOn, nil)
	p.lone(2, goesOn, &taskdef.RestartPolicy{Enabled: new(true), RestartAttemptPeriod: new(1)})
	p.lone(3, goesOn, nil)
	for n := 1; n <= 3; n++ {
		p.status(n, task.Running)
	}
	first := p.running(2)
	// Somebody has Docker start this one whenever Docker starts; its task has ended.
	if err := d.ask("POST", "/containers/"+p.running(3).RuntimeID+"/update", `{"RestartPolicy": {"Name": "always"}}`, nil); err != nil {
		t.Fatal(err)
	}
	p.send(&wire.Stop{Header: wire.Header{Instance: p.instance}, Task: taskID(3), Attempt: 1})
	p.status(3, task.Stopped)
	p.await("a run that is long enough for another", func() bool { return time.Since(first.StartedAt) > 1500*time.Millisecond })

	d.end(syscall.SIGTERM)
	hear(p, "an engine that is away", func(b *wire.Heartbeat) bool { return b.Docker == wire.DockerImpaired && len(b.Inventory) == 3 })
	d.start()
	end := p.status(1, task.Stopped)
	if c := end.Containers[0]; c.ExitCode == nil || *c.ExitCode != 5 || end.Cause != task.ExitedCause {
		t.Errorf("what died with the engine ended as %+v", end)
	}
	p.send(&wire.Ack{Header: wire.Header{Instance: p.instance}, Task: taskID(1), Attempt: 1})
	hear(p, "an engine that is well", func(b *wire.Heartbeat) bool { return b.Docker == wire.DockerOK })
	p.await("the run more of what has a policy", func() bool { s := p.running(2); return s.Running && s.StartedAt.After(first.StartedAt) })
	p.await("the end of what Docker had started", func() bool { s := p.running(3); return !s.Running })
	p.send(&wire.Ack{Header: wire.Header{Instance: p.instance}, Task: taskID(3), Attempt: 1})

	// What Docker shall not end it does not: live-restore is switched on as it runs.
	if err := os.WriteFile(filepath.Join(d.dir, "daemon.json"), []byte(`{"live-restore": true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	p.await("live-restore", func() bool {
		var info struct{ LiveRestoreEnabled bool }
		return d.ask("GET", "/info", "", &info) == nil && info.LiveRestoreEnabled
	})

	p.lone(5, goesOn, nil)
	up := p.status(5, task.Running)
	before := p.running(5)
	d.end(syscall.SIGTERM)
	hear(p, "an engine that is away again", func(b *wire.Heartbeat) bool { return b.Docker == wire.DockerImpaired })
	d.start()
	hear(p, "an engine that is well again", func(b *wire.Heartbeat) bool { return b.Docker == wire.DockerOK })
	if now := p.running(5); !now.Running || now.RuntimeID != before.RuntimeID || !now.StartedAt.Equal(before.StartedAt) {
		t.Errorf("what outlives its engine is %+v, was %+v", now, before)
	}
	for _, n := range []int{2, 5} {
		p.send(&wire.Stop{Header: wire.Header{Instance: p.instance}, Task: taskID(n), Attempt: 1})
		last := p.status(n, task.Stopped)
		if c := last.Containers[0]; c.ExitCode == nil || *c.ExitCode != 5 {
			t.Errorf("task %d ended as %+v", n, last)
		}
		if n == 5 && !last.StartedAt.Equal(up.StartedAt) {
			t.Errorf("it was started at %s, and then at %s", up.StartedAt, last.StartedAt)
		}
		p.send(&wire.Ack{Header: wire.Header{Instance: p.instance}, Task: taskID(n), Attempt: 1})
	}
	p.await("everything to be removed", func() bool {
		list, err := p.engine.List(t.Context())
		return err == nil && len(list) == 0
	})
	if p.cmd.Process.Pid != pid || errors.Is(p.cmd.Process.Signal(syscall.Signal(0)), os.ErrProcessDone) {
		t.Error("the agent's process is another")
	}
	p.oneEndEach()
}
