package agent_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/edgeagent/agent/agenttest"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
)

// kept is a container with something of every kind in other services.
func kept() taskdef.ContainerDefinition {
	return taskdef.ContainerDefinition{
		Name: "app", Image: "reg.example.com/app",
		Environment:           []taskdef.KeyValuePair{{Name: "OWN", Value: "own"}, {Name: "BOTH", Value: "of the definition"}},
		EnvironmentFiles:      []taskdef.EnvironmentFile{{Type: "s3", Value: "arn:aws:s3:::b/a.env"}},
		Secrets:               []taskdef.Secret{{Name: "PASSWORD", ValueFrom: "db"}},
		RepositoryCredentials: &taskdef.RepositoryCredentials{CredentialsParameter: "reg"},
		LogConfiguration:      &taskdef.LogConfiguration{LogDriver: "splunk", SecretOptions: []taskdef.Secret{{Name: "splunk-token", ValueFrom: "tok"}}},
	}
}

// The canaries: one of each kind, with what programs quote in their own ways.
var (
	values = agent.Values{
		Files:      map[string]string{"FILE": "CANARY-file", "BOTH": "CANARY-both"},
		Secrets:    map[string]string{"PASSWORD": "CANARY-\"quoted\"\nand <more> ü/ &"},
		LogOptions: map[string]string{"splunk-token": "CANARY-token"},
	}
	login = agent.Login{Username: "CANARY-user", Password: "CANARY-pass"}
)

func provider() *agenttest.Provider {
	return &agenttest.Provider{
		OnLogin:  func(agent.Need) (agent.Login, error) { return login, nil },
		OnValues: func(agent.Need) (agent.Values, error) { return values, nil },
	}
}

func TestProvider_GivesTheContainerWhatItsDefinitionHasElsewhere(t *testing.T) {
	bubble(t, func(r *rig) {
		p := provider()
		r.provider = p
		r.up()
		if a := last[*wire.Register](r).Attributes; !slices.Contains(slices.Collect(maps.Keys(a)), "ecs.capability.secrets.test") {

			r.t.Errorf("registered with %v", a)
		}
		r.put(r.assign(1, 1, kept()))
		r.expect(1, "RUNNING")
		spec := r.engine.Spec(app(1, 1))
		want := map[string]string{"FILE": "CANARY-file", "PASSWORD": values.Secrets["PASSWORD"]} // the definition's BOTH comes first
		if !maps.Equal(spec.Environment, want) || spec.LogOptions["splunk-token"] != "CANARY-token" || len(spec.LogOptions) != 1 {
			r.t.Errorf("environment %q, log options %q", spec.Environment, spec.LogOptions)
		}
		if got := r.engine.Logins(); len(got) != 1 || got[0] != login {
			r.t.Errorf("pulled %d times, as another", len(got))
		}
		if got := strings.Join(p.Asked(), ","); got != "login "+id(1)+"/app ,values "+id(1)+"/app " {
			r.t.Errorf("asked %s", got)
		}
		if len(p.Forgotten()) != 0 {
			r.t.Error("a task that runs is forgotten")
		}
		r.engine.Exit(app(1, 1), 0)
		r.pass(time.Second)
		if got := strings.Join(p.Forgotten(), ","); got != id(1) {
			r.t.Errorf("forgotten %s", got)
		}
		r.down()
	})
}

func TestProvider_NothingIsReadForWhatHasNothingElsewhere(t *testing.T) {
	bubble(t, func(r *rig) {
		p := provider()
		r.provider = p
		r.up()
		r.put(r.assign(1, 1))
		r.expect(1, "RUNNING")
		if got := strings.Join(p.Asked(), ","); got != "login "+id(1)+"/app " {
			r.t.Errorf("asked %s", got)
		}
		r.down()
	})
}

func TestProvider_WithoutOneSuchATaskEndsAndSaysWhy(t *testing.T) {
	for _, drop := range []func(*taskdef.ContainerDefinition){
		func(c *taskdef.ContainerDefinition) { c.RepositoryCredentials = nil },
		func(c *taskdef.ContainerDefinition) {
			c.Secrets, c.EnvironmentFiles, c.LogConfiguration = nil, nil, nil
		},
	} {
		bubble(t, func(r *rig) {
			r.up()
			c := kept()
			drop(&c)
			r.put(r.assign(1, 1, c))
			r.ended(1, "STOPPED")
			if reason := last[*wire.Report](r).Reason; !strings.HasPrefix(reason, "ResourceInitializationError: ") {
				r.t.Errorf("ended for %q", reason)
			}
			r.down()
		})
	}
}

