package dockerengine

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
)

const routeEvents = "GET /events"

// event is one line of the engine's stream, about the container of anID.
func event(action, id string, attributes ...string) string {
	all := []string{
		labelInstance, "instance-1", labelTask, testTask, labelAttempt, "2", labelContainer, "main", labelEpoch, "7",
		labelTaskARN, "arn", labelDefinition, "f:3", "image", "busybox",
	}
	all = append(all, attributes...)
	var pairs []string
	for i := 0; i < len(all); i += 2 {
		pairs = append(pairs, fmt.Sprintf("%q:%q", all[i], all[i+1]))
	}
	return fmt.Sprintf(`{"Type":"container","Action":%q,"Actor":{"ID":%q,"Attributes":{%s}},"timeNano":1764489600000000000}`,
		action, id, strings.Join(pairs, ","))
}

// told is the next that a watch says; false when it has closed.
func told(t *testing.T, news <-chan agent.Seen) (agent.Seen, bool) {
	t.Helper()
	select {
	case s, ok := <-news:
		return s, ok
	case <-time.After(20 * time.Second):
		t.Fatal("the watch says nothing")
		panic("unreachable")
	}
}

func watch(t *testing.T, e *Engine) <-chan agent.Seen {
	t.Helper()
	news, err := e.Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return news
}

func TestWatch_AsksForItsOwnAndReachesBack(t *testing.T) {
	s := newStub(t)
	asked := make(chan string, 1)
	s.on(routeEvents, func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Query().Get("since") + " " + r.URL.Query().Get("filters")
		w.(http.Flusher).Flush()
		stall(w, r)
	})
	now := time.Unix(1_764_489_600, 5)
	watch(t, s.engine(t, patient(), WithNow(func() time.Time { return now })))
	got := <-asked
	for _, want := range []string{"1764489590.000000005 ", `"run.longshore.instance=instance-1"`, `"container"`, `"die"`, `"destroy"`, `"oom"`} {
		if !strings.Contains(got, want) {
			t.Errorf("it asks %s, which lacks %s", got, want)
		}
	}
}

func TestWatch_ClosesWhenTheStreamBreaks(t *testing.T) {
	for name, end := range map[string]http.HandlerFunc{
		"ends": lines(event("start", "c1")),
		"breaks off": func(w http.ResponseWriter, r *http.Request) {
			lines(event("start", "c1"))(w, r)
			panic(http.ErrAbortHandler)
		},
		"is garbage": thenStall(lines(event("start", "c1"), `<html>`)),
	} {
		t.Run(name, func(t *testing.T) {
			s := holding(t, aContainer(container.State{Status: "running", Running: true, StartedAt: started}))
			s.on(routeEvents, end)
			news := watch(t, s.engine(t, patient()))
			for {
				if _, open := told(t, news); !open {
					return
				}
			}
		})
	}
}

func TestWatch_ClosesWhenTheEngineDoesNotShowWhatHappened(t *testing.T) {
	bubble(t, func(t *testing.T, s *stub) {
		s.on("GET /containers/c1/json", stall)
		s.on(routeEvents, thenStall(lines(event("start", "c1"))))
		limits := patient()
		limits.Inspect = time.Second
		if seen, open := told(t, watch(t, s.engine(t, limits))); open {
			t.Errorf("it says %+v, want it closed: the caller lists then", seen)
		}
	})
}

func TestWatch_ThatDoesNotOpenIsUnavailableOrEndsAtOnce(t *testing.T) {
	s := newStub(t)
	s.on(routeEvents, say(http.StatusInternalServerError, "no"))
	news, err := s.engine(t, patient()).Watch(t.Context())
	if err == nil { // the Docker client returned a moment before it said so
		if seen, open := told(t, news); open {
			t.Errorf("it says %+v, want it closed", seen)
		}
		return
	}
	if !fault.Is(err, fault.Unavailable) {
		t.Errorf("%v, want unavailable", err)
	}
}

func TestWatch_AContainerGoneBeforeTheLookKeepsItsExitCode(t *testing.T) {
	s := newStub(t) // it shows no container any more
	s.on(routeEvents, thenStall(lines(event("create", "c1"), event("start", "c1"), event("oom", "c1"), event("die", "c1", "exitCode", "137"), event("destroy", "c1"))))
	news := watch(t, s.engine(t, patient()))
	var code *int
	for {
		got, open := told(t, news)
		if !open {
			t.Fatal("it closed")
		}
		if got.ContainerID != anID || got.Epoch != 7 || got.Family != "f" || got.RuntimeID != "c1" || got.Running {
			t.Errorf("it says %+v", got)
		}
		if got.ExitCode != nil {
			code = got.ExitCode
			if !got.FinishedAt.Equal(time.Unix(1764489600, 0)) {
				t.Errorf("it ended at %s", got.FinishedAt)
			}
		}
		if got.Gone {
			break
		}
	}
	if code == nil || *code != 137 {
		t.Errorf("exit code %v, want 137", code)
	}
}

func TestWatch_TheEndOfAnOlderContainerOfTheNameIsNotTheNewOnes(t *testing.T) {
	s := holding(t, aContainer(container.State{Status: "running", Running: true, StartedAt: started}))
	s.on(routeEvents, thenStall(lines(event("destroy", "c0"), event("start", "c1"))))
	e := s.engine(t, patient())
	e.remember(anID, "c1")
	if got, _ := told(t, watch(t, e)); got.Gone || got.RuntimeID != "c1" {
		t.Errorf("it says %+v, want the running c1", got)
	}
}

// TestWatch_ASlowReceiverLosesNothing has more events than anybody receives: one
// for each container stays.
func TestWatch_ASlowReceiverLosesNothing(t *testing.T) {
	const n = 200
	var all []string
	for range 20 {
		for i := range n {
			all = append(all, event("kill", fmt.Sprintf("c%d", i), labelContainer, fmt.Sprintf("box%d", i)))
		}
	}
	for i := range n {
		all = append(all, event("destroy", fmt.Sprintf("c%d", i), labelContainer, fmt.Sprintf("box%d", i)))
	}
	s := newStub(t)
	read := make(chan struct{})
	s.on(routeEvents, thenStall(func(w http.ResponseWriter, r *http.Request) { lines(all...)(w, r); close(read) }))
	news := watch(t, s.engine(t, patient()))
	<-read
	gone := map[string]bool{}
	for len(gone) < n {
		got, open := told(t, news)
		if !open {
			t.Fatalf("it closed after %d", len(gone))
		}
		if got.Gone {
			gone[got.Container] = true
		}
	}
}

func TestWatch_EndsWithItsContextThoughNobodyReceives(t *testing.T) {
	s := holding(t, aContainer(container.State{Status: "running", Running: true, StartedAt: started}))
	s.on(routeEvents, thenStall(lines(event("start", "c1"))))
	ctx, cancel := context.WithCancel(t.Context())
	news, err := s.engine(t, patient()).Watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the look", func() bool { return s.count("GET /containers/c1/json") == 1 })
	cancel()
	for {
		if _, open := told(t, news); !open {
			return
		}
	}
}
