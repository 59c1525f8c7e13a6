package agenttest_test

import (
	"context"
	"regexp"
	"strconv"
	"sync"
	"testing"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/edgeagent/agent/agenttest"
	"github.com/longshore-run/longshore/shared/fault"
)

const fakeImage = "busybox:latest"

// shell is the engine in memory with the programs that the contract speaks of,
// and with one image.
type shell struct {
	*agenttest.Engine
	mu       sync.Mutex
	programs map[agent.ContainerID]agenttest.Program
}

func newShell() *shell {
	s := &shell{Engine: agenttest.NewEngine(), programs: map[agent.ContainerID]agenttest.Program{}}
	s.Stock(agent.Image{ID: "sha256:" + fakeImage, Names: []string{fakeImage}}, false)
	s.OnStart = func(id agent.ContainerID) agenttest.Program {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.programs[id]
	}
	return s
}

var (
	quits   = regexp.MustCompile(`^exit (\d+)$`)
	listens = regexp.MustCompile(`^trap 'exit (\d+)' TERM`)
	deaf    = regexp.MustCompile(`^trap '' TERM`)
)

func (s *shell) Create(ctx context.Context, spec agent.Spec) (string, error) {
	c, _ := spec.Definition.Container(spec.Container)
	if c.Image != fakeImage {
		return "", fault.New(fault.NotFound, "CannotCreateContainerError: no such image: %s", c.Image)
	}
	text := c.Command[len(c.Command)-1]
	var p agenttest.Program
	if m := quits.FindStringSubmatch(text); m != nil {
		p.Exit = new(number(m[1]))
	} else if m := listens.FindStringSubmatch(text); m != nil {
		p.Code = new(number(m[1]))
	} else {
		p.Deaf = deaf.MatchString(text)
	}
	s.mu.Lock()
	s.programs[spec.ContainerID] = p
	s.mu.Unlock()
	return s.Engine.Create(ctx, spec)
}

func number(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}

func (s *shell) Image(ctx context.Context, ref string, login agent.Login) (string, error) {
	if ref != fakeImage {
		return "", fault.New(fault.NotFound, "CannotPullContainerError: no such image: %s", ref)
	}
	return s.Engine.Image(ctx, ref, login)
}

func TestEngine_InMemoryKeepsTheContractOfEngines(t *testing.T) {
	var mu sync.Mutex
	all := map[string]*shell{}
	agenttest.EngineContract(t, func(instance string) agent.Engine {
		mu.Lock()
		defer mu.Unlock()
		if all[instance] == nil {
			all[instance] = newShell()
		}
		return all[instance]
	}, fakeImage)
}
