package dockerengine

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/go-connections/nat"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
)

var anID = agent.ContainerID{Task: testTask, Attempt: 2, Container: "main"}

// verbs are all calls of an engine.
func verbs(t *testing.T) map[string]func(context.Context, *Engine) error {
	def := registered(t, input(t, "minimal"))
	return map[string]func(context.Context, *Engine) error{
		"image": func(ctx context.Context, e *Engine) error {
			_, err := e.Image(ctx, "busybox", agent.Login{})
			return err
		},
		"create":     func(ctx context.Context, e *Engine) error { _, err := e.Create(ctx, specOf(def, "main")); return err },
		"start":      func(ctx context.Context, e *Engine) error { return e.Start(ctx, anID) },
		"restart":    func(ctx context.Context, e *Engine) error { return e.Restart(ctx, anID, time.Now()) },
		"stop":       func(ctx context.Context, e *Engine) error { return e.Stop(ctx, anID, 0) },
		"remove":     func(ctx context.Context, e *Engine) error { return e.Remove(ctx, anID) },
		"removetask": func(ctx context.Context, e *Engine) error { return e.RemoveTask(ctx, testTask, 2) },
		"observe":    func(ctx context.Context, e *Engine) error { _, err := e.Observe(ctx, anID); return err },
		"list":       func(ctx context.Context, e *Engine) error { _, err := e.List(ctx); return err },
		"watch":      func(ctx context.Context, e *Engine) error { _, err := e.Watch(ctx); return err },
		"info":       func(ctx context.Context, e *Engine) error { _, err := e.Info(ctx); return err },
		"ping":       func(ctx context.Context, e *Engine) error { return e.Ping(ctx) },
	}
}

// TestVerbs_OnAStalledEngineEndByTheirDeadline has an engine that takes calls and
// never answers, once from the first word on, once after it had been well.
func TestVerbs_OnAStalledEngineEndByTheirDeadline(t *testing.T) {
	for name, verb := range verbs(t) {
		for _, after := range []string{"from the start", "after a while"} {
			t.Run(name+" "+after, func(t *testing.T) {
				bubble(t, func(t *testing.T, s *stub) {
					e := s.engine(t, patient())
					if after == "after a while" {
						if err := e.Ping(t.Context()); err != nil {
							t.Fatal(err)
						}
					}
					stallAll(s)
					e.limits = short()
					begun := time.Now()
					err := verb(t.Context(), e)
					if took := time.Since(begun); took > 5*time.Second || !fault.Is(err, fault.Unavailable) {
						t.Errorf("after %s: %v, want an unavailable engine at once", took, err)
					}
				})
			})
		}
	}
}

func stallAll(s *stub) {
	for _, route := range []string{
		"GET /_ping", "GET /info", "GET /containers/json", "POST /containers/create", "GET /volumes", "GET /events",
		"GET /images/busybox/json", "POST /images/create",
	} {
		s.on(route, stall)
	}
}

func TestVerbs_OnAnEngineThatIsNotThereAreUnavailable(t *testing.T) {
	for name, verb := range verbs(t) {
		t.Run(name, func(t *testing.T) {
			e, err := New("unix:///nonexistent/docker.sock", "instance-1", "default")
			if err != nil {
				t.Fatal(err)
			}
			if err := verb(t.Context(), e); !fault.Is(err, fault.Unavailable) {
				t.Errorf("%v, want an unavailable engine", err)
			}
		})
	}
}

func TestVerbs_OneStalledNegotiationHoldsUpNobodyPastHisDeadline(t *testing.T) {
	bubble(t, func(t *testing.T, s *stub) {
		s.on("GET /_ping", stall)
		limits := patient()
		limits.Info = limits.Ping / 10
		e := s.engine(t, limits)
		ctx, cancel := context.WithCancel(t.Context())
		first := make(chan error, 1)
		go func() { first <- e.Ping(ctx) }()
		synctest.Wait()
		begun := time.Now()
		_, err := e.Info(t.Context())
		if took := time.Since(begun); !fault.Is(err, fault.Unavailable) || took > limits.Info {
			t.Errorf("after %s: %v, want an unavailable engine at once", took, err)
		}
		cancel()
		if err := <-first; !fault.Is(err, fault.Unavailable) {
			t.Errorf("the first call: %v", err)
		}
	})
}

