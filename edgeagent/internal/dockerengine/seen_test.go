package dockerengine

import (
	"net/http"
	"reflect"
	"testing"
	"testing/fstest"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/go-connections/nat"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
)

const (
	noTime  = "0001-01-01T00:00:00Z"
	started = "2026-11-30T07:02:24.472680399Z"
	ended   = "2026-11-30T07:02:25.47Z"
)

func TestSeen_IsWhatTheStateSays(t *testing.T) {
	at, end := instant(started), instant(ended)
	for name, c := range map[string]struct {
		state         container.State
		created, runs bool
		code          *int
		start, finish time.Time
	}{
		"created":               {state: container.State{Status: "created", StartedAt: noTime, FinishedAt: noTime}, created: true},
		"a start that failed":   {state: container.State{Status: "created", ExitCode: 127, Error: "no such file", StartedAt: noTime, FinishedAt: noTime}, created: true},
		"running":               {state: container.State{Status: "running", Running: true, StartedAt: started, FinishedAt: noTime}, runs: true, start: at},
		"running again":         {state: container.State{Status: "running", Running: true, StartedAt: started, FinishedAt: ended}, runs: true, start: at},
		"paused":                {state: container.State{Status: "paused", Running: true, Paused: true, StartedAt: started, FinishedAt: noTime}, runs: true, start: at},
		"ended well":            {state: container.State{Status: "exited", StartedAt: started, FinishedAt: ended}, code: new(0), start: at, finish: end},
		"killed":                {state: container.State{Status: "exited", ExitCode: 137, OOMKilled: true, StartedAt: started, FinishedAt: ended}, code: new(137), start: at, finish: end},
		"dead":                  {state: container.State{Status: "dead", Dead: true, ExitCode: 1, StartedAt: started, FinishedAt: ended}, code: new(1), start: at, finish: end},
		"ended before it began": {state: container.State{Status: "exited", StartedAt: ended, FinishedAt: started}, code: new(0), start: end, finish: end},
	} {
		s := seen(aContainer(c.state), "sha256:d")
		if s.Created != c.created || s.Running != c.runs || !reflect.DeepEqual(s.ExitCode, c.code) || !s.StartedAt.Equal(c.start) ||
			!s.FinishedAt.Equal(c.finish) || s.OOMKilled != c.state.OOMKilled || s.Error != c.state.Error {
			t.Errorf("%s: %+v", name, s)
		}
		if s.ContainerID != anID || s.Epoch != 7 || s.Family != "f" || s.Revision != 3 || s.TaskARN != "arn" || s.Digest != "sha256:d" || s.Image != "busybox" {
			t.Errorf("%s: identity %+v", name, s)
		}
	}
}

func TestHealth_IsThatOfTheDefinitionsCheckAlone(t *testing.T) {
	at := instant(ended)
	log := []*container.HealthcheckResult{{End: at.Add(-time.Minute)}, {End: at}}
	for name, c := range map[string]struct {
		health  *container.Health
		label   string
		running bool
		want    task.Health
		at      time.Time
	}{
		"healthy":              {&container.Health{Status: "healthy", Log: log}, "checked", true, task.Healthy, at},
		"unhealthy":            {&container.Health{Status: "unhealthy", Log: log}, "checked", true, task.Unhealthy, at},
		"starting":             {&container.Health{Status: "starting"}, "checked", true, task.HealthUnknown, time.Time{}},
		"started once more":    {&container.Health{Status: "starting", Log: log}, "checked", true, task.HealthUnknown, time.Time{}},
		"ended":                {&container.Health{Status: "unhealthy", Log: log}, "checked", false, "", time.Time{}},
		"of the image's check": {&container.Health{Status: "healthy", Log: log}, "", true, "", time.Time{}},
		"without a check":      {nil, "checked", true, "", time.Time{}},
	} {
		s := seen(aContainer(container.State{Running: c.running, StartedAt: started, Health: c.health}, func(r *container.InspectResponse) {
			r.Config.Labels[labelHealth] = c.label
		}), "")
		if s.Health != c.want || !s.HealthAt.Equal(c.at) {
			t.Errorf("%s: %q at %s, want %q at %s", name, s.Health, s.HealthAt, c.want, c.at)
		}
	}
}

