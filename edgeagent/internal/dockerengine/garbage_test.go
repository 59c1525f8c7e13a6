package dockerengine

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/docker/docker/api/types/container"

	"github.com/longshore-run/longshore/shared/fault"
)

// routes are all that the verbs ask, of an engine with one container.
var routes = []string{
	"GET /_ping", "GET /info", "GET /containers/json", "GET /containers/c1/json", "POST /containers/create", "POST /containers/c1/start",
	"POST /containers/c1/stop", "DELETE /containers/c1", "GET /volumes", "GET /images/busybox/json", "POST /images/create", "GET /events",
}

// An answer that is no answer says nothing of what was asked: the engine is
// unavailable, and it is asked again. None of it is a panic, or a fault for good.
func TestVerbs_AnAnswerThatCannotBeReadIsUnavailable(t *testing.T) {
	for how, answer := range map[string]http.HandlerFunc{
		"garbage": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>Bad Gateway</html>") },
		"half of an object": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"Id":"c1","State":{"Status":"run`)
		},
		"of another type": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `"busy"`)
		},
		"a body that breaks off": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "5000")
			fmt.Fprint(w, `{"Id":"c1","Sta`)
		},
		"502 of somebody in between": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			fmt.Fprint(w, "<html>Bad Gateway</html>")
		},
	} {
		for name, verb := range verbs(t) {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				s := holding(t, aContainer(container.State{Status: "created"}))
				e := s.engine(t, patient())
				if err := e.Ping(t.Context()); err != nil { // what follows is about the verb, not about the first word
					t.Fatal(err)
				}
				for _, route := range routes {
					s.on(route, answer)
				}
				err := verb(t.Context(), e)
				if err != nil && !fault.Is(err, fault.Unavailable) {
					t.Errorf("%v (%s), want unavailable", err, fault.Of(err))
				}
			})
		}
	}
}
