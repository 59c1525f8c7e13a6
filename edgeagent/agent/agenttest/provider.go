package agenttest

import (
	"context"
	"sync"

	"github.com/longshore-run/longshore/edgeagent/agent"
)

// Provider answers what a test says, and nothing where that says nothing.
type Provider struct {
	OnLogin  func(n agent.Need) (agent.Login, error)
	OnValues func(n agent.Need) (agent.Values, error)

	mu        sync.Mutex
	asked     []string
	forgotten []string
}

var _ agent.Provider = (*Provider)(nil)

func (p *Provider) note(what string, n agent.Need) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, what+" "+n.Task+"/"+n.Container+" "+n.ExecutionRole)
}

// Login implements agent.Provider.
func (p *Provider) Login(_ context.Context, n agent.Need) (agent.Login, error) {
	p.note("login", n)
	if p.OnLogin == nil {
		return agent.Login{}, nil
	}
	return p.OnLogin(n)
}

// Values implements agent.Provider.
func (p *Provider) Values(_ context.Context, n agent.Need) (agent.Values, error) {
	p.note("values", n)
	if p.OnValues == nil {
		return agent.Values{}, nil
	}
	return p.OnValues(n)
}

// Forget implements agent.Provider.
func (p *Provider) Forget(task string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forgotten = append(p.forgotten, task)
}

// Capabilities implements agent.Provider.
func (p *Provider) Capabilities() []string { return []string{"ecs.capability.secrets.test"} }

// Asked is what was asked, in order.
func (p *Provider) Asked() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.asked...)
}

// Forgotten are the tasks of which nothing is to be kept.
func (p *Provider) Forgotten() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.forgotten...)
}
