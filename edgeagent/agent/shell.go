package agent

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/longshore-run/longshore/edgeagent/internal/supervise"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/logkey"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// shell is the engine and the journal as one task's goroutine sees them.
type shell struct {
	a   *Agent
	rec Record                  // as it was when the goroutine began; its State is not looked at
	def *taskdef.TaskDefinition // nil for an adopted task
	log *slog.Logger

	mu    sync.Mutex
	known map[string]known // by container
}

func newShell(a *Agent, rec Record) *shell {
	s := &shell{a: a, rec: rec, known: map[string]known{}, log: a.Log.With(logkey.Task, rec.ID(), logkey.Attempt, rec.Attempt())}
	if len(rec.Definition) > 0 {
		if def, err := rec.definition(); err == nil {
			s.def = def
		}
	}
	return s
}

func (s *shell) id(container string) ContainerID {
	return ContainerID{Task: s.rec.ID(), Attempt: s.rec.Attempt(), Container: container}
}

func (s *shell) Check(_ context.Context, ports []supervise.Port) ([]supervise.Port, error) {
	if s.a.Taken == nil {
		return nil, nil
	}
	var tcp, udp []int
	for _, p := range ports {
		if p.Protocol == "udp" {
			udp = append(udp, p.Number)
		} else {
			tcp = append(tcp, p.Number)
		}
	}
	tcp, udp = s.a.Taken(tcp, udp)
	if len(tcp)+len(udp) == 0 {
		return nil, nil
	}
	return taken(&PortsTaken{TCP: tcp, UDP: udp}), nil
}

func (s *shell) Image(ctx context.Context, container string) (string, error) {
	if container == PauseContainer {
		return s.a.Engine.Image(ctx, PauseImage, Login{})
	}
	c, ok := s.container(container)
	if !ok {
		return "", errNoDefinition
	}
	if err := s.a.pin(ctx, s.id(container), c.Image); err != nil {
		return "", err
	}
	var digest string
	err := s.a.withRoom(ctx, func() (err error) {
		digest, err = s.image(ctx, c)
		return err
	})
	s.a.keepPulled()
	return digest, err
}

var errNoDefinition = fault.New(fault.Invalid, "the task's definition is not known here")

func (s *shell) container(name string) (taskdef.ContainerDefinition, bool) {
	if s.def == nil {
		return taskdef.ContainerDefinition{}, false
	}
	return s.def.Container(name)
}

func (s *shell) Create(ctx context.Context, container string) (string, error) {
	if s.def == nil {
		return "", errNoDefinition
	}
	spec := s.rec.spec(s.def, container)
	if err := s.values(ctx, &spec); err != nil {
		return "", err
	}
	if err := s.a.furnish(&spec); err != nil {
		return "", err
	}
	var made string
	err := s.a.withRoom(ctx, func() (err error) {
		made, err = s.a.Engine.Create(ctx, spec)
		return s.veiled(container, err)
	})
	if err == nil {
		s.a.unpin(s.id(container))
	}
	return made, err
}

func (s *shell) Start(ctx context.Context, container string) error {
	s.log.Info("start container", logkey.Container, container)
	return s.veiled(container, s.a.Engine.Start(ctx, s.id(container)))
}

func (s *shell) Restart(ctx context.Context, container string, began time.Time) error {
	s.log.Info("restart container by its policy", logkey.Container, container)
	return s.veiled(container, s.a.Engine.Restart(ctx, s.id(container), began))
}

func (s *shell) Stop(ctx context.Context, container string, timeout time.Duration) error {
	s.log.Info("stop container", logkey.Container, container)
	return s.a.Engine.Stop(ctx, s.id(container), timeout)
}

func (s *shell) Observe(ctx context.Context, container string) (supervise.Seen, error) {
	seen, err := s.a.Engine.Observe(ctx, s.id(container))
	return s.Veil(seen.inner()), err
}

func (s *shell) Veil(seen supervise.Seen) supervise.Seen {
	seen.Error = s.veil(seen.Container, seen.Error)
	return seen
}

func (s *shell) Ping(ctx context.Context) error { return s.a.Engine.Ping(ctx) }

func (s *shell) Taken(err error) []supervise.Port { return taken(err) }

func (s *shell) Dropped(seen supervise.Seen) {
	s.log.Warn("container is not one of its task's", logkey.Container, seen.Container)
}

// errSuperseded says that the journal has another attempt by now.
var errSuperseded = errors.New("a newer attempt is in the journal")

func (s *shell) Save(ctx context.Context, t supervise.Task) error {
	for tries := 0; ; tries++ {
		said := false
		err := s.a.book.update(func(p *page) error {
			r, ok := p.task(t.ID)
			if !ok || r.Attempt() != t.Attempt {
				return errSuperseded
			}
			said = tells(&r.State, &t)
			r.State = t
			if said {
				p.say(r)
			} else {
				p.write(r)
			}
			return nil
		})
		switch {
		case err == nil:
			if said {
				s.tell(t)
			}
			return nil
		case errors.Is(err, errSuperseded):
			s.log.Error("state of a task is dropped", logkey.Error, err)
			return err
		}
		s.log.Error("the journal cannot be written: nothing is done before it can", logkey.Error, err)
		if !sleep(ctx, s.a.backoff(tries, time.Second, 30*time.Second), nil) {
			return ctx.Err()
		}
		s.a.turn("task " + t.ID)
	}
}

func (s *shell) tell(t supervise.Task) {
	log := s.log.With(logkey.Status, t.Status)
	switch {
	case t.Refusal != nil:
		log.Warn("task refused", logkey.Reason, t.Refusal.Reason)
	case t.Status == task.Stopped:
		log.Info("task ended", logkey.Reason, t.Reason)
	default:
		log.Info("task moved on", logkey.Desired, t.Desired)
	}
	s.a.reports.ring()
	if t.Ended() {
		if s.a.Provider != nil {
			s.a.Provider.Forget(t.ID)
		}
		s.a.cleanups.ring()
	}
}

// inner is s in the words of the task's goroutine.
func (s Seen) inner() supervise.Seen {
	return supervise.Seen{
		Container: s.Container, RuntimeID: s.RuntimeID, Running: s.Running, Created: s.Created, Gone: s.Gone,
		ExitCode: s.ExitCode, OOMKilled: s.OOMKilled, Error: s.Error, Image: s.Image, Digest: s.Digest,
		Bindings: s.Bindings, Health: s.Health, HealthAt: s.HealthAt, StartedAt: s.StartedAt, FinishedAt: s.FinishedAt, Labels: s.Labels,
	}
}
