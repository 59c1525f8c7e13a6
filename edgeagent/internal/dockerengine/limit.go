package dockerengine

import "time"

// Limits are the deadlines of calls to the engine. A caller's context may end a
// call earlier; none goes on for longer.
type Limits struct {
	Ping    time.Duration // also the version negotiation before a first call
	Info    time.Duration
	Inspect time.Duration
	List    time.Duration
	Create  time.Duration // with its volumes
	Start   time.Duration
	Stop    time.Duration // beyond the container's own stop timeout
	Remove  time.Duration
	Watch   time.Duration // to open the stream, not to read it

	Pulls       int           // at once; the others wait in the order in which they came
	Pull        time.Duration // a whole pull with its retries, from its first turn on
	PullSilence time.Duration // without a word about its progress
	PullRetry   time.Duration // before the second try; doubled for each further one
	PullTries   int           // where there is no image to fall back on
}

// DefaultLimits are generous: a disk under load answers slowly, and a call that
// is given up has often been carried out all the same.
func DefaultLimits() Limits {
	return Limits{
		Ping:    10 * time.Second,
		Info:    time.Minute,
		Inspect: 30 * time.Second,
		List:    10 * time.Minute,
		Create:  4 * time.Minute,
		Start:   3 * time.Minute,
		Stop:    30 * time.Second,
		Remove:  5 * time.Minute,
		Watch:   30 * time.Second,

		Pulls:       4,
		Pull:        2 * time.Hour,
		PullSilence: time.Minute,
		PullRetry:   time.Second,
		PullTries:   3,
	}
}