func TestVerbs_GoOnWhenTheEngineIsReplacedByAnotherVersion(t *testing.T) {
	s := newStub(t)
	s.on("GET /containers/json", give([]container.Summary{}))
	e := s.engine(t, patient())
	if _, err := e.List(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.speak("1.44")
	if _, err := e.List(t.Context()); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("the call that met the new version: %v, want unavailable", err)
	}
	if _, err := e.List(t.Context()); err != nil {
		t.Errorf("the next one: %v", err)
	}
}

func TestVerbs_AnEngineThatDoesNotSayItsVersionIsUnavailable(t *testing.T) {
	s := newStub(t)
	s.speak("")
	if err := s.engine(t, patient()).Ping(t.Context()); !fault.Is(err, fault.Unavailable) {
		t.Errorf("%v, want unavailable", err)
	}
}

func TestNew_RefusesWhatCannotWork(t *testing.T) {
	for name, make := range map[string]func() (*Engine, error){
		"no instance": func() (*Engine, error) { return New("unix:///x", "", "default") },
		"a bad host":  func() (*Engine, error) { return New("nowhere", "i", "default") },
		"a policy":    func() (*Engine, error) { return New("unix:///x", "i", "default", WithPolicy("sometimes")) },
	} {
		if _, err := make(); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v, want invalid", name, err)
		}
	}
}

// aContainer is one as the engine shows it.
func aContainer(state container.State, change ...func(*container.InspectResponse)) container.InspectResponse {
	s := agent.Spec{ContainerID: anID, Epoch: 7, TaskARN: "arn", Cluster: "default", Family: "f", Revision: 3}
	c := container.InspectResponse{
		ContainerJSONBase: &container.ContainerJSONBase{ID: "c1", Image: "sha256:1", State: &state, HostConfig: &container.HostConfig{}},
		Config: &container.Config{Image: "busybox", Labels: map[string]string{
			labelInstance: "instance-1", labelTask: s.Task, labelAttempt: "2", labelContainer: "main", labelEpoch: "7",
			labelTaskARN: "arn", labelCluster: "default", labelDefinition: "f:3",
		}},
		NetworkSettings: &container.NetworkSettings{},
	}
	for _, f := range change {
		f(&c)
	}
	return c
}

// holding is a stub with one container.
func holding(t *testing.T, c container.InspectResponse) *stub {
	s := newStub(t)
	s.hold(c)
	return s
}

func (s *stub) hold(c container.InspectResponse) {
	s.on("GET /containers/json", give([]container.Summary{{ID: c.ID}}))
	s.on("GET /containers/"+c.ID+"/json", give(c))
}

const bindTaken = "driver failed programming external connectivity on endpoint longshore-x (0a1b): Bind for 0.0.0.0:%s failed: port is already allocated"

func TestStart_TriesAgainWhenAPortThatTheEngineChoseIsTaken(t *testing.T) {
	s := holding(t, aContainer(container.State{Status: "created"}))
	s.on("POST /containers/c1/start", inTurn(
		say(http.StatusInternalServerError, strings.Replace(bindTaken, "%s", "49153", 1)),
		func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
	))
	if err := s.engine(t, patient()).Start(t.Context(), anID); err != nil {
		t.Error(err)
	}
	if n := s.count("POST /containers/c1/start"); n != 2 {
		t.Errorf("%d starts, want 2", n)
	}
}

func TestStart_IsAConflictAtOnceWhenAPortThatWasNamedIsTaken(t *testing.T) {
	s := holding(t, aContainer(container.State{Status: "created"}, func(c *container.InspectResponse) {
		c.HostConfig.PortBindings = nat.PortMap{"80/tcp": {{HostPort: "8080"}}}
	}))
	s.on("POST /containers/c1/start", say(http.StatusInternalServerError, strings.Replace(bindTaken, "%s", "8080", 1)))
	err := s.engine(t, patient()).Start(t.Context(), anID)
	if !fault.Is(err, fault.Conflict) || !strings.HasPrefix(err.Error(), "CannotStartContainerError: port 8080/tcp of this host is taken") {
		t.Errorf("%v, want a conflict about 8080/tcp", err)
	}
	if n := s.count("POST /containers/c1/start"); n != 1 {
		t.Errorf("%d starts, want 1", n)
	}
}

