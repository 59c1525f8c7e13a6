package agent_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
)

// ecs-agent#4270, #591: Docker is restarted under the agent. Without live-restore
// what ran has ended, each once and with its code; with it nothing has happened.
func TestFault_DockerIsRestarted(t *testing.T) {
	t.Parallel()
	for name, live := range map[string]bool{"and its containers die": false, "with live-restore": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				p := r.planed()
				r.up()
				policy := &taskdef.RestartPolicy{Enabled: new(true), RestartAttemptPeriod: new(60)}
				p.Assign(r.assign(1, 1))
				p.Assign(r.assign(2, 1, taskdef.ContainerDefinition{Name: "app", Image: "busybox", RestartPolicy: policy}))
				r.pass(2 * time.Minute)
				r.engine.RestartEngine(live)
				r.pass(20 * time.Second)
				if b := last[*wire.Heartbeat](r); b.Docker != wire.DockerImpaired || len(b.Inventory) != 2 {
					t.Errorf("the beat is %+v", b)
				}
				p.Assign(r.assign(3, 1)) // while it is away
				r.pass(time.Minute)
				r.engine.Revive()
				r.pass(time.Minute)
				if b := last[*wire.Heartbeat](r); b.Docker != wire.DockerOK {
					t.Errorf("the beat is %+v", b)
				}
				r.agree(p)
				one, two := p.Tasks()[id(1)], p.Tasks()[id(2)]
				if one.Over() == live || !live && !slices.Equal(one.Codes, []int{137}) || two.Over() {
					t.Errorf("told are %+v and %+v", one, two)
				}
				r.starts(1, 1, 1)
				r.starts(3, 1, 1)
				want := 1
				if !live {
					want = 2 // by its policy
				}
				r.starts(2, 1, want)
				r.down()
			})
		})
	}
}

// Docker may start by itself what it had: a container with a restart policy of
// somebody's. One whose end is known is stopped again, once (T4).
func TestFault_DockerStartsAContainerByItselfWhoseEndIsKnown(t *testing.T) {
	bubble(t, func(r *rig) {
		p := r.planed()
		r.up()
		p.Assign(r.assign(1, 1))
		r.pass(time.Minute)
		r.engine.Exit(app(1, 1), 4)
		r.pass(time.Minute)
		r.engine.RestartEngine(false)
		if err := r.engine.Run(app(1, 1)); err != nil { // as it comes up
			t.Fatal(err)
		}
		r.pass(time.Minute)
		r.engine.Revive()
		r.pass(time.Minute)
		r.agree(p)
		if c := r.engine.Containers()[app(1, 1)]; c.Running {
			t.Error("it runs")
		}
		r.ended(1, "STOPPED 4")
		r.down()
	})
}

// An engine that never comes back: the agent says so with each heartbeat, for as
// long as it takes, ends nothing, and takes what is asked of it to its journal.
func TestFault_DockerNeverComesBack(t *testing.T) {
	bubble(t, func(r *rig) {
		p := r.planed()
		r.up()
		p.Assign(r.assign(1, 1))
		r.pass(time.Minute)
		r.engine.Die()
		r.pass(time.Hour)
		p.Assign(r.assign(2, 1))
		r.put(r.stop(1, 1))
		r.outbox.Forget()
		r.pass(24 * time.Hour)
		beats := sent[*wire.Heartbeat](r)
		if n := len(beats); n < 24*60 || n > 24*70 {
			t.Errorf("%d beats in a day", n)
		}
		for _, b := range beats {
			if b.Docker != wire.DockerImpaired || b.DockerReason == "" || len(b.Inventory) != 2 {
				t.Fatalf("a beat is %s, %q, %v", b.Docker, b.DockerReason, b.Inventory)
			}
		}
		r.kill()
		r.up() // a restart of the agent does not help
		r.pass(10 * time.Minute)
		if told := p.Tasks(); told[id(1)].Over() || told[id(2)].Over() {
			t.Errorf("told are %+v", told)
		}
		if n := strings.Count(r.logs.String(), "level=ERROR"); n > 20 {
			t.Errorf("%d errors were logged in a day", n)
		}
		r.down()
	})
}

