// Package introspect shows what the agent knows to people and tools of its machine:
// what ECS's agent shows on port 51678, the same in our words, and metrics for
// Prometheus. It only reads. The agent's main imports it.
package introspect

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/task"
)

// Namer is what the engine calls a container.
type Namer func(family string, revision int, id agent.ContainerID) string

// Handler answers GET requests from what look shows:
//
//	/v1/metadata, /v1/tasks   as ECS's agent does; ?taskarn= and ?dockerid= choose a task
//	/v1/status                agent.Look
//	/metrics                  for Prometheus
func Handler(look func() agent.Look, name Namer) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/metadata", func(w http.ResponseWriter, _ *http.Request) {
		l := look()
		answer(w, metadata{Cluster: l.Cluster, ContainerInstanceArn: orNull(l.ContainerInstanceARN), Version: "longshore-agent " + l.Version})
	})
	mux.HandleFunc("GET /v1/tasks", func(w http.ResponseWriter, r *http.Request) { tasks(w, r, look(), name) })
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) { answer(w, look()) })
	mux.Handle("GET /metrics", newMetrics(look))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string][]string{"AvailableCommands": {"/v1/metadata", "/v1/tasks", "/v1/status", "/metrics"}})
	})
	return guarded(mux)
}

// guarded lets only this machine's own programs in: a page in a browser that was led
// here under another name is none.
func guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !IsLoopback(r.Host) {
			http.Error(w, "only for this machine: ask by 127.0.0.1 or localhost", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func answer(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body) // who asked is gone
}

// What follows are the shapes of ECS's agent, which tools read.

type metadata struct {
	Cluster              string
	ContainerInstanceArn *string
	Version              string
}

type ecsTasks struct{ Tasks []ecsTask }

type ecsTask struct {
	Arn           string
	DesiredStatus string `json:",omitempty"`
	KnownStatus   string
	Family        string
	Version       string
	Containers    []ecsContainer
}

type ecsContainer struct {
	DockerID   string `json:"DockerId"`
	DockerName string
	Name       string
	Ports      []ecsPort `json:",omitempty"`
}

type ecsPort struct {
	ContainerPort int
	Protocol      string
	HostPort      int
}

func tasks(w http.ResponseWriter, r *http.Request, l agent.Look, name Namer) {
	all := make([]ecsTask, 0, len(l.Tasks))
	for _, t := range l.Tasks {
		all = append(all, ecsTaskOf(t, name))
	}
	q := r.URL.Query()
	var chosen func(ecsTask) bool
	switch arn, docker := q.Get("taskarn"), q.Get("dockerid"); {
	case q.Has("taskarn") && q.Has("dockerid"):
		http.Error(w, "taskarn and dockerid: give one of them", http.StatusBadRequest)
		return
	case q.Has("taskarn"):
		chosen = func(t ecsTask) bool { return t.Arn == arn }
	case q.Has("dockerid"):
		chosen = func(t ecsTask) bool {
			return slices.ContainsFunc(t.Containers, func(c ecsContainer) bool { return docker != "" && c.DockerID == docker })
		}
	default:
		answer(w, ecsTasks{all})
		return
	}
	if i := slices.IndexFunc(all, chosen); i >= 0 {
		answer(w, all[i])
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusNotFound)
	_, _ = w.Write([]byte("{}\n")) // who asked is gone
}

func ecsTaskOf(t agent.TaskLook, name Namer) ecsTask {
	out := ecsTask{Arn: t.ARN, KnownStatus: string(t.Status), Family: t.Family, Version: strconv.Itoa(t.Revision), Containers: []ecsContainer{}}
	if t.Desired != task.DesiredRunning || t.Status != task.Running {
		out.DesiredStatus = string(t.Desired)
	}
	for _, c := range t.Containers {
		shown := ecsContainer{DockerID: c.RuntimeID, Name: c.Name,
			DockerName: name(t.Family, t.Revision, agent.ContainerID{Task: t.ID, Attempt: t.Attempt, Container: c.Name})}
		for _, b := range c.Bindings {
			shown.Ports = append(shown.Ports, ecsPort{ContainerPort: b.ContainerPort, Protocol: b.Protocol, HostPort: b.HostPort})
		}
		out.Containers = append(out.Containers, shown)
	}
	return out
}

func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
