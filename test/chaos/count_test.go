//go:build e2e

package chaos

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/longshore-run/longshore/test/link"
)

// counts are what was done.
type counts struct {
	mu                                     sync.Mutex
	kills, leaves, pauses, drags, restarts int
	partitions, engines                    map[link.Kind]int
	functions                              map[string]int
	skewed                                 int
}

func newCounts() *counts {
	return &counts{partitions: map[link.Kind]int{}, engines: map[link.Kind]int{}, functions: map[string]int{}}
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
	case Drag:
		c.drags++
	case Partition:
		c.partitions[a.Fault.Kind]++
	case Engine:
		c.engines[a.Fault.Kind]++
	}
	if a.Skew != 0 {
		c.skewed++
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
  agents      %d killed, %d ended, %d paused, %d slowed; %d started with a wrong clock; %d outages beyond reapAfter
  partitions  %v; of the engine's link %v
  links       to AWS %+v
              to the engine %+v
  functions   %d killed (%v); %d invocations ended with their process, some of them with AWS
  AWS         restarted %d times; the reaper was run %d times, %d of them in vain
  instances   %d reaped, %d returned%s%s
  tasks       %d accepted (%d tokens used again, service rolled %d times): %d exited (%d of them kept whatever came), %d stopped by users, %d lost (%d of them told late)
  engine      %d starts of %d tasks; doubles %d; containers left %d
  reports     %d sendings were not answered and made again, %d heartbeats were not; put aside %v`,
		*seed, *length, agents, c.kills, c.leaves, c.pauses, c.drags, c.skewed, len(s.outages), c.partitions, c.engines, clouds, engines,
		functions, sorted(c.functions), g.killedWorking(), c.restarts, s.ticks.Load(), s.unticked.Load(), s.reaps(), s.returns(), listed(s.outages), g.reaperSaid(),
		len(l.all), l.tokens.Load(), l.rolls.Load(), o.Exited, o.Kept, o.Stopped, o.Lost, o.LostToldLate,
		told.Starts, told.Tasks, len(told.Doubles), len(told.Left),
		g.said("reports wait"), g.said("heartbeat"), g.dead())
	if functions == 0 || c.restarts == 0 {
		g.t.Errorf("%d functions were killed, AWS was restarted %d times", functions, c.restarts)
	}
}

func listed(all []*outage) string {
	var b strings.Builder
	for _, o := range all {
		fmt.Fprintf(&b, "\n              %s", o)
	}
	return b.String()
}

// reaperSaid is what the reaper logged of what it reaped, and of what it did not.
func (g *stage) reaperSaid() string {
	text, err := os.ReadFile(g.EmulatorLog())
	if err != nil {
		g.t.Error(err)
	}
	var b strings.Builder
	for line := range strings.Lines(string(text)) {
		var said struct {
			Time              time.Time
			Msg, Zone, Reason string
		}
		if json.Unmarshal([]byte(line), &said) == nil && (said.Msg == "instance reaped" || said.Msg == "nothing is reaped") {
			fmt.Fprintf(&b, "\n              %s %s %s: %s", said.Time.Format(time.TimeOnly), said.Msg, said.Zone, said.Reason)
		}
	}
	return b.String()
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
