//go:build e2e

package chaos

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/longshore-run/longshore/test/link"
	"github.com/longshore-run/longshore/test/local"
)

var (
	seed   = flag.Uint64("seed", 0, "of the plan of faults; 0 takes one by chance")
	length = flag.Duration("length", 2*time.Minute, "how long faults go on")
)

const (
	reapAfter = 15 * time.Second // so short that every agent is reaped and returns within two minutes
	notice    = 14 * time.Second
)

// Agents, links, functions and AWS itself fail by a plan while users work. Then all
// faults end, and everything comes to rest: nothing lost, nothing doubled.
func TestChaos(t *testing.T) {
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	acts := Plan(*seed, Shape{Agents: agents, Length: *length, ReapAfter: reapAfter, Notice: notice})
	t.Logf("seed %d: go test -tags e2e -count=1 -v -run TestChaos ./test/chaos -args -seed %d -length %s plays this plan again", *seed, *seed, *length)
	for _, a := range acts {
		if a.What != KillRuntime {
			t.Log(a)
		}
	}
	g := enter(t, reapAfter)
	w := g.watch()
	defer w.end()
	s := g.sample()
	l := g.load(*seed)
	c := g.play(acts)
	l.end()
	t.Log("all faults have ended")

	for n := 1; n <= agents; n++ {
		if g.Agent(n).PID() == 0 {
			t.Errorf("agent %d has ended by itself", n)
		}
	}
	begun := time.Now()
	for n := 1; n <= agents; n++ {
		g.awaitBack(n, time.Minute)
	}
	l.settle(100 * time.Second)
	t.Logf("at rest %s after the last fault", time.Since(begun).Round(time.Second))
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
	if most := len(s.planned(acts)); s.reaps() < most || s.returns() != s.reaps() {
		t.Errorf("%d times an agent was out for longer than reapAfter; %d were reaped and %d returned", most, s.reaps(), s.returns())
	}
	if outcome.Exited == 0 || outcome.Stopped == 0 || outcome.Lost == 0 {
		t.Errorf("the load has not met every end: %+v", outcome)
	}
}

// counts are what was done.
type counts struct {
	mu                              sync.Mutex
	kills, leaves, pauses, restarts int
	partitions, engines             map[link.Kind]int
	beyond                          int // partitions, pauses and kills that outlasted reapAfter
	functions                       map[string]int
	skewed                          int
}

// play does what a plan says, and returns when the last of it has ended.
func (g *stage) play(acts []Act) *counts {
	c := &counts{partitions: map[link.Kind]int{}, engines: map[link.Kind]int{}, functions: map[string]int{}}
	ctx := g.t.Context()
	begun := time.Now()
	var under sync.WaitGroup
	var restarting sync.RWMutex // a function is not looked for meanwhile
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
				c.note(a)
				if err := g.do(ctx, a, begun.Add(a.At+a.For)); err != nil && ctx.Err() == nil {
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

// do is one fault of one agent, from its beginning to its end.
func (g *stage) do(ctx context.Context, a Act, end time.Time) error {
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
		until(ctx, end)
		if err := agent.SetEnv(local.ClockSkew, a.Skew.String()); err != nil {
			return err
		}
		return agent.Start()
	case Pause:
		if err := agent.Signal(ctx, signal); err != nil {
			return err
		}
		until(ctx, end)
		return agent.Signal(ctx, syscall.SIGCONT)
	case Partition, Engine:
		l := g.clouds[a.Agent]
		if a.What == Engine {
			l = g.docker[a.Agent]
		}
		l.Set(a.Fault)
		until(ctx, end)
		l.Mend()
		return nil
	}
	return fmt.Errorf("nobody knows how to %s", a.What)
}

func (c *counts) note(a Act) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch a.What {
	case Kill:
		c.kills++
	case Leave:
		c.leaves++
	case Pause:
		c.pauses++
	case Partition:
		c.partitions[a.Fault.Kind]++
	case Engine:
		c.engines[a.Fault.Kind]++
	}
	if a.Long {
		c.beyond++
	}
	if a.Skew != 0 {
		c.skewed++
	}
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

// samples are what was seen of the instances, while the reaper was run every few
// seconds.
type samples struct {
	stop     context.CancelFunc
	done     sync.WaitGroup
	ticks    atomic.Int64
	unticked atomic.Int64 // runs that were killed, or met no AWS

	mu           sync.Mutex
	lost         [agents + 1]bool
	reaped, back [agents + 1]int
}

func (g *stage) sample() *samples {
	ctx, stop := context.WithCancel(context.Background())
	s := &samples{stop: stop}
	every := func(pause time.Duration, do func()) {
		s.done.Go(func() {
			tick := time.NewTicker(pause)
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
					do()
				}
			}
		})
	}
	every(3*time.Second, func() {
		s.ticks.Add(1)
		if err := g.Tick(ctx); err != nil && ctx.Err() == nil {
			s.unticked.Add(1)
		}
	})
	every(300*time.Millisecond, func() {
		all, err := g.instances(ctx)
		if err != nil {
			return // AWS is away
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		for n := 1; n <= agents; n++ {
			switch is := lost(all[n]); {
			case is && !s.lost[n]:
				s.reaped[n]++
				s.lost[n] = true
			case s.lost[n] && all[n].AgentConnected:
				s.back[n]++
				s.lost[n] = false
			}
		}
	})
	return s
}

