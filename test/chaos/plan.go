// Package chaos breaks real processes of a local stack by plan: agents, the links
// between them and the rest, the functions and the emulator itself. Afterwards
// everything has to come to rest, with nothing lost and nothing doubled. The plan
// and the judgement of what the engine told are here; the rest is tests. Nothing
// imports it.
package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/longshore-run/longshore/test/link"
)

// What is done to an agent, or to all of the control plane.
type What string

// An act ends after its time: what was killed is started again, what was spoiled
// is mended.
const (
	Kill        What = "kill"            // SIGKILL
	Leave       What = "leave"           // SIGTERM
	Pause       What = "pause"           // SIGSTOP, then SIGCONT
	Drag        What = "drag"            // the same again and again: it hardly gets to run
	Partition   What = "partition"       // a fault of the link to the control plane
	Engine      What = "engine"          // a fault of the link to the Docker engine
	RestartAWS  What = "restart of AWS"  // the emulator is ended in its own time and started again
	KillRuntime What = "kill of runtime" // a function's process, while it works
)

// Act is one fault.
type Act struct {
	At, For time.Duration // since the beginning
	Agent   int           // from 1; 0 for the control plane
	What    What
	Fault   link.Fault    // of Partition and Engine
	Skew    time.Duration // of Kill and Leave: how far the clock is off afterwards
	Long    bool          // it outlasts reapAfter, and no heartbeat comes through
}

func (a Act) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%6.1fs", a.At.Seconds())
	if a.Agent > 0 {
		fmt.Fprintf(&b, " agent %d:", a.Agent)
	}
	fmt.Fprintf(&b, " %s", a.What)
	if a.Fault.Kind != "" {
		fmt.Fprintf(&b, " (%s)", a.Fault.Kind)
	}
	if a.For > 0 {
		fmt.Fprintf(&b, " for %.1fs", a.For.Seconds())
	}
	if a.Skew != 0 {
		fmt.Fprintf(&b, ", then with its clock off by %s", a.Skew)
	}
	if a.Long {
		b.WriteString(", beyond reapAfter")
	}
	return b.String()
}

// Shape is what a plan is made for.
type Shape struct {
	Agents    int
	Length    time.Duration
	ReapAfter time.Duration
	// Notice is how long the control plane may take, after reapAfter, to say LOST.
	Notice time.Duration
}

// long are the outages that no heartbeat gets through, in the order of a deck.
var long = []Act{
	{What: Kill},
	{What: Pause},
	{What: Partition, Fault: link.Fault{Kind: link.BlackHole}},
	{What: Partition, Fault: link.Fault{Kind: link.Stall}},
	{What: Partition, Fault: link.Fault{Kind: link.Cut}},
}

// short are the others.
var short = []Act{
	{What: Kill}, {What: Leave}, {What: Pause}, {What: Drag},
	{What: Partition, Fault: link.Fault{Kind: link.Cut}},
	{What: Partition, Fault: link.Fault{Kind: link.BlackHole}},
	{What: Partition, Fault: link.Fault{Kind: link.HalfOpen}},
	{What: Partition, Fault: link.Fault{Kind: link.Stall}},
	{What: Partition, Fault: link.Fault{Kind: link.Delay, Delay: 400 * time.Millisecond}},
	{What: Partition, Fault: link.Fault{Kind: link.Slow, Rate: 4000}},
	{What: Partition, Fault: link.Fault{Kind: link.BreakOff, Bytes: 120}},
	{What: Engine, Fault: link.Fault{Kind: link.Cut}},
	// No socket of one machine goes deaf for good: an engine hangs, and goes on.
	{What: Engine, Fault: link.Fault{Kind: link.Stall}},
	{What: Engine, Fault: link.Fault{Kind: link.Delay, Delay: 150 * time.Millisecond}},
	{What: Engine, Fault: link.Fault{Kind: link.BreakOff, Bytes: 300}},
}

// skews are what clocks that were never set, or set wrongly, are off by.
var skews = []time.Duration{-72 * time.Hour, -90 * time.Second, 0, 2 * time.Minute, 72 * time.Hour, 24 * 365 * time.Hour}

const (
	restartEach = 4 * time.Minute // AWS; in the middle of a shorter plan
	// The messages of a function that was killed come again only when their
	// visibility is over, a minute for kicks: the end of it belongs to the plan.
	lastRuntime = 15 * time.Second
)

// Plan is what is done, in order of time; the same seed and shape give the same.
//
// Each agent in turn is out for longer than reapAfter, never more than half of
// them at once, so that the brake lets them be reaped. Between, short faults hit
// whichever is not out, and a function dies every second or so.
func Plan(seed uint64, s Shape) []Act {
	r := rand.New(rand.NewPCG(seed, seed))
	out := s.ReapAfter + s.Notice
	var acts []Act
	acts = append(acts, longActs(r, s, out)...)
	for agent := 1; agent <= s.Agents; agent++ {
		acts = append(acts, shortActs(r, s, agent, acts)...)
	}
	for at := min(restartEach, s.Length/2); at < s.Length; at += restartEach {
		acts = append(acts, Act{At: at, What: RestartAWS})
	}
	for at := between(r, time.Second, 2*time.Second); at < s.Length-lastRuntime; at += between(r, 700*time.Millisecond, 2200*time.Millisecond) {
		acts = append(acts, Act{At: at, What: KillRuntime})
	}
	slices.SortStableFunc(acts, func(a, b Act) int { return int(a.At - b.At) })
	return acts
}

func longActs(r *rand.Rand, s Shape, out time.Duration) (acts []Act) {
	var agents, kinds []int
	deal := func(deck *[]int, n int) int {
		if len(*deck) == 0 {
			*deck = r.Perm(n)
		}
		top := (*deck)[0]
		*deck = (*deck)[1:]
		return top
	}
	each := out / time.Duration(max(1, s.Agents/2)) * 6 / 5
	for at := 3 * time.Second; at+out <= s.Length; at += each {
		a := long[deal(&kinds, len(long))]
		a.At, a.For, a.Agent, a.Long = at+between(r, 0, 2*time.Second), out, deal(&agents, s.Agents)+1, true
		if busy(acts, a) { // the last of one deck of agents and the first of the next
			a.Agent = a.Agent%s.Agents + 1
		}
		if !busy(acts, a) {
			acts = append(acts, a.skewed(r))
		}
	}
	return acts
}

func shortActs(r *rand.Rand, s Shape, agent int, taken []Act) (acts []Act) {
	for at := between(r, time.Second, 4*time.Second); at < s.Length; at += between(r, 2*time.Second, 6*time.Second) {
		a := short[r.IntN(len(short))]
		a.At, a.For, a.Agent = at, between(r, 300*time.Millisecond, 5*time.Second), agent
		if a.At+a.For < s.Length && !busy(taken, a) {
			acts = append(acts, a.skewed(r))
			at += a.For
		}
	}
	return acts
}

// skewed gives an agent that starts anew another clock.
func (a Act) skewed(r *rand.Rand) Act {
	if a.What == Kill || a.What == Leave {
		a.Skew = skews[r.IntN(len(skews))]
	}
	return a
}

// busy says whether an agent has another fault within the time of an act, or just
// before or after it.
func busy(acts []Act, a Act) bool {
	const apart = time.Second
	return slices.ContainsFunc(acts, func(b Act) bool {
		return b.Agent == a.Agent && b.At < a.At+a.For+apart && a.At < b.At+b.For+apart
	})
}

func between(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(r.Int64N(int64(most-least)))
}