// ecs-agent#364: a container is removed by hand, in any phase. One that never ran
// is made again; of one that did, or may have, the task ends as vanished; an order
// to stop is fulfilled by it.
func TestFault_AContainerThatIsRemovedByHand(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		verb   string // within which it happens, before or after the call
		after  bool
		starts int
		want   string
	}{
		"when it is made":               {"create", true, 1, "RUNNING"},
		"when it is to start":           {"start", false, 1, "RUNNING"},
		"as soon as it runs":            {"start", true, 1, "STOPPED vanished"},
		"while it runs":                 {"", false, 1, "STOPPED vanished"},
		"when it is to stop":            {"stop", false, 1, "STOPPED "},
		"when it was stopped":           {"stop", true, 1, "STOPPED "},
		"when it is to run once more":   {"restart", false, 1, "STOPPED vanished"},
		"as soon as it runs once more":  {"restart", true, 2, "STOPPED vanished"},
		"when it is to be removed":      {"remove", false, 1, "STOPPED exited"},
		"when it was removed, silently": {"remove", true, 1, "STOPPED exited"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				var once atomic.Bool
				r.spoil = func(_ context.Context, verb string, _ agent.ContainerID, call func() error) error {
					now := verb == c.verb && once.CompareAndSwap(false, true)
					if now && !c.after {
						r.engine.Lose(app(1, 1))
					}
					err := call()
					if now && c.after {
						r.engine.Lose(app(1, 1))
					}
					return err
				}
				p := r.planed()
				r.up()
				policy := &taskdef.RestartPolicy{Enabled: new(c.verb == "restart"), RestartAttemptPeriod: new(60)}
				p.Assign(r.assign(1, 1, taskdef.ContainerDefinition{Name: "app", Image: "busybox", RestartPolicy: policy}))
				r.pass(2 * time.Minute)
				switch c.verb {
				case "":
					r.engine.Lose(app(1, 1))
				case "stop":
					r.put(r.stop(1, 1))
				case "restart", "remove":
					r.engine.Exit(app(1, 1), 9)
				}
				r.pass(r.setting.CleanupWait + time.Minute)
				r.agree(p)
				r.starts(1, 1, c.starts)
				got := string(p.Tasks()[id(1)].Status)
				if got == string(task.Stopped) {
					got += " " + string(r.state().Tasks[id(1)].State.Cause)
				}
				if !strings.EqualFold(got, c.want) {
					t.Errorf("it is %q, want %q", got, c.want)
				}
				r.down()
			})
		})
	}
}

// Somebody removes each container of a task before it runs: it is made again a few
// times, ever more slowly, and then the task ends and says so.
func TestFault_AContainerThatIsRemovedEachTimeBeforeItRuns(t *testing.T) {
	bubble(t, func(r *rig) {
		r.spoil = func(_ context.Context, verb string, c agent.ContainerID, call func() error) error {
			if verb == "start" {
				r.engine.Lose(c)
			}
			return call()
		}
		p := r.planed()
		r.up()
		p.Assign(r.assign(1, 1))
		r.pass(5 * time.Minute)
		r.agree(p)
		made := strings.Count(strings.Join(r.engine.Calls(), "\n"), "create ")
		if one := p.Tasks()[id(1)]; !one.Over() || !strings.HasPrefix(one.Reason, "CannotStartContainerError: somebody removes") || made < 3 || made > 6 {
			t.Errorf("made %d times, and it is %+v", made, one)
		}
		r.starts(1, 1, 0)
		r.down()
	})
}

