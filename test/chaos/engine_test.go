//go:build e2e

package chaos

import (
	"context"
	"sync"
	"testing"

	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/client"

	"github.com/longshore-run/longshore/test/local"
)

const label = "run.longshore."

// witness writes down what the engine tells of the containers of a stage's agents.
// It speaks to the engine itself, over no link.
type witness struct {
	t    *testing.T
	stop context.CancelFunc
	done sync.WaitGroup

	mu   sync.Mutex
	told []Told
}

func (g *stage) watch() *witness {
	g.t.Helper()
	api, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		g.t.Fatal(err)
	}
	mine := map[string]bool{}
	for n := 1; n <= agents; n++ {
		mine[g.Agent(n).Instance] = true
	}
	ctx, stop := context.WithCancel(context.Background())
	w := &witness{t: g.t, stop: stop}
	if _, err := api.Ping(ctx); err != nil {
		g.t.Fatal(err)
	}
	stream, broken := api.Events(ctx, events.ListOptions{Filters: filters.NewArgs(filters.Arg("type", "container"), filters.Arg("label", label+"instance"))})
	w.done.Go(func() {
		defer api.Close()
		for {
			select {
			case e := <-stream:
				if of := e.Actor.Attributes; mine[of[label+"instance"]] {
					w.mu.Lock()
					w.told = append(w.told, Told{Action: string(e.Action), ID: e.Actor.ID, Instance: of[label+"instance"],
						Task: of[label+"task"], Attempt: of[label+"attempt"], Container: of[label+"container"]})
					w.mu.Unlock()
				}
			case err := <-broken:
				if ctx.Err() == nil {
					w.t.Errorf("the engine tells no more: %v", err)
				}
				return
			}
		}
	})
	return w
}

func (w *witness) end() {
	w.stop()
	w.done.Wait()
}

func (w *witness) heard() []Told {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]Told(nil), w.told...)
}

// starts is how often containers of a task were started.
func (w *witness) starts(task string) (n int) {
	for _, e := range w.heard() {
		if e.Task == task && e.Action == "start" {
			n++
		}
	}
	return n
}

// running are the tasks of which a container of the stage runs, by task, with the
// agents.
func (g *stage) running() map[string][]int {
	g.t.Helper()
	all := map[string][]int{}
	for n := 1; n <= agents; n++ {
		containers, err := local.Containers(g.t.Context(), g.Agent(n).Instance)
		if err != nil {
			g.t.Fatal(err)
		}
		for _, c := range containers {
			if c.State == "running" {
				task := c.Labels[label+"task"]
				all[task] = append(all[task], n)
			}
		}
	}
	return all
}
