package agent_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
)

// twists are what a stream may show in place of what happened. Each is made anew
// for a run, since some keep back what they have heard.
var twists = map[string]func() func(agent.Seen) []agent.Seen{
	"all lost": func() func(agent.Seen) []agent.Seen { return func(agent.Seen) []agent.Seen { return nil } },
	"every other lost": func() func(agent.Seen) []agent.Seen {
		n := 0
		return func(s agent.Seen) []agent.Seen {
			if n++; n%2 == 0 {
				return nil
			}
			return []agent.Seen{s}
		}
	},
	"three times each": func() func(agent.Seen) []agent.Seen {
		return func(s agent.Seen) []agent.Seen { return []agent.Seen{s, s, s} }
	},
	"all that was before, again and again, the oldest last": func() func(agent.Seen) []agent.Seen {
		var heard []agent.Seen
		return func(s agent.Seen) []agent.Seen {
			heard = append(heard, s)
			back := slices.Clone(heard[max(0, len(heard)-50):])
			slices.Reverse(back)
			return back
		}
	},
	"kept back for four events": func() func(agent.Seen) []agent.Seen {
		var heard []agent.Seen
		return func(s agent.Seen) []agent.Seen {
			if heard = append(heard, s); len(heard) <= 4 {
				return nil
			}
			return []agent.Seen{heard[len(heard)-5]}
		}
	},
	"of containers that nobody has": func() func(agent.Seen) []agent.Seen {
		return func(s agent.Seen) []agent.Seen {
			other, part := s, s
			other.Task, part.Container = id(99), "nobody"
			return []agent.Seen{other, part, s}
		}
	},
}

// A stream that lies costs time at most: within a re-check all is known, nothing
// runs twice, and what was told in the end is so. The stream stays open all along:
// that it closes is TestEngine_WhatItsStreamMissedIsFound.
func TestFault_AStreamThatLiesCostsARecheckAtMost(t *testing.T) {
	t.Parallel()
	for name, twist := range twists {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				var mu sync.Mutex
				lie := twist()
				r.engine.Twist(func(s agent.Seen) []agent.Seen {
					mu.Lock()
					defer mu.Unlock()
					return lie(s)
				})
				p := r.planed()
				r.up()
				policy := &taskdef.RestartPolicy{Enabled: new(true), RestartAttemptPeriod: new(60)}
				for n := 1; n <= 4; n++ {
					p.Assign(r.assign(n, 1))
				}
				p.Assign(r.assign(5, 1, taskdef.ContainerDefinition{Name: "app", Image: "busybox", RestartPolicy: policy}))
				p.Assign(r.assign(6, 1))
				r.pass(2 * time.Minute)
				if b := last[*wire.Heartbeat](r); b.Docker != wire.DockerOK {
					t.Errorf("a stream that lies is no engine that is silent: %s", b.DockerReason)
				}
				r.engine.Exit(app(1, 1), 3)
				r.engine.Lose(app(2, 1))
				r.engine.Exit(app(5, 1), 9)
				r.put(r.stop(6, 1))
				r.pass(r.setting.RecheckEach + time.Minute) // T10
				r.agree(p)
				told := p.Tasks()
				if one, two := told[id(1)], told[id(2)]; !one.Over() || !slices.Equal(one.Codes, []int{3}) || !two.Over() || two.Codes != nil {
					t.Errorf("what ended is %+v, what was removed %+v", one, two)
				}
				if told[id(3)].Over() || told[id(4)].Over() || told[id(5)].Over() || !told[id(6)].Over() {
					t.Errorf("told are %+v", told)
				}
				for n := 1; n <= 6; n++ {
					want := 1
					if n == 5 {
						want = 2
					}
					r.starts(n, 1, want)
				}
				if r.setting.RecheckEach < 5*time.Minute || r.setting.RecheckEach > 10*time.Minute {
					t.Errorf("everything is read again each %s", r.setting.RecheckEach)
				}
				r.down()
			})
		})
	}
}