// A stop takes longer than its time-out, and than the call's own deadline: it is
// asked again until the container is seen to have ended, and holds up nobody.
func TestFault_ASlowStopIsOverWhenItsEndIsSeen(t *testing.T) {
	bubble(t, func(r *rig) {
		asked := 0
		r.spoil = func(ctx context.Context, verb string, c agent.ContainerID, call func() error) error {
			if verb != "stop" || c.Task != id(1) {
				return call()
			}
			asked++
			return cut(ctx, time.Minute) // its time-out is 30 s, the adapter's deadline 30 s more
		}
		p := r.planed()
		r.up()
		p.Assign(r.assign(1, 1))
		p.Assign(r.assign(2, 1))
		r.pass(time.Minute)
		r.put(r.stop(1, 1), r.stop(2, 1))
		r.pass(time.Second)
		if !p.Tasks()[id(2)].Over() {
			t.Error("another task's stop waits for it")
		}
		p.Assign(r.assign(3, 1))
		r.pass(10 * time.Minute)
		if one := p.Tasks()[id(1)]; one.Status != task.Stopping || asked < 5 || asked > 12 {
			t.Errorf("asked %d times, and it is %+v", asked, one)
		}
		if b := last[*wire.Heartbeat](r); b.Docker != wire.DockerOK {
			t.Errorf("a slow stop is no engine that is silent: %s", b.DockerReason)
		}
		r.agree(p)
		r.engine.Exit(app(1, 1), 137)
		r.pass(time.Second)
		if one := p.Tasks()[id(1)]; !one.Over() || !slices.Equal(one.Codes, []int{137}) {
			t.Errorf("it is %+v", one)
		}
		r.starts(3, 1, 1)
		r.pass(2 * time.Minute)
		r.agree(p)
		r.down()
	})
}

// An image is removed between its pull and the making of a container: it is pulled
// again, a few times; one that is gone each time ends the task in ECS's words.
func TestFault_AnImageThatIsRemovedBeforeItsContainerIsMade(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		gone int
		want string
	}{"once": {1, "RUNNING"}, "each time": {1000, "STOPPED"}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				gone := 0
				r.spoil = func(_ context.Context, verb string, _ agent.ContainerID, call func() error) error {
					if verb == "create" && gone < c.gone {
						gone++
						return fault.New(fault.NotFound, "No such image: busybox")
					}
					return call()
				}
				p := r.planed()
				r.up()
				p.Assign(r.assign(1, 1))
				r.pass(5 * time.Minute)
				r.agree(p)
				if one := p.Tasks()[id(1)]; string(one.Status) != c.want || one.Over() && !strings.HasPrefix(one.Reason, "CannotCreateContainerError: ") {
					t.Errorf("it is %+v", one)
				}
				pulls := strings.Count(strings.Join(r.engine.Calls(), "\n"), "image ")
				if pulls < 2 || pulls > 6 {
					t.Errorf("%d pulls", pulls)
				}
				r.down()
			})
		})
	}
}

// nomad#24904: a port is a stranger's. The task is refused and names it, nothing of
// it is left, and the next attempt runs once the port is free.
func TestFault_APortThatAStrangerHas(t *testing.T) {
	bubble(t, func(r *rig) {
		var stranger atomic.Bool
		stranger.Store(true)
		r.spoil = func(_ context.Context, verb string, _ agent.ContainerID, call func() error) error {
			if verb == "start" && stranger.Load() {
				return fault.Wrap(fault.Conflict, &agent.PortsTaken{TCP: []int{8080}, Cause: fault.New(fault.Conflict, "address already in use")}, "start")
			}
			return call()
		}
		r.up()
		web := taskdef.ContainerDefinition{Name: "app", Image: "busybox", PortMappings: []taskdef.PortMapping{{ContainerPort: new(80), HostPort: new(8080), Protocol: "tcp"}}}
		r.put(r.assign(1, 1, web))
		r.pass(time.Minute)
		r.expect(1, "REFUSED RESOURCE:PORTS tcp[8080] udp[]")
		r.starts(1, 1, 0)
		stranger.Store(false)
		r.put(r.assign(1, 2, web))
		r.pass(time.Minute)
		r.ended(1, "RUNNING")
		r.starts(1, 2, 1)
		if all := r.engine.Containers(); len(all) != 1 {
			t.Errorf("%d containers: %v", len(all), all)
		}
		r.down()
	})
}
