//go:build e2e

package chaos

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"

	"github.com/longshore-run/longshore/test/local"
)

var (
	seed   = flag.Uint64("seed", 15323315543591221207, "of the plan of faults") // AWS is restarted while an agent is out for long
	length = flag.Duration("length", 2*time.Minute, "how long faults go on")
)

const (
	reapAfter = 15 * time.Second // so short that every agent is reaped and returns within two minutes
	notice    = 14 * time.Second
)

// Agents, links, functions and AWS itself fail by a plan while users work. Then all
// faults end, and everything comes to rest: nothing lost, nothing doubled.
func TestChaos(t *testing.T) {
	acts := Plan(*seed, Shape{Agents: agents, Length: *length, ReapAfter: reapAfter, Notice: notice})
	t.Logf("seed %d: go test -tags e2e -count=1 -v -run TestChaos ./test/chaos -args -seed %d -length %s plays this plan again", *seed, *seed, *length)
	for _, a := range acts {
		if a.Long || a.What == RestartAWS || testing.Verbose() && a.What != KillRuntime {
			t.Log(a)
		}
	}
	g := enter(t, reapAfter)
	w := g.watch()
	defer w.end()
	s := g.sample()
	l := g.load(*seed)
	c := g.play(acts, s)
	l.end()
	t.Log("all faults have ended")

	for n := 1; n <= agents; n++ {
		if g.Agent(n).PID() == 0 {
			t.Errorf("agent %d has ended by itself", n)
		}
	}
	begun := time.Now()
	for n := 1; n <= agents; n++ {
		g.awaitBack(n, 2*time.Minute)
	}
	connected := time.Since(begun)
	l.settle(4 * time.Minute)
	t.Logf("after the last fault all are connected in %s, and at rest in %s", connected.Round(time.Second), time.Since(begun).Round(time.Second))
	g.matches()
	outcome := l.outcome()
	if n := l.listed(); n != len(l.all) {
		t.Errorf("%d tasks were accepted, and %d are listed", len(l.all), n)
	}
	g.leaveNothing()
	s.end()
	w.end()

	told := Judge(w.heard())
	for _, d := range told.Doubles {
		t.Error("doubled: " + d)
	}
	if len(told.Left) > 0 {
		t.Errorf("containers that were made and not removed: %v", told.Left)
	}
	g.report(c, s, l, outcome, told)
	planned := 0
	for _, a := range acts {
		planned += bit(a.Long)
	}
	for _, o := range s.outages { // runs of the reaper are killed, too: those that were not have to do
		if o.noticed == 0 {
			t.Error(o)
		}
	}
	if n := len(s.outages); n != planned || s.returns() != s.reaps() {
		t.Errorf("of %d outages beyond reapAfter there were %d; %d were reaped and %d returned", planned, n, s.reaps(), s.returns())
	}
	if outcome.Exited == 0 || outcome.Stopped == 0 || outcome.Lost == 0 {
		t.Errorf("the load has not met every end: %+v", outcome)
	}
}

// play does what a plan says, and returns when the last of it has ended.
func (g *stage) play(acts []Act, s *samples) *counts {
	c := newCounts()
	ctx := g.t.Context()
	begun := time.Now()
	var under sync.WaitGroup
	var restarting sync.RWMutex // a function is not looked for meanwhile
	var hands [agents + 1]sync.Mutex
	out := make(chan struct{}, mostOut)
	r := rand.New(rand.NewPCG(*seed, 1000))
	kills := make(chan uint64, len(acts))
	under.Go(func() {
		for s := range kills {
			restarting.RLock()
			name := g.killRuntime(rand.New(rand.NewPCG(s, s)))
			restarting.RUnlock()
			if name != "" {
				c.mu.Lock()
				c.functions[name]++
				c.mu.Unlock()
			}
		}
	})
	for _, a := range acts {
		if !until(ctx, begun.Add(a.At)) {
			break
		}
		switch a.What {
		case KillRuntime:
			kills <- r.Uint64()
		case RestartAWS:
			under.Go(func() {
				restarting.Lock()
				defer restarting.Unlock()
				from := time.Now()
				if err := g.RestartEmulator(ctx); err != nil {
					g.t.Errorf("%s: %v", a, err)
				}
				g.t.Logf("AWS was away for %s", time.Since(from).Round(100*time.Millisecond))
				c.mu.Lock()
				c.restarts++
				c.mu.Unlock()
			})
		default:
			under.Go(func() {
				switch { // on a busy machine the faults before it last longer
				case a.Long:
					out <- struct{}{}
					defer func() { <-out }()
					hands[a.Agent].Lock()
				case !hands[a.Agent].TryLock():
					return
				}
				defer hands[a.Agent].Unlock()
				c.note(a)
				if err := g.do(ctx, a, func() { s.outlast(ctx, a) }); err != nil && ctx.Err() == nil {
					g.t.Errorf("%s: %v", a, err)
				}
			})
		}
	}
	until(ctx, begun.Add(*length))
	close(kills)
	under.Wait()
	return c
}

