package dockerengine

import (
	"net/http"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
)

// The engine's clock was set back between the run that is known and the one that
// followed it: that one is not followed by a third.
func TestRestart_ARunThatBeganEarlierIsAnotherAllTheSame(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	for name, c := range map[string]struct {
		started time.Time
		starts  int
	}{"the one that is known": {began, 1}, "a later one": {began.Add(time.Hour), 0}, "an earlier one": {began.Add(-time.Hour), 0}} {
		s := holding(t, aContainer(container.State{Status: "exited", StartedAt: c.started.Format(time.RFC3339Nano), FinishedAt: c.started.Add(time.Second).Format(time.RFC3339Nano)}))
		s.on("POST /containers/c1/start", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
		if err := s.engine(t, patient()).Restart(t.Context(), anID, began); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if n := s.count("POST /containers/c1/start"); n != c.starts {
			t.Errorf("%s: %d starts, want %d", name, n, c.starts)
		}
	}
}
