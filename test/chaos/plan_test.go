package chaos

import (
	"reflect"
	"testing"
	"time"

	"github.com/longshore-run/longshore/test/link"
)

var shapes = []Shape{
	{Agents: 5, Length: 2 * time.Minute, ReapAfter: 15 * time.Second, Notice: 12 * time.Second},
	{Agents: 4, Length: 15 * time.Minute, ReapAfter: 15 * time.Second, Notice: 12 * time.Second},
	{Agents: 6, Length: 3 * time.Minute, ReapAfter: 20 * time.Second, Notice: 10 * time.Second},
}

func TestPlan_TheSameSeedIsTheSamePlan(t *testing.T) {
	for _, s := range shapes {
		if !reflect.DeepEqual(Plan(7, s), Plan(7, s)) {
			t.Error("one seed gave two plans")
		}
		if reflect.DeepEqual(Plan(7, s), Plan(8, s)) {
			t.Error("two seeds gave one plan")
		}
	}
}

func TestPlan_NoMoreThanHalfAreOutAtOnce_AndNoAgentHasTwoFaults(t *testing.T) {
	for seed := range uint64(40) {
		for _, s := range shapes {
			acts := Plan(seed, s)
			for i, a := range acts {
				if a.At < 0 || a.At+a.For > s.Length || a.Agent > s.Agents || a.Long && a.For < s.ReapAfter+s.Notice {
					t.Fatalf("seed %d: %s", seed, a)
				}
				out := 0
				for j, b := range acts {
					together := b.At < a.At+a.For && a.At < b.At+b.For
					if i != j && together && a.Agent > 0 && a.Agent == b.Agent {
						t.Fatalf("seed %d: %s and %s", seed, a, b)
					}
					if b.Long && b.At <= a.At && a.At < b.At+b.For {
						out++
					}
				}
				if out > s.Agents/2 {
					t.Fatalf("seed %d: %d are out at %s", seed, out, a.At)
				}
			}
		}
	}
}

// Whatever a plan of two minutes leaves out by chance, it reaps, and restarts AWS.
func TestPlan_HasOfEverythingThatMatters(t *testing.T) {
	what, faults := map[What]int{}, map[link.Kind]int{}
	for seed := range uint64(50) {
		s := shapes[0]
		reaped, restarts, runtimes := map[int]bool{}, 0, 0
		for _, a := range Plan(seed, s) {
			what[a.What]++
			faults[a.Fault.Kind]++
			switch {
			case a.Long:
				reaped[a.Agent] = true
			case a.What == RestartAWS:
				restarts++
			case a.What == KillRuntime:
				runtimes++
			}
		}
		if len(reaped) < s.Agents || restarts != 1 || runtimes < 40 {
			t.Errorf("seed %d: agents out %v, restarts %d, functions killed %d", seed, reaped, restarts, runtimes)
		}
	}
	for _, w := range []What{Kill, Leave, Pause, Drag, Partition, Engine, RestartAWS, KillRuntime} {
		if what[w] == 0 {
			t.Errorf("no plan has a %s", w)
		}
	}
	for _, k := range []link.Kind{link.Cut, link.BlackHole, link.HalfOpen, link.Stall, link.Delay, link.Slow, link.BreakOff} {
		if faults[k] == 0 {
			t.Errorf("no plan has a link that is %s", k)
		}
	}
}
