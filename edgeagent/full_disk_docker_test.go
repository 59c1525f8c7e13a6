//go:build docker

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

// smallDisk is a file system of its own; it takes root to mount one.
func smallDisk(t *testing.T, mib int) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm,mode=700", mib)); err != nil {
		t.Fatalf("mount a small file system (this test wants root): %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// neighbour is somebody who writes on the same disk until that is full.
type neighbour struct {
	dir string
	ate []string
}

func (n *neighbour) eat() error {
	f, err := os.CreateTemp(n.dir, "neighbour-")
	if err != nil {
		return err
	}
	n.ate = append(n.ate, f.Name())
	for block := make([]byte, 1<<12); err == nil; {
		_, err = f.Write(block)
	}
	if errors.Is(err, syscall.ENOSPC) {
		err = nil
	}
	return errors.Join(err, f.Close())
}

func (n *neighbour) leave() (err error) {
	for _, file := range n.ate {
		err = errors.Join(err, os.Remove(file))
	}
	return err
}

// The disk of a real agent's journal is filled while tasks run: their ends are
// journaled and told all the same, new tasks are refused, the machine says why, also
// after a SIGKILL on the full disk. Then even the reserve is taken by somebody: an end
// waits at most, and is told, once, when there is room again; then tasks run again.
func TestProgram_OnAFullDiskTellsEveryEndAndRunsTasksAgainOnceThereIsRoom(t *testing.T) {
	disk := smallDisk(t, 16)
	p := newProgram(t)
	p.env = append(p.env, "LONGSHORE_DATA_DIR="+disk, "LONGSHORE_JOURNAL_RESERVE=1")
	r := p.welcomed()
	for n := 1; n <= 4; n++ {
		p.lone(n, goesOn, nil)
	}
	for n := 1; n <= 4; n++ {
		p.status(n, task.Running)
	}
	other := &neighbour{dir: disk}
	fill := func() {
		t.Helper()
		if err := other.eat(); err != nil {
			t.Fatal(err)
		}
	}
	told := func(n int) { // it ends, by nobody's order but a person's on the machine
		t.Helper()
		if err := p.engine.Stop(t.Context(), agent.ContainerID{Task: taskID(n), Attempt: 1, Container: "app"}, 20*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	ended := func(n int) {
		t.Helper()
		end := p.status(n, task.Stopped)
		if c := end.Containers[0]; c.ExitCode == nil || *c.ExitCode != 5 {
			t.Errorf("task %d ended as %+v", n, end)
		}
		p.send(&wire.Ack{Header: wire.Header{Instance: p.instance}, Task: taskID(n), Attempt: 1})
	}
	full := func(session string) {
		t.Helper()
		hear(p, "why there is no room", func(b *wire.Heartbeat) bool {
			return b.Session == session && b.Docker == wire.DockerOK && strings.HasPrefix(b.NoRoom, "no room for the journal: the disk of "+disk+" is full")
		})
	}

	fill()
	p.lone(5, goesOn+strings.Repeat("; true", 8000), nil) // more than the journal has room for in its file
	p.status(5, task.Running)                             // it was taken in before the disk was known to be full
	full(r.Session)
	p.lone(6, goesOn, nil)
	no := hear(p, "a refusal", func(m *wire.Refused) bool { return m.Task == taskID(6) })
	if no.Code != wire.RefusedAgent || !strings.Contains(no.Reason, "no room for the journal") {
		t.Errorf("refused with %s: %s", no.Code, no.Reason)
	}
	p.send(&wire.Ack{Header: wire.Header{Instance: p.instance}, Task: taskID(6), Attempt: 1})
	told(1)
	ended(1)
	look := exec.CommandContext(t.Context(), p.binary, "status")
	look.Env = p.env
	if text, err := look.CombinedOutput(); look.ProcessState.ExitCode() != exitUnwell || !strings.Contains(string(text), "no room for the journal") {
		t.Errorf("status: %v\n%s", err, text)
	}

	fill()
	p.signal(syscall.SIGKILL)
	told(2)
	again := p.welcomedAgain(r, r.Session)
	full(again.Session)
	ended(2)

	// Whatever becomes free, the neighbour takes at once.
	stop, eaten := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				eaten <- nil
				return
			case <-time.After(20 * time.Millisecond):
				if err := other.eat(); err != nil {
					eaten <- err
					return
				}
			}
		}
	}()
	p.send(&wire.Stop{Header: wire.Header{Instance: p.instance}, Task: taskID(3), Attempt: 1})
	told(4)
	full(again.Session)
	close(stop)
	if err := <-eaten; err != nil {
		t.Fatal(err)
	}
	if err := other.leave(); err != nil {
		t.Fatal(err)
	}
	ended(3)
	ended(4)
	if code := p.signal(syscall.SIGTERM); code != exitOK {
		t.Errorf("SIGTERM ended it with %d", code)
	}

	last := p.welcomedAgain(r, again.Session) // its reserve is set aside at once, and not within a minute
	hear(p, "that there is room", func(b *wire.Heartbeat) bool {
		return b.Session == last.Session && b.Epoch == 100 && b.NoRoom == ""
	})
	p.lone(7, goesOn, nil)
	p.status(7, task.Running)
	for _, n := range []int{5, 7} {
		p.send(&wire.Stop{Header: wire.Header{Instance: p.instance}, Task: taskID(n), Attempt: 1})
		ended(n)
	}
	p.await("everything to be removed", func() bool {
		list, err := p.engine.List(t.Context())
		return err == nil && len(list) == 0
	})
	p.oneEndEach()
	var file syscall.Stat_t
	if err := syscall.Stat(filepath.Join(disk, "reserve"), &file); err != nil || file.Blocks*512 < 1<<20 {
		t.Errorf("the reserve takes %d bytes: %v", file.Blocks*512, err)
	}
}
