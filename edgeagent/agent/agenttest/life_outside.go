package agenttest

import (
	"context"

	"github.com/longshore-run/longshore/edgeagent/agent"
)

type lifeImages struct {
	agent.ImageStore
	life *Life
}

func (s lifeImages) RemoveImage(ctx context.Context, i agent.Image) error {
	return s.life.do("remove image", func() error { return s.ImageStore.RemoveImage(ctx, i) })
}

type lifeProvider struct {
	agent.Provider
	life *Life
}

// Login and Values have no effect here; what they answer may be lost all the same.
func (p lifeProvider) Login(ctx context.Context, n agent.Need) (login agent.Login, err error) {
	err = p.life.do("login", func() (err error) { login, err = p.Provider.Login(ctx, n); return err })
	return login, err
}

func (p lifeProvider) Values(ctx context.Context, n agent.Need) (values agent.Values, err error) {
	err = p.life.do("values", func() (err error) { values, err = p.Provider.Values(ctx, n); return err })
	return values, err
}

type lifeReserve struct {
	agent.Reserve
	life *Life
}

func (r lifeReserve) Refill() error { return r.life.do("refill", r.Reserve.Refill) }
