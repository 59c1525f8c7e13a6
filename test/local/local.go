// Package local brings the whole of Longshore up on this machine: the AWS
// emulator, the real CDK stack deployed into it, and agents on the local Docker
// engine. It builds nothing itself (`make build` does) and decides nothing about
// tasks. The end-to-end tests and the command beside it import it.
package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/longshore-run/longshore/test/emulator"
	"github.com/longshore-run/longshore/test/image"
)

// Options say what is brought up. Zero durations mean the local defaults.
type Options struct {
	// Root is the project's folder, Dir where all of this stack's files go.
	Root, Dir string
	Agents    int
	Port      int // of the emulator; 0 picks a free one

	HeartbeatEvery, SuspectAfter, ReapAfter, CleanupWait time.Duration
	LogLevel                                             string

	// Auth has the emulator verify signatures and enforce roles and policies; the
	// stack's own keys stay all-powerful.
	Auth bool
	// Persist lets the emulator keep its state over RestartEmulator.
	Persist bool
	// Program is the agent's binary; empty for the one that `make build` makes.
	Program string
	// Elsewhere leaves it to the caller to start the agents: they are known to the
	// control plane, and each has its environment in its folder.
	Elsewhere bool
	// AgentEnv says what the environment of the nth agent has on top or otherwise;
	// the emulator answers at endpoint. It may be nil.
	AgentEnv func(n int, endpoint string) (map[string]string, error)

	Progress io.Writer
}

func (o Options) withDefaults() Options {
	orElse := func(d *time.Duration, def time.Duration) {
		if *d == 0 {
			*d = def
		}
	}
	orElse(&o.HeartbeatEvery, 5*time.Second)
	orElse(&o.SuspectAfter, 15*time.Second)
	orElse(&o.ReapAfter, 10*time.Minute)
	orElse(&o.CleanupWait, 3*time.Hour)
	if o.Agents == 0 {
		o.Agents = 1
	}
	if o.LogLevel == "" {
		o.LogLevel = "info"
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	return o
}

// Stack is a local stack that is up, or was and is to be taken down.
type Stack struct {
	Options  Options
	Endpoint string // of the emulator
	Image    string
	Outputs  Outputs
	begun    time.Time
}

// Up brings a stack up; the caller takes it down with Down, also after an error.
func Up(ctx context.Context, o Options) (*Stack, error) {
	s := &Stack{Options: o.withDefaults(), begun: time.Now()}
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"look for what is needed", s.checkBuilt},
		{"provide the image busybox:latest", s.provideImage},
		{"start the AWS emulator", s.startEmulator},
		{"deploy the CDK stack", s.deploy},
		{"create the cluster", s.createCluster},
		{fmt.Sprintf("start %d agent(s)", s.Options.Agents), s.startAgents},
		{"wait until every agent is connected", s.awaitAgents},
		{"write " + filepath.Join(s.Options.Dir, "env"), s.writeEnv},
	} {
		s.say("%s", step.what)
		if err := step.do(ctx); ctx.Err() != nil {
			return s, fmt.Errorf("interrupted in: %s", step.what)
		} else if err != nil {
			return s, fmt.Errorf("%s: %w", step.what, err)
		}
	}
	s.say("up")
	return s, nil
}

func (s *Stack) say(format string, args ...any) {
	fmt.Fprintf(s.Options.Progress, "[%5.1f s] %s\n", time.Since(s.begun).Seconds(), fmt.Sprintf(format, args...))
}

// Binary is the agent: where `make build` puts the one for this machine, if the
// options name no other.
func (s *Stack) Binary() string {
	if s.Options.Program != "" {
		return s.Options.Program
	}
	return filepath.Join(s.Options.Root, "dist", "agent", runtime.GOARCH, "longshore-agent")
}

// Exists says whether something of a stack is in dir.
func Exists(dir string) bool {
	_, own := os.Stat(filepath.Join(dir, emulatorPID))
	_, other := os.Stat(filepath.Join(dir, outsideFile))
	return own == nil || other == nil
}

func (s *Stack) checkBuilt(context.Context) error {
	if Exists(s.Options.Dir) {
		return fmt.Errorf("a local stack is there already in %s; take it down with: make local-down", s.Options.Dir)
	}
	for _, file := range []string{
		s.Binary(),
		filepath.Join(s.Options.Root, "dist", "lambda", runtime.GOARCH, "api", "bootstrap"),
		s.cdk(),
	} {
		if _, err := os.Stat(file); err != nil {
			return fmt.Errorf("%s is not there; make it with: make build tools", file)
		}
	}
	return os.MkdirAll(s.Options.Dir, 0o755)
}

func (s *Stack) provideImage(ctx context.Context) (err error) {
	s.Image, err = image.Ensure(ctx)
	return err
}

const emulatorPID = "emulator.pid"

func (s *Stack) startEmulator(ctx context.Context) error {
	p, err := emulator.Start(ctx, emulator.Options{
		Root: s.Options.Root, Port: s.Options.Port, Dir: filepath.Join(s.Options.Dir, "emulator"), Persist: s.Options.Persist, Auth: s.Options.Auth,
		Log: s.EmulatorLog(), Detach: true, PIDFile: filepath.Join(s.Options.Dir, emulatorPID),
	})
	if err != nil {
		return err
	}
	s.Endpoint = p.Endpoint()
	if s.Endpoint == "" {
		return errors.New("this stack is for emulators; a real account gets the real one: docs/checklists/first-account.md")
	}
	if (emulator.Options{}).Outside() { // not ours to stop: what is deployed there is to be removed
		return os.WriteFile(filepath.Join(s.Options.Dir, outsideFile), []byte(s.Endpoint), 0o644)
	}
	return nil
}

// EmulatorLog is where the emulator, and with it every function, writes.
func (s *Stack) EmulatorLog() string { return filepath.Join(s.Options.Dir, "emulator.log") }

// EmulatorPID is the emulator's process, and the group of the functions' ones.
func (s *Stack) EmulatorPID() (int, error) {
	return emulator.Running(filepath.Join(s.Options.Dir, emulatorPID))
}

// RestartEmulator ends the emulator in its own time and starts it again at the
// same address, with the state that Persist has let it keep.
func (s *Stack) RestartEmulator(ctx context.Context) error {
	if !s.Options.Persist {
		return errors.New("an emulator that does not keep its state is not started again")
	}
	at, err := url.Parse(s.Endpoint)
	if err != nil {
		return err
	}
	if s.Options.Port, err = strconv.Atoi(at.Port()); err != nil {
		return fmt.Errorf("port of %s: %w", s.Endpoint, err)
	}
	if err := emulator.StopDetached(ctx, filepath.Join(s.Options.Dir, emulatorPID)); err != nil {
		return err
	}
	return s.startEmulator(ctx)
}

// Down takes the stack in dir down: agents, their containers, the emulator and
// with it every queue and table. Whatever is not there any more is success.
func Down(ctx context.Context, dir string) error {
	instances := agentInstances(dir)
	errs := []error{stopAgents(ctx, dir), removeContainers(ctx, instances), removeOutside(ctx, dir), emulator.StopDetached(ctx, filepath.Join(dir, emulatorPID))}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("take down the local stack in %s: %w", dir, err)
	}
	return os.RemoveAll(dir)
}
