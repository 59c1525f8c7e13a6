package dockerengine

import (
	"context"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/longshore-run/longshore/shared/fault"
)

// An engine that shuts down answers on the connections it has. Its errors are not
// about what was asked, and nothing is started on it.
func TestVerbs_AnEngineThatShutsDownIsUnavailable(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	all := verbs(t)
	all["restart"] = func(ctx context.Context, e *Engine) error { return e.Restart(ctx, anID, began) }
	for name, verb := range all {
		t.Run(name, func(t *testing.T) {
			s := holding(t, aContainer(container.State{Status: "exited", StartedAt: began.Format(time.RFC3339Nano), FinishedAt: began.Format(time.RFC3339Nano)}))
			s.on("POST /containers/c1/start", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
			e := s.engine(t, patient())
			if err := e.Ping(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(strings.TrimPrefix(s.host, "unix://")); err != nil {
				t.Fatal(err)
			}
			for _, route := range routes[5:] {
				s.on(route, say(http.StatusInternalServerError, "failed to update store for object type *libnetwork.endpoint"))
			}
			err := verb(t.Context(), e)
			if err != nil && !fault.Is(err, fault.Unavailable) || err == nil && name == "restart" {
				t.Errorf("%v (%s), want unavailable", err, fault.Of(err))
			}
			if n := s.count("POST /containers/c1/start"); n > 0 {
				t.Error("it was asked to start something")
			}
		})
	}
}
