package endpoint

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// mostLimits is how many tasks' allowances are kept before those that are whole again
// are dropped.
const mostLimits = 512

// limits are what each task may still ask. Only requests with a good id count: a
// stranger uses up nobody's.
type limits struct {
	rate  rate.Limit
	burst int
	now   func() time.Time

	mu  sync.Mutex
	all map[string]*rate.Limiter
}

func newLimits(perSecond, burst int, now func() time.Time) *limits {
	return &limits{rate: rate.Limit(perSecond), burst: burst, now: now, all: map[string]*rate.Limiter{}}
}

// allow says whether a task may ask once more now.
func (l *limits) allow(task string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.now()
	one := l.all[task]
	if one == nil {
		if len(l.all) >= mostLimits {
			for id, r := range l.all {
				if r.TokensAt(at) >= float64(l.burst) {
					delete(l.all, id)
				}
			}
		}
		one = rate.NewLimiter(l.rate, l.burst)
		l.all[task] = one
	}
	return one.AllowN(at, 1)
}
