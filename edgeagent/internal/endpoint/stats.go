package endpoint

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
)

// samples remember each container's last measurement: the engine gives one at a time,
// and who reads it wants the one before beside it.
type samples struct {
	engine Engine

	mu   sync.Mutex
	last map[string]before // by runtime id
}

type before struct{ cpu, read json.RawMessage }

func newSamples(engine Engine) *samples {
	return &samples{engine: engine, last: map[string]before{}}
}

// take measures a container, in the engine's own JSON.
func (s *samples) take(ctx context.Context, id agent.ContainerID) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, detailWait)
	defer cancel()
	raw, err := s.engine.Stats(ctx, id)
	if err != nil {
		return nil, err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, fault.Malformed(err, "stats of container %s", id.Container)
	}
	key := string(all["id"])
	s.mu.Lock()
	defer s.mu.Unlock()
	if last, ok := s.last[key]; ok {
		all["precpu_stats"], all["preread"] = last.cpu, last.read
	}
	if len(s.last) >= mostDetails { // of containers that are long gone
		clear(s.last)
	}
	s.last[key] = before{all["cpu_stats"], all["read"]}
	return json.Marshal(all)
}

func (s *Server) containerStats(w http.ResponseWriter, r *http.Request, b bearer) {
	one, err := s.samples.take(r.Context(), b.id)
	if err != nil {
		refuse(w, errNoEngine)
		return
	}
	answer(w, http.StatusOK, one)
}

// taskStats are those of all containers, null for one that does not run.
func (s *Server) taskStats(w http.ResponseWriter, r *http.Request, b bearer) {
	all := map[string]json.RawMessage{}
	for _, c := range b.task.Containers {
		if c.RuntimeID == "" {
			continue
		}
		all[c.RuntimeID] = nil
		if c.Status == task.ContainerStopped {
			continue
		}
		id := b.id
		id.Container = c.Name
		one, err := s.samples.take(r.Context(), id)
		switch {
		case err == nil:
			all[c.RuntimeID] = one
		case !fault.Is(err, fault.NotFound):
			refuse(w, errNoEngine)
			return
		}
	}
	answer(w, http.StatusOK, all)
}
