//go:build e2e

package chaos

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// samples are what was seen of the instances, while the reaper was run every few
// seconds.
type samples struct {
	stop     context.CancelFunc
	done     sync.WaitGroup
	ticks    atomic.Int64
	unticked atomic.Int64 // runs that were killed, or met no AWS

	mu           sync.Mutex
	looked       time.Time // when the last look that was answered began
	lost         [agents + 1]bool
	reaped, back [agents + 1]int
	outages      []*outage
}

// outage is a time in which no heartbeat of an agent got through, for longer than
// reapAfter.
type outage struct {
	Act
	due     time.Time // from then on a run of the reaper has to find it
	runs    int       // of the reaper that began later and came to their end
	sure    int       // of those, the ones that a brake without a token cannot have kept from it
	last    time.Time // when the last of them ended
	noticed time.Duration
	over    bool
}

const (
	// enoughRuns have to find what is due: the first may know of no probe that was
	// sent late enough, the next may be held back for a moment. It takes one or two.
	enoughRuns = 8
	// A zone's brake has one token a minute here: none is left if its instance was
	// reaped just before, or if all instances were late when the budget was set, as
	// after a restart of AWS.
	brakeLife = time.Minute
	// mostOut are out for long at once, so that never all are late.
	mostOut = agents / 2
)

func (o *outage) String() string {
	if o.noticed > 0 {
		return fmt.Sprintf("%s: noticed %.1fs after it was due, by run %d", o.Act, o.noticed.Seconds(), o.runs)
	}
	return fmt.Sprintf("%s: not noticed by %d runs of the reaper that began when it was due", o.Act, o.runs)
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
		begun := time.Now()
		if err := g.Tick(ctx); err == nil {
			s.ran(begun)
		} else if ctx.Err() == nil {
			s.unticked.Add(1)
		}
	})
	every(300*time.Millisecond, func() {
		begun := time.Now()
		all, err := g.instances(ctx)
		if err != nil {
			return // AWS is away
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.looked = begun
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

// ran notes a run of the reaper that has come to its end.
func (s *samples) ran(begun time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.outages {
		if !o.over && begun.After(o.due) {
			o.runs++
			o.sure += bit(begun.After(o.due.Add(brakeLife)))
			o.last = time.Now()
		}
	}
}

// outlast waits for the end of a fault that has begun. One that is to outlast
// reapAfter goes on until that was noticed, or enough runs of the reaper have not:
// how soon they come to their end is the machine's.
func (s *samples) outlast(ctx context.Context, a Act) {
	end := time.Now().Add(a.For)
	if !a.Long {
		until(ctx, end)
		return
	}
	o := &outage{Act: a, due: time.Now().Add(reapAfter)}
	s.mu.Lock()
	s.outages = append(s.outages, o)
	s.mu.Unlock()
	const most = 4 * time.Minute
	for !s.decided(o) && time.Now().Before(o.due.Add(most)) {
		if !until(ctx, time.Now().Add(100*time.Millisecond)) {
			return
		}
	}
	until(ctx, end)
}

// decided says whether an outage was noticed, or surely was not.
func (s *samples) decided(o *outage) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost[o.Agent] {
		o.noticed, o.over = max(time.Since(o.due), 1), true
	}
	if o.sure >= enoughRuns && s.looked.After(o.last) {
		o.over = true
	}
	return o.over
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
