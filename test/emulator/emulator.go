// Package emulator starts and stops the AWS emulator that the tests and the local stack run on,
// ministack or LocalStack: one process on one loopback port, with a data folder of its own.
//
// It does not deploy anything, and it does not know Longshore: what calls it creates its own
// tables and queues. Tests and the programs under test/ may import it, nothing that ships may.
package emulator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// What the emulator plays: the account and the region in every ARN it makes.
const (
	Account = "000000000000"
	Region  = "us-east-1"
)

// ErrMissing says that the emulator is not installed in this project. It is never a reason to
// skip a test.
var ErrMissing = errors.New("the AWS emulator is not installed; install it with")

// Options say how an emulator is started. The zero value is what a test wants: a free port, a
// temporary data folder, and an end no later than the calling process's own.
type Options struct {
	// Product is what plays AWS; when empty the variable LONGSHORE_EMULATOR says it, else it is Ministack.
	// Of the other options none matters for what is not started here.
	Product Product
	// Root is the project's folder, which holds .tools; found from the working directory when empty.
	Root string
	// Port is the loopback port to listen on; 0 picks a free one.
	Port int
	// Dir is the data folder; when empty a temporary one is made, and removed at the end.
	Dir string
	// Log is the file the emulator writes to; Dir/emulator.log when empty.
	Log string
	// Auth verifies signatures and enforces identity policies (the key "test" stays all-powerful). Ministack only.
	Auth bool
	// Persist keeps the state in Dir over a Stop, for the next Start with the same Dir and Port. Ministack only.
	Persist bool
	// Detach lets the emulator outlive the caller, which then needs Dir and PIDFile.
	Detach bool
	// PIDFile receives the process id of a detached emulator; StopDetached reads it.
	PIDFile string
}

// Process is an emulator that answers. It is safe for concurrent use, except for Stop.
type Process struct {
	opts      Options
	program   program
	port      int
	removeDir bool
	cmd       *exec.Cmd
	lifeline  io.Closer
	exited    chan struct{} // closed when the process has been waited for
	outside   *outside      // what plays AWS without a process of ours
}