// do is one fault of one agent, from its beginning to its end, which over waits for.
func (g *stage) do(ctx context.Context, a Act, over func()) error {
	agent := g.Agent(a.Agent)
	if agent.PID() == 0 {
		return fmt.Errorf("agent %d had ended by itself before", a.Agent)
	}
	signal := map[What]syscall.Signal{Kill: syscall.SIGKILL, Leave: syscall.SIGTERM, Pause: syscall.SIGSTOP}[a.What]
	switch a.What {
	case Kill, Leave:
		if err := agent.Signal(ctx, signal); err != nil {
			return err
		}
		over()
		if err := agent.SetEnv(local.ClockSkew, a.Skew.String()); err != nil {
			return err
		}
		return agent.Start()
	case Pause:
		if err := agent.Signal(ctx, signal); err != nil {
			return err
		}
		over()
		return agent.Signal(ctx, syscall.SIGCONT)
	case Drag:
		end := time.Now().Add(a.For)
		for from := time.Now(); from.Before(end); from = time.Now() {
			if err := agent.Signal(ctx, syscall.SIGSTOP); err != nil {
				return err
			}
			until(ctx, from.Add(90*time.Millisecond))
			if err := agent.Signal(ctx, syscall.SIGCONT); err != nil {
				return err
			}
			until(ctx, from.Add(100*time.Millisecond))
		}
		return nil
	case Partition, Engine:
		l := g.clouds[a.Agent]
		if a.What == Engine {
			l = g.docker[a.Agent]
		}
		l.Set(a.Fault)
		over()
		l.Mend()
		return nil
	}
	return fmt.Errorf("nobody knows how to %s", a.What)
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// until waits for a time; false if the test ends before.
func until(ctx context.Context, at time.Time) bool {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// matches wants the engine to run exactly what the control plane says is RUNNING.
func (g *stage) matches() {
	g.t.Helper()
	g.eventually(30*time.Second, "the same is what runs and what is said to run", func() (bool, any) {
		run := g.running()
		var wrong []string
		for _, t := range g.members(service) {
			if on := run[id(t)]; aws.ToString(t.LastStatus) != "RUNNING" || len(on) != 1 || !strings.HasSuffix(aws.ToString(t.ContainerInstanceArn), g.Agent(on[0]).Instance) {
				wrong = append(wrong, fmt.Sprintf("%s; it runs on %v", told(t), on))
			}
			delete(run, id(t))
		}
		for task, on := range run {
			wrong = append(wrong, fmt.Sprintf("%s runs on %v, and is not to", task, on))
		}
		return len(wrong) == 0, wrong
	})
}

// leaveNothing ends the service, and waits until nothing is held and no container
// is left.
func (g *stage) leaveNothing() {
	g.t.Helper()
	if _, err := insist(g.t.Context(), patience, func() (*ecs.DeleteServiceOutput, error) {
		return g.ecs.DeleteService(g.t.Context(), &ecs.DeleteServiceInput{Cluster: aws.String(local.Cluster), Service: aws.String(service), Force: aws.Bool(true)})
	}); err != nil {
		g.t.Fatal(err)
	}
	g.eventually(2*time.Minute, "free is everything", func() (bool, any) { held := g.allFree(); return held == "", held })
	for n := 1; n <= agents; n++ {
		g.awaitClean(n, 2*time.Minute)
	}
}
