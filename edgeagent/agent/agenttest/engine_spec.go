package agenttest

import "github.com/longshore-run/longshore/edgeagent/agent"

// Spec is what a container was made from.
func (e *Engine) Spec(id agent.ContainerID) agent.Spec {
	e.mu.Lock()
	defer e.mu.Unlock()
	if b := e.containers[id]; b != nil {
		return b.spec
	}
	return agent.Spec{}
}

// Logins are those that images were asked for with, in order.
func (e *Engine) Logins() []agent.Login {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]agent.Login(nil), e.logins...)
}

// Fail puts an error on a container, as an engine keeps the last failed start of one.
func (e *Engine) Fail(id agent.ContainerID, text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if b := e.containers[id]; b != nil {
		b.seen.Error = text
		e.tell(b.seen)
	}
}