// Start starts an emulator and returns when it answers. A context that ends stops the waiting,
// not an emulator that was returned.
func Start(ctx context.Context, opts Options) (*Process, error) {
	p := &Process{opts: opts}
	if opts.Outside() {
		product, err := opts.chosen()
		if err == nil {
			p.outside, err = reach(ctx, product)
		}
		return p, err
	}
	if err := p.prepare(); err != nil {
		return nil, err
	}
	// A port that was free a moment ago may be taken by now; one that was asked for is not changed.
	attempts := 3
	if opts.Port != 0 {
		attempts = 1
	}
	var err error
	for range attempts {
		if err = p.launch(ctx); err == nil {
			return p, nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	p.removeData()
	return nil, err
}

// Endpoint is the URL that AWS clients take as their endpoint, without a trailing slash; empty for
// AWS itself.
func (p *Process) Endpoint() string {
	if p.outside != nil {
		return p.outside.endpoint
	}
	return "http://127.0.0.1:" + strconv.Itoa(p.port)
}

// LogFile is where the emulator, and with it the functions it runs, write.
func (p *Process) LogFile() string { return p.opts.Log }

// PID is the process id of the emulator and, being its leader, the id of its process group.
func (p *Process) PID() int { return p.cmd.Process.Pid }

func (p *Process) prepare() error {
	o := &p.opts
	product, err := o.chosen()
	if err != nil {
		return err
	}
	p.program = programs[product]
	if product != Ministack && (o.Auth || o.Persist) {
		return fmt.Errorf("%s has neither Auth nor Persist", product)
	}
	if o.Detach && (o.Dir == "" || o.PIDFile == "") {
		return errors.New("a detached emulator needs Dir and PIDFile")
	}
	if o.Root == "" {
		root, err := findRoot()
		if err != nil {
			return err
		}
		o.Root = root
	}
	if _, err := os.Stat(p.python()); err != nil {
		return fmt.Errorf("%w: make %s (%s is not there)", ErrMissing, p.program.install, p.python())
	}
	if o.Dir == "" {
		dir, err := os.MkdirTemp("", "longshore-emulator-")
		if err != nil {
			return fmt.Errorf("make data folder: %w", err)
		}
		o.Dir, p.removeDir = dir, true
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return fmt.Errorf("resolve data folder %s: %w", o.Dir, err)
	}
	o.Dir = dir
	if o.Log == "" {
		o.Log = filepath.Join(dir, "emulator.log")
	}
	if err := os.MkdirAll(filepath.Join(dir, "tmp"), 0o700); err != nil {
		return fmt.Errorf("make data folder: %w", err)
	}
	return nil
}

func (p *Process) python() string {
	return filepath.Join(p.opts.Root, ".tools", p.program.venv, "bin", "python")
}

// launch starts the process on its port and waits until it answers; when that fails nothing of it is left.
func (p *Process) launch(ctx context.Context) error {
	port, err := claimPort(p.opts.Port)
	if err != nil {
		return err
	}
	p.port = port
	if err := p.spawn(); err != nil {
		return err
	}
	err = p.awaitHealth(ctx)
	if err == nil && p.program.lazy {
		err = p.wake(ctx)
	}
	if err != nil {
		p.kill()
		return fmt.Errorf("start the AWS emulator: %w%s", err, logTail(p.opts.Log))
	}
	if !p.opts.Detach {
		return nil
	}
	if err := os.WriteFile(p.opts.PIDFile, []byte(strconv.Itoa(p.PID())+"\n"), 0o600); err != nil {
		p.kill()
		return fmt.Errorf("write pid file: %w", err)
	}
	return nil
}

func (p *Process) spawn() error {
	out, err := os.OpenFile(p.opts.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open emulator log: %w", err)
	}
	defer out.Close() // the child has its own copy

	p.cmd = exec.Command(p.python(), append([]string{"-c", lifelineStart + p.program.start, p.opts.Dir}, p.mode()...)...)
	p.cmd.Dir = p.opts.Dir
	p.cmd.Env = p.environment()
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if !p.opts.Detach {
		if p.lifeline, err = p.cmd.StdinPipe(); err != nil {
			return fmt.Errorf("make lifeline: %w", err)
		}
	}
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.python(), err)
	}
	p.exited = make(chan struct{})
	go func(cmd *exec.Cmd, exited chan struct{}) {
		_ = cmd.Wait() // how it ended is in its log
		close(exited)
	}(p.cmd, p.exited)
	return nil
}

func (p *Process) mode() []string {
	switch {
	case p.opts.Detach:
		return []string{"detached"}
	case p.removeDir:
		return []string{"lifeline", "remove"}
	default:
		return []string{"lifeline", "keep"}
	}
}

// environment is all that the emulator sees, because it hands everything it has to every
// function: nothing of the caller's may leak, and the functions must find the emulator.
func (p *Process) environment() []string {
	return append([]string{
		"PATH=/usr/local/bin:/usr/bin:/bin",
		"LANG=C.UTF-8",
		"HOME=" + p.opts.Dir,
		"TMPDIR=" + filepath.Join(p.opts.Dir, "tmp"),
		"PYTHONUNBUFFERED=1",
	}, p.program.environment(p)...)
}

// claimPort finds a free loopback port, or says that the wanted one is taken.
func claimPort(want int) (int, error) {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(want)))
	if err != nil {
		return 0, fmt.Errorf("port %d is in use (%w); see who has it with: ss -ltnp 'sport = :%d'", want, err, want)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		return 0, fmt.Errorf("release port %d: %w", port, err)
	}
	return port, nil
}

// startTimeout bounds a start for callers whose context has no deadline: half a second is usual.
const startTimeout = 3 * time.Minute
