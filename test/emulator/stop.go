package emulator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// gracePeriod is how long an emulator that keeps its state may take to write it.
const gracePeriod = 30 * time.Second

// Stop ends the emulator and every function it runs, and removes a temporary data folder.
// One that keeps its state gets the time to write it. Stopping twice is no error.
func (p *Process) Stop(ctx context.Context) error {
	if p.outside != nil {
		return nil
	}
	if p.opts.Detach {
		return StopDetached(ctx, p.opts.PIDFile)
	}
	var err error
	if p.opts.Persist {
		err = p.stopGracefully(ctx)
	}
	p.kill()
	p.removeData()
	return err
}

func (p *Process) stopGracefully(ctx context.Context) error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		if errors.Is(err, os.ErrProcessDone) {
			return nil
		}
		return fmt.Errorf("signal the AWS emulator: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, gracePeriod)
	defer cancel()
	select {
	case <-p.exited:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the AWS emulator did not write its state: %w", ctx.Err())
	}
}

// kill ends the whole process group and waits for its leader.
func (p *Process) kill() {
	_ = syscall.Kill(-p.PID(), syscall.SIGKILL) // already gone is what is wanted
	<-p.exited
	if p.lifeline != nil {
		_ = p.lifeline.Close()
	}
}

func (p *Process) removeData() {
	if p.removeDir {
		_ = os.RemoveAll(p.opts.Dir) // a rest in the temporary folder harms nobody
	}
}

// StopDetached ends the emulator that was started with this pid file: first asked, so that it
// can write its state, then by force, with every function it runs. No such file, or a process
// id that is no emulator's any more, means already stopped.
func StopDetached(ctx context.Context, pidFile string) error {
	pid, err := Running(pidFile)
	if err != nil {
		return err
	}
	if pid != 0 {
		_ = syscall.Kill(pid, syscall.SIGTERM)
		ended := func() bool { return !isEmulator(pid) }
		grace, cancel := context.WithTimeout(ctx, gracePeriod)
		defer cancel()
		poll(grace, ended)
		_ = syscall.Kill(-pid, syscall.SIGKILL) // the functions, and an emulator that did not listen
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if !poll(last, ended) {
			return fmt.Errorf("the AWS emulator with process id %d does not end", pid)
		}
	}
	if err := os.Remove(pidFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove pid file: %w", err)
	}
	return nil
}

// Running returns the process id of the emulator that was started with this pid file, or 0 when
// there is none.
func Running(pidFile string) (int, error) {
	data, err := os.ReadFile(pidFile)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read pid file: %w", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || pid <= 1 {
		return 0, fmt.Errorf("pid file %s holds %q, not a process id", pidFile, data)
	}
	if !isEmulator(pid) {
		return 0, nil
	}
	return pid, nil
}

// isEmulator guards against a process id that the system has given to somebody else since. A
// process that has ended but was not yet waited for has an empty command line.
func isEmulator(pid int) bool {
	args, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err != nil {
		return false
	}
	for _, p := range programs {
		if bytes.Contains(args, []byte(p.mark)) {
			return true
		}
	}
	return false
}

// poll asks until the answer is yes or the context ends, and returns the last answer.
func poll(ctx context.Context, done func() bool) bool {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			return done()
		case <-tick.C:
		}
	}
	return true
}
