//go:build e2e

package chaos

import (
	"context"
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

// outlast waits for the end of a fault. One that is to outlast reapAfter goes on
// until that was noticed: how soon the reaper runs is the machine's.
func (s *samples) outlast(ctx context.Context, a Act, end time.Time) {
	until(ctx, end)
	const most = 45 * time.Second
	for a.Long && !s.isLost(a.Agent) && time.Now().Before(end.Add(most)) {
		if !until(ctx, time.Now().Add(200*time.Millisecond)) {
			return
		}
	}
}

func (s *samples) isLost(agent int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost[agent]
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
