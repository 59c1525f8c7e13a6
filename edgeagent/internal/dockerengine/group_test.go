package dockerengine

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// The same inputs as without a group: what the group bounds is not set for each
// container again, and what is a container's own stays.
func TestRequest_InATasksGroupIsTheGoldenOne(t *testing.T) {
	for _, g := range []struct{ file, container string }{
		{"task-size", "free"}, {"task-size-bound", "bound"}, {"pause", agent.PauseContainer}, {"shared-namespaces", "app"},
	} {
		t.Run(g.file, func(t *testing.T) {
			s := specOf(registered(t, input(t, g.file)), g.container)
			s.Definition.CPU, s.Definition.Memory = cmp.Or(s.Definition.CPU, "256"), cmp.Or(s.Definition.Memory, "512")
			r, err := request("instance-1", s)
			if err != nil {
				t.Fatal(err)
			}
			into(&r, s, sizeOf(s), "/longshore/instance/"+testTask+"_2")
			compareGolden(t, filepath.Join("testdata", "request", "in-group", g.file+".golden.json"), encode(t, r))
		})
	}
}

func TestInto_MaxSwapKeepsTheMemoryThatItComesOnTopOf(t *testing.T) {
	def := taskdef.TaskDefinition{Spec: taskdef.Spec{Family: "swap", Memory: "256", ContainerDefinitions: []taskdef.ContainerDefinition{
		{Name: "main", Image: "busybox", LinuxParameters: &taskdef.LinuxParameters{MaxSwap: new(64)}}}}}
	s := specOf(def, "main")
	r, err := request("instance-1", s)
	if err != nil {
		t.Fatal(err)
	}
	into(&r, s, sizeOf(s), "parent")
	if r.Host.Memory != 256*mib || r.Host.MemorySwap != 320*mib {
		t.Errorf("memory %d, with swap %d", r.Host.Memory, r.Host.MemorySwap)
	}
}

// groupLog is Groups that remember what was asked.
type groupLog struct {
	mu    sync.Mutex
	asked []string
	fails error
}

func (g *groupLog) say(format string, args ...any) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = append(g.asked, fmt.Sprintf(format, args...))
	return g.fails
}

func (g *groupLog) Ensure(_ context.Context, task string, attempt, cpu, memoryMiB int) (string, error) {
	return "/groups/" + task, g.say("ensure %s %d cpu=%d memory=%d", task, attempt, cpu, memoryMiB)
}

func (g *groupLog) Remove(_ context.Context, task string, attempt int) error {
	return g.say("remove %s %d", task, attempt)
}

func (g *groupLog) Sweep(_ context.Context, used func(task string, attempt int) bool) error {
	return g.say("sweep t1=%t t2=%t", used("t1", 1), used("t2", 1))
}

func (g *groupLog) open(_ context.Context, driver, version string) Groups {
	_ = g.say("open %s %s", driver, version)
	return g
}

const sizedLabels = `{"` + labelInstance + `":"instance-1","` + labelTask + `":"t1","` + labelAttempt + `":"1","` + labelContainer + `":"main","` + labelSize + `":"cpu=512,memory=64"}`

// groupStub is an engine with the container of a task in a group.
func groupStub(t *testing.T) *stub {
	t.Helper()
	s := newStub(t)
	s.on("GET /info", answer(200, `{"CgroupDriver":"systemd","CgroupVersion":"2","SecurityOptions":["name=seccomp,profile=default"]}`))
	s.on("GET /containers/json", answer(200, `[{"Id":"c1","Labels":`+sizedLabels+`}]`))
	s.on("GET /containers/c1/json", answer(200, `{"Id":"c1","State":{"StartedAt":"0001-01-01T00:00:00Z"},"Config":{"Labels":`+sizedLabels+`},"HostConfig":{"CgroupParent":"/groups/t1"}}`))
	s.on("POST /containers/c1/start", answer(204, ""))
	s.on("GET /volumes", answer(200, `{"Volumes":[]}`))
	return s
}