func TestCreate_TellsWhoHasItsName(t *testing.T) {
	def := registered(t, input(t, "minimal"))
	spec := specOf(def, "main")
	mine := func(c *container.InspectResponse) {
		c.Config.Labels = containerLabels("instance-1", spec, def.ContainerDefinitions[0])
	}
	for name, c := range map[string]struct {
		holder container.InspectResponse
		want   fault.Kind
	}{
		"itself":            {aContainer(container.State{Status: "created"}, mine), ""},
		"one being removed": {aContainer(container.State{Status: "removing"}, mine), fault.Unavailable},
		"another task's": {aContainer(container.State{}, mine, func(c *container.InspectResponse) {
			c.Config.Labels[labelTask] = testTask[:12] + strings.Repeat("0", 20)
		}), fault.Conflict},
		"another instance's": {aContainer(container.State{}, mine, func(c *container.InspectResponse) {
			c.Config.Labels[labelInstance] = "instance-2"
		}), fault.Conflict},
		"a stranger's": {aContainer(container.State{}, func(c *container.InspectResponse) { c.Config.Labels = nil }), fault.Conflict},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStub(t)
			s.on("POST /containers/create", say(http.StatusConflict, "Conflict. The container name is already in use"))
			s.on("GET /containers/"+nameOf(spec, "main")+"/json", give(c.holder))
			id, err := s.engine(t, patient()).Create(t.Context(), spec)
			if fault.Of(err) != c.want || c.want == "" && id != "c1" {
				t.Errorf("%q, %v, want kind %q", id, err, c.want)
			}
		})
	}
}

// TestCreate_AVolumeDriverThatIsNotThereIsInvalid has Docker's answer, a 404, for
// which Docker itself looks around for fifteen seconds. It is not the image that
// lacks.
func TestCreate_AVolumeDriverThatIsNotThereIsInvalid(t *testing.T) {
	s := newStub(t)
	s.on("POST /volumes/create", say(http.StatusNotFound, `create x: error looking up volume plugin nfs: plugin "nfs" not found`))
	def := registered(t, input(t, "bridge-all"))
	if _, err := s.engine(t, patient()).Create(t.Context(), specOf(def, "api")); !fault.Is(err, fault.Invalid) {
		t.Errorf("%v, want invalid", err)
	}
	if n := s.count("POST /containers/create"); n != 0 {
		t.Errorf("%d containers were made without their volume", n)
	}
}

func TestWith_FindsAContainerAgainThatWasMadeAnew(t *testing.T) {
	s := holding(t, aContainer(container.State{Status: "running", Running: true}))
	e := s.engine(t, patient())
	e.remember(anID, "c0")
	got, err := e.Observe(t.Context(), anID)
	if err != nil || got.RuntimeID != "c1" {
		t.Errorf("%+v, %v, want container c1", got, err)
	}
}

func TestRemove_OneThatIsBeingRemovedIsAwaited(t *testing.T) {
	bubble(t, func(t *testing.T, s *stub) {
		s.hold(aContainer(container.State{}))
		s.on("DELETE /containers/c1", say(http.StatusConflict, "removal of container c1 is already in progress"))
		for name, wait := range map[string]http.HandlerFunc{"gone": give(container.WaitResponse{}), "never gone": stall, "gone before": nil} {
			s.on("POST /containers/c1/wait", wait)
			begun, limits := time.Now(), patient()
			err := s.engine(t, limits).Remove(t.Context(), anID)
			if took := time.Since(begun); err != nil || took > limits.Inspect {
				t.Errorf("%s: %v after %s", name, err, took)
			}
		}
		if n := s.count("POST /containers/c1/wait"); n != 3 {
			t.Errorf("%d waits, want 3", n)
		}
	})
}
