package deployment

import (
	"fmt"
	"strings"
)

// Started tells that tasks were created, replaced of them for unhealthy ones.
func Started(service string, tasks []string, replaced int) Event {
	message := fmt.Sprintf("(service %s) has started %d tasks:%s.", service, len(tasks), listed(tasks))
	if replaced > 0 {
		message += fmt.Sprintf(" Amazon ECS replaced %d tasks due to an unhealthy status.", replaced)
	}
	return Event{Message: message}
}

func listed(tasks []string) string {
	var b strings.Builder
	for _, id := range tasks {
		b.WriteString(" (task " + id + ")")
	}
	return b.String()
}

func (d *decision) tell(name, format string, args ...any) {
	d.tellOf("", name, format, args...)
}

func (d *decision) tellOf(deployment, name, format string, args ...any) {
	d.out.Events = append(d.out.Events, Event{Name: name, Message: fmt.Sprintf(format, args...), Deployment: deployment})
}

// tellStops tells of the stops that were decided.
func (d *decision) tellStops() {
	var running []string
	pending := 0
	for _, s := range d.out.Stop {
		for i := range d.members {
			if m := &d.members[i]; m.ID != s.Task {
				continue
			} else if m.Status == Running {
				running = append(running, m.ID)
			} else {
				pending++
			}
		}
	}
	name := d.in.Service.Name
	if pending > 0 {
		d.tell("", "(service %s) stopped %d pending tasks.", name, pending)
	}
	if len(running) > 0 {
		d.tell("", "(service %s) has stopped %d running tasks:%s.", name, len(running), listed(running))
	}
}