func TestGroups_AreThereBeforeAStartAndGoWithTheTask(t *testing.T) {
	s, g := groupStub(t), &groupLog{}
	e := s.engine(t, patient(), WithGroups(g.open, false)) // off: for new containers alone
	id := agent.ContainerID{Task: "t1", Attempt: 1, Container: "main"}
	if err := e.Start(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if err := e.RemoveTask(t.Context(), "t1", 1); err != nil {
		t.Fatal(err)
	}
	want := []string{"open systemd 2", "ensure t1 1 cpu=512 memory=64", "remove t1 1"}
	if !slices.Equal(g.asked, want) {
		t.Errorf("asked %q, want %q", g.asked, want)
	}
}

func TestGroups_NothingStartsWithoutItsLimits(t *testing.T) {
	id := agent.ContainerID{Task: "t1", Attempt: 1, Container: "main"}
	for what, c := range map[string]struct {
		open OpenGroups
		want fault.Kind
	}{
		"no groups can be made any more": {func(context.Context, string, string) Groups { return nil }, fault.Invalid},
		"the group cannot be made now":   {(&groupLog{fails: fault.New(fault.Unavailable, "no")}).open, fault.Unavailable},
	} {
		s := groupStub(t)
		s.on("POST /containers/c1/start", func(w http.ResponseWriter, _ *http.Request) {
			t.Errorf("%s: it was started", what)
			w.WriteHeader(http.StatusNoContent)
		})
		if err := s.engine(t, patient(), WithGroups(c.open, true)).Start(t.Context(), id); !fault.Is(err, c.want) {
			t.Errorf("%s: %v, want kind %q", what, err, c.want)
		}
	}
}

func TestGroups_AreSweptOnceAndAgainAfterAFailure(t *testing.T) {
	s, g := groupStub(t), &groupLog{fails: fault.New(fault.Unavailable, "no")}
	e := s.engine(t, patient(), WithGroups(g.open, true))
	list := func() {
		if _, err := e.List(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	list()
	g.fails = nil
	list()
	list()
	const sweep = "sweep t1=true t2=false"
	if want := []string{"open systemd 2", sweep, sweep}; !slices.Equal(g.asked, want) {
		t.Errorf("asked %q, want %q", g.asked, want)
	}
}

// What an engine says of itself is looked at again each time: it may have been
// set up anew, and what was missing may be there.
func TestInfo_SaysWhetherTasksAreLimited(t *testing.T) {
	s, g := groupStub(t), &groupLog{}
	var can Groups
	e := s.engine(t, patient(), WithGroups(func(ctx context.Context, driver, version string) Groups {
		_ = g.say("open %s %s", driver, version)
		return can
	}, true))
	limits := func(want bool) {
		t.Helper()
		if info, err := e.Info(t.Context()); err != nil || info.TaskLimits != want {
			t.Errorf("limits: %t, %v", info.TaskLimits, err)
		}
	}
	limits(false)
	can = g
	limits(true)
	limits(true) // as it is
	s.on("GET /info", answer(200, `{"CgroupDriver":"cgroupfs","CgroupVersion":"1","SecurityOptions":["name=rootless"]}`))
	can = nil
	limits(false)
	if want := "open systemd 2, open systemd 2, open cgroupfs (rootless) 1"; strings.Join(g.asked, ", ") != want {
		t.Errorf("asked %q", g.asked)
	}
}

func FuzzParseSize(f *testing.F) {
	for _, text := range []string{"cpu=512,memory=64", "cpu=0,memory=0", "cpu=-1,memory=1", "cpu=1,memory=2x", "", "cpu=01,memory=1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if s, ok := parseSize(text); ok && (s.String() != text || s.cpu < 0 || s.memoryMiB < 0) {
			t.Errorf("%q is read as %s", text, s)
		}
	})
}

// answer says a body as it is.
func answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}
