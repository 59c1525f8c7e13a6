package control

import "time"

const (
	// flapsWithin is the time in which an instance that is LOST again flaps.
	flapsWithin = 24 * time.Hour
	// flapsTold is how often it is LOST until people are told that it flaps.
	flapsTold = 3
)

// countLoss notes that an instance became LOST. Nothing but telling follows of it:
// each time takes the whole time of silence and a token of its zone's brake, so what
// an instance that comes and goes can do to its tasks is bounded by those.
func (r *Lease) countLoss(now time.Time) {
	if now.Sub(r.LostAt) > flapsWithin {
		r.Losses = 0
	}
	r.Losses, r.LostAt = r.Losses+1, now
}

// flaps says whether an instance comes and goes.
func (r *Lease) flaps(now time.Time) bool {
	return r.Losses >= flapsTold && now.Sub(r.LostAt) <= flapsWithin
}