func TestBindings_FoldBothFamiliesOfAddresses(t *testing.T) {
	c := aContainer(container.State{Running: true}, func(c *container.InspectResponse) {
		c.NetworkSettings.Ports = nat.PortMap{
			"8080/tcp": {{HostIP: "0.0.0.0", HostPort: "49154"}, {HostIP: "::", HostPort: "49153"}},
			"80/tcp":   {{HostIP: "0.0.0.0", HostPort: "8081"}, {HostIP: "::", HostPort: "8081"}, {HostIP: "0.0.0.0", HostPort: "8080"}},
			"80/udp":   {{HostIP: "::", HostPort: "7000"}},
			"99/tcp":   nil, // exposed by the image, published by nobody
		}
	})
	want := []task.Binding{
		{BindIP: "0.0.0.0", ContainerPort: 80, HostPort: 8080, Protocol: "tcp"},
		{BindIP: "0.0.0.0", ContainerPort: 80, HostPort: 8081, Protocol: "tcp"},
		{BindIP: "::", ContainerPort: 80, HostPort: 7000, Protocol: "udp"},
		{BindIP: "0.0.0.0", ContainerPort: 8080, HostPort: 49154, Protocol: "tcp"},
	}
	if got := bindings(c); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestList_PassesOverWhatIsRemovedMeanwhileAndFailsWithTheEngine(t *testing.T) {
	s := newStub(t)
	s.on("GET /containers/json", give([]container.Summary{{ID: "c1"}, {ID: "gone"}}))
	s.on("GET /containers/c1/json", give(aContainer(container.State{Status: "created"})))
	e := s.engine(t, patient())
	all, err := e.List(t.Context())
	if err != nil || len(all) != 1 || all[0].RuntimeID != "c1" {
		t.Fatalf("%+v, %v, want c1 alone", all, err)
	}
	s.on("GET /containers/gone/json", say(http.StatusInternalServerError, "no"))
	if _, err := e.List(t.Context()); !fault.Is(err, fault.Unavailable) {
		t.Errorf("%v, want unavailable: a list that lacks containers would be believed", err)
	}
}

func TestHardware_IsTheBestThereIs(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text + "\n")} }
	board := hardware(fstest.MapFS{boardFile: file("EC2E1916-9099-7CAF-FD21-012345ABCDEF"), machineFile: file("m1")}, "e1")
	if board != hardware(fstest.MapFS{boardFile: file("ec2e1916-9099-7caf-fd21-012345abcdef"), machineFile: file("m2")}, "e2") {
		t.Error("a board's id is not the same in both cases of letters, or others mix in")
	}
	machine := hardware(fstest.MapFS{machineFile: file("m1")}, "e1")
	for _, junk := range []string{"00000000-0000-0000-0000-000000000000", "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF", "03000200-0400-0500-0006-000700080009", ""} {
		if got := hardware(fstest.MapFS{boardFile: file(junk), machineFile: file("m1")}, "e1"); got != machine {
			t.Errorf("with the board's id %q it is %s, want the machine's %s", junk, got, machine)
		}
	}
	engine := hardware(fstest.MapFS{machineFile: file("uninitialized")}, "e1")
	if board == machine || machine == engine || engine != hardware(fstest.MapFS{}, "e1") || engine == hardware(fstest.MapFS{}, "e2") {
		t.Errorf("board %s, machine %s, engine %s", board, machine, engine)
	}
}

func TestArch_IsECSs(t *testing.T) {
	for engine, want := range map[string]string{"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "arm64", "arm64": "arm64", "riscv64": "riscv64"} {
		if got := arch(engine); got != want {
			t.Errorf("%s is %s, want %s", engine, got, want)
		}
	}
}
