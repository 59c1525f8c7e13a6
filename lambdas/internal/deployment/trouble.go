package deployment

import (
	"fmt"
	"slices"
	"time"
)

const (
	// roomAfter is how long a task may wait for room without a word: a queue is
	// there to be waited in. stuckAfter is the same for what keeps others from going.
	roomAfter, stuckAfter = 30 * time.Second, 2 * time.Minute
	// roomAgain is when ECS repeats a message whose cause still stands.
	roomAgain = 6 * time.Hour
)

// tellTrouble says once what keeps the service from going on.
func (d *decision) tellTrouble() {
	if d.primary.InARow == 0 {
		d.out.Told.Throttled = false
	}
	d.tellNoRoom()
	d.tellStuck()
}

// waiting is the task of the primary that waits for room the longest; nil for none.
func (d *decision) waiting() *member {
	var first *member
	for i := range d.members {
		m := &d.members[i]
		if m.Status != Waiting || m.ending || m.WaitingReason == "" || m.Deployment != d.primary.ID {
			continue
		}
		if first == nil || m.CreatedAt.Before(first.CreatedAt) || m.CreatedAt.Equal(first.CreatedAt) && m.ID < first.ID {
			first = m
		}
	}
	return first
}

func (d *decision) tellNoRoom() {
	m, now := d.waiting(), d.in.Now
	if m == nil {
		d.out.Told.NoRoom = time.Time{}
		return
	}
	due := m.CreatedAt.Add(roomAfter)
	if told := d.out.Told.NoRoom; !told.IsZero() {
		due = told.Add(roomAgain)
	}
	if due.After(now) {
		d.wake(due)
		return
	}
	d.out.Told.NoRoom = now
	d.wake(now.Add(roomAgain))
	d.tellOf(m.Deployment, "SERVICE_TASK_PLACEMENT_FAILURE", "(service %s) was unable to place a task because no container instance met all of its requirements. %s For more information, see the Troubleshooting section of the Amazon ECS Developer Guide.",
		d.in.Service.Name, closest(m.Task))
}

// closest says in ECS's words what a waiting task lacks.
func closest(t Task) string {
	instance := "container-instance"
	if t.Instance != "" {
		instance = "(container-instance " + t.Instance + ")"
	}
	lack := map[string]string{
		"RESOURCE:CPU":    "has insufficient CPU units available",
		"RESOURCE:MEMORY": "has insufficient memory available",
		"RESOURCE:PORTS":  "is already using a port required by your task",
		"ATTRIBUTE":       "is missing an attribute required by your task",
	}[t.WaitingReason]
	switch {
	case t.WaitingReason == "EMPTY CAPACITY":
		return "Reason: No Container Instances were found in your cluster."
	case lack == "":
		lack = fmt.Sprintf("encountered error %q", t.WaitingReason)
	}
	return fmt.Sprintf("The closest matching %s %s.", instance, lack)
}

// Causes for which nothing moves any more.
const (
	stuckOnProtection = "protection"
	stuckOnPercent    = "percent"
	stuckOnRoom       = "room"
	stuckOnEnd        = "end"
)

// tellStuck says that nothing moves, why, and what would help.
func (d *decision) tellStuck() {
	cause, m := d.stuck()
	told := d.out.Told.Stuck
	d.out.Told.Stuck = cause
	if cause == "" || cause == told {
		return
	}
	const percent = "was unable to stop or start tasks during a deployment because of the service deployment configuration. Update the minimumHealthyPercent or maximumPercent value and try again."
	name := d.in.Service.Name
	switch cause {
	case stuckOnEnd:
		d.tellOf(m.Deployment, "", "(service %s) waits for (task %s) to return or to be known to have ended: (container-instance %s) does not answer, and longshore:replaceAfter=confirmed allows no other before. If the machine is off for good: longshore instances fence %s --confirmed-off.",
			name, m.ID, m.Instance, m.Instance)
	case stuckOnProtection:
		n, last := d.protectedLeavers()
		d.tellOf(m.Deployment, "", "(service %s) was unable to reach steady state because (taskSet %s) was unable to scale in due to (reason %d tasks under protection). Their protection ends by %s; UpdateTaskProtection ends it before.",
			name, m.Deployment, n, last.UTC().Format(time.RFC3339))
	case stuckOnPercent:
		d.tellOf(d.primary.ID, "SERVICE_TASK_CONFIGURATION_FAILURE", "(service %s) %s", name, percent)
	case stuckOnRoom:
		d.tellOf(d.primary.ID, "SERVICE_TASK_CONFIGURATION_FAILURE", "(service %s) %s A new task waits for %s while minimumHealthyPercent keeps the task it is to replace: lower it, or add a container instance.",
			name, percent, m.WaitingReason)
	}
}

// stuck is for what cause nothing will ever move, with a task that shows it; "" while
// something still does, or will once an instance is given up or answers.
func (d *decision) stuck() (string, *member) {
	if at := slices.IndexFunc(d.members, func(m member) bool { return m.Kept }); at >= 0 && d.in.Service.Confirmed {
		return stuckOnEnd, &d.members[at]
	}
	if len(d.out.Create) > 0 || len(d.out.Stop) > 0 || d.slowed {
		return "", nil
	}
	var leaver, kept *member
	waits := d.waiting()
	for i := range d.members {
		m := &d.members[i]
		switch {
		case m.ending || m.Silent || m.Status == Pending || m.Unproven && m.leave == stays,
			m.Status == Waiting && m.WaitingReason == "":
			return "", nil // this changes by itself
		case m.leave != stays && m.protected(d.in.Now):
			if kept == nil {
				kept = m
			}
		case m.leave != stays && !m.Busy:
			leaver = m
		}
	}
	switch {
	case kept != nil && (d.want == 0 || d.room == 0) && waits == nil:
		return stuckOnProtection, kept
	case d.hosts == nil && d.want > 0 && d.room == 0, d.hosts != nil && leaver != nil:
		return stuckOnPercent, nil
	case waits != nil && leaver != nil:
		if due := waits.CreatedAt.Add(stuckAfter); due.After(d.in.Now) {
			d.wake(due)
			return d.out.Told.Stuck, waits
		}
		return stuckOnRoom, waits
	}
	return "", nil
}

// protectedLeavers counts the tasks that only their protection keeps, and says
// until when.
func (d *decision) protectedLeavers() (n int, last time.Time) {
	for i := range d.members {
		m := &d.members[i]
		if m.leave == stays || m.ending || !m.protected(d.in.Now) {
			continue
		}
		n++
		if m.ProtectedUntil.After(last) {
			last = m.ProtectedUntil
		}
	}
	return n, last
}