func (s *samples) end() {
	s.stop()
	s.done.Wait()
}

func (s *samples) reaps() int   { return sum(s.reaped) }
func (s *samples) returns() int { return sum(s.back) }

func sum(all [agents + 1]int) (n int) {
	for _, k := range all {
		n += k
	}
	return n
}

func (s *samples) planned(acts []Act) (beyond []Act) {
	for _, a := range acts {
		if a.Long {
			beyond = append(beyond, a)
		}
	}
	return beyond
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
	g.eventually(time.Minute, "free is everything", func() (bool, any) { held := g.allFree(); return held == "", held })
	for n := 1; n <= agents; n++ {
		g.awaitClean(n, time.Minute)
	}
}

// dead is how many messages were put aside, by queue.
func (g *stage) dead() map[string]string {
	out := map[string]string{}
	c := sqs.NewFromConfig(g.Config())
	for name, url := range g.Outputs {
		if !strings.HasSuffix(name, "DeadQueueUrl") && !strings.HasSuffix(name, "DLQUrl") {
			continue
		}
		a, err := c.GetQueueAttributes(g.t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameApproximateNumberOfMessages}})
		if err != nil {
			g.t.Error(err)
			continue
		}
		out[name] = a.Attributes["ApproximateNumberOfMessages"]
	}
	return out
}

func (g *stage) report(c *counts, s *samples, l *load, o outcome, told Testimony) {
	var clouds, engines link.Counts
	for n := 1; n <= agents; n++ {
		clouds, engines = clouds.Add(g.clouds[n].Counts()), engines.Add(g.docker[n].Counts())
	}
	functions := 0
	for _, n := range c.functions {
		functions += n
	}
	g.t.Logf(`counts of seed %d, %s of faults on %d agents
  agents      %d killed, %d ended, %d paused; %d started with a wrong clock; %d outages beyond reapAfter
  partitions  %v; of the engine's link %v
  links       to AWS %+v
              to the engine %+v
  functions   %d killed (%v), %d of them in mid-run
  AWS         restarted %d times; the reaper was run %d times, %d of them in vain
  instances   %d reaped, %d returned
  tasks       %d accepted (%d tokens used again, service rolled %d times): %d exited, %d stopped by users, %d lost (%d of them told late)
  engine      %d starts of %d tasks; doubles %d; containers left %d
  reports     %d sendings were not answered and made again, %d heartbeats were not; put aside %v`,
		*seed, *length, agents, c.kills, c.leaves, c.pauses, c.skewed, c.beyond, c.partitions, c.engines, clouds, engines,
		functions, sorted(c.functions), g.killedWorking(), c.restarts, s.ticks.Load(), s.unticked.Load(), s.reaps(), s.returns(),
		len(l.all), l.tokens.Load(), l.rolls.Load(), o.Exited, o.Stopped, o.Lost, o.LostToldLate,
		told.Starts, told.Tasks, len(told.Doubles), len(told.Left),
		g.said("reports wait"), g.said("heartbeat"), g.dead())
	if functions == 0 || c.restarts == 0 {
		g.t.Errorf("%d functions were killed, AWS was restarted %d times", functions, c.restarts)
	}
}

// said is how often the agents have logged a message.
func (g *stage) said(message string) (n int) {
	for k := 1; k <= agents; k++ {
		text, err := os.ReadFile(filepath.Join(g.Agent(k).Dir, "log"))
		if err != nil {
			g.t.Error(err)
		}
		n += strings.Count(string(text), fmt.Sprintf(`"msg":%q`, message))
	}
	return n
}

func sorted(all map[string]int) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&b, " %s %d", name, all[name])
	}
	return strings.TrimSpace(b.String())
}
