package deployment

import "time"

const (
	throttleFirst = 10 * time.Second
	throttleMost  = 27 * time.Minute // as ECS documents it
)

// throttle is how long after the last failure creations wait: tasks that never
// reach RUNNING are tried again at once for a first round (three, or as many as are
// desired up to ten), then after ever longer pauses.
func throttle(inARow, desired int) time.Duration {
	round := min(max(desired, 3), 10)
	pause := throttleFirst
	if inARow < round {
		return 0
	}
	for n := inARow - round; n >= round && pause < throttleMost; n -= round {
		pause *= 2
	}
	return min(pause, throttleMost)
}

// throttled says whether creations have to wait, and says so to the owner.
func (d *decision) throttled() bool {
	pause := throttle(d.primary.InARow, d.desired)
	if pause == 0 {
		return false
	}
	if !d.out.Told.Throttled {
		d.tell("SERVICE_TASK_START_IMPAIRED", "(service %s) is unable to consistently start tasks successfully.", d.in.Service.Name)
		d.out.Told.Throttled = true
	}
	until := d.primary.LastFailed.Add(pause)
	d.wake(until)
	d.slowed = until.After(d.in.Now)
	return d.slowed
}
