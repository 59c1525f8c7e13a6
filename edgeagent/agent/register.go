package agent

import (
	"context"
	"maps"
	"strings"
	"time"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/logkey"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
)

// namedAfter is when an agent that is not welcomed calls it a fault.
const namedAfter = 5 * time.Minute

// register is the loop that asks for admission until it is welcomed, and again
// whenever the command queue is gone.
func (a *Agent) register(ctx context.Context) {
	var since, named time.Time
	for tries := 0; ; {
		a.turn("register")
		a.registers.hush()
		m, ready := a.registration()
		if ready {
			a.compareOffer(m)
		}
		switch {
		case a.isWelcomed() || a.isEnding():
			tries, since, named = 0, time.Time{}, time.Time{}
			if !sleep(ctx, mostWait, a.registers) {
				return
			}
			continue
		case !ready: // what the engine holds and has is not known yet
			if a.isRecovered() {
				a.Log.Error("not registered: there is nothing to offer; see LONGSHORE_CPU, LONGSHORE_MEMORY and LONGSHORE_RESERVED_MEMORY", "cpu", m.CPU, "memory", m.MemoryMiB)
			}
			if !sleep(ctx, namedAfter, a.registers) {
				return
			}
			continue
		}
		now := a.Now()
		if since.IsZero() {
			since, named = now, now
		}
		err := a.sendRegister(ctx, m)
		if now.Sub(named) >= namedAfter {
			named = now
			a.blame(now.Sub(since), err)
		}
		pause := sleep
		if err != nil {
			pause = a.retry
		}
		if !pause(ctx, a.backoff(tries, time.Second, time.Minute), a.registers) {
			return
		}
		tries++
	}
}

func (a *Agent) sendRegister(ctx context.Context, m *wire.Register) error {
	err := a.book.update(func(p *page) error {
		m.N, m.Epoch, m.Incarnation = p.draw(), p.meta.Epoch, p.meta.Incarnation
		return nil
	})
	a.mu.Lock()
	a.offered = m.Attributes
	a.mu.Unlock()
	if err == nil {
		err = a.Outbox.SendReports(ctx, []wire.Message{m})[0]
	}
	if err != nil && ctx.Err() == nil {
		a.Log.Warn("register", logkey.Error, err)
	}
	return err
}

// blame says what keeps the agent out, once it can no longer be "not yet".
func (a *Agent) blame(waited time.Duration, sent error) {
	a.mu.Lock()
	inbox := a.inbox
	a.mu.Unlock()
	log := a.Log.With(logkey.Duration, waited.Round(time.Second).String())
	switch {
	case sent != nil:
		log.Error("not registered: the reports queue cannot be reached; check its URL, the role of this machine and the network", logkey.Error, sent)
	case fault.Is(inbox, fault.Denied):
		log.Error("not registered: no access to the command queue; it does not exist, or its longshore-sender tag is not this machine's aws:userid", logkey.Error, inbox)
	case inbox != nil:
		log.Error("not registered: the command queue does not answer", logkey.Error, inbox)
	default:
		log.Error("not registered: no welcome came; see the statechange function's log and its dead-letter queue")
	}
}

func (a *Agent) isWelcomed() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.welcomed
}

func (a *Agent) isEnding() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ending
}

// registration is what this instance is and has; false while that is unknown.
func (a *Agent) registration() (*wire.Register, bool) {
	var meta Meta
	a.book.view(func(p *page) { meta = p.meta })
	s, e := a.Setting, meta.Engine
	m := &wire.Register{
		Header: wire.Header{Instance: a.instance}, Identity: a.Identity, Session: a.Session, Cluster: s.Cluster,
		WireVersions: wire.Versions(), AgentVersion: a.Version, AgentHash: a.Hash, DockerVersion: e.Version,
		EC2InstanceID: s.EC2InstanceID, Zone: s.Zone, CPU: s.CPU, MemoryMiB: s.MemoryMiB,
		ReservedTCP: s.ReservedTCP, ReservedUDP: s.ReservedUDP, GPUs: s.GPUs, Attributes: attributes(e, s.Zone, a.capabilities(), s.Attributes),
	}
	if m.CPU == 0 {
		m.CPU = e.CPUs * 1024
	}
	if m.MemoryMiB == 0 {
		m.MemoryMiB = e.MemoryMiB - s.ReservedMemoryMiB
	}
	return m, meta.Rebuilt && m.CPU > 0 && m.MemoryMiB > 0
}

// attributes are what placement constraints ask about: what ECS's agent says of
// itself, and what the operator adds.
func attributes(e EngineInfo, zone string, capabilities, own []string) map[string]string {
	all := map[string]string{}
	for name, value := range map[string]string{
		"ecs.os-type": e.OSType, "ecs.cpu-architecture": e.Arch, "ecs.availability-zone": zone,
	} {
		if value != "" {
			all[name] = value
		}
	}
	if e.TaskLimits {
		all[taskdef.CapabilityTaskLimits] = ""
	}
	for _, name := range capabilities {
		all[name] = ""
	}
	mine := map[string]string{}
	for _, pair := range own {
		name, value, _ := strings.Cut(pair, "=")
		mine[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	maps.Copy(all, mine)
	return all
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }
