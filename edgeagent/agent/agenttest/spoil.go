package agenttest

import (
	"context"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
)

// Spoil has every call of an engine go as it says: call is the call itself, which
// it may leave out, make and deny, or make late.
type Spoil func(ctx context.Context, verb string, id agent.ContainerID, call func() error) error

// On is an engine as it is seen through it.
func (s Spoil) On(e agent.Engine) agent.Engine {
	if s == nil {
		return e
	}
	return spoilt{e, s}
}

type spoilt struct {
	agent.Engine
	spoil Spoil
}

func (e spoilt) Image(ctx context.Context, ref string, login agent.Login) (digest string, err error) {
	err = e.spoil(ctx, "image", agent.ContainerID{}, func() (err error) { digest, err = e.Engine.Image(ctx, ref, login); return err })
	return digest, err
}

func (e spoilt) Create(ctx context.Context, spec agent.Spec) (id string, err error) {
	err = e.spoil(ctx, "create", spec.ContainerID, func() (err error) { id, err = e.Engine.Create(ctx, spec); return err })
	return id, err
}

func (e spoilt) Start(ctx context.Context, id agent.ContainerID) error {
	return e.spoil(ctx, "start", id, func() error { return e.Engine.Start(ctx, id) })
}

func (e spoilt) Restart(ctx context.Context, id agent.ContainerID, began time.Time) error {
	return e.spoil(ctx, "restart", id, func() error { return e.Engine.Restart(ctx, id, began) })
}

func (e spoilt) Stop(ctx context.Context, id agent.ContainerID, timeout time.Duration) error {
	return e.spoil(ctx, "stop", id, func() error { return e.Engine.Stop(ctx, id, timeout) })
}

func (e spoilt) Remove(ctx context.Context, id agent.ContainerID) error {
	return e.spoil(ctx, "remove", id, func() error { return e.Engine.Remove(ctx, id) })
}

func (e spoilt) RemoveTask(ctx context.Context, task string, attempt int) error {
	return e.spoil(ctx, "removetask", agent.ContainerID{Task: task, Attempt: attempt}, func() error { return e.Engine.RemoveTask(ctx, task, attempt) })
}

func (e spoilt) Observe(ctx context.Context, id agent.ContainerID) (s agent.Seen, err error) {
	err = e.spoil(ctx, "observe", id, func() (err error) { s, err = e.Engine.Observe(ctx, id); return err })
	return s, err
}

func (e spoilt) List(ctx context.Context) (all []agent.Seen, err error) {
	err = e.spoil(ctx, "list", agent.ContainerID{}, func() (err error) { all, err = e.Engine.List(ctx); return err })
	return all, err
}

func (e spoilt) Watch(ctx context.Context) (news <-chan agent.Seen, err error) {
	err = e.spoil(ctx, "watch", agent.ContainerID{}, func() (err error) { news, err = e.Engine.Watch(ctx); return err })
	return news, err
}

func (e spoilt) Ping(ctx context.Context) error {
	return e.spoil(ctx, "ping", agent.ContainerID{}, func() error { return e.Engine.Ping(ctx) })
}

func (e spoilt) Info(ctx context.Context) (info agent.EngineInfo, err error) {
	err = e.spoil(ctx, "info", agent.ContainerID{}, func() (err error) { info, err = e.Engine.Info(ctx); return err })
	return info, err
}
