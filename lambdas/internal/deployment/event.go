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
