package chaos

import (
	"fmt"
	"slices"
)

// Told is one thing that the engine told of a container, in the order it told it.
type Told struct {
	Action    string // create, start, die, destroy …
	ID        string // of the engine
	Instance  string // whose agent had it made
	Task      string
	Attempt   string
	Container string // its name in the task
}

// Testimony is what the engine's word comes to.
type Testimony struct {
	Starts, Tasks int
	// Doubles are each task's container that was started twice in one attempt, or
	// that ran in two copies at one time, wherever they were.
	Doubles []string
	// Left are containers that were made and not removed, by the engine's ids.
	Left []string
}

// Judge reads what the engine told. A container that its restart policy may start
// again is named in restarts, as task definitions name it.
func Judge(told []Told, restarts ...string) Testimony {
	var out Testimony
	starts := map[string]int{}              // of one container of one attempt
	running := map[string]map[string]bool{} // the engine's ids, by container of a task
	tasks := map[string]bool{}
	left := map[string]bool{}
	for _, e := range told {
		part := e.Task + "/" + e.Container
		switch e.Action {
		case "create":
			left[e.ID] = true
		case "destroy":
			delete(left, e.ID)
			delete(running[part], e.ID)
		case "die":
			delete(running[part], e.ID)
		case "start":
			out.Starts++
			tasks[e.Task] = true
			attempt := part + " attempt " + e.Attempt
			starts[attempt]++
			if starts[attempt] > 1 && !slices.Contains(restarts, e.Container) {
				out.Doubles = append(out.Doubles, fmt.Sprintf("%s was started %d times, at last on %s", attempt, starts[attempt], e.Instance))
			}
			if running[part] == nil {
				running[part] = map[string]bool{}
			}
			running[part][e.ID] = true
			if n := len(running[part]); n > 1 {
				out.Doubles = append(out.Doubles, fmt.Sprintf("%s runs in %d copies, the last on %s", part, n, e.Instance))
			}
		}
	}
	out.Tasks = len(tasks)
	for id := range left {
		out.Left = append(out.Left, id)
	}
	slices.Sort(out.Left)
	return out
}