// TestProvider_WhatCannotBeHadEndsTheTaskInECSsWords: what may pass is asked for again for a bounded time, the rest is not.
func TestProvider_WhatCannotBeHadEndsTheTaskInECSsWords(t *testing.T) {
	const words = "ResourceInitializationError: unable to pull secrets or registry auth: "
	for kind, asks := range map[fault.Kind]int{fault.Denied: 1, fault.Invalid: 1, fault.Unavailable: 5} {
		for _, what := range []string{"login", "values"} {
			t.Run(fmt.Sprint(kind, " ", what), func(t *testing.T) {
				bubble(t, func(r *rig) {
					p := provider()
					r.provider = p
					no := fault.New(kind, "%sdb: no", words)
					if what == "login" {
						p.OnLogin = func(agent.Need) (agent.Login, error) { return agent.Login{}, no }
						r.engine.Script = func(_ context.Context, verb string, _ agent.ContainerID) error {
							if verb == "image" {
								return fault.New(fault.NotFound, "not there")
							}
							return nil
						}
					} else {
						p.OnValues = func(agent.Need) (agent.Values, error) { return agent.Values{}, no }
					}
					r.up()
					r.put(r.assign(1, 1, kept()))
					r.pass(time.Minute)
					r.ended(1, "STOPPED")
					m := last[*wire.Report](r)
					if m.Reason != words+"db: no" || m.Containers[0].Reason != m.Reason {
						t.Errorf("ended for %q, its container for %q", m.Reason, m.Containers[0].Reason)
					}
					n := 0
					for _, a := range p.Asked() {
						if strings.HasPrefix(a, what) {
							n++
						}
					}
					if n != asks {
						t.Errorf("asked %d times, want %d", n, asks)
					}
					r.down()
				})
			})
		}
	}
}

func TestProvider_ThatAnswersLaterIsWaitedFor(t *testing.T) {
	bubble(t, func(r *rig) {
		p := provider()
		r.provider = p
		n := 0
		p.OnValues = func(agent.Need) (agent.Values, error) {
			if n++; n < 4 {
				return agent.Values{}, fault.New(fault.Unavailable, "throttled")
			}
			return values, nil
		}
		r.up()
		r.put(r.assign(1, 1, kept()))
		r.pass(time.Minute)
		r.expect(1, "RUNNING")
		r.down()
	})
}

// TestProvider_ThatDoesNotAnswerKeepsNoImageBackThatIsThere: a machine without a network
// goes on with the images it has.
func TestProvider_ThatDoesNotAnswerKeepsNoImageBackThatIsThere(t *testing.T) {
	bubble(t, func(r *rig) {
		p := provider()
		r.provider = p
		p.OnLogin = func(agent.Need) (agent.Login, error) {
			return agent.Login{}, fault.New(fault.Unavailable, "no network")
		}
		r.up()
		r.put(r.assign(1, 1))
		r.expect(1, "RUNNING")
		r.down()
	})
}

// TestProvider_IsAskedAgainAfterARestart kills the agent between reading and creating.
func TestProvider_IsAskedAgainAfterARestart(t *testing.T) {
	bubble(t, func(r *rig) {
		p := provider()
		r.provider = p
		r.engine.Script = func(ctx context.Context, verb string, _ agent.ContainerID) error {
			if verb == "create" {
				<-ctx.Done()
				return fault.Wrap(fault.Unavailable, ctx.Err(), "create")
			}
			return nil
		}
		r.up()
		r.put(r.assign(1, 1, kept()))
		r.kill()
		r.engine.Script = nil
		fresh := provider()
		fresh.OnValues = func(agent.Need) (agent.Values, error) {
			return agent.Values{Secrets: map[string]string{"PASSWORD": "changed"}}, nil
		}
		r.provider = fresh
		r.up()
		r.pass(time.Minute)
		r.expect(1, "RUNNING")
		if got := r.engine.Spec(app(1, 1)).Environment["PASSWORD"]; got != "changed" {
			r.t.Errorf("made with %q", got)
		}
		r.down()
	})
}

// TestProvider_ARestartByPolicyReadsNothing: it is the same container, with the same environment.
func TestProvider_ARestartByPolicyReadsNothing(t *testing.T) {
	bubble(t, func(r *rig) {
		p := provider()
		r.provider = p
		r.up()
		c := kept()
		on := true
		c.RestartPolicy = &taskdef.RestartPolicy{Enabled: &on}
		r.put(r.assign(1, 1, c))
		asked := len(p.Asked())
		r.pass(10 * time.Minute)
		r.engine.Exit(app(1, 1), 1)
		r.pass(time.Minute)
		r.starts(1, 1, 2)
		if got := p.Asked(); len(got) != asked {
			r.t.Errorf("asked %v", got[asked:])
		}
		r.down()
	})
}
