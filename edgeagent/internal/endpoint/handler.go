package endpoint

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"slices"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/task"
)

// Handler answers what containers ask. What a request says of its sender
// (X-Forwarded-For and its like) counts for nothing; the connection's address does.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v2/credentials/{id}", s.credentials)
	for path, answer := range map[string]func(http.ResponseWriter, *http.Request, bearer){
		"":              s.containerMetadata,
		"/{$}":          s.containerMetadata,
		"/task":         s.taskMetadata,
		"/taskWithTags": s.taskWithTags,
		"/stats":        s.containerStats,
		"/task/stats":   s.taskStats,
	} {
		mux.HandleFunc("GET /v4/{id}"+path, func(w http.ResponseWriter, r *http.Request) {
			b, no := s.know(r, metadataIDs)
			if no != nil {
				refuse(w, no)
				return
			}
			answer(w, r, b)
		})
	}
	return s.guarded(mux)
}

// guarded answers only who asks for this address, so that no page in a browser that
// was led here under another name reads anything, and never a body.
func (s *Server) guarded(next http.Handler) http.Handler {
	names := []string{s.Address}
	if at, err := netip.ParseAddrPort(s.Address); err == nil && at.Port() == 80 {
		names = append(names, at.Addr().String())
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		r.Body = http.MaxBytesReader(w, r.Body, 0)
		if !slices.Contains(names, r.Host) {
			refuse(w, &refusal{http.StatusForbidden, "InvalidHost", "this endpoint is asked by its address alone"})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// bearer is who asks, once that is certain.
type bearer struct {
	id     agent.ContainerID
	task   agent.Served
	shown  task.Container
	detail agent.Detail
}

// refusal is an answer that is none, in the shape that SDKs read.
type refusal struct {
	Status  int    `json:"HTTPErrorCode"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

var (
	errUnknown  = &refusal{http.StatusNotFound, "InvalidIdInRequest", "no container that runs here has this id"}
	errNotYours = &refusal{http.StatusForbidden, "AccessDenied", "this id is not that of the container that asks"}
	errTooMany  = &refusal{http.StatusTooManyRequests, "TooManyRequests", "the task asks too often; see LONGSHORE_TASK_METADATA_RPS_LIMIT"}
	errNoEngine = &refusal{http.StatusServiceUnavailable, "EngineUnavailable", "the engine does not say which container asks; try again"}
	errNoRole   = &refusal{http.StatusNotFound, "NoCredentialsAssociated", "the task has no role"}
)

func refuse(w http.ResponseWriter, no *refusal) {
	if no.Status == http.StatusNotFound || no.Status == http.StatusForbidden {
		w.Header().Set("Connection", "close") // who guesses pays with a connection for each
	}
	answer(w, no.Status, no)
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // who asked is gone
}

// know finds out who asks: first by the id, then by the address, and last whether its
// task has asked too often.
func (s *Server) know(r *http.Request, purpose string) (bearer, *refusal) {
	c, ok := s.read(purpose, r.PathValue("id"))
	if !ok {
		return bearer{}, errUnknown
	}
	served, ok := s.Served(c.task)
	if !ok || served.Attempt != c.attempt {
		return bearer{}, errUnknown
	}
	i := slices.IndexFunc(served.Containers, func(k task.Container) bool { return nameHash(k.Name) == c.name })
	if i < 0 || served.Containers[i].Status == task.ContainerStopped {
		return bearer{}, errUnknown
	}
	b := bearer{id: agent.ContainerID{Task: c.task, Attempt: c.attempt, Container: served.Containers[i].Name}, task: served, shown: served.Containers[i]}
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return bearer{}, errNotYours
	}
	came := s.Now()
	switch is, err := s.isCaller(r.Context(), b.id, from.Addr()); {
	case err != nil:
		return bearer{}, errNoEngine
	case !is:
		return bearer{}, errNotYours
	case !s.limits.allow(c.task):
		return bearer{}, errTooMany
	}
	still := false
	if b.detail, still, err = s.isStill(r.Context(), b.id, from.Addr(), came); err != nil {
		return bearer{}, errNoEngine
	} else if !still {
		return bearer{}, errNotYours
	}
	return b, nil
}
